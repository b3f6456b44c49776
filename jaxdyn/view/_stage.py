"""The robot as meshes of viser on one frame for each body."""

from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import numpy as np

from jaxdyn.model import Model
from jaxdyn.view._colors import body_colors, rgba
from jaxdyn.view._meshes import by_color
from jaxdyn.view._scene import TRACES, Scene, scene
from jaxdyn.view._shapes import Color, quaternions
from jaxdyn.view._skeleton import Motion

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
        self,
        model: Model,
        moved: Motion,
        server: Any,
        *,
        look: str | None = None,
        traces: bool = True,
    ):
        shown = scene(model, moved, look)
        self._scale = _SIZE / shown.size
        self._moved, self._server = moved, server
        self._ties = shown.lines.ties
        server.scene.set_up_direction(shown.up)
        self._bodies = [
            server.scene.add_frame(f"/robot/{body}", show_axes=False)
            for body in range(model.n + 1)
        ]
        self._add_meshes(shown)
        self._gaps = None
        if self._ties:
            self._gaps = server.scene.add_line_segments(
                "/loops", self._gap_ends(moved, 0), (35, 39, 46), thickness=0.004
            )
        self._surroundings(shown)
        if traces:
            self._traces(shown, body_colors(model.n))

    def _add_meshes(self, shown: Scene) -> None:
        """The surfaces of the bodies, a mesh for each body and colour."""
        for k, ((body, color), whole) in enumerate(by_color(shown.pieces).items()):
            self._server.scene.add_mesh_simple(
                f"/robot/{body}/{k}",
                whole.vertices * self._scale,
                whole.faces,
                color=_bytes(color),
                opacity=None if color[3] == 1.0 else color[3],
                flat_shading=True,
            )

    def show(self, row: int) -> None:
        """Put all bodies where they are in a row of the motion."""
        self.put(self._moved, row)

    def put(self, moved: Motion, row: int) -> None:
        """Put all bodies where they are in a row of any motion."""
        xyzw = quaternions(moved.R[row])
        for body, frame in enumerate(self._bodies):
            frame.wxyz = np.roll(xyzw[body], 1)
            frame.position = moved.p[row, body] * self._scale
        if self._gaps is not None:
            self._gaps.points = self._gap_ends(moved, row)

    def positions(self) -> np.ndarray:
        """Where the bodies are shown: [n, 3], in the units of the model."""
        return np.stack([x.position for x in self._bodies[:-1]]) / self._scale

    def _gap_ends(self, moved: Motion, row: int) -> np.ndarray:
        ends = [[moved.of(x.body, x.place)[row] for x in tie] for tie in self._ties]
        return (np.array(ends) * self._scale).astype(np.float32)

    def _surroundings(self, shown: Scene) -> None:
        low, high = shown.extremes.min(axis=0), shown.extremes.max(axis=0)
        middle = (low + high) / 2 * self._scale
        eye = shown.eye / np.linalg.norm(shown.eye)
        camera = self._server.initial_camera
        camera.look_at = tuple(middle)
        camera.position = tuple(middle + 0.85 * _SIZE * eye)
        floor = shown.floor
        if floor is not None:
            axes = np.column_stack([*floor.along, shown.up])
            cell = floor.spacing * self._scale
            self._server.scene.add_grid(
                "/floor",
                2 * cell * floor.tiles[0],
                2 * cell * floor.tiles[1],
                cell_size=cell,
                section_size=5 * cell,
                wxyz=np.roll(quaternions(axes), 1),
                position=floor.center * self._scale,
            )

    def _traces(self, shown: Scene, colors: tuple[str, ...]) -> None:
        for tip in shown.lines.tips[:TRACES]:
            way = self._moved.of(tip.body, tip.place) * self._scale
            ends = np.stack([way[:-1], way[1:]], axis=1).astype(np.float32)
            color = _bytes(rgba(colors[tip.body]))
            self._server.scene.add_line_segments(
                f"/trace/{tip.name}", ends, color, thickness=0.003
            )


def _bytes(color: Color) -> tuple[int, int, int]:
    red, green, blue = (round(255 * x) for x in color[:3])
    return red, green, blue
