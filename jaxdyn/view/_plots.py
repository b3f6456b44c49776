"""Plots of a motion, and a robot in a pose, as pictures."""

import os
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

from jaxdyn.model import Model, unit_vectors
from jaxdyn.view import _coordinates as coordinates
from jaxdyn.view._colors import body_colors
from jaxdyn.view._coordinates import SI, Coordinate, Units, kinds_in
from jaxdyn.view._meshes import simplified
from jaxdyn.view._scene import Scene, scene
from jaxdyn.view._skeleton import Motion, motion, skeleton

_STYLES = ("-", "--", ":", "-.", (0, (6, 2, 1, 2, 1, 2)))
_TRIANGLES = 3e5  # bytes of them that a picture shows in a second or two
_MANY = 14  # lines that a legend can still tell apart
_ENERGY_COLORS = ("#3b6fb6", "#e07b39", "#23272e", "#3a9d5d", "#c8453d")


def save_plots(
    model: Model,
    trajectory: Any,
    folder: str | os.PathLike[str],
    *,
    balance: Any = None,
    units: Units = SI,
) -> list[Path]:
    """Save pictures of a trajectory in a folder, and return their paths.

    They are positions, rates, accelerations, forces, energy and, with a balance, power.

    Args:
        trajectory: has `ts`, `q`, `qd`, `qdd`, `tau` and both energies; what is None
            or absent is left out.
        balance: a `PowerBalance` of the trajectory.
        units: what lengths, times, forces and energies are called.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    ts = np.asarray(trajectory.ts)
    figures = {}
    positions, rates = coordinates.positions(model), coordinates.rates(model)
    files = {"q": "positions", "qd": "rates", "qdd": "accelerations", "tau": "forces"}
    for letter, name in files.items():
        values = getattr(trajectory, letter, None)
        if values is not None and model.nv > 0:
            entries = positions if letter == "q" else rates
            quantity = coordinates.quantities(units)[letter]
            titles = {kind: quantity.title(kind) for kind in kinds_in(entries)}
            given = np.asarray(values), entries, titles, units
            figures[name] = _joint_figure(model, ts, *given)
    if getattr(trajectory, "kinetic_energy", None) is not None:
        figures["energy"] = _energy_figure(ts, trajectory, balance, units)
    if balance is not None:
        figures["power"] = _power_figure(ts, balance, units)
    paths = []
    for name, figure in figures.items():
        paths.append(folder / f"{name}.png")
        figure.suptitle(model.name)
        figure.savefig(paths[-1], dpi=130)
    return paths


def new_figure(width: float | int, height: float | int) -> Figure:
    """A figure of which nothing global knows."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _figure(panels: int, units: Units) -> tuple[Figure, list[Any]]:
    """Panels under each other that share the time."""
    figure = new_figure(9, 1.2 + 3.2 * panels)
    axes = figure.subplots(panels, sharex=True, squeeze=False)[:, 0]
    for ax in axes:
        ax.grid(alpha=0.3)
        ax.margins(x=0.01)
    axes[-1].set_xlabel(f"time ({units.time})")
    return figure, list(axes)


def _joint_figure(
    model: Model,
    ts: np.ndarray,
    values: np.ndarray,
    entries: tuple[Coordinate, ...],
    titles: dict[str, str],
    units: Units,
) -> Figure:
    """One panel for each kind of coordinate: angles, lengths, quaternions."""
    colors = body_colors(model.n)
    figure, axes = _figure(len(titles), units)
    for ax, (kind, columns) in zip(axes, kinds_in(entries).items(), strict=True):
        for k in columns:
            entry = entries[k]
            style = _STYLES[entry.part % len(_STYLES)] if len(columns) <= _MANY else "-"
            width = 1.5 if len(columns) <= _MANY else 0.8
            color, name = colors[entry.body], entry.name
            ax.plot(ts, values[:, k], color=color, ls=style, lw=width, label=name)
        ax.set_ylabel(titles[kind])
        if len(columns) <= _MANY:
            ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small")
        else:
            _color_scale(figure, ax, model, [entries[k] for k in columns])
    return figure


def _color_scale(figure: Figure, ax: Any, model: Model, entries: list[Any]) -> None:
    """A bar that names some of the joints, from the first to the last."""
    bodies = list(dict.fromkeys(entry.body for entry in entries))
    colors = ListedColormap([body_colors(model.n)[i] for i in bodies])
    scale = ScalarMappable(Normalize(-0.5, len(bodies) - 0.5), colors)
    shown = np.unique(np.linspace(0, len(bodies) - 1, 8).round().astype(int))
    bar = figure.colorbar(scale, ax=ax, ticks=shown, pad=0.01)
    names = [model.joint_names[bodies[k]] for k in shown]
    bar.ax.set_yticklabels(names, fontsize="small")
    bar.ax.invert_yaxis()


def _energy_figure(ts: np.ndarray, at: Any, balance: Any, units: Units) -> Figure:
    """The energies, and what of their change is not explained by work."""
    kinetic, potential = np.asarray(at.kinetic_energy), np.asarray(at.potential_energy)
    total = kinetic + potential
    figure, axes = _figure(2, units)
    energies = {"kinetic": kinetic, "potential": potential, "total": total}
    _lines(axes[0], ts, energies, f"energy ({units.energy})")
    label, rest = "change of energy", {"change of the total": total - total[0]}
    if balance is not None:
        label, rest = "drift", {"change of energy less work": balance.drift}
    _lines(axes[1], ts, rest, f"{label} ({units.energy})")
    return figure


