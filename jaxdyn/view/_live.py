"""A robot in the browser, live: a motion to play, or joints to move by hand."""

import re
import threading
import time
import webbrowser
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.algorithms.kinematics import integrate, neutral
from jaxdyn.model import Model
from jaxdyn.view._coordinates import SI, Units, positions, quantities, rates
from jaxdyn.view._samples import Samples, samples
from jaxdyn.view._skeleton import motion
from jaxdyn.view._stage import Stage, close, viser_server

_READINGS = 14  # joint values that can be read at a glance
_SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
_FRAME = 1.0 / 30.0
_REACH = 64  # poses that tell how far a robot reaches


class Player:
    """A motion that plays in all browsers that look at it.

    Attributes:
        url: where the browser finds it.
        now: the time that is shown.
        is_playing: whether time goes on.
    """

    def __init__(
        self,
        model: Model,
        rows: Samples,
        server: Any,
        units: Units,
        look: str | None = None,
    ):
        self.url = _url(server)
        self.now = float(rows.ts[0])
        self.is_playing = False
        self._rows, self._server = rows, server
        self._names = [entry.name for entry in positions(model)]
        kinds = [entry.kind for entry in positions(model)]
        self._units = [quantities(units)["q"].unit(kind) for kind in kinds]
        moved = motion(model, rows.q)
        traces = len(rows.ts) > 1
        self._stage = Stage(model, moved, server, look=look, traces=traces)
        self._lock = threading.RLock()
        self._end = threading.Event()
        self._controls(units)
        self.seek(self.now)

    def seek(self, t: float) -> None:
        """Show the row nearest to a time."""
        with self._lock, self._server.atomic():
            ts = self._rows.ts
            self.now = float(np.clip(t, ts[0], ts[-1]))
            row = int(np.argmin(np.abs(ts - self.now)))
            self._stage.show(row)
            self._time.value = self.now
            self._readings.content = self._table(row)

    def play(self) -> None:
        """Let time go on, from the start if it has come to its end."""
        with self._lock:
            if self.now >= self._rows.ts[-1]:
                self.now = float(self._rows.ts[0])
            self.is_playing = True
            self._button.label = "pause"

    def pause(self) -> None:
        """Let time stand still."""
        with self._lock:
            self.is_playing = False
            self._button.label = "play"

    def run(self) -> None:
        """Move the time while it plays, until `stop` is called."""
        last = time.perf_counter()
        while not self._end.wait(_FRAME):
            here = time.perf_counter()
            passed, last = (here - last) * float(self._speed.value), here
            if self.is_playing:
                self._advance(passed)

    def stop(self) -> None:
        """Close the server."""
        self._end.set()
        close(self._server)

    def _advance(self, passed: float) -> None:
        ts = self._rows.ts
        if self.now + passed < ts[-1]:
            self.seek(self.now + passed)
        elif self._repeat.value:
            self.seek(ts[0])
        else:
            self.seek(ts[-1])
            self.pause()

    def _controls(self, units: Units) -> None:
        gui, ts = self._server.gui, self._rows.ts
        span = max(float(ts[-1] - ts[0]), 1e-12)
        self._button = gui.add_button("play")
        self._time = gui.add_slider(
            f"time ({units.time})",
            min=float(ts[0]),
            max=float(ts[0]) + span,
            step=span / 1000.0,
            initial_value=self.now,
        )
        usual = 0.5 <= span <= 120.0
        base = 1.0 if usual else 10.0 ** round(np.log10(span / 5.0))
        speeds = [f"{factor * base:g}" for factor in _SPEEDS]
        self._speed = gui.add_dropdown("speed", speeds, initial_value=f"{base:g}")
        self._repeat = gui.add_checkbox("repeat", True)
        self._readings = gui.add_markdown("")

        @self._button.on_click
        def _(event: Any) -> None:
            (self.pause if self.is_playing else self.play)()

        @self._time.on_update
        def _(event: Any) -> None:
            if event.client is not None:  # moved by hand, not by the clock
                self.pause()
                self.seek(self._time.value)

    def _table(self, row: int) -> str:
        if len(self._names) > _READINGS:
            return ""
        rows = zip(self._names, self._rows.q[row], self._units, strict=True)
        lines = [f"| {_escaped(name)} | {x:.4f} | {unit} |" for name, x, unit in rows]
        return "\n".join(["| joint | position | unit |", "|---|---:|---|", *lines])


def _escaped(name: str) -> str:
    """A name as Markdown that shows it: no letter of it is markup."""
    return re.sub(r"[^\w .-]", lambda found: f"&#{ord(found[0])};", name)


