"""Does the motion of its tip tell the stiffness and the damping of a rope?

A rope on universal joints, all with one spring and one damper, swings from a horizontal
start. A camera sees its tip, with noise; the joints are not seen. Stiffness and damping
are fitted to that by Levenberg and Marquardt through the simulation, from a start that
is far away, again and again with other noise: how often do the intervals hold the
truth?
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.figure
import numpy as np

import jaxdyn as jd
from experiments.reports import Report
from jaxdyn import identify
from jaxdyn.io import Figure, Log, Table

LENGTH = 0.05  # of a cylinder, m
UNITS = {"stiffness": "N m/rad", "damping": "N m s/rad"}
STEPS = diffrax.PIDController(rtol=1e-6, atol=1e-8)  # far below the camera's noise


@dataclass(frozen=True)
class Config:
    """The settings of configs/rope_fit.toml."""

    cylinders: int
    stiffness: float
    damping: float
    start: list[float]  # stiffness and damping
    duration: float
    samples: int
    noise: float
    repetitions: int
    seed: int


def run(config: Config, folder: Path) -> Report:
    """The fits, with figures in the folder."""
    model, log, tips = swing(config)
    rng = np.random.default_rng(config.seed)
    fits = [
        fitted(config, model, log, tips + config.noise * rng.normal(size=tips.shape))
        for _ in range(config.repetitions)
    ]
    seen = tips + config.noise * rng.normal(size=tips.shape)
    plot_tips(log.ts, tips, seen, tip_paths(config, log), folder / "tip.png")
    plot_losses(fits, folder / "losses.png")
    return Report(
        "rope_fit",
        "Stiffness and damping of a rope from the motion of its tip",
        "\n".join((__doc__ or "").splitlines()[2:]),
        [found_table(config, fits), coverage_table(config, fits)],
        [
            Figure("tip.png", "The tip: true, seen, and of the rope at the start."),
            Figure("losses.png", "The loss over the steps of the fits."),
        ],
    )


def rope(config: Config, stiffness: float, damping: float) -> jd.Model:
    """A rope with the same spring and damper in every joint."""
    model = jd.robots.rope(config.cylinders)
    leaves = [jnp.full(model.nv, x) for x in (stiffness, damping)]
    return eqx.tree_at(lambda m: (m.stiffness, m.damping), model, leaves)


def tip(model: jd.Model, q: Any, qd: Any) -> Any:
    """Where the free end of the rope is."""
    poses = jd.forward_kinematics(model, q)
    return poses.p[-1] + poses.R[-1] @ jnp.asarray([LENGTH, 0.0, 0.0], q.dtype)


def moved(config: Config, model: jd.Model, ts: Any) -> tuple[Any, np.ndarray]:
    """The motion of a rope that starts horizontal and at rest, and that of its tip."""
    zero = jnp.zeros(model.nv)
    bent = zero.at[0::2].set(0.02)  # a little sideways, so that it swings in space
    motion = jd.simulate(model, bent, zero, ts, solver=diffrax.Tsit5())
    return motion, np.asarray(jax.vmap(tip, (None, 0, 0))(model, motion.q, motion.qd))


def swing(config: Config) -> tuple[jd.Model, Log, np.ndarray]:
    """The true rope, the state in which it starts, and the way of its tip."""
    model = rope(config, config.stiffness, config.damping)
    ts = jnp.linspace(0.0, config.duration, config.samples)
    motion, tips = moved(config, model, ts)
    # only the first row of positions and rates is used: the state at the start
    return model, Log(*map(np.asarray, (ts, motion.q, motion.qd))), tips


def chosen(config: Config, model: jd.Model) -> identify.Parameters:
    """One stiffness and one damping for all joints, far from the truth."""
    names = [
        [f"{joint}.{what}[{k}]" for joint in model.joint_names for k in (0, 1)]
        for what in ("stiffness", "damping")
    ]
    first = [group[0] for group in names]
    start = dict(zip(first, config.start, strict=True))
    return identify.choose(model, first, tied=names, start=start)


def fitted(config: Config, model: jd.Model, log: Log, seen: np.ndarray) -> identify.Fit:
    """The rope whose tip moves as was seen."""
    options = dict(solver=diffrax.Tsit5(), stepsize_controller=STEPS)
    residual = identify.Simulated(config.noise, measure=tip, y=seen, options=options)
    return identify.fit(chosen(config, model), residual, log)


def tip_paths(config: Config, log: Log) -> np.ndarray:
    """The way of the tip of the rope where the search starts."""
    return moved(config, rope(config, *config.start), jnp.asarray(log.ts))[1]


def known(fit: identify.Fit, stiffness: float, damping: float) -> np.ndarray:
    """These values in the order of the fit."""
    values = {"stiffness": stiffness, "damping": damping}
    return np.array([values[what] for what in kinds(fit)])


def kinds(fit: identify.Fit) -> list[str]:
    """What each value of the fit is: "stiffness" or "damping"."""
    return [name.rpartition(".")[2].partition("[")[0] for name in fit.names]


def found_table(config: Config, fits: list[identify.Fit]) -> Table:
    """Start, truth, and what the first fit found."""
    first = fits[0]
    start = known(first, *config.start)
    true = known(first, config.stiffness, config.damping)
    rows = [
        [f"{what} ({UNITS[what]})", start[k], true[k], float(first.values[k])]
        + [first.std[k], *first.interval()[k]]
        for k, what in enumerate(kinds(first))
    ]
    head = ["", "start", "true", "found", "std", "95 % from", "to"]
    return Table(f"Found in {len(first.losses)} steps", head, rows)


def coverage_table(config: Config, fits: list[identify.Fit]) -> Table:
    """How often intervals hold the truth, and how well their width is known."""
    true = known(fits[0], config.stiffness, config.damping)
    ends = np.array([x.interval().T for x in fits])
    holds = (ends[:, 0] < true) & (true < ends[:, 1])
    spread = np.std([x.values for x in fits], axis=0, ddof=1)
    std = np.mean([x.std for x in fits], axis=0)
    rows = [
        [what, f"{holds[:, k].sum()} of {len(fits)}", spread[k], std[k]]
        for k, what in enumerate(kinds(fits[0]))
    ]
    head = ["", "95 % intervals with the truth", "spread of the fits", "mean std"]
    return Table("Repeated with other noise", head, rows)


def plot_tips(
    ts: Any, true: np.ndarray, seen: np.ndarray, first: np.ndarray, file: Path
) -> None:
    """The coordinates of the tip over time."""
    figure = matplotlib.figure.Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots(3, sharex=True)
    for k, name in enumerate("xyz"):
        axes[k].plot(ts, first[:, k], "C1--", lw=1, label="at the start")
        axes[k].plot(ts, true[:, k], "k", lw=1, label="true")
        axes[k].plot(ts, seen[:, k], "C0.", ms=2, label="seen")
        axes[k].set(ylabel=f"{name} (m)")
        axes[k].grid(alpha=0.3)
    axes[0].legend(loc="upper right", ncols=3)
    axes[2].set(xlabel="t (s)")
    figure.savefig(file, dpi=130)


def plot_losses(fits: list[identify.Fit], file: Path) -> None:
    """Losses over the steps."""
    figure = matplotlib.figure.Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for x in fits:
        axes.semilogy(x.losses, "o-", ms=3, lw=1)
    axes.set(xlabel="step", ylabel="half the sum of squares")
    axes.grid(alpha=0.3)
    figure.savefig(file, dpi=130)
