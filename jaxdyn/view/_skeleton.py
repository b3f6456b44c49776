"""What a robot without meshes looks like: links, rails, ties and tips from its data."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.algorithms.kinematics import forward_kinematics
from jaxdyn.model import Model


@dataclass(frozen=True)
class Link:
    """A piece of a body, through points in the axes of the body: [points, 3]."""

    body: int
    path: np.ndarray


@dataclass(frozen=True)
class Point:
    """A named point in the axes of a body."""

    name: str
    body: int
    place: np.ndarray


@dataclass(frozen=True)
class Skeleton:
    """The lines and points that stand for a robot."""

    links: tuple[Link, ...]  # from the origin of each body to all that hangs on it
    tips: tuple[Point, ...]  # frames, if any at the ends there, else the ends of bodies
    ties: tuple[tuple[Point, ...], ...]  # the two points of each cut joint


@dataclass(frozen=True)
class Motion:
    """Poses of all bodies, then of the world, at all times: x_world = R x + p."""

    R: np.ndarray  # [times, n + 1, 3, 3]
    p: np.ndarray  # [times, n + 1, 3]

    def of(self, body: int, place: np.ndarray) -> np.ndarray:
        """The way of a point of a body through the world: [times, 3]."""
        return self.p[:, body] + self.R[:, body] @ place


def motion(model: Model, qs: Any) -> Motion:
    """The poses of the bodies at positions [times, nq]."""
    rows = jnp.asarray(qs, dtype=model.dtype)
    poses = jax.vmap(forward_kinematics, (None, 0))(model, rows)
    R, p = np.asarray(poses.R, float), np.asarray(poses.p, float)
    world = np.broadcast_to(np.eye(3), (len(p), 1, 3, 3))
    return Motion(np.concatenate([R, world], 1), np.pad(p, ((0, 0), (0, 1), (0, 0))))


def skeleton(model: Model) -> Skeleton:
    """The lines and points that stand for the robot, in the axes of its bodies."""
    frames = _points(model.frame_names, model.frame_bodies, model.frame_p)
    joints = _points(model.joint_names, model.parents, model.p)
    ties = tuple(
        _points([f"loop {k}"] * 2, (x.body_a, x.body_b), (x.p_a, x.p_b))
        for k, x in enumerate(model.loops)
    )
    held = [*joints, *frames, *(point for tie in ties for point in tie)]
    links, ends = [], []
    for i in range(model.n):
        points = _carried(model, i, held)
        if i not in model.parents:
            ends.append(Point(model.names[i], i, points[-1]))
        links += [Link(i, _path(model, i, point)) for point in points if point.any()]
    outer = {x.body: x for x in frames if x.body >= 0 and x.body not in model.parents}
    tips = outer.values() or [frame for frame in frames if frame.body >= 0] or ends
    return Skeleton(tuple(links), tuple(tips), ties)


def _points(names: Sequence[str], bodies: Sequence[int], p: Any) -> tuple[Point, ...]:
    return tuple(map(Point, names, bodies, np.asarray(p, float)))


def _carried(model: Model, body: int, held: list[Point]) -> list[np.ndarray]:
    """Where a body ends: at all it carries, else beyond its mass centre."""
    points = [point.place for point in held if point.body == body]
    if is_floating(model, body):
        return [*points, np.asarray(model.com, float)[body]]
    if body not in model.parents and not np.any(points):
        return [far_end(model, body)]
    return points


def far_end(model: Model, body: int) -> np.ndarray:
    """The end of a body beyond its mass centre: exact for a rod from the origin."""
    center = np.asarray(model.com, float)[body]
    length = np.linalg.norm(center)
    if length == 0.0:
        return center
    spread, axes = principal_spread(model, body)
    along = np.linalg.norm(spread * (axes.T @ center / length))
    return center * (1.0 + along / length)


def principal_spread(model: Model, body: int) -> tuple[np.ndarray, np.ndarray]:
    """Half the sides and the axes (columns) of the box with the body's inertia."""
    mass, I = float(model.mass[body]), np.asarray(model.inertia, float)[body]
    if mass <= 0.0:
        return np.zeros(3), np.eye(3)
    second_moment = (0.5 * np.trace(I) * np.eye(3) - I) / mass
    squares, axes = np.linalg.eigh(second_moment)
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] *= -1.0
    # inertia as published may violate the triangle inequality
    return np.sqrt(3.0 * np.maximum(squares, 0.0)), axes


def turning_axis(model: Model, body: int) -> np.ndarray | None:
    """The line about which a joint turns, in body axes; None where there is no one."""
    joint = model.tree.topology.types[body]
    if sum(step.turn for step in joint.steps) != 1:
        return None
    axis = np.asarray(model.axis, float)[body]
    return axis / np.linalg.norm(axis)


def is_floating(model: Model, body: int) -> bool:
    """Whether the joint holds the body in no direction."""
    return model.tree.topology.types[body].position is not None


def rail(model: Model, moved: Motion, body: int) -> tuple[np.ndarray, np.ndarray]:
    """Box [2, 3] and axes (columns) of the places of a joint, seen from its parent."""
    parent = model.parents[body]
    R0, p0 = moved.R[:, parent], moved.of(parent, np.asarray(model.p, float)[body])
    slides = np.einsum("tji,tj->ti", R0, moved.p[:, body] - p0)
    slides = np.concatenate([np.zeros((1, 3)), slides])
    _, _, axes = np.linalg.svd(slides, full_matrices=True)
    if np.linalg.det(axes) < 0.0:
        axes[2] *= -1.0
    extent = slides @ axes.T
    return np.stack([extent.min(axis=0), extent.max(axis=0)]), axes.T


def up_direction(model: Model) -> np.ndarray:
    """The direction against gravity; z where there is none."""
    gravity = np.asarray(model.gravity, float)
    size = np.linalg.norm(gravity)
    return -gravity / size if size > 0.0 else np.array([0.0, 0.0, 1.0])


def _path(model: Model, body: int, end: np.ndarray) -> np.ndarray:
    """Along the joint axis first, then across, as links of arms are bent."""
    axis = turning_axis(model, body)
    along = np.zeros(3) if axis is None else axis * (axis @ end)
    sides = np.linalg.norm(along), np.linalg.norm(end - along)
    if min(sides) < 0.1 * max(sides):
        return np.stack([np.zeros(3), end])
    return np.stack([np.zeros(3), along, end])
