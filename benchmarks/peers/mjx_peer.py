"""MJX: the stages of its smooth dynamics, without contacts and constraints."""
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

from collections.abc import Callable
from typing import Any

import mujoco
from mujoco import mjx
from mujoco.mjx._src import smooth

from benchmarks.peers.base import JaxLibrary, MujocoAxes


class Peer(MujocoAxes, JaxLibrary):
    """The same stages as the C loop."""

    packages = ("mujoco-mjx", "mujoco", "jax", "jaxlib")
    modes = ("forward mode", "reverse mode")
    note = "kinematics, com_pos, com_vel, crb, factor_m, rne, solve_m"

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        host = mujoco.MjModel.from_xml_path(str(self.robot.mjcf))
        self.model = mjx.put_model(host)
        self.data = mjx.make_data(host)

    def inverse_dynamics(self) -> dict[str, Callable]:
        """`rne` with accelerations."""

        def inverse(q: Any, qd: Any, qdd: Any) -> Any:
            data = self._moving(q, qd).replace(qacc=qdd)
            return mjx.rne(self.model, data, flg_acc=True).qfrc_bias

        return {"": inverse}

    def mass_matrix(self) -> dict[str, Callable]:
        """`crb` and `full_m`."""

        def matrix(q: Any) -> Any:
            return mjx.full_m(self.model, mjx.crb(self.model, self._placed(q)))

        return {"": matrix}

    def forward_dynamics(self) -> dict[str, Callable]:
        """`crb`, `factor_m`, `rne`, `solve_m`."""

        def forward(q: Any, qd: Any, tau: Any) -> Any:
            data = mjx.crb(self.model, self._moving(q, qd))
            data = mjx.factor_m(self.model, data)
            bias = mjx.rne(self.model, data).qfrc_bias
            return smooth.solve_m(self.model, data, tau - bias)

        return {"": forward}

    def _placed(self, q: Any) -> Any:
        data = mjx.kinematics(self.model, self.data.replace(qpos=q))
        return mjx.com_pos(self.model, data)

    def _moving(self, q: Any, qd: Any) -> Any:
        return mjx.com_vel(self.model, self._placed(q).replace(qvel=qd))
