"""What a model shows, beside the arrays of a result."""

import json

import numpy as np

from jaxdyn.model import Model, TriangleMesh, Visual

_TEXT = "visuals"


def visual_arrays(model: Model) -> dict[str, np.ndarray]:
    """The visuals of a model as a text and the arrays of its meshes; files by path."""
    meshes: dict[TriangleMesh, int] = {}
    rows = []
    for x in model.visuals:
        row = {"shape": x.shape, "size": x.size, "color": x.color, "name": x.name}
        row |= {"R": x.R.tolist(), "p": x.p.tolist(), "body": x.body, "mesh": x.mesh}
        if isinstance(x.mesh, TriangleMesh):
            row["mesh"] = meshes.setdefault(x.mesh, len(meshes))
        rows.append(row)
    if not rows:
        return {}
    arrays = {_TEXT: np.array(json.dumps(rows))}
    for mesh, k in meshes.items():
        arrays[f"{_TEXT}_{k}_vertices"] = mesh.vertices
        arrays[f"{_TEXT}_{k}_faces"] = mesh.faces
    return arrays


def add_stored_visuals(model: Model, arrays: dict[str, np.ndarray]) -> None:
    """Give a model the visuals among the arrays of a result, and take these out.

    Raises:
        ValueError, KeyError, TypeError: they are not what `visual_arrays` has written.
    """
    names = [name for name in arrays if name.startswith(_TEXT)]
    own = {name: arrays.pop(name) for name in names}
    if not own:
        return
    rows = json.loads(own[_TEXT].item())
    meshes = {
        k: _mesh(own[f"{_TEXT}_{k}_vertices"], own[f"{_TEXT}_{k}_faces"])
        for k in {x["mesh"] for x in rows if isinstance(x["mesh"], int)}
    }
    visuals = []
    for x in rows:
        x["mesh"] = meshes.get(x["mesh"], x["mesh"])
        x |= {"size": tuple(x["size"]), "color": x["color"] and tuple(x["color"])}
        x |= {key: np.array(x[key], float) for key in ("R", "p")}
        visuals.append(Visual(**x))
        if not -1 <= visuals[-1].body < model.n:
            raise ValueError(f"a visual is on body {visuals[-1].body}")
    model.topology.visuals = tuple(visuals)


def _mesh(vertices: np.ndarray, faces: np.ndarray) -> TriangleMesh:
    if vertices.shape[1:] != (3,) or faces.shape[1:] != (3,) or faces.dtype.kind != "i":
        raise ValueError(f"a mesh has the shapes {vertices.shape}, {faces.shape}")
    if faces.size and not 0 <= faces.min() <= faces.max() < len(vertices):
        raise ValueError("a mesh has faces without vertices")
    return TriangleMesh(vertices, faces)
