"""A motion as one page that needs no network: the robot, its controls, its plots."""

import base64
import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from html import escape
from importlib import resources
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

from jaxdyn.model import Model, TriangleMesh
from jaxdyn.view._colors import body_colors
from jaxdyn.view._coordinates import SI, Units, kinds_in, positions, quantities, rates
from jaxdyn.view._forces import Arrows, arrows
from jaxdyn.view._meshes import simplified
from jaxdyn.view._samples import Samples, samples
from jaxdyn.view._scene import TRACES, Floor, Scene, scene
from jaxdyn.view._shapes import Piece, quaternions
from jaxdyn.view._skeleton import Motion, motion

_BYTES = 900_000  # of samples in a page, so that it stays under 2 MB without meshes
_SHAPE = 300  # bytes of the skeleton of a body
_FEWEST = 300  # samples, where there are so many: slow motion stays smooth
_VIEWER = "viewer.zip"
_SCRIPTS = ("stage.js", "plots.js", "player.js")
# three.js as trimesh brings it, before the controls and loaders that follow it
_THREE = re.compile(r"<script>(/\*\*.*?__esModule\",\{value:!0\}\)\}\)+;)", re.DOTALL)


def save_animation(
    model: Model,
    ts: Any,
    q: Any,
    path: str | os.PathLike[str],
    *,
    qd: Any = None,
    tau: Any = None,
    forces: Mapping[str, Any] | None = None,
    loop_forces: Any = None,
    look: str | None = None,
    title: str | None = None,
    fps: float = 60.0,
    mesh_bytes: float = 4e6,
    units: Units = SI,
) -> Path:
    """Save a page that shows the motion, and return its path.

    The page is one file with everything in it: the robot in 3-D (drag to orbit, scroll
    to zoom), play, pause, speed and time, and plots with a cursor at that time.

    Args:
        ts, q: times [times] and positions [times, nq]. Between rows the page blends
            the poses of the bodies: a row each 1/30 s looks right.
        qd, tau: rates and joint forces [times, nv], plotted where given.
        forces: what arrows show, by name: wrenches on the bodies at their origins in
            world axes [times, n, 6], such as `f_ext` and `joint_reactions`.
        loop_forces: those of a trajectory [times, nc], arrows too.
        look: "visual" as the robot's file shows it, or "skeleton"; the page can switch.
            By default visuals, where more than half of the mass has some; a model
            without any is a skeleton.
        title: what stands above; the name of the robot unless given.
        fps: how many rows for each unit of time the page keeps, if it can.
        mesh_bytes: meshes are simplified until they take no more of the page.

    Raises:
        ValueError: the arrays do not fit the model; see `samples`.
    """
    if not fps > 0.0:
        raise ValueError(f"fps is {fps}, expected a positive number.")
    if not mesh_bytes > 0.0:
        raise ValueError(f"mesh_bytes is {mesh_bytes}, expected a positive number.")
    rows = samples(model, ts, q, qd=qd, tau=tau)
    rows = rows.at(_kept(rows, model, fps, len(forces or {})))
    pushed = arrows(model, rows, forces or {}, loop_forces)
    moved = motion(model, rows.q)
    shown = scene(model, moved, look)
    title = model.name if title is None else title
    data = {
        "title": title,
        "timeUnit": units.time,
        "times": _floats(rows.ts - rows.ts[0]),
        "start": float(rows.ts[0]),
        "poses": {
            "positions": _floats(moved.p[:, :-1]),
            "quaternions": _floats(quaternions(moved.R[:, :-1])),
        },
        "look": shown.look,
        "looks": _looks(shown, mesh_bytes),
        "scene": _scene_data(model, shown, moved, units),
        "forces": [_arrow_data(x) for x in pushed],
        "plots": _plots(model, rows, units),
    }
    page = _fill(title, json.dumps(data, separators=(",", ":"), allow_nan=False))
    path = Path(path)
    path.write_text(page, encoding="utf-8")
    return path


def _kept(rows: Samples, model: Model, fps: float, forces: int) -> np.ndarray:
    """Which rows the page keeps: evenly spread in time."""
    count = len(rows.ts)
    lines = sum(x is not None for x in (rows.qd, rows.tau))
    width = (7 + 3 * forces) * model.n + model.nq + lines * model.nv
    duration = rows.ts[-1] - rows.ts[0]
    room = _BYTES - _SHAPE * min(model.n, 1000)
    wanted = min(max(_FEWEST, fps * duration), max(room / (4 * width), 2))
    if count <= wanted:
        return np.arange(count)
    times = np.linspace(rows.ts[0], rows.ts[-1], int(wanted))
    after = np.clip(np.searchsorted(rows.ts, times), 1, count - 1)
    nearer = times - rows.ts[after - 1] < rows.ts[after] - times
    return np.unique(np.where(nearer, after - 1, after))


def _looks(shown: Scene, mesh_bytes: float) -> dict[str, Any]:
    """Packed meshes, and the pieces of visuals and skeleton, which refer to them."""
    looks = {"visual": simplified(shown.visual, mesh_bytes), "skeleton": shown.skeleton}
    shapes = dict.fromkeys(piece.shape for piece in looks["visual"])
    meshes = [shape for shape in shapes if isinstance(shape, TriangleMesh)]
    index = {mesh: str(k) for k, mesh in enumerate(meshes)}
    found: dict[str, Any] = {"meshes": [_packed(mesh) for mesh in meshes]}
    return found | {k: _piece_data(x, index) for k, x in looks.items() if x}


