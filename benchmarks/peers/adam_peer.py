"""adam: a floating base from URDF; a fixed base takes the block of the joints."""
# pyright: basic, reportMissingImports=false

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from adam import Representations
from adam.jax import KinDynComputations

from benchmarks.peers.base import JaxLibrary
from benchmarks.peers.floating import rotations


class Peer(JaxLibrary):
    """Velocities of the base are in body axes. q is the pose as 16 numbers, joints."""

    packages = ("adam-robotics", "jax", "jaxlib")
    note = "inverse dynamics as M qdd + h: there is none with accelerations"

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        gravity = [*self.robot.description["gravity"], 0.0, 0.0, 0.0]
        dtype = jnp.dtype(self.precision)
        self.model = KinDynComputations(
            str(self.robot.urdf),
            self.robot.joint_names,
            dtype=dtype,
            gravity=jnp.array(gravity, dtype),
        )
        # with a device jax 0.10.1 fails in asarray of traced values
        self.model.rbdalgos.math.factory._device = None
        self.model.set_frame_velocity_representation(
            Representations.BODY_FIXED_REPRESENTATION
        )

    def inputs(self, states: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The pose of the base as a matrix, written before the joints."""
        if not self.robot.is_floating:
            return states
        q = states["q"]
        pose = np.zeros((len(q), 4, 4))
        pose[:, :3, :3], pose[:, :3, 3], pose[:, 3, 3] = rotations(q), q[:, :3], 1
        return states | {"q": np.concatenate([pose.reshape(-1, 16), q[:, 7:]], 1)}

    def inverse_dynamics(self) -> dict[str, Callable]:
        """`mass_matrix` times accelerations plus `bias_force`."""
        return {"": lambda q, qd, a: self._matrix(q) @ a + self._bias(q, qd)}

    def mass_matrix(self) -> dict[str, Callable]:
        """`mass_matrix`."""
        return {"": self._matrix}

    def forward_dynamics(self) -> dict[str, Callable]:
        """Cholesky's factor of `mass_matrix`; for a floating base also `aba`."""

        def composite(q: Any, qd: Any, tau: Any) -> Any:
            force = tau - self._bias(q, qd)
            return jax.scipy.linalg.solve(self._matrix(q), force, assume_a="pos")

        def articulated(q: Any, qd: Any, tau: Any) -> Any:
            pose, s = q[:16].reshape(4, 4), q[16:]
            root = {self.robot.bodies[0]["name"]: tau[:6]}
            return self.model.aba(pose, s, qd[:6], qd[6:], tau[6:], root)

        ways = {"crba": composite}
        return ways | ({"aba": articulated} if self.robot.is_floating else {})

    def _matrix(self, q: Any) -> Any:
        if self.robot.is_floating:
            return self.model.mass_matrix(q[:16].reshape(4, 4), q[16:])
        return self.model.mass_matrix(jnp.eye(4, dtype=q.dtype), q)[6:, 6:]

    def _bias(self, q: Any, qd: Any) -> Any:
        if self.robot.is_floating:
            pose = q[:16].reshape(4, 4)
            return self.model.bias_force(pose, q[16:], qd[:6], qd[6:])
        pose, rest = jnp.eye(4, dtype=q.dtype), jnp.zeros(6, q.dtype)
        return self.model.bias_force(pose, q, rest, qd)[6:]
