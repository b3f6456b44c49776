"""Pinocchio: its C++ functions in a compiled loop, and its Python bindings."""
# pyright: basic, reportMissingImports=false

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from benchmarks.peers.base import Library, Prepared
from benchmarks.peers.native import build, pointer
from benchmarks.problem import DT, INPUTS, STEPS

PREFIX = Path(str(pin.__file__)).parents[4]  # where the wheels keep include/ and lib/
FLAGS = ["-std=c++17", f"-I{PREFIX}/include", f"-I{PREFIX}/include/eigen3"]
FLAGS += ["-DBOOST_MPL_LIMIT_LIST_SIZE=30", "-DBOOST_MPL_LIMIT_VECTOR_SIZE=30"]
FLAGS += ["-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS"]
FLAGS += ["-DBOOST_FUSION_INVOKE_MAX_ARITY=12"]


class Peer(Library):
    """Ways: the loop of pinocchio_loop.cpp if it compiles, and the bindings."""

    body_axes = True
    packages = ("pin",)
    precisions = ("float64",)
    absent = {"rollout_gradient": "no gradient of a rollout"}

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        try:
            self.loop = Loop(self)
            self.note = "C++ loop compiled from its headers"
        except OSError as error:
            self.loop = None
            self.note = f"bindings only: {error}"
        self.bindings = Bindings(self)

    def ways(self, row: str) -> dict[str, Callable]:
        """The loop and the bindings, where they have the row."""
        places = {"C++ loop": self.loop, "bindings": self.bindings}
        return {k: getattr(v, row) for k, v in places.items() if hasattr(v, row)}

    def prepare(
        self, row: str, way: str, batch: int, states: dict[str, np.ndarray]
    ) -> Prepared:
        """Bind the arrays of a row."""
        arrays = [np.ascontiguousarray(states[name]) for name in INPUTS[row]]
        call = self.ways(row)[way](*arrays)
        return Prepared(call if batch else lambda: call()[0])


class Loop:
    """The compiled loop: each row takes arrays and gives the call on them."""

    def __init__(self, peer: Peer):
        self.library = build("pinocchio_loop.cpp", FLAGS)
        self.nq, self.nv = peer.robot.nq, peer.robot.nv
        bodies = peer.robot.bodies
        joints = [body["joint"] for body in bodies]
        tables = [
            np.array([body["parent"] for body in bodies], np.int32),
            np.array([joint["type"] == "free" for joint in joints], np.int32),
            np.array([joint["placement"]["R"] for joint in joints], float),
            np.array([joint["placement"]["p"] for joint in joints], float),
            np.array([joint.get("axis", (0, 0, 1)) for joint in joints], float),
            np.array([body["mass"] for body in bodies], float),
            np.array([body["com"] for body in bodies], float),
            np.array([body["inertia"] for body in bodies], float),
            np.array(peer.robot.description["gravity"], float),
        ]
        self.library.load.restype = ctypes.c_void_p
        pointers = [pointer(table) for table in tables]
        handle = self.library.load(len(bodies), *pointers, peer.threads)
        self.robot = ctypes.c_void_p(handle)

    def inverse_dynamics(self, *arrays: np.ndarray) -> Callable:
        """`rnea`."""
        return self._call("inverse_dynamics", arrays, (self.nv,))

    def mass_matrix(self, *arrays: np.ndarray) -> Callable:
        """`crba`, and its upper half copied to the lower one."""
        return self._call("mass_matrix", arrays, (self.nv, self.nv))

    def forward_dynamics(self, *arrays: np.ndarray) -> Callable:
        """`aba`."""
        return self._call("forward_dynamics", arrays, (self.nv,))

    def jacobian(self, *arrays: np.ndarray) -> Callable:
        """`computeABADerivatives`."""
        return self._call("jacobian", arrays, (3, self.nv, self.nv))

    def rollout(self, *arrays: np.ndarray) -> Callable:
        """`aba` and `integrate`."""
        steps = (STEPS, ctypes.c_double(DT))
        return self._call("rollout", arrays, (self.nq,), *steps)

    def _call(self, name: str, arrays: tuple, shape: tuple, *extra: Any) -> Callable:
        function, batch = getattr(self.library, name), len(arrays[0])
        out = np.empty((batch, *shape))
        pointers = [pointer(array) for array in (*arrays, out)]

        def call() -> np.ndarray:
            function(self.robot, batch, *extra, *pointers)
            return out

        return call


class Bindings:
    """The Python bindings: in parallel on a pool where offered, else call by call."""

    def __init__(self, peer: Peer):
        self.model = pin.Model()
        index = []
        for body in peer.robot.bodies:
            place = body["joint"]["placement"]
            pose = pin.SE3(np.array(place["R"]), np.array(place["p"]))
            parent = 0 if body["parent"] < 0 else index[body["parent"]]
            joint = _joint(body["joint"])
            index.append(self.model.addJoint(parent, joint, pose, body["name"]))
            inertia = np.array(body["inertia"])
            inertia = pin.Inertia(body["mass"], np.array(body["com"]), inertia)
            self.model.appendBodyToJoint(index[-1], inertia, pin.SE3.Identity())
        self.model.gravity.linear = np.array(peer.robot.description["gravity"])
        self.data = self.model.createData()
        self.threads = peer.threads
        self.pool = pin.ModelPool(self.model, self.threads)

    def inverse_dynamics(self, *arrays: np.ndarray) -> Callable:
        """`rneaInParallel`; `rnea` for one state."""
        if len(arrays[0]) == 1:
            state = [array[0] for array in arrays]
            return lambda: pin.rnea(self.model, self.data, *state)[None]
        columns = [np.asfortranarray(array.T) for array in arrays]
        return lambda: pin.rneaInParallel(self.threads, self.pool, *columns).T

    def forward_dynamics(self, *arrays: np.ndarray) -> Callable:
        """`abaInParallel`; `aba` for one state."""
        if len(arrays[0]) == 1:
            state = [array[0] for array in arrays]
            return lambda: pin.aba(self.model, self.data, *state)[None]
        columns = [np.asfortranarray(array.T) for array in arrays]
        return lambda: pin.abaInParallel(self.threads, self.pool, *columns).T

    def mass_matrix(self, q: np.ndarray) -> Callable:
        """`crba` for each state."""
        out = np.empty((len(q), self.model.nv, self.model.nv))

        def call() -> np.ndarray:
            for i, state in enumerate(q):
                out[i] = pin.crba(self.model, self.data, state)
            return out

        return call

    def jacobian(self, *arrays: np.ndarray) -> Callable:
        """`computeABADerivatives` for each state."""
        out = np.empty((len(arrays[0]), 3, self.model.nv, self.model.nv))

        def call() -> np.ndarray:
            for i, state in enumerate(zip(*arrays, strict=True)):
                out[i] = pin.computeABADerivatives(self.model, self.data, *state)
            return out

        return call


def _joint(joint: dict[str, Any]) -> Any:
    """Joints about a coordinate axis have their own fast type."""
    if joint["type"] == "free":
        return pin.JointModelFreeFlyer()
    axis = tuple(joint["axis"])
    fast = {(1, 0, 0): "RX", (0, 1, 0): "RY", (0, 0, 1): "RZ"}
    if axis in fast:
        return getattr(pin, f"JointModel{fast[axis]}")()
    return pin.JointModelRevoluteUnaligned(np.array(axis))
