"""A robot in a pose, drawn as a skeleton."""

import os
from typing import Any

import jax.numpy as jnp
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from jaxdyn.algorithms import forward_kinematics, frame_poses
from jaxdyn.model import JOINT_TYPES, Model

_LINK, _CENTER, _AXIS = "#3b5b92", "#c8553d", "#2a9d8f"


def draw(model: Model, q: Any, path: str | os.PathLike[str] | None = None) -> Figure:
    """A picture of the model at `q`: links, joint axes and centres of mass.

    Args:
        path: where to save the picture, if it is to be saved; its ending says how.
    """
    q = jnp.asarray(q, model.dtype)
    poses = forward_kinematics(model, q)
    R, p = np.asarray(poses.R), np.asarray(poses.p)
    centers = p + np.einsum("nij,nj->ni", R, np.asarray(model.com))
    ends = np.asarray(frame_poses(model, q).p)
    points = np.concatenate(
        [np.zeros((1, 3)), p, ends, centers[np.asarray(model.mass) > 0]]
    )
    size = np.ptp(points, axis=0).max() or 1.0

    figure = Figure(figsize=(7, 6), layout="constrained")
    FigureCanvasAgg(figure)
    ax: Any = figure.add_subplot(projection="3d")
    _triad(ax, 0.15 * size)
    for i, parent in enumerate(model.parents):
        start = p[parent] if parent >= 0 else np.zeros(3)
        ax.plot(*np.stack([start, p[i]]).T, color=_LINK, lw=4, solid_capstyle="round")
        if i not in model.parents and model.mass[i] > 0:  # a tip points to its mass
            ax.plot(*np.stack([p[i], centers[i]]).T, color=_LINK, lw=2)
    for end, body in zip(ends, model.frame_bodies, strict=True):
        start = p[body] if body >= 0 else np.zeros(3)
        ax.plot(*np.stack([start, end]).T, color=_LINK, lw=2)
    _joints(ax, model, R, p, 0.06 * size)
    mass = np.asarray(model.mass)
    areas = 120 * mass / (mass.max() or 1.0)
    ax.scatter(*centers[mass > 0].T, s=areas[mass > 0], color=_CENTER, label="masses")
    _frame(ax, points, size)
    ax.set_title(f"{model.name}: {model.n} bodies, {model.nv} degrees of freedom")
    ax.legend(loc="upper right")
    if path is not None:
        figure.savefig(path, dpi=130)
    return figure


def _joints(ax: Any, model: Model, R: np.ndarray, p: np.ndarray, length: float) -> None:
    """Joint axes as short bars; joints without an axis as dots."""
    label = "joint axes"
    for i, joint in enumerate(model.joints):
        if JOINT_TYPES[joint].axes:
            e = length * R[i] @ np.asarray(model.axis[i])
            ends = np.stack([p[i] - e, p[i] + e])
            ax.plot(*ends.T, color=_AXIS, lw=3, label=label)
            label = None
        else:
            ax.scatter(*p[i], color=_AXIS, s=30)


def _triad(ax: Any, length: float) -> None:
    for axis, color in zip(
        length * np.eye(3), ("#d62728", "#2ca02c", "#1f77b4"), strict=True
    ):
        ax.plot(*np.stack([np.zeros(3), axis]).T, color=color, lw=1.5)


def _frame(ax: Any, points: np.ndarray, size: float) -> None:
    """Equal scales on all axes, with everything in sight."""
    middle = (points.max(axis=0) + points.min(axis=0)) / 2
    for name, m in zip("xyz", middle, strict=True):
        getattr(ax, f"set_{name}lim")(m - 0.55 * size, m + 0.55 * size)
        getattr(ax, f"set_{name}label")(f"{name} (m)")
    ax.set_box_aspect((1, 1, 1))
