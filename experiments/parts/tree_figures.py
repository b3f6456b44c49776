"""Pictures of a tree, of its motion, and of an error that grows with speed."""

from pathlib import Path
from typing import Any

import matplotlib.figure
import numpy as np

import jaxdyn as jd


def plot_tree(model: jd.Model, path: Path) -> None:
    """The tree as a graph, root at the bottom, bodies coloured by module."""
    x, y = places(model.parents)
    module = {name: i for i, names in enumerate(model.modules.bodies) for name in names}
    figure = matplotlib.figure.Figure(figsize=(7, 6), layout="constrained")
    axes = figure.subplots()
    for i, parent in enumerate(model.parents):
        color = f"C{module[model.names[i]] % 10}"
        axes.plot(
            [x[i], x[parent]], [y[i], y[parent]], color=color, lw=3, zorder=1
        )  # the root is the last place, -1
        axes.plot(x[i], y[i], "o", ms=26, color=color, mec="white")
        axes.annotate(str(i + 1), (x[i], y[i]), ha="center", va="center", color="white")
        label = f"M{module[model.names[i]] + 1}"
        axes.annotate(label, (x[i] + 0.17, y[i]), va="center", fontsize="small")
    axes.plot(x[-1], y[-1], "ks", ms=26)
    axes.annotate("0", (x[-1], y[-1]), ha="center", va="center", color="white")
    axes.margins(0.12)
    axes.set_axis_off()
    axes.set_title(f"{model.n} bodies in {len(model.modules)} modules on a fixed root")
    figure.savefig(path, dpi=150)


def places(parents: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Places of the bodies and, last, of the root: leaves stand side by side."""
    n = len(parents)
    children: dict[int, list[int]] = {i: [] for i in range(-1, n)}
    for i, parent in enumerate(parents):
        children[parent].append(i)
    x, y = np.zeros(n + 1), np.zeros(n + 1)
    for i, parent in enumerate(parents):
        y[i] = y[parent] + 1
    leaves = 0

    def place(i: int) -> float:
        nonlocal leaves
        if not children[i]:
            x[i], leaves = leaves, leaves + 1
        else:
            x[i] = np.mean([place(child) for child in children[i]])
        return x[i]

    place(-1)
    return x, y


def plot_speeds(
    speeds: list[float], printed: dict[str, list[float]], path: Path
) -> None:
    """The error of the printed formulas against speed, with a line of slope two."""
    figure = matplotlib.figure.Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    v, error = np.array(speeds), np.array(printed["up"])
    moving = v > 0
    axes.loglog(v[moving], error[moving], "o-", label="(46) to (50) as printed")
    square = error[-1] * (v[moving] / v[-1]) ** 2
    axes.loglog(v[moving], square, "k--", lw=0.8, label="square of the speed")
    if (~moving).any():
        label = f"at rest: {error[~moving].max():.0e}"
        axes.axhline(error[~moving].max(), color="C2", lw=1, label=label)
    axes.set_xlabel("speed, times that of the reference states")
    axes.set_ylabel("relative error of the accelerations")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)


def plot_motion(model: jd.Model, run: jd.Trajectory, path: Path) -> None:
    """The joint angles, and how far the energy strays from its first value."""
    figure = matplotlib.figure.Figure(figsize=(9, 7), layout="constrained")
    panels: Any = figure.subplots(3, 1, sharex=True, height_ratios=(2, 1, 1))
    top, middle, bottom = panels
    for k in range(model.nv):
        style = "-" if k < 10 else "--"
        top.plot(run.ts, run.q[:, k], style, color=f"C{k % 10}", lw=1, label=k + 1)
    top.set_ylabel("angle (rad)")
    top.legend(
        title="body", fontsize="x-small", loc="upper left", bbox_to_anchor=(1, 1)
    )
    middle.plot(run.ts, run.kinetic_energy, label="kinetic")
    middle.plot(run.ts, run.potential_energy, label="potential")
    middle.plot(run.ts, run.energy, "k--", label="sum")
    middle.set_ylabel("energy (J)")
    middle.legend(fontsize="x-small", loc="upper left", bbox_to_anchor=(1, 1))
    strayed = np.abs(np.asarray(run.energy - run.energy[0]))
    bottom.semilogy(run.ts, np.maximum(strayed, 1e-16), "k")
    bottom.set_ylabel("|energy - first| (J)")
    bottom.set_xlabel("time (s)")
    for axes in panels:
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=150)
