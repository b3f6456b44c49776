"""Triangles: rods, boxes and balls, each vertex fixed to a body."""

from dataclasses import dataclass

import numpy as np

Surface = tuple[np.ndarray, np.ndarray]  # vertices and faces, as in a `Solid`


@dataclass(frozen=True)
class Solid:
    """A surface of triangles whose vertices are fixed to bodies."""

    vertices: np.ndarray  # [vertices, 3], each in the axes of its body
    faces: np.ndarray  # [faces, 3], anticlockwise seen from outside
    bodies: np.ndarray  # the body of each vertex, as an index
    colors: np.ndarray  # the colour of each vertex, as an index


def solid(
    vertices: np.ndarray, faces: np.ndarray, body: int | np.ndarray, color: int
) -> Solid:
    """A surface with one colour, fixed to one body or each vertex to its own."""
    n = len(vertices)
    return Solid(vertices, faces, np.broadcast_to(body, n), np.full(n, color))


def joined(solids: list[Solid]) -> Solid:
    """All surfaces as one."""
    starts = np.cumsum([0] + [len(s.vertices) for s in solids[:-1]])
    return Solid(
        np.concatenate([s.vertices for s in solids]),
        np.concatenate([s.faces + k for s, k in zip(solids, starts, strict=True)]),
        np.concatenate([s.bodies for s in solids]),
        np.concatenate([s.colors for s in solids]),
    )


def part_of(whole: Solid, chosen: np.ndarray) -> Solid:
    """The faces of a surface of which all vertices are chosen."""
    faces = whole.faces[chosen[whole.faces].all(axis=1)]
    used, faces = np.unique(faces, return_inverse=True)
    owners = whole.bodies[used], whole.colors[used]
    return Solid(whole.vertices[used], faces.reshape(-1, 3), *owners)


def rod(start: np.ndarray, end: np.ndarray, radius: float, sides: int) -> Surface:
    """A rod with round ends."""
    low, high = np.deg2rad([50.0, 0.0]), np.deg2rad([0.0, 50.0])
    profile = [(-radius * np.sin(a), radius * np.cos(a), 0.0) for a in low]
    profile += [(radius * np.sin(a), radius * np.cos(a), 1.0) for a in high]
    return _turned(start, end, profile, radius, sides)


def cylinder(start: np.ndarray, end: np.ndarray, radius: float, sides: int) -> Surface:
    """A rod with flat ends and broken edges."""
    edge = 0.12 * radius
    profile = [(0.0, radius - edge, 0.0), (edge, radius, 0.0)]
    profile += [(-edge, radius, 1.0), (0.0, radius - edge, 1.0)]
    return _turned(start, end, profile, 0.0, sides)


def ball(center: np.ndarray, radius: float, sides: int) -> Surface:
    """A sphere."""
    angles = np.deg2rad([-60.0, -30.0, 0.0, 30.0, 60.0])
    profile = [(radius * np.sin(a), radius * np.cos(a), 0.0) for a in angles]
    return _turned(center, center, profile, radius, sides)


def box(center: np.ndarray, axes: np.ndarray, half: np.ndarray) -> Surface:
    """A box with its sides along the columns of `axes`; each face has own corners."""
    vertices, faces = [], []
    for k in range(3):
        for sign in (-1.0, 1.0):
            normal, u, v = np.roll(np.eye(3), -k, axis=0)
            square = [(-1, -1), (1, -1), (1, 1), (-1, 1)][:: int(sign)]
            n = len(vertices)
            vertices += [sign * normal + a * u + b * v for a, b in square]
            faces += [(n, n + 1, n + 2), (n, n + 2, n + 3)]
    return center + (np.array(vertices) * half) @ axes.T, np.array(faces)


def axes_along(direction: np.ndarray) -> np.ndarray:
    """A rotation whose third column is along a direction."""
    z = direction / np.linalg.norm(direction)
    x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
    x = x / np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], axis=1)


def quaternions(R: np.ndarray) -> np.ndarray:
    """Unit quaternions x, y, z, w of rotations [..., 3, 3], to rounding errors.

    The eigenvector of the largest eigenvalue of a symmetric matrix: no special cases.
    """
    K = np.zeros((*R.shape[:-2], 4, 4))
    trace = np.trace(R, axis1=-2, axis2=-1)[..., None, None]
    K[..., :3, :3] = R + np.swapaxes(R, -1, -2) - trace * np.eye(3)
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        K[..., i, 3] = K[..., 3, i] = R[..., k, j] - R[..., j, k]
    K[..., 3, 3] = trace[..., 0, 0]
    return np.linalg.eigh(K)[1][..., -1]


def _turned(
    start: np.ndarray,
    end: np.ndarray,
    profile: list[tuple[float, float, float]],
    cap: float,
    sides: int,
) -> Surface:
    """A surface of revolution about the line from start to end.

    Each ring of the profile has an offset along the line, a radius, and says whether
    it stands at the start (0) or at the end (1). `cap` is how far the poles stick out.
    """
    direction = end - start
    length = float(np.linalg.norm(direction))
    R = axes_along(direction if length > 0.0 else np.array([0.0, 0.0, 1.0]))
    turns = 2.0 * np.pi * np.arange(sides) / sides
    ring = np.stack([np.cos(turns), np.sin(turns), np.zeros(sides)], axis=1)
    z = np.array([0.0, 0.0, 1.0])
    rings = [radius * ring + (at * length + x) * z for x, radius, at in profile]
    poles = np.array([[0.0, 0.0, -cap], [0.0, 0.0, length + cap]])
    vertices = np.concatenate([*rings, poles])
    here = np.arange(sides)
    following = np.roll(here, -1)
    faces = []
    for k in range(len(rings) - 1):
        a, b = here + k * sides, following + k * sides
        faces += [(a, b, b + sides), (a, b + sides, a + sides)]
    last, pole = (len(rings) - 1) * sides, np.full(sides, len(vertices) - 1)
    faces += [(following, here, pole - 1), (last + here, last + following, pole)]
    return start + vertices @ R.T, np.concatenate([np.stack(x, 1) for x in faces])
