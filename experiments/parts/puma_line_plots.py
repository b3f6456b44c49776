"""The figures of the PUMA 560 whose tool goes along a straight line."""

from pathlib import Path
from typing import Any

import jax
import matplotlib.figure
import numpy as np

import jaxdyn as jd
from experiments.parts.line_motion import Config, Line, errors
from experiments.parts.open_loop import carried
from jaxdyn.io import Figure

FAR = 0.08  # m: paths are drawn up to this distance from the line


def tool_positions(line: Line, q: Any) -> np.ndarray:
    """Where the tool is in each of some configurations."""
    return np.asarray(_poses(line.model, q).p[:, 0])


@jax.jit
def _poses(model: jd.Model, q: Any) -> jd.Poses:
    return jax.vmap(jd.frame_poses, (None, 0))(model, q)


def nearest(points: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The nearest points of the line between two ends."""
    along = ends[1] - ends[0]
    part = (points - ends[0]) @ along / (along @ along)
    return ends[0] + np.clip(part, 0, 1)[:, None] * along


def tools(paths: dict[str, np.ndarray], config: Config, folder: Path) -> Figure:
    """[Mata] Fig. 3: the line, and where the tool goes in simulations."""
    figure = matplotlib.figure.Figure(figsize=(12, 4.5), layout="constrained")
    ends = np.array([config.start, config.end])
    for axes, (i, j) in zip(figure.subplots(1, 2), ((0, 1), (0, 2)), strict=True):
        axes.plot(ends[:, i], ends[:, j], "ko-", lw=2.5, ms=5, label="planned")
        for name, path in paths.items():
            far = np.linalg.norm(path - nearest(path, ends), axis=1) > FAR
            end = far.argmax() if far.any() else len(path)
            axes.plot(path[:end, i], path[:end, j], lw=1.2, label=name)
        axes.set(xlabel=f"{'xyz'[i]}, m", ylabel=f"{'xyz'[j]}, m")
        for set_limit, k in ((axes.set_xlim, i), (axes.set_ylim, j)):
            low, high = ends[:, k].min(), ends[:, k].max()
            set_limit(low - 0.1, high + 0.1)
    figure.axes[0].legend(fontsize=8)
    text = (
        "Fig. 3: the planned path of the tool, and simulated ones with a tolerance of "
        f"{config.tolerance:g} until they are {FAR:g} m away."
    )
    return _save(figure, folder, "fig3_path", text)


def joints(lines: dict[str, Line], folder: Path) -> Figure:
    """Angles and torques along the line."""
    figure = matplotlib.figure.Figure(figsize=(12, 7), layout="constrained")
    panels = figure.subplots(2, len(lines), squeeze=False)
    for column, (name, line) in zip(panels.T, lines.items(), strict=True):
        tau = np.asarray(jax.vmap(line.laws["exact"])(line.ts))
        for j in range(line.model.nv):
            column[0].plot(line.ts, np.asarray(line.wanted.q)[:, j], label=f"{j + 1}")
            column[1].plot(line.ts, tau[:, j], label=f"{j + 1}")
        column[0].set(title=name, ylabel="angles, rad")
        column[1].set(xlabel="t, s", ylabel="torques, N m")
        column[1].set_yscale("symlog", linthresh=0.01)
        column[0].legend(title="joint", fontsize=8, ncols=3)
    text = "Angles by inverse kinematics and torques by inverse dynamics."
    return _save(figure, folder, "joints", text)


def deviations(
    lines: dict[str, Line], runs: dict[str, Any], config: Config, folder: Path
) -> Figure:
    """The errors of simulations, and what linear growth makes of them."""
    figure = matplotlib.figure.Figure(figsize=(13, 5), layout="constrained")
    panels = figure.subplots(1, len(lines), squeeze=False)[0]
    for axes, (name, line) in zip(panels, lines.items(), strict=True):
        axes.semilogy(line.growth_ts, line.growth, "k--", lw=1, label="growth")
        for color, (tolerance, found) in enumerate(runs[name].items()):
            error = np.abs(errors(line, found, "q")).max(axis=1)
            label = f"tolerance {tolerance:g}"
            axes.semilogy(line.ts[1:], error[1:], f"C{color}", lw=1, label=label)
            start = config.probe * line.duration
            k = int(np.abs(line.growth_ts - start).argmin())
            row = int(np.abs(line.ts - start).argmin())
            parts = [errors(line, found, n)[row] for n in ("q", "qd")]
            later = carried(line.phi, k, np.concatenate(parts))[:, : line.model.nv]
            axes.semilogy(
                line.growth_ts[k:], np.abs(later).max(axis=1), f"C{color}:", lw=1.2
            )
        axes.set(title=name, xlabel="t, s", ylabel="largest error of an angle, rad")
        axes.set_ylim(1e-14, 1e11)
        axes.legend(fontsize=8)
    text = (
        "Errors of the simulation with exact torques (solid), the same carried on by "
        "linear growth from one time (dotted), and the largest singular value of the "
        "transition matrix (dashed)."
    )
    return _save(figure, folder, "growth", text)


def _save(figure: Any, folder: Path, name: str, caption: str) -> Figure:
    figure.savefig(folder / f"{name}.png", dpi=110)
    return Figure(f"{name}.png", caption)