class Poser:
    """A robot whose joints follow sliders.

    Attributes:
        url: where the browser finds it.
        q: the pose that is shown.
    """

    def __init__(
        self, model: Model, server: Any, units: Units, look: str | None = None
    ):
        self.url, self._model, self._server = _url(server), model, server
        self._end = threading.Event()
        self._lock = threading.Lock()
        self._step = jax.jit(integrate)
        low, high = _ranges(model)
        # the rails are as long as the sliders go, the floor is under all that moves
        reach = np.random.default_rng(0).uniform(low, high, (_REACH, model.nv))
        reach[:2] = low, high
        poses = np.stack([self._pose(v) for v in reach])
        moved = motion(model, poses)
        self._stage = Stage(model, moved, server, look=look, traces=False)
        self._sliders = []
        unit = quantities(units)["q"]
        for k, entry in enumerate(rates(model)):
            slider = server.gui.add_slider(
                f"{entry.name} ({unit.unit(entry.kind)})",
                min=float(low[k]),
                max=float(high[k]),
                step=float(high[k] - low[k]) / 1000.0 or 1.0,  # of a locked joint
                initial_value=float(np.clip(0.0, low[k], high[k])),
            )
            slider.on_update(lambda event: self._follow())
            self._sliders.append(slider)
        self._follow()

    def move(self, joint: str, value: float) -> None:
        """Set the slider of a coordinate given by its name."""
        names = [entry.name for entry in rates(self._model)]
        if joint not in names:
            raise ValueError(
                f"{joint!r} is not a coordinate of {self._model.name!r}, expected one "
                f"of: {', '.join(names)}."
            )
        self._sliders[names.index(joint)].value = value
        self._follow()

    def run(self) -> None:
        """Wait until `stop` is called."""
        self._end.wait()

    def stop(self) -> None:
        """Close the server."""
        self._end.set()
        close(self._server)

    def _pose(self, v: np.ndarray) -> np.ndarray:
        step = jnp.asarray(v, self._model.dtype)
        return np.asarray(self._step(self._model, neutral(self._model), step))

    def _follow(self) -> None:
        with self._lock, self._server.atomic():
            self.q = self._pose(np.array([slider.value for slider in self._sliders]))
            self._stage.put(motion(self._model, self.q[None]), 0)


def serve(
    model: Model,
    ts: Any = None,
    q: Any = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    open_browser: bool = True,
    block: bool = True,
    look: str | None = None,
    units: Units = SI,
    announce: Callable[[str], None] | None = None,
) -> Player | Poser:
    """Show a motion in the browser, or without one let the user move the joints.

    Args:
        ts, q: times [times] and positions [times, nq]; both or neither.
        port: where to listen; the next free one is taken if it is not free.
        block: whether to stay until Ctrl-C, or to go on and leave it to a thread.
        look: "visual" or "skeleton", as in `save_animation`.
        announce: is told the address.

    Raises:
        ValueError: viser is not installed, or the arrays do not fit the model.
    """
    if (ts is None) != (q is None):
        raise ValueError("one of ts and q is missing: give both, or neither.")
    rows = None if ts is None else samples(model, ts, q)
    server = viser_server(host, port, model.name)
    if rows is None:
        view = Poser(model, server, units, look)
    else:
        view = Player(model, rows, server, units, look)
    if announce is not None:
        announce(view.url)
    if open_browser:
        webbrowser.open(view.url)
    if not block:
        threading.Thread(target=view.run, daemon=True).start()
        return view
    try:
        view.run()
    except KeyboardInterrupt:
        pass  # the way to leave
    finally:
        view.stop()
    return view


def _url(server: Any) -> str:
    return f"http://{server.get_host()}:{server.get_port()}"


def _ranges(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """How far each slider goes: to the limits of the joint, else a turn or the size."""
    offsets = np.linalg.norm(np.asarray(model.p, float), axis=1)
    size = float(offsets.max()) or 1.0
    low, high = np.zeros(model.nv), np.zeros(model.nv)
    for k, entry in enumerate(rates(model)):
        half = np.pi if entry.kind == "angle" else size
        low[k], high[k] = -half, half
        if model.topology.types[entry.body].quaternion is not None:
            continue  # the limits are those of q, the sliders are tangents
        at = model.q_slice(entry.body).start + entry.part
        lower, upper = float(model.lower[at]), float(model.upper[at])
        low[k] = lower if np.isfinite(lower) else min(-half, upper - half)
        high[k] = upper if np.isfinite(upper) else max(half, lower + half)
    return low, high
