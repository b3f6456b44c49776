"""The pieces of what a model shows: `model.visuals`."""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from jaxdyn.io import warn_caller
from jaxdyn.model import Model, TriangleMesh, Visual
from jaxdyn.view import _shapes as shapes
from jaxdyn.view._meshes import read_mesh
from jaxdyn.view._shapes import Piece

_PLAIN = (0.72, 0.74, 0.78, 1.0)  # where no colour is given


def visual_pieces(model: Model, up: np.ndarray) -> tuple[list[Piece], set[int]]:
    """The pieces of all visuals but the floor, and the bodies that lack some.

    One warning names the files that cannot be read.
    """
    pieces: list[Piece] = []
    lacking: set[int] = set()
    problems: dict[str, list[object]] = {}  # files by what is wrong with them
    for visual in model.visuals:
        try:
            if not _is_floor(visual, up):
                pieces += _pieces(visual, visual.body % (model.n + 1))
        except ValueError as error:
            lacking.add(visual.body)
            problems.setdefault(str(error), []).append(visual.mesh)
    if problems:
        lines = [f"{model.name!r}: bodies whose meshes cannot be read are skeletons:"]
        for reason, files in problems.items():
            more = f" and {len(files) - 1} more" if len(files) > 1 else ""
            lines.append(f"  {files[0]}{more}: {reason}")
        warn_caller("\n".join(lines))
    return pieces, lacking


def floor_height(model: Model, up: np.ndarray) -> float | None:
    """How high the floor is, if the model has one: a horizontal plane of the world."""
    heights = [float(x.p @ up) for x in model.visuals if _is_floor(x, up)]
    return max(heights, default=None)


def _is_floor(visual: Visual, up: np.ndarray) -> bool:
    is_plane = visual.shape == "plane" and visual.body < 0
    return is_plane and bool(visual.R[:, 2] @ up > 0.999)


def _pieces(visual: Visual, body: int) -> Iterator[Piece]:
    """Boxes, balls, cylinders and meshes; a plane without end is not shown."""
    size, R, p = np.array(visual.size), visual.R, visual.p
    color, along = visual.color or _PLAIN, R[:, 2]
    if visual.shape == "box":
        yield shapes.box(body, p, R, size / 2, color)
    elif visual.shape in ("sphere", "ellipsoid"):
        yield Piece(body, "ball", R * size, p, color)
    elif visual.shape == "cylinder":
        yield Piece(body, "cylinder", R * (size[0], size[0], size[1] / 2), p, color)
    elif visual.shape == "capsule":
        ends = p - size[1] / 2 * along, p + size[1] / 2 * along
        yield from shapes.rod(body, *ends, size[0], color)
    elif visual.shape == "plane" and size.all():
        yield shapes.box(body, p, R, np.append(size, 1e-3 * size.max()), color)
    elif isinstance(visual.mesh, TriangleMesh):
        mesh = _mirrored(visual.mesh, tuple(np.sign(size)))
        yield Piece(body, mesh, R * np.abs(size), p, color)
    elif visual.mesh is not None:
        for mesh, own in read_mesh(visual.mesh):
            mesh = _mirrored(mesh, tuple(np.sign(size)))
            yield Piece(body, mesh, R * np.abs(size), p, own or color)


@lru_cache(maxsize=256)
def _mirrored(mesh: TriangleMesh, signs: tuple[float, ...]) -> TriangleMesh:
    """The mesh with some of its axes reversed."""
    if min(signs) > 0:
        return mesh
    way = int(np.prod(signs)) or 1
    return TriangleMesh(mesh.vertices * np.array(signs), mesh.faces[:, ::way])
