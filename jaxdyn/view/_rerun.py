"""A motion as a recording for the viewer Rerun."""

import os
from pathlib import Path
from typing import Any

from jaxdyn.model import Model
from jaxdyn.view._meshes import by_color, simplified
from jaxdyn.view._samples import samples
from jaxdyn.view._scene import scene
from jaxdyn.view._shapes import quaternions
from jaxdyn.view._skeleton import motion


def save_rerun(
    model: Model,
    ts: Any,
    q: Any,
    path: str | os.PathLike[str],
    *,
    look: str | None = None,
    mesh_bytes: float = 2e7,
) -> Path:
    """Save a motion as a recording (.rrd) for the viewer Rerun, and return its path.

    Each body is an entity with its name, its meshes below it, on the timeline "time".

    Args:
        ts, q, look, mesh_bytes: as in `save_animation`.

    Raises:
        ValueError: the package rerun-sdk is not installed, or the arrays do not fit the
            model; see `samples`.
    """
    try:
        import rerun  # type: ignore  # an extra of the user's
    except ImportError as error:
        raise ValueError(
            "recordings need Rerun, which is not installed: pip install rerun-sdk."
        ) from error
    rows = samples(model, ts, q)
    moved = motion(model, rows.q)
    shown = scene(model, moved, look)
    recording = rerun.RecordingStream(model.name)
    recording.save(os.fspath(path))
    names = [*model.names, model.topology.base]
    places = [f"robot/{rerun.escape_entity_path_part(name)}" for name in names]
    times = [rerun.TimeColumn("time", duration=rows.ts)]
    turns = quaternions(moved.R)
    for body, place in enumerate(places[:-1]):
        poses = dict(translation=moved.p[:, body], quaternion=turns[:, body])
        columns = rerun.Transform3D.columns(**poses)
        recording.send_columns(place, indexes=times, columns=columns)
    surfaces = by_color(simplified(shown.pieces, mesh_bytes))
    for k, ((body, color), mesh) in enumerate(surfaces.items()):
        given = dict(vertex_positions=mesh.vertices, triangle_indices=mesh.faces)
        entity = rerun.Mesh3D(**given, albedo_factor=color)
        recording.log(f"{places[body]}/{k}", entity, static=True)
    recording.disconnect()
    return Path(path)
