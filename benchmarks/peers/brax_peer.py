"""Brax: its generalized pipeline, without contacts and constraints."""
# pyright: basic, reportMissingImports=false

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from brax import kinematics
from brax.generalized import dynamics, mass
from brax.generalized.base import State
from brax.io import mjcf

from benchmarks.peers.base import JaxLibrary, MujocoAxes


class Peer(MujocoAxes, JaxLibrary):
    """Inertia matrix and bias, then Cholesky."""

    packages = ("brax", "jax", "jaxlib")
    absent = {"inverse_dynamics": "its inverse takes no accelerations"}
    note = "mass.matrix and dynamics.forward, then a solve with Cholesky's factor"

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self.system = mjcf.load(str(self.robot.mjcf))

    def mass_matrix(self) -> dict[str, Callable]:
        """`mass.matrix`."""

        def matrix(q: Any) -> Any:
            state = self._state(q, jnp.zeros(self.robot.nv, q.dtype))
            return mass.matrix(self.system, state)

        return {"": matrix}

    def forward_dynamics(self) -> dict[str, Callable]:
        """`mass.matrix`, `dynamics.forward` and a solve."""

        def forward(q: Any, qd: Any, tau: Any) -> Any:
            state = self._state(q, qd)
            force = dynamics.forward(self.system, state, tau)
            M = mass.matrix(self.system, state)
            return jax.scipy.linalg.solve(M, force, assume_a="pos")

        return {"": forward}

    def _state(self, q: Any, qd: Any) -> Any:
        x, xd = kinematics.forward(self.system, q, qd)
        return dynamics.transform_com(self.system, State.init(q, qd, x, xd))
