"""A robot in its surroundings: the solids, the floor, and from where to look."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from jaxdyn.model import JOINT_TYPES, Model
from jaxdyn.view import _skeleton as bones
from jaxdyn.view import _solids as shapes
from jaxdyn.view._colors import body_colors
from jaxdyn.view._skeleton import Motion, Skeleton, is_floating, principal_spread
from jaxdyn.view._solids import Solid, axes_along, joined, solid

TRACES = 6  # tips that leave a trace
_BASE_COLOR, _TIE_COLOR = "#8a9099", "#23272e"


@dataclass(frozen=True)
class Floor:
    """A horizontal floor of tiles."""

    center: np.ndarray
    along: np.ndarray  # its two directions [2, 3]
    tiles: tuple[int, int]  # how many there are from the middle along each direction
    spacing: float  # the side of a tile

    @property
    def corners(self) -> np.ndarray:
        """The four corners [4, 3]."""
        signs = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
        return self.center + self.spacing * (signs * self.tiles) @ self.along


@dataclass(frozen=True)
class Scene:
    """Everything there is to see of a robot that moves."""

    solid: Solid  # the robot and its base; body n is the world
    colors: tuple[str, ...]  # by the colour indices of the solid
    lines: Skeleton  # around which the solid was built
    up: np.ndarray  # the direction against gravity
    eye: np.ndarray  # from where to look, in sizes of the box from its middle
    bounds: np.ndarray  # corners [2, 3] of the box in which everything happens
    floor: Floor | None  # None where there is no gravity
    radius: float  # how thick the links are, on average


def scene(model: Model, moved: Motion) -> Scene:
    """The robot as solids around its skeleton, sized to be seen on the whole way."""
    lines, up = bones.skeleton(model), bones.up_direction(model)
    points = _points(model, lines, moved)
    size = float(np.ptp(points, axis=1).max()) or 1.0
    radius = _radius(lines, size)
    moving = [
        *_links(model, lines, radius),
        *_hubs(model, radius),
        *_rails(model, moved, radius),
        *_ties(model, lines, radius),
    ]
    if not moving:  # bodies without mass on fixed joints
        dot = shapes.ball(np.zeros(3), radius, _sides(model))
        moving = [solid(*dot, i, i) for i in range(model.n)]
    bounds = _bounds(joined(moving), moved)
    floor = _floor(bounds, up, size) if np.any(model.gravity) else None
    whole = joined(moving + _base(model, moved, floor, up, radius))
    bounds = _bounds(whole, moved)
    if floor is not None:
        below = floor.corners - 0.1 * floor.spacing * up  # plotly clips at the bounds
        extremes = np.concatenate([bounds, below])
        bounds = np.stack([extremes.min(axis=0), extremes.max(axis=0)])
    colors = (*body_colors(model.n), _BASE_COLOR, _TIE_COLOR)
    return Scene(whole, colors, lines, up, _eye(points, up), bounds, floor, radius)


def _bounds(whole: Solid, moved: Motion) -> np.ndarray:
    """Corners [2, 3] of a box that holds the solid at all times."""
    corners = []
    for body in np.unique(whole.bodies).tolist():
        own = whole.vertices[whole.bodies == body]
        box_corners = np.meshgrid(*np.stack([own.min(axis=0), own.max(axis=0)]).T)
        for corner in np.stack(box_corners, -1).reshape(-1, 3):
            way = moved.of(body, corner)
            corners += [way.min(axis=0), way.max(axis=0)]
    low, high = np.min(corners, axis=0), np.max(corners, axis=0)
    margin = 0.01 * np.max(high - low)
    return np.stack([low - margin, high + margin])


def _points(model: Model, lines: Skeleton, moved: Motion) -> np.ndarray:
    """All points that say how large the robot is: [times, points, 3]."""
    ends = [moved.of(link.body, point) for link in lines.links for point in link.path]
    for i in range(model.n):
        if is_floating(model, i):
            half, axes = principal_spread(model, i)
            center = np.asarray(model.com, float)[i]
            ends += [moved.of(i, center + s * axes @ half) for s in (-1.0, 1.0)]
    p = np.asarray(model.p, float)
    feet = [moved.of(-1, p[i]) for i in _held(model)]
    return np.concatenate([moved.p[:, :-1], *(e[:, None] for e in ends + feet)], 1)


def _held(model: Model) -> list[int]:
    """The bodies that the world holds."""
    roots = [i for i, parent in enumerate(model.parents) if parent < 0]
    return [i for i in roots if not is_floating(model, i)]


def _radius(lines: Skeleton, size: float) -> float:
    sides = [np.diff(link.path, axis=0) for link in lines.links]
    lengths = [np.linalg.norm(side, axis=1).sum() for side in sides]
    lengths = [length for length in lengths if length > 1e-3 * size]
    typical = float(np.median(lengths)) if lengths else size
    return float(np.clip(0.12 * typical, 0.01 * size, 0.035 * size))


def _sides(model: Model) -> int:
    """How round things are: less, the more of them there are."""
    return 14 if model.n <= 30 else 10 if model.n <= 150 else 6


def _thinner(model: Model) -> np.ndarray:
    """How thick each body is: less and less from the base to the tips."""
    depth = np.zeros(model.n)
    for i, parent in enumerate(model.parents):
        depth[i] = depth[parent] + 1.0 if parent >= 0 else 0.0
    return 1.25 - 0.55 * depth / max(depth.max(), 3.0)


def _links(model: Model, lines: Skeleton, radius: float) -> list[Solid]:
    thickness, solids = radius * _thinner(model), []
    for link in lines.links:
        for start, end in pairwise(link.path):
            shape = shapes.rod(start, end, thickness[link.body], _sides(model))
            solids.append(solid(*shape, link.body, link.body))
    return solids


def _hubs(model: Model, radius: float) -> list[Solid]:
    """Joints: a cylinder about one axis, a ball about several, a box that slides."""
    solids = []
    for i, r in enumerate(radius * _thinner(model)):
        joint = JOINT_TYPES[model.joints[i]]
        axis = bones.turning_axis(model, i)
        if is_floating(model, i):
            half, axes = principal_spread(model, i)
            half, com = np.maximum(half, r), np.asarray(model.com, float)[i]
            shape = shapes.box(com, axes, half)
        elif axis is not None:
            end = 1.9 * r * axis
            shape = shapes.cylinder(-end, end, 1.45 * r, _sides(model))
        elif joint.nv == 0:
            continue
        elif joint.axes == 1:
            axes = axes_along(np.asarray(model.axis, float)[i])
            shape = shapes.box(np.zeros(3), axes, r * np.array([1.6, 1.6, 2.2]))
        else:
            shape = shapes.ball(np.zeros(3), 1.55 * r, _sides(model))
        solids.append(solid(*shape, i, i))
    return solids


def _rails(model: Model, moved: Motion, radius: float) -> list[Solid]:
    """Where joints slide: a thin box fixed to the parent, as long as the way."""
    solids = []
    for i, parent in enumerate(model.parents):
        joint = JOINT_TYPES[model.joints[i]]
        if is_floating(model, i) or not any(step.slide for step in joint.steps):
            continue
        (low, high), axes = bones.rail(model, moved, i)
        if np.max(high - low) < 1e-3 * radius:
            continue
        half = np.maximum((high - low) / 2, 0.45 * radius)
        center = np.asarray(model.p, float)[i] + axes @ (low + high) / 2
        color = parent if parent >= 0 else model.n
        solids.append(solid(*shapes.box(center, axes, half), color, color))
    return solids


def _base(
    model: Model, moved: Motion, floor: Floor | None, up: np.ndarray, radius: float
) -> list[Solid]:
    """What holds the robot: a post on the floor, or a block if it hangs high."""
    solids, lowest = [], moved.p[:, :-1] @ up
    for i in _held(model):
        foot, r = np.asarray(model.p, float)[i], 1.9 * radius
        height = np.inf if floor is None else (foot - floor.center) @ up
        reach = np.ptp(np.append(lowest, foot @ up))
        axes = axes_along(up)
        if height > 0.55 * max(reach, 1e-12) and height > 6.0 * radius:
            half = np.array([1.3, 1.3, 0.5]) * r
            shape = shapes.box(foot + (half[2] + radius) * up, axes, half)
        else:
            ground = foot - height * up
            shape = shapes.cylinder(ground, foot - 0.3 * radius * up, r, 24)
            plate = shapes.cylinder(ground, ground + 0.4 * radius * up, 2.0 * r, 24)
            solids.append(solid(*plate, model.n, model.n))
        solids.append(solid(*shape, model.n, model.n))
    return solids


def _ties(model: Model, lines: Skeleton, radius: float) -> list[Solid]:
    """Cut joints: a dark ball on both bodies, and a strand that shows a gap."""
    solids = []
    for a, b in lines.ties:
        bodies = [point.body % (model.n + 1) for point in (a, b)]
        for point, body in zip((a, b), bodies, strict=True):
            shape = shapes.ball(point.place, 1.6 * radius, 14)
            solids.append(solid(*shape, body, model.n + 1))
        corners = 0.3 * radius * np.eye(3)
        vertices = np.concatenate([a.place + corners, b.place + corners])
        faces = [(0, 1, 4), (0, 4, 3), (1, 2, 5), (1, 5, 4), (2, 0, 3), (2, 3, 5)]
        owners = np.repeat(bodies, 3)
        solids.append(solid(vertices, np.array(faces), owners, model.n + 1))
    return solids


def _floor(bounds: np.ndarray, up: np.ndarray, size: float) -> Floor:
    """A floor just under the lowest point of the whole way."""
    corners = np.stack(np.meshgrid(*bounds.T, indexing="ij"), -1).reshape(-1, 3)
    middle = bounds.mean(axis=0)
    center = middle + ((corners @ up).min() - middle @ up) * up
    along = axes_along(up)[:, :2].T
    halves = np.abs((corners - center) @ along.T).max(axis=0) + 0.12 * size
    halves = np.maximum(halves, 0.4 * halves.max())
    step = halves.max() / 6.0
    power = 10.0 ** np.floor(np.log10(step))
    spacing = power * next(k for k in (1.0, 2.0, 5.0, 10.0) if k * power >= step)
    across, deep = (int(np.ceil(half / spacing)) for half in halves)
    return Floor(center, along, (across, deep), float(spacing))


def _eye(points: np.ndarray, up: np.ndarray) -> np.ndarray:
    """From the side, or along the normal of the plane in which everything moves."""
    extent = np.ptp(points, axis=(0, 1))
    x, y = axes_along(up)[:, :2].T
    widths = np.abs(extent @ np.abs(np.stack([x, y]).T))
    if widths.min() < 0.2 * max(extent.max(), 1e-300):
        normal, side = (x, y) if widths[0] < widths[1] else (y, x)
        if normal.sum() < 0.0:
            normal = -normal
        return 1.0 * normal + 0.25 * np.cross(up, normal) + 0.22 * up
    return 0.75 * x + 0.75 * y + 0.45 * up
