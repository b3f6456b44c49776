"""A robot in its surroundings: the pieces, the floor, and from where to look."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from jaxdyn.model import Model
from jaxdyn.view import _shapes as shapes
from jaxdyn.view import _skeleton as bones
from jaxdyn.view._colors import body_colors, rgba
from jaxdyn.view._shapes import Piece, axes_along
from jaxdyn.view._skeleton import Motion, Skeleton, is_floating, principal_spread
from jaxdyn.view._visuals import floor_height, visual_pieces

TRACES = 6  # tips that leave a trace
LOOKS = ("visual", "skeleton")
_BASE_COLOR, _TIE_COLOR = rgba("#8a9099"), rgba("#23272e")
_DIRECTIONS = 200  # in which the far points of a motion are looked for
_ROWS = 60  # of a motion in which far points are looked for
_NEAR = 5.0  # what the world holds counts if it is not larger by more than this


@dataclass(frozen=True)
class Floor:
    """A horizontal floor of tiles."""

    center: np.ndarray
    along: np.ndarray  # its two directions [2, 3]
    tiles: tuple[int, int]  # how many there are from the middle along each direction
    spacing: float  # the side of a tile


@dataclass(frozen=True)
class Scene:
    """Everything there is to see of a robot that moves; body n is the world."""

    visual: list[Piece]  # as the file of the robot shows it, may be empty
    skeleton: list[Piece]  # around lines from the data of the model
    lines: Skeleton
    up: np.ndarray  # the direction against gravity
    eye: np.ndarray  # from where to look
    extremes: np.ndarray  # points that the robot reaches, none lies beyond: [points, 3]
    floor: Floor | None  # None where there is no gravity
    size: float  # the longest side of the box in which everything happens
    look: str  # one of `LOOKS`, "skeleton" where there are no visuals

    @property
    def pieces(self) -> list[Piece]:
        """What is seen at first."""
        return self.visual if self.look == "visual" else self.skeleton


def scene(model: Model, moved: Motion, look: str | None = None) -> Scene:
    """The robot, sized to be seen on the whole way.

    Its look is by default "visual" where more than half of its mass has visuals.
    """
    if look not in (None, *LOOKS):
        raise ValueError(f"look is {look!r}, expected one of: {', '.join(LOOKS)}.")
    lines, up = bones.skeleton(model), bones.up_direction(model)
    points = _points(model, lines, moved)
    size = float(np.ptp(points, axis=(0, 1)).max()) or 1.0
    radius = _radius(lines, size)
    skeleton = [
        *_links(model, lines, radius),
        *_hubs(model, radius),
        *_rails(model, moved, radius),
        *_ties(model, lines, radius),
    ]
    if not skeleton:  # bodies without mass on fixed joints
        colors = map(rgba, body_colors(model.n))
        skeleton = [
            shapes.ball(i, np.zeros(3), radius, x) for i, x in enumerate(colors)
        ]
    visual, lacking = visual_pieces(model, up)
    visual += [x for x in skeleton if x.body in lacking]
    look = look or _usual_look(model, visual)
    shown = visual if look == "visual" and visual else skeleton
    far = _extremes(shown, moved, model.n)
    size = float(np.ptp(far, axis=0).max()) or 1.0
    floor = None
    if np.any(model.gravity):
        floor = _floor(far, up, size, floor_height(model, up))
    skeleton += _base(model, moved, floor, up, radius)
    if shown is skeleton:
        look, far = "skeleton", _extremes(skeleton, moved, model.n)
    eye = _eye(points, up)
    return Scene(visual, skeleton, lines, up, eye, far, floor, size, look)


def _usual_look(model: Model, visual: list[Piece]) -> str:
    mass, seen = np.asarray(model.mass, float), np.zeros(model.n + 1, bool)
    seen[[piece.body for piece in visual]] = True
    is_enough = seen[:-1].any() and 2 * mass[seen[:-1]].sum() >= mass.sum()
    return "visual" if is_enough else "skeleton"


def _extremes(pieces: list[Piece], moved: Motion, world: int) -> np.ndarray:
    """The farthest points of the pieces in many directions, over the whole motion."""
    rows = np.unique(np.linspace(0, len(moved.p) - 1, _ROWS).astype(int))
    way = Motion(moved.R[rows], moved.p[rows])
    turn = np.arange(_DIRECTIONS) * np.pi * (3.0 - 5.0**0.5)
    z = np.linspace(-1.0, 1.0, _DIRECTIONS)
    r = np.sqrt(1.0 - z**2)
    directions = np.stack([r * np.cos(turn), r * np.sin(turn), z])
    directions = np.concatenate([directions, np.eye(3), -np.eye(3)], axis=1)

    def farthest(points: np.ndarray) -> np.ndarray:
        return points[np.unique((points @ directions).argmax(axis=0))]

    corners: dict[int, list[np.ndarray]] = {}
    for piece in pieces:
        corners.setdefault(piece.body, []).append(piece.corners)
    held = corners.pop(world, [])
    reached = []
    for body, own in corners.items():
        turned = farthest(np.concatenate(own)) @ np.swapaxes(way.R[:, body], 1, 2)
        reached.append(farthest((way.p[:, body, None] + turned).reshape(-1, 3)))
    size = np.ptp(np.concatenate(reached), axis=0).max() if reached else np.inf
    reached += [x for x in held if np.ptp(x, axis=0).max() <= _NEAR * size]
    return farthest(np.concatenate(reached or held))


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


def _thinner(model: Model) -> np.ndarray:
    """How thick each body is: less and less from the base to the tips."""
    depth = np.zeros(model.n)
    for i, parent in enumerate(model.parents):
        depth[i] = depth[parent] + 1.0 if parent >= 0 else 0.0
    return 1.25 - 0.55 * depth / max(depth.max(), 3.0)


def _links(model: Model, lines: Skeleton, radius: float) -> list[Piece]:
    thickness, pieces = radius * _thinner(model), []
    colors = [rgba(color) for color in body_colors(model.n)]
    for link in lines.links:
        i = link.body
        for start, end in pairwise(link.path):
            pieces += shapes.rod(i, start, end, thickness[i], colors[i])
    return pieces


def _hubs(model: Model, radius: float) -> list[Piece]:
    """Joints: a cylinder about one axis, a ball about several, a box that slides."""
    pieces, colors = [], [rgba(color) for color in body_colors(model.n)]
    for i, r in enumerate(radius * _thinner(model)):
        joint = model.tree.topology.types[i]
        axis = bones.turning_axis(model, i)
        if is_floating(model, i):
            half, axes = principal_spread(model, i)
            half, com = np.maximum(half, r), np.asarray(model.com, float)[i]
            pieces.append(shapes.box(i, com, axes, half, colors[i]))
        elif axis is not None:
            end = 1.9 * r * axis
            pieces.append(shapes.cylinder(i, -end, end, 1.45 * r, colors[i]))
        elif joint.nv > 0 and joint.axes == 1:
            axes = axes_along(np.asarray(model.axis, float)[i])
            half = r * np.array([1.6, 1.6, 2.2])
            pieces.append(shapes.box(i, np.zeros(3), axes, half, colors[i]))
        elif joint.nv > 0:
            pieces.append(shapes.ball(i, np.zeros(3), 1.55 * r, colors[i]))
    return pieces


def _rails(model: Model, moved: Motion, radius: float) -> list[Piece]:
    """Where joints slide: a thin box fixed to the parent, as long as the way."""
    pieces, colors = [], [*map(rgba, body_colors(model.n)), _BASE_COLOR]
    for i, parent in enumerate(model.parents):
        joint = model.tree.topology.types[i]
        if is_floating(model, i) or not any(step.slide for step in joint.steps):
            continue
        (low, high), axes = bones.rail(model, moved, i)
        if np.max(high - low) < 1e-3 * radius:
            continue
        half = np.maximum((high - low) / 2, 0.45 * radius)
        center = np.asarray(model.p, float)[i] + axes @ (low + high) / 2
        owner = parent % (model.n + 1)
        pieces.append(shapes.box(owner, center, axes, half, colors[owner]))
    return pieces


def _base(
    model: Model, moved: Motion, floor: Floor | None, up: np.ndarray, radius: float
) -> list[Piece]:
    """What holds the robot: a post on the floor, or a block if it hangs high."""
    pieces, lowest = [], moved.p[:, :-1] @ up
    for i in _held(model):
        foot, r = np.asarray(model.p, float)[i], 1.9 * radius
        height = np.inf if floor is None else (foot - floor.center) @ up
        reach = np.ptp(np.append(lowest, foot @ up))
        if height > 0.55 * max(reach, 1e-12) and height > 6.0 * radius:
            half = np.array([1.3, 1.3, 0.5]) * r
            center, axes = foot + (half[2] + radius) * up, axes_along(up)
            pieces.append(shapes.box(model.n, center, axes, half, _BASE_COLOR))
        elif height >= 0:
            ground, top = foot - height * up, foot - 0.3 * radius * up
            plate = ground + 0.4 * radius * up
            pieces.append(shapes.cylinder(model.n, ground, top, r, _BASE_COLOR))
            pieces.append(shapes.cylinder(model.n, ground, plate, 2 * r, _BASE_COLOR))
    return pieces


def _ties(model: Model, lines: Skeleton, radius: float) -> list[Piece]:
    """Cut joints: a dark ball on both bodies."""
    points = [point for tie in lines.ties for point in tie]
    world = model.n + 1
    return [
        shapes.ball(x.body % world, x.place, 1.6 * radius, _TIE_COLOR) for x in points
    ]


def _floor(far: np.ndarray, up: np.ndarray, size: float, height: float | None) -> Floor:
    """A floor at the height of the model's own, or under the lowest point of the way.

    The lower one: without contacts robots fall through floors.
    """
    middle = (far.min(axis=0) + far.max(axis=0)) / 2
    lowest = float((far @ up).min())
    height = lowest if height is None else min(height, lowest)
    center = middle + (height - middle @ up) * up
    along = axes_along(up)[:, :2].T
    halves = np.abs((far - center) @ along.T).max(axis=0) + 0.12 * size
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
