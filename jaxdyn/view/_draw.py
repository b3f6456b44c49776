"""A robot in a pose, drawn as a skeleton."""

import os
from typing import Any

import jax.numpy as jnp
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from jaxdyn.model import JOINT_TYPES, Model
from jaxdyn.view._skeleton import Motion, motion, skeleton

_LINK, _CENTER, _AXIS, _TIE = "#3b5b92", "#c8553d", "#2a9d8f", "#23272e"


def draw(model: Model, q: Any, path: str | os.PathLike[str] | None = None) -> Figure:
    """A picture of the model at `q`: links, joint axes and centres of mass.

    Args:
        path: where to save the picture, if it is to be saved; its ending says how.
    """
    pose = motion(model, jnp.asarray(q, model.dtype)[None])
    mass = np.asarray(model.mass)
    centers = [pose.of(i, c)[0] for i, c in enumerate(np.asarray(model.com))]
    centers = np.reshape(centers, (-1, 3))[mass > 0]
    lines = _lines(model, pose)
    points = np.concatenate([np.zeros((1, 3)), pose.p[0], centers, *lines])
    size = np.ptp(points, axis=0).max() or 1.0

    figure = Figure(figsize=(7, 6), layout="constrained")
    FigureCanvasAgg(figure)
    ax: Any = figure.add_subplot(projection="3d")
    _triad(ax, 0.15 * size)
    for line in lines:
        ax.plot(*line.T, color=_LINK, lw=4, solid_capstyle="round")
    _joints(ax, model, pose, 0.06 * size)
    for a, b in skeleton(model).ties:
        ends = np.concatenate([pose.of(a.body, a.place), pose.of(b.body, b.place)])
        ax.plot(*ends.T, color=_TIE, lw=1, ls=":", marker="o", ms=4)
    areas = 120 * mass[mass > 0] / (mass.max() or 1.0)
    ax.scatter(*centers.T, s=areas, color=_CENTER, label="masses")
    _frame(ax, points, size)
    ax.set_title(f"{model.name}: {model.n} bodies, {model.nv} degrees of freedom")
    ax.legend(loc="upper right")
    if path is not None:
        figure.savefig(path, dpi=130)
    return figure


def _lines(model: Model, pose: Motion) -> list[np.ndarray]:
    """Links, and where joints slide or stand off the origin: [points, 3] each."""
    lines = [
        np.concatenate([pose.of(link.body, point) for point in link.path])
        for link in skeleton(model).links
    ]
    for i, parent in enumerate(model.parents):
        foot = pose.of(parent, np.asarray(model.p)[i])[0]
        start = np.zeros((1, 3)) if parent < 0 else foot[None]
        lines.append(np.concatenate([start, foot[None], pose.p[:, i]]))
    return lines


def _joints(ax: Any, model: Model, pose: Motion, length: float) -> None:
    """Joint axes as short bars; joints without an axis as dots."""
    label = "joint axes"
    for i, joint in enumerate(model.joints):
        origin = pose.p[0, i]
        if JOINT_TYPES[joint].axes:
            e = length * pose.R[0, i] @ np.asarray(model.axis)[i]
            ends = np.stack([origin - e, origin + e])
            ax.plot(*ends.T, color=_AXIS, lw=3, label=label)
            label = None
        else:
            ax.scatter(*origin, color=_AXIS, s=30)


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