def _packed(mesh: TriangleMesh) -> dict[str, Any]:
    """Vertices as whole numbers from 0 to 65535 in a box, and faces."""
    low = mesh.vertices.min(axis=0)
    step = np.ptp(mesh.vertices, axis=0) / 65535
    steps = np.where(step > 0, step, 1.0)
    vertices = np.round((mesh.vertices - low) / steps)
    wide = "<u2" if len(vertices) < 2**16 else "<u4"
    return {
        "low": low.tolist(),
        "step": steps.tolist(),
        "vertices": _text(vertices, "<u2"),
        "faces": _text(mesh.faces, wide),
        "wide": wide == "<u4",
    }


def _piece_data(pieces: list[Piece], index: Mapping[Any, str]) -> dict[str, Any]:
    colors, owner = np.unique([x.color for x in pieces], axis=0, return_inverse=True)
    places = [np.column_stack([x.A, x.p]) for x in pieces]
    return {
        "shapes": [index.get(x.shape, x.shape) for x in pieces],
        "bodies": [x.body for x in pieces],
        "places": _floats(np.array(places)),
        "palette": colors.round(4).tolist(),
        "colors": owner.reshape(-1).tolist(),
    }


def _scene_data(
    model: Model, shown: Scene, moved: Motion, units: Units
) -> dict[str, Any]:
    colors = body_colors(model.n)
    return {
        "up": shown.up.tolist(),
        "eye": shown.eye.tolist(),
        "size": shown.size,
        "extremes": _floats(shown.extremes),
        "floor": None if shown.floor is None else _floor_data(shown.floor, units),
        "ties": [
            [{"body": x.body % (model.n + 1), "place": x.place.tolist()} for x in tie]
            for tie in shown.lines.ties
        ],
        "traces": [
            {
                "name": tip.name,
                "color": colors[tip.body],
                "points": _floats(moved.of(tip.body, tip.place)),
            }
            for tip in shown.lines.tips[:TRACES]
        ],
    }


def _floor_data(floor: Floor, units: Units) -> dict[str, Any]:
    return {
        "center": floor.center.tolist(),
        "along": floor.along.tolist(),
        "tiles": floor.tiles,
        "spacing": floor.spacing,
        "label": f"grid {floor.spacing:g} {units.length}",
    }


def _arrow_data(pushed: Arrows) -> dict[str, Any]:
    return {
        "name": pushed.name,
        "bodies": list(pushed.bodies),
        "places": pushed.places.tolist(),
        "vectors": _floats(pushed.vectors),
    }


def _plots(model: Model, rows: Samples, units: Units) -> list[dict[str, Any]]:
    """One plot for each quantity and kind of coordinate."""
    colors, found = body_colors(model.n), []
    letters = {"q": positions(model), "qd": rates(model), "tau": rates(model)}
    for letter, entries in letters.items():
        values = getattr(rows, letter)
        if values is None:
            continue
        quantity = quantities(units)[letter]
        for kind, columns in kinds_in(entries).items():
            lines = [
                {
                    "name": entries[k].name,
                    "color": colors[entries[k].body],
                    "part": entries[k].part,
                    "values": _floats(values[:, k]),
                }
                for k in columns
            ]
            found.append({"title": quantity.title(kind), "lines": lines})
    return found


def three_js() -> str:
    """The source of three.js, which the package trimesh brings with its viewer."""
    packed = resources.files("trimesh").joinpath("resources", "templates", _VIEWER)
    viewer = ""
    with suppress(OSError, KeyError), ZipFile(BytesIO(packed.read_bytes())) as archive:
        viewer = archive.read("viewer.html.template").decode("utf-8")
    found = _THREE.search(viewer)
    if found is None:
        raise ValueError(
            "the package trimesh brings no three.js that is known: install another "
            "release, pip install 'trimesh<6'."
        )
    return found[1]


def _fill(title: str, data: str) -> str:
    folder = resources.files("jaxdyn.view")
    texts = {
        name: folder.joinpath(name).read_text(encoding="utf-8")
        for name in ("page.html", *_SCRIPTS)
    }
    data = data.replace("<", r"\u003c")  # no name ends the script or hides its end
    fillings = {"TITLE": escape(title), "THREE": three_js(), "DATA": data}
    fillings["PLAYER"] = "".join(texts[name] for name in _SCRIPTS)
    return re.sub(r"{{(\w+)}}", lambda found: fillings[found[1]], texts["page.html"])


def _floats(values: np.ndarray) -> str:
    with np.errstate(over="ignore"):
        single = np.asarray(values, "<f4")
    if not np.isfinite(single).all():
        raise ValueError(
            "the motion has numbers beyond 3e38 or none at all, expected single "
            "precision to hold them: look for a simulation that has diverged."
        )
    return _text(single, "<f4")


def _text(values: np.ndarray, kind: str) -> str:
    return base64.b64encode(np.asarray(values, kind).tobytes()).decode("ascii")