def _power_figure(ts: np.ndarray, balance: Any, units: Units) -> Figure:
    """Where energy comes from and goes to, and what is left over."""
    figure, axes = _figure(2, units)
    names = {
        "actuators": "actuators",
        "external": "external forces",
        "energy_rate": "rate of energy",
        "dissipated": "dissipated",
    }
    powers = {text: getattr(balance, k) for k, text in names.items()}
    _lines(axes[0], ts, powers, f"power ({units.power})")
    rest = {"error of the balance": balance.error}
    _lines(axes[1], ts, rest, f"error ({units.power})")
    return figure


def _lines(ax: Any, ts: np.ndarray, lines: dict[str, Any], label: str) -> None:
    ax.set_ylabel(label)
    for (name, values), color in zip(lines.items(), _ENERGY_COLORS, strict=False):
        style = "--" if name in ("rate of energy", "total") else "-"
        ax.plot(ts, np.asarray(values), color=color, label=name, ls=style)
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small")


_LINK, _CENTER, _AXIS, _TIE = "#3b5b92", "#c8553d", "#2a9d8f", "#23272e"


def draw(
    model: Model,
    q: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    look: str | None = None,
) -> Figure:
    """A picture of the model at `q`.

    Args:
        path: where to save the picture, if it is to be saved; its ending says how.
        look: "visual" as its file shows it, or "skeleton": links, joint axes and
            centres of mass. The default is that of `save_animation`.
    """
    pose = motion(model, jnp.asarray(q, model.dtype)[None])
    shown = scene(model, pose, look)
    figure = new_figure(7, 6)
    ax: Any = figure.add_subplot(projection="3d")
    ax.set_title(f"{model.name}: {model.n} bodies, {model.nv} degrees of freedom")
    if shown.look == "visual":
        _surfaces(ax, shown, pose)
    else:
        _sticks(ax, model, pose)
    if path is not None:
        figure.savefig(path, dpi=130)
    return figure


def _surfaces(ax: Any, shown: Scene, pose: Motion) -> None:
    """The front of all pieces as triangles, lit from above."""
    light, corners, colors = shown.eye + shown.up, [], []
    azimuth, elevation = np.deg2rad([ax.azim, ax.elev])
    across = np.cos(elevation) * np.array([np.cos(azimuth), np.sin(azimuth), 0.0])
    eye = across + np.array([0.0, 0.0, np.sin(elevation)])
    for piece in simplified(shown.visual, _TRIANGLES):
        surface = piece.triangles()
        R, p = pose.R[0, piece.body], pose.p[0, piece.body]
        faces = (surface.vertices @ R.T + p)[surface.faces]
        a, b, c = np.moveaxis(faces, 1, 0)
        normals = unit_vectors(np.cross(b - a, c - a))
        front = normals @ eye > 0
        shade = 0.75 + 0.25 * normals[front] @ unit_vectors(light)
        corners.append(faces[front])
        rgb = np.outer(shade, piece.color[:3])
        colors.append(np.column_stack([rgb, np.full(len(rgb), piece.color[3])]))
    faces = Poly3DCollection(np.concatenate(corners), facecolors=np.concatenate(colors))
    ax.add_collection3d(faces)
    _frame(ax, shown.extremes, shown.size)


def _sticks(ax: Any, model: Model, pose: Motion) -> None:
    mass = np.asarray(model.mass)
    centers = [pose.of(i, c)[0] for i, c in enumerate(np.asarray(model.com))]
    centers = np.reshape(centers, (-1, 3))[mass > 0]
    lines = _links(model, pose)
    points = np.concatenate([np.zeros((1, 3)), pose.p[0], centers, *lines])
    size = np.ptp(points, axis=0).max() or 1.0

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
    ax.legend(loc="upper right")


def _links(model: Model, pose: Motion) -> list[np.ndarray]:
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
    for i, joint in enumerate(model.topology.types):
        origin = pose.p[0, i]
        if joint.axes:
            e = length * pose.R[0, i] @ np.asarray(model.axis)[i]
            ends = np.stack([origin - e, origin + e])
            ax.plot(*ends.T, color=_AXIS, lw=3, label=label)
            label = None
        else:
            ax.scatter(*origin, color=_AXIS, s=30)


def _triad(ax: Any, length: float) -> None:
    colors = ("#d62728", "#2ca02c", "#1f77b4")
    for axis, color in zip(length * np.eye(3), colors, strict=True):
        ax.plot(*np.stack([np.zeros(3), axis]).T, color=color, lw=1.5)


def _frame(ax: Any, points: np.ndarray, size: float) -> None:
    """Equal scales on all axes, with everything in sight."""
    middle = (points.max(axis=0) + points.min(axis=0)) / 2
    for name, m in zip("xyz", middle, strict=True):
        getattr(ax, f"set_{name}lim")(m - 0.55 * size, m + 0.55 * size)
        getattr(ax, f"set_{name}label")(f"{name} (m)")
    ax.set_box_aspect((1, 1, 1))
