"""MuJoCo in C: the stages of its smooth dynamics in a compiled loop."""
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from benchmarks.peers.base import MujocoAxes, Prepared
from benchmarks.peers.native import build, pointer
from benchmarks.problem import DT, INPUTS, STEPS

FOLDER = Path(str(mujoco.__file__)).parent
LIBRARY = next(FOLDER.glob("libmujoco.so*"))
FLAGS = [f"-I{FOLDER}/include", str(LIBRARY), f"-Wl,-rpath,{FOLDER}"]


class Peer(MujocoAxes):
    """Ways: the loop of mujoco_loop.c if it compiles, and the bindings."""

    packages = ("mujoco",)
    precisions = ("float64",)
    absent = {
        "jacobian": "only by finite differences",
        "rollout_gradient": "no gradient of a rollout",
    }

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self.model = mujoco.MjModel.from_xml_path(str(self.robot.mjcf))
        self.data = [mujoco.MjData(self.model) for _ in range(self.threads)]
        try:
            self.loop = build("mujoco_loop.c", FLAGS)
            self.note = "C loop over the stages of the smooth dynamics"
        except OSError as error:
            self.loop = None
            self.note = f"bindings only: {error}"

    def ways(self, row: str) -> dict[str, Callable]:
        """The loop, and the bindings where they have the row."""
        ways: dict[str, Callable] = {}
        if self.loop:
            ways["C loop"] = lambda *arrays: self._compiled(row, arrays)
        calls = {"inverse_dynamics": self._inverse, "forward_dynamics": self._forward}
        if row in calls and not self.loop:
            ways["bindings"] = calls[row]
        return ways

    def prepare(
        self, row: str, way: str, batch: int, states: dict[str, np.ndarray]
    ) -> Prepared:
        """Bind the arrays of a row."""
        states = self.inputs(states)
        arrays = [np.ascontiguousarray(states[name]) for name in INPUTS[row]]
        call = self.ways(row)[way](*arrays)
        return Prepared(call if batch else lambda: call()[0])

    def _compiled(self, row: str, arrays: tuple) -> Callable[[], np.ndarray]:
        nq, nv, batch = self.model.nq, self.model.nv, len(arrays[0])
        shape = {"mass_matrix": (nv, nv), "rollout": (nq,)}.get(row, (nv,))
        extra = (STEPS, ctypes.c_double(DT)) if row == "rollout" else ()
        out = np.empty((batch, *shape))
        function, model = getattr(self.loop, row), ctypes.c_void_p(self.model._address)
        addresses = [data._address for data in self.data]
        data = (ctypes.c_void_p * self.threads)(*addresses)
        pointers = [pointer(array) for array in (*arrays, out)]

        def call() -> np.ndarray:
            function(model, data, self.threads, batch, *extra, *pointers)
            return out

        return call

    def _inverse(self, *arrays: np.ndarray) -> Callable[[], np.ndarray]:
        return self._calls(mujoco.mj_inverse, "qacc", "qfrc_inverse", arrays)

    def _forward(self, *arrays: np.ndarray) -> Callable[[], np.ndarray]:
        return self._calls(mujoco.mj_forward, "qfrc_applied", "qacc", arrays)

    def _calls(
        self, function: Callable, given: str, wanted: str, arrays: tuple
    ) -> Callable[[], np.ndarray]:
        """One call from Python for each state."""
        data, out = self.data[0], np.empty_like(arrays[1])

        def call() -> np.ndarray:
            for i, (data.qpos, data.qvel, x) in enumerate(zip(*arrays, strict=True)):
                setattr(data, given, x)
                function(self.model, data)
                out[i] = getattr(data, wanted)
            return out

        return call
