"""Simulations of the PUMA 560 under the torques of a straight path of its tool."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import jaxdyn as jd
from experiments.parts.open_loop import (
    carried,
    departures,
    evaluations,
    growth,
    state_matrices,
    step_control,
    transitions,
)
from jaxdyn import motion

TORQUES = ("exact", "linear", "held")
Six = tuple[float, float, float, float, float, float]
Three = tuple[float, float, float]


@dataclass(frozen=True)
class Speed:
    """How fast the tool goes: the duration or the speed, and a reference."""

    name: str
    reference: Path
    duration: float | None = None
    speed: float | None = None

    def seconds(self, length: float) -> float:
        """The duration of a path of some length."""
        if self.duration is not None:
            return self.duration
        if self.speed is None:
            raise ValueError(f"speed {self.name!r} has neither duration nor speed.")
        return length / self.speed


@dataclass(frozen=True)
class Published:
    """[Mata] Tables 6 and 7."""

    q: Six
    qd: Six
    qdd: Six
    evaluations: tuple[int, int, int]
    seconds: Three


@dataclass(frozen=True)
class Config:
    """The settings of configs/puma_line.toml."""

    start: Three
    end: Three
    attitude: Three
    guess: Six
    interval: float
    tolerance: float
    tolerances: list[float]
    methods: list[str]
    rows: int
    averaged: int
    nodes: int
    growth_steps: int
    probe: float
    threshold: float
    repeats: int
    speeds: list[Speed]
    published: Published


class Pieces(eqx.Module):
    """Torques that are polynomials of time in each of some intervals."""

    starts: Float[Array, " intervals"]
    lengths: Float[Array, " intervals"]
    coefficients: Float[Array, "intervals powers nv"]

    def __call__(self, t: Any, q: Any = None, qd: Any = None) -> Any:
        """The torques at a time; the state does not matter."""
        k = jnp.searchsorted(self.starts, t, side="right") - 1
        k = jnp.clip(k, 0, len(self.starts) - 1)
        u = (t - self.starts[k]) / self.lengths[k]
        powers = u ** jnp.arange(self.coefficients.shape[1], dtype=u.dtype)
        return powers @ self.coefficients[k]


def intervals(duration: float, interval: float) -> tuple[np.ndarray, np.ndarray]:
    """Starts and lengths of intervals, the last of which may be shorter."""
    count = math.ceil(duration / interval - 1e-9)
    starts = interval * np.arange(count)
    return starts, np.minimum(interval, duration - starts)


def pieces(starts: Any, lengths: Any, u: Any, taus: Any, kind: str) -> Pieces:
    """Torques from samples at the parts u, from 0 to 1, of each interval."""
    taus = np.asarray(taus).reshape(len(starts), len(u), -1)
    fitted = np.zeros_like(taus)
    if kind == "exact":
        fitted = np.linalg.solve(np.vander(u, increasing=True), taus)
    else:
        fitted[:, 0] = taus[:, 0]
    if kind == "linear":
        fitted[:, 1] = taus[:, -1] - taus[:, 0]
    return Pieces(*(jnp.asarray(x) for x in (starts, lengths, fitted)))


@dataclass(frozen=True)
class Line:
    """A path at one speed: motion, torques and growth of deviations."""

    model: jd.Model
    duration: float
    ts: np.ndarray
    wanted: Any
    laws: dict[str, Pieces]
    growth_ts: np.ndarray
    phi: np.ndarray
    law_error: float

    @property
    def growth(self) -> np.ndarray:
        """The largest growth of a deviation at `growth_ts`."""
        return growth(self.phi)


@jax.jit
def sampled(path: motion.StraightLine, model: jd.Model, ts: Any) -> tuple[Any, Any]:
    """The motion along the path and its torques at many times."""
    law = motion.feedforward(model, path)
    return jax.vmap(lambda t: (path(t), law(t)))(ts)


def tool_path(config: Config, duration: float) -> tuple[jd.Model, motion.StraightLine]:
    """The robot and the motion of its joints."""
    model = jd.robots.puma_560()
    path = motion.straight_line(
        model,
        "tool",
        jnp.asarray(config.start),
        jnp.asarray(config.end),
        duration,
        attitude=jnp.asarray(attitude(config.attitude)),
        q0=jnp.asarray(config.guess),
        law="constant_speed",
    )
    return model, path


def attitude(degrees: Three) -> np.ndarray:
    """The rotation by angles about z, then y, then z of the turned frame."""
    one, two, three = np.deg2rad(degrees)

    def about_z(a: float) -> np.ndarray:
        c, s = np.cos(a), np.sin(a)
        return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])

    c, s = np.cos(two), np.sin(two)
    about_y = np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    return about_z(one) @ about_y @ about_z(three)


def prepare(config: Config, speed: Speed, count: int) -> tuple[Line, float]:
    """A path at one speed with `count` intervals, and its error beside the reference.

    The intervals that it does not need come after its end.
    """
    length = float(np.linalg.norm(np.subtract(config.end, config.start)))
    duration = speed.seconds(length)
    model, path = tool_path(config, duration)
    reference = load_samples(speed.reference)
    starts, lengths = intervals(duration, config.interval)
    spare = count - len(starts)
    starts = np.append(starts, duration + 1 + np.arange(spare))
    lengths = np.append(lengths, np.ones(spare))
    u = (1 - np.cos(np.pi * np.linspace(0, 1, config.nodes))) / 2
    knots = np.minimum((starts[:, None] + lengths[:, None] * u).ravel(), duration)
    halves = np.linspace(0, duration, 2 * config.growth_steps + 1)
    rows = np.linspace(0, duration, config.rows)
    known = np.resize(np.array(reference["t"]), count + 1)
    parts = [knots, halves, rows, known]
    at, tau = sampled(path, model, jnp.asarray(np.concatenate(parts)))
    cuts = np.cumsum([len(x) for x in parts])[:-1]
    at = [
        jax.tree.map(lambda x, p=p: x[p], at)
        for p in np.split(np.arange(len(tau)), cuts)
    ]
    taus = np.split(np.asarray(tau), cuts)
    laws = {kind: pieces(starts, lengths, u, taus[0], kind) for kind in TORQUES}
    A = state_matrices(model, at[1].q, at[1].qd, jnp.asarray(taus[1]))
    phi = transitions(A, jnp.asarray(duration / config.growth_steps))
    fitted = jax.vmap(laws["exact"])(jnp.asarray(halves))
    wrong = float(np.abs(np.asarray(fitted) - taus[1]).max())
    line = Line(model, duration, rows, at[2], laws, halves[::2], np.asarray(phi), wrong)
    return line, compared(taus[3], reference)


def compared(tau: Any, reference: Any) -> float:
    """The error of torques relative to the largest of the reference."""
    known = np.array(reference["tau"])
    return float(np.abs(tau[: len(known)] - known).max() / np.abs(known).max())


def load_samples(path: Path) -> Any:
    """The motion and its torques by independent software."""
    return json.loads(path.read_text(encoding="utf-8"))["samples"]


def simulate(
    line: Line,
    method: str,
    kind: str,
    tolerance: float,
    largest_step: float | None = None,
    start: Any = None,
    ts: Any = None,
) -> jd.Trajectory:
    """The motion under the torques from a state, by default that of the path."""
    q, qd = (line.wanted.q[0], line.wanted.qd[0]) if start is None else start
    return jd.simulate(
        line.model,
        q,
        qd,
        jnp.asarray(line.ts if ts is None else ts),
        torque=line.laws[kind],
        method=method,
        stepsize_controller=step_control(tolerance, largest_step or line.duration),
        throw=False,
    )


def restarted(line: Line, method: str, kind: str, config: Config) -> tuple[int, Any]:
    """Evaluations, and the end of an integration that starts anew in each interval."""
    count, state = 0, None
    starts, lengths = intervals(line.duration, config.interval)
    for begin, length in zip(starts, lengths, strict=True):
        ts = np.linspace(begin, begin + length, config.rows)
        part = simulate(line, method, kind, config.tolerance, None, state, ts)
        count, state = count + evaluations(part), (part.q[-1], part.qd[-1])
    return count, state


def errors(line: Line, found: jd.Trajectory, name: str) -> np.ndarray:
    """By how much q, qd or qdd differ from those of the path."""
    return np.asarray(getattr(found, name)) - np.asarray(getattr(line.wanted, name))


def mean_errors(line: Line, found: jd.Trajectory, averaged: int) -> dict[str, Any]:
    """Mean errors of each joint over some of the rows, as in [Mata] Table 6."""
    every = (len(line.ts) - 1) // (averaged - 1)
    return {
        name: np.abs(errors(line, found, name)[::every]).mean(axis=0)
        for name in ("q", "qd", "qdd")
    }


def leaving(line: Line, found: jd.Trajectory, config: Config) -> tuple[Any, Any]:
    """When each joint leaves the path, and when it should by linear growth."""
    start = config.probe * line.duration
    k, row = (int(np.abs(ts - start).argmin()) for ts in (line.growth_ts, line.ts))
    names = ("q", "qd")
    here = np.concatenate([errors(line, found, name)[row] for name in names])
    later = carried(line.phi, k, here)[:, : line.model.nv]
    seen = departures(line.ts, errors(line, found, "q"), config.threshold)
    return seen, departures(line.growth_ts[k:], later, config.threshold)
