"""Pieces: boxes, balls, cylinders and meshes that are fixed to bodies."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from jaxdyn.model import TriangleMesh

Color = tuple[float, ...]  # red, green, blue, opacity from 0 to 1


@dataclass(frozen=True, eq=False)
class Piece:
    """A shape within ±1 along its axes, or a mesh, in the axes of a body: A x + p."""

    body: int  # the number of bodies is the world
    shape: str | TriangleMesh  # "box", "ball", "cylinder" along z
    A: np.ndarray  # turns and stretches: [3, 3]
    p: np.ndarray
    color: Color

    @property
    def corners(self) -> np.ndarray:
        """The corners of a box around it, in the axes of the body: [8, 3]."""
        box = np.array([[-1.0] * 3, [1.0] * 3])
        if isinstance(self.shape, TriangleMesh):
            vertices = self.shape.vertices
            box = np.stack([vertices.min(axis=0), vertices.max(axis=0)])
        grid = np.stack(np.meshgrid(*box.T), -1).reshape(-1, 3)
        return grid @ self.A.T + self.p

    def triangles(self) -> TriangleMesh:
        """Its surface in the axes of the body."""
        own = surface(self.shape) if isinstance(self.shape, str) else self.shape
        return TriangleMesh(own.vertices @ self.A.T + self.p, own.faces)


@cache
def surface(shape: str) -> TriangleMesh:
    """Triangles of a box, ball or cylinder within ±1."""
    from trimesh import creation  # slow to load

    made = {
        "box": lambda: creation.box((2.0, 2.0, 2.0)),
        "ball": lambda: creation.icosphere(2),
        "cylinder": lambda: creation.cylinder(1.0, 2.0, sections=24),
    }[shape]()
    return TriangleMesh(np.asarray(made.vertices), np.asarray(made.faces))


def box(
    body: int, center: np.ndarray, axes: np.ndarray, half: np.ndarray, color: Color
) -> Piece:
    """A box with its sides along the columns of `axes`."""
    return Piece(body, "box", axes * half, center, color)


def ball(body: int, center: np.ndarray, radius: float, color: Color) -> Piece:
    """A sphere."""
    return Piece(body, "ball", radius * np.eye(3), center, color)


def cylinder(
    body: int, start: np.ndarray, end: np.ndarray, radius: float, color: Color
) -> Piece:
    """A rod with flat ends."""
    length = float(np.linalg.norm(end - start))
    half = np.array([radius, radius, length / 2])
    axes = axes_along(end - start if length > 0.0 else np.eye(3)[2])
    return Piece(body, "cylinder", axes * half, (start + end) / 2, color)


def rod(
    body: int, start: np.ndarray, end: np.ndarray, radius: float, color: Color
) -> Iterator[Piece]:
    """A rod with round ends."""
    yield cylinder(body, start, end, radius, color)
    for center in (start, end):
        yield ball(body, center, radius, color)


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
