"""Meshes: files as triangles and colours, simplified to fit into a page."""

import warnings
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from jaxdyn.model import TriangleMesh
from jaxdyn.view._shapes import Color, Piece, surface

Colored = tuple[TriangleMesh, Color | None]
_SAME = 1e-6  # corners as near as this share of the size of a mesh are one
_READERS = {".dae": "pycollada"}  # packages that a kind of file needs


def read_mesh(path: str) -> tuple[Colored, ...]:
    """The triangles of a file in metres, one mesh for each colour that it has.

    Raises:
        ValueError: the file cannot be read; it says why, not which file it is.
    """
    try:
        return _read(path, Path(path).stat().st_mtime_ns)
    except OSError:
        raise ValueError("there is no such file") from None
    except ImportError as error:
        package = _READERS.get(Path(path).suffix.lower(), error.name)
        raise ValueError(
            f"the package {package} is not installed: pip install {package}"
        ) from None
    except Exception as error:  # the readers of trimesh raise what they please
        raise ValueError(f"it cannot be read, {error!r}") from None


@lru_cache(maxsize=256)
def _read(path: str, changed: int) -> tuple[Colored, ...]:
    import trimesh  # slow to load

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as of textures
        scene = trimesh.load_scene(path)
    unit = 1.0 if scene.units is None else _metres(scene.units)
    by_color: dict[Color | None, list[TriangleMesh]] = {}
    for node in scene.graph.nodes_geometry:
        pose, name = scene.graph[node]
        part: Any = scene.geometry[name]
        if hasattr(part, "faces") and len(part.faces):
            vertices = unit * (part.vertices @ pose[:3, :3].T + pose[:3, 3])
            is_mirrored = np.linalg.det(pose[:3, :3]) < 0
            faces = np.asarray(part.faces)[:, :: -1 if is_mirrored else 1]
            mesh = TriangleMesh(vertices, faces)
            by_color.setdefault(_color(part.visual), []).append(mesh)
    if not by_color:
        raise ValueError("it has no triangles")
    found = []
    for color, meshes in by_color.items():
        whole = joined(meshes)
        found.append((clustered(whole, _SAME * extent(whole)), color))
    return tuple(found)


def _metres(units: str) -> float:
    from trimesh.units import unit_conversion

    return float(unit_conversion(units, "meters"))


def _color(visual: Any) -> Color | None:
    """The colour that a file gives a mesh: of its material, the mean of a texture."""
    material = getattr(visual, "material", None)
    if material is None and visual.kind not in ("vertex", "face"):
        return None
    color = np.asarray((visual if material is None else material).main_color, float)
    kinds = ("image", "baseColorTexture")
    image = next(filter(None, (getattr(material, x, None) for x in kinds)), None)
    if image is not None:
        color = np.asarray(image.convert("RGBA"), float).reshape(-1, 4).mean(axis=0)
    elif material is not None and not (
        material.name or getattr(material, "baseColorFactor", None) is not None
    ):
        return None  # a default of the reader
    return tuple((color / 255).round(3).tolist())


def joined(meshes: list[TriangleMesh]) -> TriangleMesh:
    """All meshes as one."""
    starts = np.cumsum([0] + [len(x.vertices) for x in meshes[:-1]])
    return TriangleMesh(
        np.concatenate([x.vertices for x in meshes]),
        np.concatenate([x.faces + k for x, k in zip(meshes, starts, strict=True)]),
    )


def by_color(pieces: list[Piece]) -> dict[tuple[int, Color], TriangleMesh]:
    """The surfaces of all bodies in their axes, one for each body and colour."""
    kinds: dict[tuple[int, Color], list[TriangleMesh]] = {}
    for x in pieces:
        kinds.setdefault((x.body, x.color), []).append(x.triangles())
    return {kind: joined(surfaces) for kind, surfaces in kinds.items()}


def extent(mesh: TriangleMesh) -> float:
    """The longest side of the box around a mesh."""
    return float(np.ptp(mesh.vertices, axis=0).max())


def clustered(mesh: TriangleMesh, cell: float) -> TriangleMesh:
    """The mesh with all vertices in a cubic cell of this size drawn together.

    Each becomes the mean of its cell, and faces within two cells go. Where none is left
    the mesh becomes the box around it.
    """
    if cell <= 0.0:
        return mesh
    grid = np.floor((mesh.vertices - mesh.vertices.min(axis=0)) / cell).astype(np.int64)
    counts = grid.max(axis=0) + 1
    keys = (grid[:, 0] * counts[1] + grid[:, 1]) * counts[2] + grid[:, 2]
    _, owner, number = np.unique(keys, return_inverse=True, return_counts=True)
    sums = [np.bincount(owner, x) for x in mesh.vertices.T]
    faces = owner[mesh.faces]
    i, j, k = faces.T
    faces = faces[(i != j) & (j != k) & (k != i)]
    if not len(faces):
        low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
        box = surface("box")
        return TriangleMesh((low + high + box.vertices * (high - low)) / 2, box.faces)
    # of faces with the same corners one is enough, thin sheets fall together
    _, first = np.unique(np.sort(faces, axis=1), axis=0, return_index=True)
    return TriangleMesh(np.stack(sums, 1) / number[:, None], faces[np.sort(first)])


def simplified(pieces: list[Piece], limit: float) -> list[Piece]:
    """The pieces with so few triangles that their meshes fill `limit` bytes at most.

    All meshes lose details smaller than one length, the same for the whole robot.
    """
    scales: dict[TriangleMesh, float] = {}  # the largest of each mesh
    for piece in pieces:
        if isinstance(piece.shape, TriangleMesh):
            scale = float(np.linalg.norm(piece.A, axis=0).max())
            scales[piece.shape] = max(scale, scales.get(piece.shape, 0.0))
    small = {mesh: mesh for mesh in scales}
    largest, cell = (
        max((scale * extent(x) for x, scale in scales.items()), default=0),
        0.0,
    )
    while sum(map(packed_bytes, small.values())) > limit and cell < largest:
        cell = 1.25 * cell or 5e-4 * largest
        small = {
            mesh: clustered(mesh, cell / scale) if scale > 0 else mesh
            for mesh, scale in scales.items()
        }
    return [
        replace(x, shape=small[x.shape]) if isinstance(x.shape, TriangleMesh) else x
        for x in pieces
    ]


def packed_bytes(mesh: TriangleMesh) -> int:
    """The bytes of a mesh in a page: 16 bits a number, as text."""
    wide = 2 if len(mesh.vertices) < 2**16 else 4
    return (6 * len(mesh.vertices) + 3 * wide * len(mesh.faces)) * 4 // 3
