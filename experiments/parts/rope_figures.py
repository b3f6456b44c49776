"""Pictures of a falling rope."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.figure
import numpy as np

import jaxdyn as jd


def plot_plane(ts: Any, points: np.ndarray, at: list[int], path: Path) -> None:
    """The rope in the vertical plane at some instants."""
    figure = matplotlib.figure.Figure(figsize=(9, 5), layout="constrained")
    axes = figure.subplots()
    for k, color in zip(at, _colors(len(at)), strict=True):
        axes.plot(*points[k][:, [0, 2]].T, color=color, lw=2, label=f"{ts[k]:.3g} s")
    axes.plot(*points[:, -1][:, [0, 2]].T, "k:", lw=0.8, label="path of the tip")
    axes.plot(0, 0, "ks", ms=7)
    axes.set_aspect("equal")
    axes.set_xlabel("x (m)")
    axes.set_ylabel("z (m)")
    axes.set_title("Rope of 50 cylinders, from the horizontal")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    figure.savefig(path, dpi=150)


def plot_space(ts: Any, points: np.ndarray, at: list[int], path: Path) -> None:
    """The rope in space at some instants."""
    figure = matplotlib.figure.Figure(figsize=(9, 7), layout="constrained")
    axes: Any = figure.add_subplot(projection="3d")
    for k, color in zip(at, _colors(len(at)), strict=True):
        axes.plot(*points[k].T, color=color, lw=2, label=f"{ts[k]:.3g} s")
    axes.plot(*points[:, -1].T, "k:", lw=0.8, label="path of the tip")
    axes.scatter(0, 0, 0, color="k", marker="s")
    for name, column in zip("xyz", np.moveaxis(points, -1, 0), strict=True):
        getattr(axes, f"set_{name}lim")(column.min(), column.max())
        getattr(axes, f"set_{name}label")(f"{name} (m)")
    axes.set_box_aspect(np.ptp(points, axis=(0, 1)))
    axes.set_title("Rope of 50 cylinders, bent sideways and turning at the start")
    axes.legend(fontsize="small", loc="upper center", ncols=5)
    figure.savefig(path, dpi=150)


def plot_tips(
    ts: Any, shapes: Sequence[np.ndarray], names: Sequence[str], path: Path
) -> None:
    """The coordinates of the tip over time, and its speed."""
    figure = matplotlib.figure.Figure(figsize=(9, 6), layout="constrained")
    panels: Any = figure.subplots(2, 2, sharex=True, sharey="row")
    for column, (points, name) in enumerate(zip(shapes, names, strict=True)):
        top, bottom = panels[:, column]
        for k, letter in enumerate("xyz"):
            top.plot(ts, points[:, -1, k], label=letter)
        speed = np.linalg.norm(
            np.gradient(points[:, -1], np.asarray(ts), axis=0), axis=1
        )
        bottom.plot(ts, speed, "k")
        top.set_title(f"{name} fall")
        top.set_ylabel("tip (m)")
        bottom.set_ylabel("speed of the tip (m/s)")
        bottom.set_xlabel("time (s)")
        top.legend()
        for axes in (top, bottom):
            axes.grid(alpha=0.3)
    figure.savefig(path, dpi=150)


def plot_energy(
    runs: Sequence[jd.Trajectory], names: Sequence[str], path: Path
) -> None:
    """Kinetic and potential energy, and how far their sum strays."""
    figure = matplotlib.figure.Figure(figsize=(9, 6), layout="constrained")
    panels: Any = figure.subplots(2, 2, sharex=True, sharey="row")
    for column, (run, name) in enumerate(zip(runs, names, strict=True)):
        top, bottom = panels[:, column]
        top.plot(run.ts, run.kinetic_energy, label="kinetic")
        top.plot(run.ts, run.potential_energy, label="potential")
        top.plot(run.ts, run.energy, "k--", label="sum")
        strayed = np.abs(np.asarray(run.energy - run.energy[0]))
        bottom.semilogy(run.ts, np.maximum(strayed, 1e-16), "k")
        top.set_title(f"{name} fall")
        top.set_ylabel("energy (J)")
        bottom.set_ylabel("|energy - first| (J)")
        bottom.set_xlabel("time (s)")
        top.legend()
        for axes in (top, bottom):
            axes.grid(alpha=0.3)
    figure.savefig(path, dpi=150)


def _colors(count: int) -> np.ndarray:
    return matplotlib.colormaps["viridis"](np.linspace(0.0, 0.9, count))
