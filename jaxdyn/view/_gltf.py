"""A motion as a glTF file, for Blender, game engines and other viewers."""

import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np

from jaxdyn.model import Model, TriangleMesh
from jaxdyn.view._meshes import simplified
from jaxdyn.view._samples import samples
from jaxdyn.view._scene import scene
from jaxdyn.view._shapes import Color, Piece, axes_along, quaternions, surface
from jaxdyn.view._skeleton import motion

_FLOAT, _INDEX = 5126, 5125  # kinds of numbers in glTF


class _Buffer:
    """The numbers of a file, and the tables that say where they are."""

    def __init__(self):
        self.data = bytearray()
        self.views: list[dict[str, Any]] = []
        self.accessors: list[dict[str, Any]] = []

    def add(self, values: np.ndarray, kind: str, number: int = _FLOAT) -> int:
        """Append rows of numbers, and return their index."""
        rows = np.ascontiguousarray(values, "<f4" if number == _FLOAT else "<u4")
        entry = {"buffer": 0, "byteOffset": len(self.data), "byteLength": rows.nbytes}
        self.views.append(entry)
        self.data += rows.tobytes()
        columns = rows.reshape(len(rows), -1)
        accessor = {"bufferView": len(self.views) - 1, "componentType": number}
        accessor |= {"count": len(rows), "type": kind}
        accessor |= {"min": columns.min(axis=0).tolist()}
        accessor |= {"max": columns.max(axis=0).tolist()}
        self.accessors.append(accessor)
        return len(self.accessors) - 1


def save_gltf(
    model: Model,
    ts: Any,
    q: Any,
    path: str | os.PathLike[str],
    *,
    look: str | None = None,
    mesh_bytes: float = 2e7,
) -> Path:
    """Save a motion as a binary glTF file (.glb), and return its path.

    Each body is a node with its name and an animated pose; the node above all of them
    turns the direction against gravity to the y axis of glTF.

    Args:
        ts, q, look, mesh_bytes: as in `save_animation`; times start at zero.

    Raises:
        ValueError: the arrays do not fit the model; see `samples`.
    """
    rows = samples(model, ts, q)
    moved = motion(model, rows.q)
    shown = scene(model, moved, look)
    buffer = _Buffer()
    bodies = [*model.names, model.topology.base]
    nodes: list[dict[str, Any]] = [{"name": name, "children": []} for name in bodies]
    pieces = simplified(shown.pieces, mesh_bytes)
    meshes, materials = _add_pieces(buffer, nodes, pieces)
    turn = axes_along(shown.up)[:, [1, 2, 0]]  # its columns are x, y, z of glTF
    children = list(range(len(bodies)))
    root = {"name": model.name, "children": children}
    root["rotation"] = quaternions(turn.T).tolist()
    times = buffer.add(rows.ts - rows.ts[0], "SCALAR")
    animation = {"name": model.name, "channels": [], "samplers": []}
    turns = _continuous(quaternions(moved.R))
    for body in range(model.n):
        for way, kind, values in (
            ("translation", "VEC3", moved.p[:, body]),
            ("rotation", "VEC4", turns[:, body]),
        ):
            nodes[body][way] = values[0].tolist()
            target = {"node": body, "path": way}
            channel = {"sampler": len(animation["samplers"]), "target": target}
            output = buffer.add(values, kind)
            animation["channels"].append(channel)
            animation["samplers"].append({"input": times, "output": output})
    for node in nodes[: len(bodies)]:
        if not node["children"]:
            del node["children"]
    content = {
        "asset": {"version": "2.0", "generator": "jaxdyn"},
        "scene": 0,
        "scenes": [{"nodes": [len(nodes)]}],
        "nodes": [*nodes, root],
        "meshes": meshes,
        "materials": materials,
        "animations": [animation],
        "accessors": buffer.accessors,
        "bufferViews": buffer.views,
        "buffers": [{"byteLength": len(buffer.data)}],
    }
    path = Path(path)
    path.write_bytes(_glb(content, bytes(buffer.data)))
    return path


def _add_pieces(
    buffer: _Buffer, nodes: list[dict[str, Any]], pieces: list[Piece]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Add a node for each piece below its body; the meshes and materials."""
    shapes: dict[str | TriangleMesh, dict[str, Any]] = {}
    colors: dict[Color, int] = {}
    meshes: dict[tuple[Any, Color], int] = {}
    for piece in pieces:
        shape, color = piece.shape, piece.color
        if shape not in shapes:
            own = surface(shape) if isinstance(shape, str) else shape
            place = buffer.add(own.vertices, "VEC3")
            index = buffer.add(own.faces.reshape(-1), "SCALAR", _INDEX)
            shapes[shape] = {"attributes": {"POSITION": place}, "indices": index}
        colors.setdefault(color, len(colors))
        mesh = meshes.setdefault((shape, color), len(meshes))
        matrix = np.eye(4)
        matrix[:3, :3], matrix[:3, 3] = piece.A, piece.p
        nodes[piece.body]["children"].append(len(nodes))
        nodes.append({"mesh": mesh, "matrix": matrix.T.reshape(-1).tolist()})
    primitives = [{**shapes[s], "material": colors[c]} for s, c in meshes]
    return [{"primitives": [x]} for x in primitives], list(map(_material, colors))


def _material(color: Color) -> dict[str, Any]:
    rgb = np.array(color[:3])  # from sRGB to linear
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    factor = [*linear.tolist(), color[3]]
    surface = {"baseColorFactor": factor, "metallicFactor": 0.0, "roughnessFactor": 0.6}
    blend = {"alphaMode": "BLEND"} if color[3] < 1.0 else {}
    return {"pbrMetallicRoughness": surface, "doubleSided": True, **blend}


def _continuous(turns: np.ndarray) -> np.ndarray:
    """Quaternions [times, n, 4] whose signs do not jump from row to row."""
    jumps = np.where((turns[1:] * turns[:-1]).sum(axis=-1) < 0, -1.0, 1.0)
    signs = np.concatenate([np.ones((1, turns.shape[1])), np.cumprod(jumps, axis=0)])
    return turns * signs[..., None]


def _glb(content: dict[str, Any], data: bytes) -> bytes:
    """A file of two chunks, each filled up to a multiple of four bytes."""
    text = json.dumps(content, separators=(",", ":")).encode()
    text, data = text + b" " * (-len(text) % 4), data + b"\0" * (-len(data) % 4)
    size = 12 + 8 + len(text) + 8 + len(data)
    head = struct.pack("<4sII", b"glTF", 2, size)
    first = struct.pack("<I4s", len(text), b"JSON") + text
    return head + first + struct.pack("<I4s", len(data), b"BIN\0") + data
