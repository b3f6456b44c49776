"""Do gradients through closed loops find the lengths and masses of a linkage?

A four-bar is fitted to the path of a point of its coupler: lengths of crank and
coupler, and the place of the point, by L-BFGS on the distance of the paths. At each
crank angle the loop is closed by Newton's method from the angle before, and the
gradient runs backward through all of that. Then the masses of coupler and rocker are
found from accelerations of the closed mechanism, by Gauss-Newton steps with Jacobians
of the forward dynamics of the loop in forward mode. Targets are made with other lengths
and masses, so that the truth is known. Gradients at the start are compared with central
differences.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib.figure
import numpy as np

import jaxdyn as jd
from experiments.parts.linkage_fits import (
    Fit,
    accelerations,
    assembled,
    closed_states,
    fit,
    gauss_newton,
    path,
    shaped,
)
from experiments.parts.timed_programs import QUICK
from experiments.reports import Report, Verdict
from jaxdyn.io import Figure, Table

SHAPE = ("crank (m)", "coupler (m)", "point, along (m)", "point, across (m)")
MASSES = ("coupler mass (kg)", "rocker mass (kg)")


@dataclass(frozen=True)
class Problem:
    """Where the search starts, what is true, and how long it goes on."""

    start: list[float]
    true: list[float]
    samples: int
    steps: int


@dataclass(frozen=True)
class Config:
    """The settings of configs/linkage_design.toml."""

    passive: list[float]  # angles of coupler and rocker near crank angle 0
    width: float
    design: Problem
    identification: Problem


def run(config: Config, folder: Path) -> Report:
    """Both fits, with figures in the folder."""
    model = jd.robots.four_bar()
    passive = jnp.asarray(config.passive)
    with ThreadPoolExecutor(2) as pool:  # compiling is most of the time
        masses = pool.submit(identified, config, model, passive)
        design, target, paths = designed(config, model, passive)
        masses = masses.result()
    plot_paths(model, config, target, paths, folder / "paths.png")
    plot_losses({"path": design, "masses": masses}, folder / "losses.png")
    return Report(
        "linkage_design",
        "A linkage from its coupler path, and its masses from accelerations",
        "\n".join((__doc__ or "").splitlines()[2:]),
        [
            found_table("Lengths from the path", SHAPE, config.design, design),
            found_table("Masses", MASSES, config.identification, masses),
            gradient_table({SHAPE: design, MASSES: masses}),
        ],
        [
            Figure("paths.png", "Paths of the coupler point, and the linkage."),
            Figure("losses.png", "The loss over the steps of both fits."),
        ],
        [verdict(config, design, masses)],
    )


def designed(
    config: Config, model: jd.Model, passive: Any
) -> tuple[Fit, np.ndarray, dict[str, np.ndarray]]:
    """The shape from the path; the path wanted, and those at the start and the end."""
    given, angles = config.design, crank_angles(config.design.samples)
    program = jax.jit(path, compiler_options=QUICK)

    def of(x: Any) -> np.ndarray:
        return np.asarray(program(model, passive, angles, jnp.asarray(x)))

    target = of(given.true)

    def loss(points: Any) -> Any:
        return ((points - target) ** 2).sum(axis=-1).mean()

    found = fit(
        lambda x: loss(path(model, passive, angles, x)),
        lambda x: loss(of(x)),
        given.start,
        given.steps,
        config.width,
    )
    return found, target, {"start": of(given.start), "found": of(found.found)}


def identified(config: Config, model: jd.Model, passive: Any) -> Fit:
    """The masses of coupler and rocker from accelerations at closed states."""
    given, angles = config.identification, crank_angles(config.identification.samples)
    make = jax.jit(closed_states, static_argnums=3, compiler_options=QUICK)
    states = make(model, passive, angles, 0)
    program = jax.jit(accelerations, compiler_options=QUICK)

    def of(masses: Any) -> np.ndarray:
        return np.asarray(program(model, states, jnp.asarray(masses)))

    measured = of(given.true)
    return gauss_newton(
        lambda x: (accelerations(model, states, x) - measured).ravel(),
        lambda x: ((of(x) - measured) ** 2).mean(),
        given.start,
        given.steps,
        config.width,
    )


def crank_angles(count: int) -> jax.Array:
    """A turn of the crank."""
    return jnp.linspace(0.0, 2 * jnp.pi, count + 1)[:-1]


def found_table(caption: str, names: Any, given: Problem, found: Fit) -> Table:
    """Start, found and true."""
    rows = [
        [name, start, f"{x:.12f}", true, f"{abs(x - true):.0e}"]
        for name, start, x, true in zip(
            names, given.start, found.found, given.true, strict=True
        )
    ]
    head = ["", "start", "found", "true", "error"]
    return Table(f"{caption}: {len(found.losses)} steps", head, rows)


def gradient_table(fits: dict[Any, Fit]) -> Table:
    """Gradients at the start, by differentiation and by differences."""
    rows = [
        [name, f"{a:.10f}", f"{b:.10f}", f"{abs(a - b):.0e}"]
        for names, x in fits.items()
        for name, a, b in zip(names, x.gradient, x.differences, strict=True)
    ]
    head = ["slope of the loss by", "differentiation", "central differences", "apart"]
    return Table("Gradients at the start", head, rows)


def relative(found: Fit) -> float:
    """The distance of the gradient from differences, relative to the largest entry."""
    apart = np.abs(found.gradient - found.differences).max()
    return float(apart / np.abs(found.differences).max())


def verdict(config: Config, design: Fit, masses: Fit) -> Verdict:
    """Whether passive joints are in the way."""
    error = np.abs(design.found - config.design.true).max()
    weight = np.abs(masses.found - config.identification.true).max()
    slope = max(relative(design), relative(masses))
    holds = error < 1e-6 and weight < 1e-6 and slope < 1e-6
    return Verdict(
        "[Ghosal] lecture 30",
        "it is impractical to eliminate passive joints; they are kept, with "
        "multipliers for the loops",
        "reproduced" if holds else "not reproducible",
        f"with all joints kept, gradients are {slope:.0e} from central differences, "
        f"relative to the largest entry; lengths are found to {error:.0e} m "
        f"from a path, and masses to {weight:.0e} kg from accelerations.",
    )


def plot_paths(
    model: jd.Model, config: Config, target: Any, paths: dict[str, Any], file: Path
) -> None:
    """The paths, and the true linkage at some angles."""
    figure = matplotlib.figure.Figure(figsize=(8, 6), layout="constrained")
    axes, closed = figure.subplots(), [*range(len(target)), 0]
    angles = crank_angles(config.design.samples)
    true = shaped(model, jnp.asarray(config.design.true[:2]))
    qs = assembled(true, jnp.asarray(config.passive), angles)
    for k in range(0, len(angles), max(1, len(angles) // 6)):
        joints = np.asarray(jd.forward_kinematics(true, qs[k]).p)[:, :2]
        rocker = float(qs[k, 2])
        tip = joints[2] + 0.6 * np.array([np.cos(rocker), np.sin(rocker)])
        point = np.asarray(target)[k]
        line = np.stack([joints[0], joints[1], tip, joints[2]])
        axes.plot(*line.T, "o-", color="0.75", lw=1, ms=3, zorder=1)
        plate = np.stack([joints[1], point, tip])
        axes.fill(*plate.T, color="0.6", alpha=0.12, lw=0, zorder=0)
    axes.plot(*np.asarray(target)[closed].T, "k", lw=4, alpha=0.35, label="wanted")
    for k, (name, points) in enumerate(paths.items()):
        style = ("C1--", "C0-")[k]
        axes.plot(*points[closed].T, style, lw=1.5, label=name)
    axes.set(xlabel="x (m)", ylabel="y (m)", title="Path of the coupler point")
    axes.set_aspect("equal")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(file, dpi=130)


def plot_losses(fits: dict[str, Fit], file: Path) -> None:
    """Losses over the steps."""
    figure = matplotlib.figure.Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    labels = {"path": "path (m²)", "masses": "accelerations (rad²/s⁴)"}
    for name, x in fits.items():
        axes.semilogy(np.maximum(x.losses, 1e-34), "o-", ms=3, label=labels[name])
    axes.set(xlabel="step", ylabel="mean squared distance")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(file, dpi=130)
