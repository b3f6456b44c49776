"""frax: a robot from URDF; its floating base follows MuJoCo's conventions."""
# pyright: basic, reportMissingImports=false

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from frax.core.robot import Robot as FraxRobot

from benchmarks.peers.base import JaxLibrary, MujocoAxes


class Peer(MujocoAxes, JaxLibrary):
    """Inertia and bias by sums over the ancestors of each body, then Cholesky."""

    packages = ("frax", "jax", "jaxlib")

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self.model = FraxRobot(
            str(self.robot.urdf),
            joint_ordering=self.robot.joint_names,
            floating_base="quaternion" if self.robot.is_floating else None,
        )

    def inverse_dynamics(self) -> dict[str, Callable]:
        """`rnea`."""
        g = np.array([0.0, 0.0, 9.81, 0.0, 0.0, 0.0])
        return {"": lambda q, v, a: self.model.rnea(q, v, a, jnp.asarray(g), None)}

    def mass_matrix(self) -> dict[str, Callable]:
        """`mass_matrix`."""
        return {"": self.model.mass_matrix}

    def forward_dynamics(self) -> dict[str, Callable]:
        """`forward_dynamics`."""
        return {"": lambda q, v, tau: self.model.forward_dynamics(q, v, tau, None)}
