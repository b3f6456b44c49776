"""Pictures of mechanisms with loops: their motion, loop forces and drift."""

from pathlib import Path
from typing import Any

import matplotlib.figure
import numpy as np

import jaxdyn as jd
from experiments.parts.loop_motions import CARES, Mechanism, Rows

Motions = list[dict[str, Rows]]
STYLES = {"none": "C3", "Baumgarte": "C1", "projection": "C0"}


def plot_poses(given: list[Mechanism], found: Motions, path: Path) -> None:
    """Each mechanism at some instants, later ones darker."""
    figure = matplotlib.figure.Figure(figsize=(15, 3.6), layout="constrained")
    panels: Any = figure.subplots(1, len(given))
    for axes, x, motion in zip(np.ravel(panels), given, found, strict=True):
        rows = motion["projection"]
        flat = (0, 2) if x.name == "Stewart-Gough" else (0, 1)
        last = np.searchsorted(rows.ts, x.reference["t"][-1])
        instants = np.linspace(0, min(last, len(rows.ts) - 1), 4).astype(int)
        for shade, k in zip((0.25, 0.45, 0.7, 1.0), instants, strict=True):
            for line in bars(x.model, rows.q[k]):
                axes.plot(*line[:, flat].T, "o-", color="C0", alpha=shade, ms=2.5, lw=2)
        end = rows.ts[instants[-1]]
        axes.set_title(f"{x.name}, 0 to {end:g} s", fontsize="medium")
        axes.set(xlabel="x (m)", ylabel="z (m)" if flat[1] == 2 else "y (m)")
        axes.set_aspect("equal", "datalim")
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=130)


def bars(model: jd.Model, q: Any) -> list[np.ndarray]:
    """A line on each body from its origin to all that hangs on it or is cut from it."""
    poses = jd.forward_kinematics(model, q)
    R, p = np.asarray(poses.R), np.asarray(poses.p)
    points: list[list[np.ndarray]] = [[p[k]] for k in range(model.n)]
    for k, parent in enumerate(model.parents):
        if parent >= 0:
            points[parent].append(p[k])
    for loop in model.loops:
        for body, place in ((loop.body_a, loop.p_a), (loop.body_b, loop.p_b)):
            points[body].append(p[body] + R[body] @ np.asarray(place))
    lines = [x if len(x) < 4 else [*x[1:], x[1]] for x in points]  # a plate: its rim
    lines = [[*x, x[0]] if len(x) == 3 else x for x in lines]
    return [np.stack(x) for x in lines if len(x) > 1]


def plot_forces(given: list[Mechanism], found: Motions, path: Path) -> None:
    """The loop forces over time."""
    figure = matplotlib.figure.Figure(figsize=(15, 3.4), layout="constrained")
    panels: Any = figure.subplots(1, len(given))
    for axes, x, motion in zip(np.ravel(panels), given, found, strict=True):
        rows = motion["projection"]
        names = [
            f"{'xyz'['XYZ'.index(r)]}" for loop in x.model.loops for r in loop.rows
        ]
        few = len(names) <= 4
        for k, name in enumerate(names):
            loop = k // (len(names) // len(x.model.loops)) + 1
            label = f"λ{loop}{name}" if few else None
            axes.plot(rows.ts, rows.forces[:, k], lw=1, label=label)
        title = x.name if few else f"{x.name}, 6 loops, x y z"
        axes.set_title(title, fontsize="medium")
        axes.set(xlabel="time (s)", ylabel="force on body a (N)")
        axes.grid(alpha=0.3)
        if few:
            axes.legend(fontsize="x-small")
    figure.savefig(path, dpi=130)


def plot_drift(given: list[Mechanism], found: Motions, path: Path) -> None:
    """How far the loops open, and how far energy minus work drifts."""
    figure = matplotlib.figure.Figure(figsize=(15, 6), layout="constrained")
    panels: Any = figure.subplots(2, len(given), sharex=True, sharey="row")
    for column, (x, motion) in enumerate(zip(given, found, strict=True)):
        top, bottom = panels[:, column]
        for care in CARES:
            rows = motion[care]
            opening = np.maximum(rows.residual, 1e-18)
            top.semilogy(rows.ts, opening, STYLES[care], lw=1, label=care)
            off = np.maximum(np.abs(rows.drift), 1e-16)
            bottom.semilogy(rows.ts, off, STYLES[care], lw=1, label=care)
        top.set_title(x.name, fontsize="medium")
        bottom.set_xlabel("time (s)")
        for axes in (top, bottom):
            axes.grid(alpha=0.3)
    panels[0, 0].set_ylabel("widest opening of a loop (m)")
    panels[1, 0].set_ylabel("energy minus work, change (J)")
    panels[0, 0].legend(fontsize="small")
    figure.savefig(path, dpi=130)
