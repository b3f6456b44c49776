"""The figures of the forced simulation of the PUMA of slender rods."""

from pathlib import Path
from typing import Any

import matplotlib.figure
import numpy as np

from experiments.parts.puma_forced import Config, Forced, Growth
from jaxdyn.io import Figure

NAMES = {"denoc": "recursive (DeNOC)", "composite": "non-recursive (Cholesky)"}
FLOOR = 1e-17


def torques(ts: Any, tau: Any, folder: Path) -> Figure:
    """[Mohan] Fig. 4."""
    figure, panels = _panels()
    for j, axes in enumerate(panels):
        axes.plot(ts, np.asarray(tau)[:, j], "k", lw=1.2)
        axes.set(title=f"joint {j + 1}", ylabel="torque, N m")
    return _save(figure, folder, "fig4_torques", "Fig. 4: torques of the motion.")


def angles(run: Forced, config: Config, folder: Path) -> Figure:
    """[Mohan] Fig. 5."""
    figure, panels = _panels()
    wanted, found = np.asarray(run.wanted.q), np.asarray(run.trajectory.q)
    for j, axes in enumerate(panels):
        axes.plot(run.ts, wanted[:, j], "k--", lw=1.2, label="desired")
        axes.plot(run.ts, found[:, j], "C0", lw=1, label="simulated")
        axes.axvline(config.published.recursive[j], color="C3", lw=0.8, ls=":")
        axes.set(title=f"joint {j + 1}", ylabel="angle, rad")
        low, high = wanted[:, j].min(), wanted[:, j].max()
        axes.set_ylim(low - 2, high + 2)
    panels[0].legend(fontsize=8)
    text = (
        "Fig. 5: desired and simulated angles, recursive method; dotted: printed "
        "duration up to which a joint is right (Table 3). Angles beyond the frame are "
        "cut off."
    )
    return _save(figure, folder, "fig5_angles", text)


def errors(
    runs: dict[str, Forced], growth: Growth, config: Config, folder: Path
) -> Figure:
    """[Mohan] Fig. 6, logarithmic."""
    figure, panels = _panels()
    first = next(iter(runs.values()))
    ts, predicted = growth.predicted(first, config.probe)
    is_shown = ts <= config.until
    for j, axes in enumerate(panels):
        for (method, run), line in zip(runs.items(), ("-", "--"), strict=True):
            error = np.maximum(np.abs(run.error("q")[:, j]), FLOOR)
            axes.semilogy(run.ts, error, line, lw=1.5, label=NAMES[method])
        linear = np.abs(predicted[is_shown, j])
        axes.semilogy(ts[is_shown], linear, "k:", label="linear growth")
        axes.axhline(config.threshold, color="0.6", lw=0.8)
        axes.set(title=f"joint {j + 1}", ylabel="error, rad", ylim=(1e-14, 1e2))
    panels[0].legend(fontsize=8)
    text = (
        f"Fig. 6: error of the angles by both methods (the lines coincide), and the "
        f"error at {config.probe} s carried on by the linearized dynamics."
    )
    return _save(figure, folder, "fig6_errors", text)


def accelerations(runs: dict[str, Forced], config: Config, folder: Path) -> Figure:
    """[Mohan] Fig. 7: joint 3."""
    figure = matplotlib.figure.Figure(figsize=(11, 4), layout="constrained")
    for axes, (method, run) in zip(figure.subplots(1, 2), runs.items(), strict=True):
        axes.plot(run.ts, np.asarray(run.wanted.qdd)[:, 2], "k--", lw=1, label="wanted")
        axes.plot(run.ts, np.asarray(run.trajectory.qdd)[:, 2], "C0", lw=1)
        axes.set(title=NAMES[method], xlabel="t, s", ylim=(-10, 10))
        axes.set_ylabel("acceleration of joint 3, rad/s²")
        axes.axvline(config.published.smooth_until, color="C3", lw=0.8, ls=":")
    text = (
        "Fig. 7: acceleration of joint 3 (dashed: desired; dotted: when the recursive "
        "one is printed to lose its smoothness)."
    )
    return _save(figure, folder, "fig7_accelerations", text)


