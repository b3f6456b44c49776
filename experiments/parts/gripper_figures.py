"""Pictures of the gripper, its torques and its fall."""

from pathlib import Path
from typing import Any

import matplotlib.figure
import numpy as np

import jaxdyn as jd
from experiments.parts.gripper_motions import JOINTS, READINGS, Falls, Forces


def plot_torques(forces: list[Forces], path: Path) -> None:
    """[Shah] Fig. 5: the torque of each joint, in both readings."""
    figure = matplotlib.figure.Figure(figsize=(9, 6), layout="constrained")
    for k, axes in enumerate(np.ravel(figure.subplots(2, 2, sharex=True))):
        for x, line, reading in zip(forces, ("-", "--"), READINGS, strict=True):
            axes.plot(x.ts, x.tau[:, k], line, color=f"C{k}", label=reading)
        axes.set_title(f"joint {JOINTS[k]}")
        axes.set_ylabel("torque (N m)")
        axes.set_xlabel("time (s)")
        axes.grid(alpha=0.3)
        axes.legend(fontsize="x-small")
    figure.savefig(path, dpi=150)


def plot_falls(falls: list[Falls], path: Path) -> None:
    """[Shah] Fig. 6: the angles; below the errors of fixed steps, and of the energy."""
    figure = matplotlib.figure.Figure(figsize=(9, 7), layout="constrained")
    panels: Any = figure.subplots(2, 2, sharex=True)
    for column, (x, reading) in enumerate(zip(falls, READINGS, strict=True)):
        top, bottom = panels[:, column]
        for k, name in enumerate(JOINTS):
            top.plot(x.ts, np.rad2deg(x.q[:, k]), label=f"joint {name}")
        top.set_title(reading, fontsize="medium")
        top.set_ylabel("angle (degrees)")
        top.legend(fontsize="small")
        labels = {
            "fixed": "energy, fixed steps (J)",
            "tight": "energy, tight tolerance (J)",
        }
        bottom.semilogy(x.ts[1:], x.fixed[1:], "k", label="angles, fixed steps (rad)")
        for name, label in labels.items():
            bottom.semilogy(x.ts, np.maximum(x.energy[name], 1e-17), label=label)
        bottom.set_ylabel("error")
        bottom.set_xlabel("time (s)")
        bottom.legend(fontsize="x-small")
        for axes in (top, bottom):
            axes.grid(alpha=0.3)
    figure.savefig(path, dpi=150)


def plot_poses(forces: list[Forces], falls: list[Falls], path: Path) -> None:
    """The gripper in the plane at some instants of the motion and of the fall."""
    figure = matplotlib.figure.Figure(figsize=(9, 8), layout="constrained")
    panels: Any = figure.subplots(2, 2)
    for row, title in enumerate(("motion of Table 2", "free fall")):
        for column, reading in enumerate(READINGS):
            model, axes = forces[column].model, panels[row, column]
            moved = (forces[column].motion.q, falls[column].q)[row]
            ts = (forces[column].ts, falls[column].ts)[row]
            instants = np.linspace(0, len(ts) - 1, 5).astype(int)
            for color, k in enumerate(instants):
                lines, label = rods(model, moved[k]), f"{ts[k]:.2f} s"
                for line in lines:
                    axes.plot(
                        *line.T, f"C{color}o-", ms=3, lw=3, alpha=0.8, label=label
                    )
                    label = None
            axes.legend(fontsize="x-small")
            axes.set_title(f"{title}, {reading}", fontsize="small")
            axes.set_xlabel("x (m)")
            axes.set_ylabel("y (m)")
            axes.set_aspect("equal", "datalim")
            axes.grid(alpha=0.3)
    figure.savefig(path, dpi=150)


def rods(model: jd.Model, q: Any) -> list[np.ndarray]:
    """The ends of each rod in the plane: a rod reaches to twice its mass centre."""
    poses = jd.forward_kinematics(model, q)
    R, p = np.asarray(poses.R), np.asarray(poses.p)
    ends = p + 2 * np.einsum("nij,nj->ni", R, np.asarray(model.com))
    return [np.stack([p[k, :2], ends[k, :2]]) for k in range(model.n)]
