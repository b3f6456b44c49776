"""Does the motion of its coupler tell the lengths of a four-bar linkage?

The crank turns; its angle and the place of a point of the coupler are measured, with
noise. Lengths of crank, coupler and rocker, the distance of the fixed joints and the
place of the point are fitted. The true crank angle at each time is unknown too: it is
fitted with the lengths, so that errors of the angle are no errors of the lengths. The
loop is closed by Newton's method wherever the search goes.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.figure
import numpy as np
from jaxtyping import Array, Float

import jaxdyn as jd
from experiments.parts.linkage_fits import assembled, closed
from experiments.reports import Report
from jaxdyn import identify
from jaxdyn.io import Figure, Table

WORDS = {
    "j_coupler.p_x": "crank",
    "j_rocker.p_x": "distance of the fixed joints",
    "loop 0.p_a_x": "coupler",
    "loop 0.p_b_x": "rocker",
    "point.p_x": "point, along the coupler",
    "point.p_y": "point, across it",
}


@dataclass(frozen=True)
class Config:
    """The settings of configs/four_bar_fit.toml."""

    true: list[float]  # in the order of WORDS, m
    start: list[float]
    passive: list[float]  # angles of coupler and rocker near crank angle 0
    samples: int
    angle_noise: float
    place_noise: float
    repetitions: int
    seed: int


class Seen(eqx.Module):
    """A crank angle and the place of the point, as measured, and a guess of q."""

    angle: Float[Array, "*rows"]
    place: Float[Array, "*rows 2"]
    q: Float[Array, "*rows 3"]
    number: Any


class Coupler(eqx.Module):
    """Computed less measured, at a crank angle that is unknown itself."""

    angle_noise: float
    place_noise: float

    def rows(self, model: jd.Model, data: Seen) -> Seen:
        """The measurements are rows already."""
        return data

    def unknowns(self, rows: Seen) -> Any:
        """Steps from the measured crank angles."""
        return jnp.zeros_like(rows.angle)

    def __call__(self, model: jd.Model, unknowns: Any, row: Seen) -> Any:
        """The residual of one row."""
        step = unknowns[row.number]
        q = closed(model, row.q[1:], row.angle + step)
        place = jd.frame_poses(model, q).p[0, :2]
        apart = (place - row.place) / self.place_noise
        return jnp.concatenate([step[None] / self.angle_noise, apart])


def run(config: Config, folder: Path) -> Report:
    """The fits, with a figure in the folder."""
    model = linkage(config.true)
    qs, places = turned(config, model)
    rng = np.random.default_rng(config.seed)
    start = linkage(config.start)
    guess, first = turned(config, start)
    exact = fitted(config, start, guess, (qs, places), None)
    fits = [
        fitted(config, start, guess, (qs, places), rng)
        for _ in range(config.repetitions)
    ]
    paths = {"start": first, "found": turned(config, fits[0].model)[1]}
    plot(places, paths, folder / "paths.png")
    return Report(
        "four_bar_fit",
        "Lengths of a four-bar linkage from the motion of its coupler",
        "\n".join((__doc__ or "").splitlines()[2:]),
        [found_table(config, exact, fits), coverage_table(config, fits)],
        [Figure("paths.png", "Paths of the coupler point: true, at the start, found.")],
    )


def linkage(lengths: list[float]) -> jd.Model:
    """A four-bar with these lengths, and a frame at the point of its coupler."""
    b = jd.ModelBuilder("four_bar", gravity=(0.0, -9.81, 0.0))
    crank, base, coupler, rocker, *point = lengths
    for name, parent, place, length in (
        ("crank", None, 0.0, crank),
        ("coupler", "crank", crank, coupler),
        ("rocker", None, base, rocker),
    ):
        rod = jd.Inertial.rod(1.0, (0, 0, 0), (length, 0, 0))
        b.add_body(name, parent, "revolute", p=(place, 0.0, 0.0), inertial=rod)
    ends = ((length, 0.0, 0.0) for length in (coupler, rocker))
    b.add_loop("coupler", next(ends), "rocker", next(ends), axes=(0, 1))
    b.add_frame("point", "coupler", p=(*point, 0.0))
    return b.build()


def turned(config: Config, model: jd.Model) -> tuple[np.ndarray, np.ndarray]:
    """Closed configurations over a turn of the crank, and the places of the point."""
    angles = jnp.linspace(0.0, 2 * jnp.pi, config.samples + 1)[:-1]
    qs, poses = _turned(model, jnp.asarray(config.passive), angles)
    return np.asarray(qs), np.asarray(poses.p[:, 0, :2])


@jax.jit
def _turned(model: jd.Model, passive: Any, angles: Any) -> tuple[Any, Any]:
    path = jnp.concatenate([angles[:1], angles])  # the first gets there
    qs = assembled(model, passive, path)[1:]
    return qs, jax.vmap(jd.frame_poses, (None, 0))(model, qs)


def fitted(
    config: Config, start: jd.Model, guess: np.ndarray, true: tuple, rng: Any
) -> identify.Fit:
    """The lengths from measurements with noise; without any if there is no rng."""
    qs, places = true
    normal = rng.normal if rng is not None else lambda size: np.zeros(size)
    angle = qs[:, 0] + config.angle_noise * normal(size=len(qs))
    place = places + config.place_noise * normal(size=places.shape)
    arrays = (jnp.asarray(x) for x in (angle, place, guess))
    seen = Seen(*arrays, number=jnp.arange(len(qs)))
    chosen = identify.choose(start, list(WORDS))
    residual = Coupler(config.angle_noise, config.place_noise)
    return identify.fit(chosen, residual, seen, validation=0)


def truth(config: Config, fit: identify.Fit) -> np.ndarray:
    """The true values, in the order of the fit."""
    known = dict(zip(WORDS, config.true, strict=True))
    return np.array([known[name] for name in fit.names])


def found_table(config: Config, exact: identify.Fit, fits: list) -> Table:
    """Start, truth, found without and with noise."""
    first, true = exact.parameters.values(0 * exact.theta), truth(config, exact)
    rows = [
        [
            WORDS[name],
            float(first[k]),
            true[k],
            f"{abs(float(exact.values[k]) - true[k]):.0e}",
            float(fits[0].values[k]),
            float(fits[0].std[k]),
        ]
        for k, name in enumerate(exact.names)
    ]
    head = ["(m)", "start", "true", "error without noise", "found with noise", "std"]
    return Table("Lengths", head, rows)


def coverage_table(config: Config, fits: list[identify.Fit]) -> Table:
    """How often intervals hold the truth."""
    true = truth(config, fits[0])
    ends = np.array([x.interval().T for x in fits])
    holds = (ends[:, 0] < true) & (true < ends[:, 1])
    spread = np.std([x.values for x in fits], axis=0, ddof=1)
    std = np.mean([x.std for x in fits], axis=0)
    rows = [
        [WORDS[name], f"{holds[:, k].sum()} of {len(fits)}", spread[k], std[k]]
        for k, name in enumerate(fits[0].names)
    ]
    head = ["", "95 % intervals with the truth", "spread of the fits", "mean std"]
    return Table("Repeated with other noise", head, rows)


def plot(places: np.ndarray, paths: dict[str, np.ndarray], file: Path) -> None:
    """The paths of the point."""
    figure = matplotlib.figure.Figure(figsize=(7, 5), layout="constrained")
    axes, loop = figure.subplots(), [*range(len(places)), 0]
    axes.plot(*places[loop].T, "k", lw=4, alpha=0.35, label="true")
    for style, (name, path) in zip(("C1--", "C0-"), paths.items(), strict=True):
        axes.plot(*path[loop].T, style, lw=1.5, label=name)
    axes.set(xlabel="x (m)", ylabel="y (m)", title="Path of the coupler point")
    axes.set_aspect("equal")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(file, dpi=130)
