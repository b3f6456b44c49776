"""The robot as meshes of viser, one for each body."""

from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import numpy as np

from jaxdyn.model import Model
from jaxdyn.view._scene import TRACES, Scene, scene
from jaxdyn.view._skeleton import Motion
from jaxdyn.view._solids import part_of, quaternions

_SIZE = 2.0  # of everything in the units of the browser, whatever the robot measures


def viser_server(host: str, port: int, label: str) -> Any:
    """A server that prints nothing."""
    try:
        import viser  # an extra
    except ImportError as error:
        raise ValueError(
            "the live view needs viser, which is not installed: "
            "pip install 'jaxdyn[view]'."
        ) from error
    with redirect_stdout(StringIO()):  # its banner comes without being asked for
        return viser.ViserServer(host=host, port=port, label=label, verbose=False)


def close(server: Any) -> None:
    """Stop a server without a word."""
    with redirect_stdout(StringIO()):
        server.stop()


class Stage:
    """The bodies, the floor and the traces in the browser."""

    def __init__(
        self, model: Model, moved: Motion, server: Any, *, traces: bool = True
    ):
        shown = scene(model, moved)
        low, high = shown.bounds
        self._scale = _SIZE / float(np.max(high - low))
        self._moved, self._server = moved, server
        self._ties = shown.lines.ties
        server.scene.set_up_direction(shown.up)
        self._bodies = [self._meshes(shown, body) for body in range(model.n + 1)]
        self._gaps = None
        if self._ties:
            self._gaps = server.scene.add_line_segments(
                "/loops", self._gap_ends(moved, 0), (35, 39, 46), thickness=0.004
            )
        self._surroundings(shown)
        if traces:
            self._traces(shown)

    def _meshes(self, shown: Scene, body: int) -> list[Any]:
        """The surface of a body, a mesh for each colour."""
        part, meshes = part_of(shown.solid, shown.solid.bodies == body), []
        for k in np.unique(part.colors).tolist():
            piece, color = part_of(part, part.colors == k), _rgb(shown.colors[k])
            given = piece.vertices * self._scale, piece.faces
            add = self._server.scene.add_mesh_simple
            meshes.append(add(f"/robot/{body}/{k}", *given, color=color))
        return meshes

    def show(self, row: int) -> None:
        """Put all bodies where they are in a row of the motion."""
        self.put(self._moved, row)

    def put(self, moved: Motion, row: int) -> None:
        """Put all bodies where they are in a row of any motion."""
        xyzw = quaternions(moved.R[row])
        for body, meshes in enumerate(self._bodies):
            for mesh in meshes:
                mesh.wxyz = np.roll(xyzw[body], 1)
                mesh.position = moved.p[row, body] * self._scale
        if self._gaps is not None:
            self._gaps.points = self._gap_ends(moved, row)

    def positions(self) -> np.ndarray:
        """Where the bodies are shown: [n, 3], in the units of the model."""
        # a body may show nothing; the others tell where they are
        nowhere = np.full(3, np.nan)
        shown = [m[0].position / self._scale if m else nowhere for m in self._bodies]
        return np.stack(shown[:-1])

    def _gap_ends(self, moved: Motion, row: int) -> np.ndarray:
        ends = [[moved.of(x.body, x.place)[row] for x in tie] for tie in self._ties]
        return (np.array(ends) * self._scale).astype(np.float32)

    def _surroundings(self, shown: Scene) -> None:
        scenery, low, high = self._server.scene, *shown.bounds
        middle = (low + high) / 2 * self._scale
        eye = shown.eye / np.linalg.norm(shown.eye)
        camera = self._server.initial_camera
        camera.look_at = tuple(middle)
        camera.position = tuple(middle + 0.85 * _SIZE * eye)
        floor = shown.floor
        if floor is not None:
            axes = np.column_stack([*floor.along, shown.up])
            cell = floor.spacing * self._scale
            scenery.add_grid(
                "/floor",
                2 * cell * floor.tiles[0],
                2 * cell * floor.tiles[1],
                cell_size=cell,
                section_size=5 * cell,
                wxyz=np.roll(quaternions(axes), 1),
                position=floor.center * self._scale,
            )

    def _traces(self, shown: Scene) -> None:
        for tip in shown.lines.tips[:TRACES]:
            way = self._moved.of(tip.body, tip.place) * self._scale
            ends = np.stack([way[:-1], way[1:]], axis=1).astype(np.float32)
            color = _rgb(shown.colors[tip.body])
            self._server.scene.add_line_segments(
                f"/trace/{tip.name}", ends, color, thickness=0.003
            )


def _rgb(color: str) -> tuple[int, int, int]:
    red, green, blue = (int(color[k : k + 2], 16) for k in (1, 3, 5))
    return red, green, blue
