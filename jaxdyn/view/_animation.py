"""A motion as one page that needs no network: the robot, its controls, its plots."""

import base64
import json
import os
import re
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from jaxdyn.model import Model
from jaxdyn.view._colors import body_colors
from jaxdyn.view._coordinates import SI, Units, kinds_in, positions, quantities, rates
from jaxdyn.view._samples import Samples, samples
from jaxdyn.view._scene import TRACES, Floor, Scene, scene
from jaxdyn.view._skeleton import Motion, motion
from jaxdyn.view._solids import quaternions

_BYTES = 2_100_000  # of samples and shapes in a page, so that it stays under 8 MB
_SHAPE = 2_500  # bytes of the shape of a body
_FEWEST = 300  # samples, where there are so many: slow motion stays smooth


def save_animation(
    model: Model,
    ts: Any,
    q: Any,
    path: str | os.PathLike[str],
    *,
    qd: Any = None,
    tau: Any = None,
    title: str | None = None,
    fps: float = 60.0,
    units: Units = SI,
) -> Path:
    """Save a page that shows the motion, and return its path.

    The page is one file with everything in it: the robot in 3-D (drag to orbit, scroll
    to zoom), play, pause, speed and time, and plots with a cursor at that time.

    Args:
        ts, q: times [times] and positions [times, nq]. Between rows the page blends
            the poses of the bodies: a row each 1/30 s looks right.
        qd, tau: rates and joint forces [times, nv], plotted where given.
        title: what stands above; the name of the robot unless given.
        fps: how many rows for each unit of time the page keeps, if it can.

    Raises:
        ValueError: the arrays do not fit the model; see `samples`.
    """
    if not fps > 0.0:
        raise ValueError(f"fps is {fps}, expected a positive number.")
    rows = samples(model, ts, q, qd=qd, tau=tau)
    rows = rows.at(_kept(rows, model, fps))
    moved = motion(model, rows.q)
    shown = scene(model, moved)
    title = model.name if title is None else title
    data = {
        "title": title,
        "timeUnit": units.time,
        "times": _floats(rows.ts - rows.ts[0]),
        "start": float(rows.ts[0]),
        "poses": {
            "positions": _floats(moved.p[:, :-1]),
            "quaternions": _floats(quaternions(moved.R[:, :-1])),
        },
        "scene": _scene_data(model, shown, moved, units),
        "plots": _plots(model, rows, units),
    }
    page = _fill(title, json.dumps(data, separators=(",", ":"), allow_nan=False))
    path = Path(path)
    path.write_text(page, encoding="utf-8")
    return path


def _kept(rows: Samples, model: Model, fps: float) -> np.ndarray:
    """Which rows the page keeps: evenly spread in time."""
    count = len(rows.ts)
    width = 7 * model.n + model.nq + 2 * model.nv
    duration = rows.ts[-1] - rows.ts[0]
    room = max(_BYTES - _SHAPE * model.n, _BYTES // 4)
    wanted = min(max(_FEWEST, fps * duration), max(room / (4 * width), 2))
    if count <= wanted:
        return np.arange(count)
    times = np.linspace(rows.ts[0], rows.ts[-1], int(wanted))
    after = np.clip(np.searchsorted(rows.ts, times), 1, count - 1)
    nearer = times - rows.ts[after - 1] < rows.ts[after] - times
    return np.unique(np.where(nearer, after - 1, after))


def _scene_data(
    model: Model, shown: Scene, moved: Motion, units: Units
) -> dict[str, Any]:
    surface = shown.solid
    i, j, k = surface.faces.T
    colors = body_colors(model.n)
    palette, index = np.unique(shown.colors, return_inverse=True)
    return {
        "vertices": _floats(surface.vertices),
        "bodies": _integers(surface.bodies),
        "colors": _integers(index[surface.colors]),
        "palette": palette.tolist(),
        "faces": {"i": _integers(i), "j": _integers(j), "k": _integers(k)},
        "up": shown.up.tolist(),
        "eye": shown.eye.tolist(),
        "bounds": shown.bounds.tolist(),
        "floor": None if shown.floor is None else _floor_data(shown.floor, units),
        "traces": [
            {
                "name": tip.name,
                "color": colors[tip.body],
                "points": _floats(moved.of(tip.body, tip.place)),
            }
            for tip in shown.lines.tips[:TRACES]
        ],
    }


def _floor_data(floor: Floor, units: Units) -> dict[str, Any]:
    return {
        "center": floor.center.tolist(),
        "along": floor.along.tolist(),
        "tiles": floor.tiles,
        "spacing": floor.spacing,
        "label": f"grid {floor.spacing:g} {units.length}",
    }


def _plots(model: Model, rows: Samples, units: Units) -> list[dict[str, Any]]:
    """One plot for each quantity and kind of coordinate."""
    colors, found = body_colors(model.n), []
    letters = {"q": positions(model), "qd": rates(model), "tau": rates(model)}
    for letter, entries in letters.items():
        values = getattr(rows, letter)
        if values is None:
            continue
        quantity = quantities(units)[letter]
        for kind, columns in kinds_in(entries).items():
            lines = [
                {
                    "name": entries[k].name,
                    "color": colors[entries[k].body],
                    "part": entries[k].part,
                    "values": _floats(values[:, k]),
                }
                for k in columns
            ]
            found.append({"title": quantity.title(kind), "lines": lines})
    return found


def _fill(title: str, data: str) -> str:
    from plotly.offline import get_plotlyjs  # slow to load, needed here alone

    folder = resources.files("jaxdyn.view")
    page = folder.joinpath("page.html").read_text(encoding="utf-8")
    player = folder.joinpath("player.js").read_text(encoding="utf-8")
    data = data.replace("<", r"\u003c")  # no name ends the script or hides its end
    fillings = {"TITLE": escape(title), "PLOTLY": get_plotlyjs(), "DATA": data}
    fillings["PLAYER"] = player
    return re.sub(r"{{(\w+)}}", lambda found: fillings[found[1]], page)


def _floats(values: np.ndarray) -> str:
    with np.errstate(over="ignore"):
        single = np.asarray(values, "<f4")
    if not np.isfinite(single).all():
        raise ValueError(
            "the motion has numbers beyond 3e38 or none at all, expected single "
            "precision to hold them: look for a simulation that has diverged."
        )
    return base64.b64encode(single.tobytes()).decode("ascii")


def _integers(values: np.ndarray) -> str:
    return base64.b64encode(np.asarray(values, "<u4").tobytes()).decode("ascii")