def powers(runs: dict[str, Forced], config: Config, folder: Path) -> Figure:
    """[Mohan] Fig. 8."""
    figure = matplotlib.figure.Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    wanted = next(iter(runs.values())).powers[0]
    axes.plot(next(iter(runs.values())).ts, wanted, "k", lw=2, label="desired")
    for (method, run), line in zip(runs.items(), ("C0-", "C1--"), strict=True):
        axes.plot(run.ts, run.powers[1], line, lw=1.2, label=NAMES[method])
    size = 1.5 * np.abs(wanted).max()
    axes.set(xlabel="t, s", ylabel="power of the actuators, W", ylim=(-size, size))
    axes.legend()
    return _save(figure, folder, "fig8_power", "Fig. 8: desired and simulated power.")


def cpu_times(times: dict[tuple[str, float], Any], folder: Path) -> Figure:
    """[Mohan] Fig. 9."""
    figure = matplotlib.figure.Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for method in dict.fromkeys(m for m, _ in times):
        pairs = [pair for (m, _), pair in times.items() if m == method]
        axes.loglog(*zip(*pairs, strict=True), "o-", label=NAMES[method])
    axes.set(xlabel="steps", ylabel="time, s")
    axes.legend()
    axes.grid(alpha=0.3, which="both")
    text = "Fig. 9: time of a forced simulation against its steps, medians in turns."
    return _save(figure, folder, "fig9_cpu_time", text)


def growths(
    with_gravity: Growth, without: Growth, runs: list[Forced], folder: Path
) -> Figure:
    """The growth of deviations beside the observed errors."""
    figure = matplotlib.figure.Figure(figsize=(13, 5), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.semilogy(with_gravity.ts, with_gravity.largest, "C3", label="with gravity")
    left.semilogy(without.ts, without.largest, "C2", label="without gravity")
    left.set(xlabel="t, s", ylabel="largest singular value", title="growth of errors")
    left.legend()
    unit = np.finfo(float).eps
    for run in runs:
        error = np.abs(run.error("q")).max(axis=1)
        is_free = run.largest_step > run.ts[-1]
        bound = "free steps" if is_free else f"steps ≤ {run.largest_step:g} s"
        label = f"tolerance {run.tolerance:g}, {bound}"
        right.semilogy(run.ts, np.maximum(error, FLOOR), lw=1, label=label)
    is_shown = with_gravity.ts <= runs[0].ts[-1]
    rounding = unit * with_gravity.largest[is_shown]
    label = "growth x unit of rounding"
    right.semilogy(with_gravity.ts[is_shown], rounding, "k--", label=label)
    right.set(xlabel="t, s", ylabel="largest error, rad", ylim=(FLOOR, 1e2))
    right.set_title("observed errors, recursive method")
    right.legend(fontsize=8)
    text = (
        "Largest singular value of the transition matrix along the desired motion, and "
        "the errors of forced simulations: what is lost at once grows by the same law."
    )
    return _save(figure, folder, "growth", text)


def loops(closed: Forced, opened: Forced, free: Forced, folder: Path) -> Figure:
    """The error of the closed loop over the whole motion."""
    figure = matplotlib.figure.Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    runs = ("open loop", opened), ("open loop, no gravity", free)
    for name, run in (*runs, ("computed torque", closed)):
        error = np.maximum(np.abs(run.error("q")).max(axis=1), FLOOR)
        axes.semilogy(run.ts, error, lw=1.2, label=name)
    axes.set(xlabel="t, s", ylabel="largest error of an angle, rad")
    axes.legend()
    text = "The whole motion: open loop, without gravity, and with the loop closed."
    return _save(figure, folder, "closed_loop", text)


def _panels() -> tuple[Any, Any]:
    figure = matplotlib.figure.Figure(figsize=(12, 6.5), layout="constrained")
    panels = figure.subplots(2, 3, sharex=True)
    for axes in panels[1]:
        axes.set_xlabel("t, s")
    return figure, panels.flat


def _save(figure: Any, folder: Path, name: str, caption: str) -> Figure:
    figure.savefig(folder / f"{name}.png", dpi=110)
    return Figure(f"{name}.png", caption)
