"""JaxSim: a model from SDF, which it reads without further programs."""
# pyright: basic, reportMissingImports=false

import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import jaxsim.api as js
import numpy as np

from benchmarks.peers.base import JaxLibrary

BODY = js.common.VelRepr.Body


class Peer(JaxLibrary):
    """Velocities of the base are in body axes; its quaternion is w, x, y, z."""

    packages = ("jaxsim", "jax", "jaxlib")
    note = "api.data.build, then api.model"

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self.model = js.model.JaxSimModel.build_from_model_description(
            sdf(self.robot), is_urdf=False, gravity=9.81
        )
        # its own order of joints
        names = self.robot.joint_names
        mine = [names.index(name) for name in self.model.joint_names()]
        self.base = 6 if self.robot.is_floating else 0
        self.order = np.array([*range(self.base), *(self.base + k for k in mine)])

    def inputs(self, states: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """States in the order of its joints."""
        result = {k: v[..., self.order] for k, v in states.items() if k != "q"}
        if not self.robot.is_floating:
            return result | {"q": states["q"][:, self.order]}
        q, joints = states["q"], states["q"][:, 1 + self.order[6:]]
        return result | {"q": np.concatenate([q[:, :3], q[:, [6, 3, 4, 5]], joints], 1)}

    def result(self, row: str, states: dict[str, np.ndarray], output: Any) -> Any:
        """Results in the order of the robot."""
        back = np.argsort(self.order)
        if row == "rollout_gradient":
            parts = output.reshape(len(output), -1, len(back))
            return parts[:, :, back].reshape(len(output), -1)
        if row in ("mass_matrix", "jacobian"):
            return output[..., back, :][..., back]
        return output[..., back]

    def inverse_dynamics(self) -> dict[str, Callable]:
        """`inverse_dynamics`."""

        def inverse(q: Any, qd: Any, qdd: Any) -> Any:
            b = self.base
            base = {"base_acceleration": qdd[:b]} if b else {}
            force, tau = js.model.inverse_dynamics(
                self.model, self._data(q, qd), joint_accelerations=qdd[b:], **base
            )
            return jnp.concatenate([force, tau]) if b else tau

        return {"": inverse}

    def mass_matrix(self) -> dict[str, Callable]:
        """`free_floating_mass_matrix`."""

        def matrix(q: Any) -> Any:
            data = self._data(q, jnp.zeros(self.robot.nv, q.dtype))
            M = js.model.free_floating_mass_matrix(self.model, data)
            return M if self.base else M[6:, 6:]

        return {"": matrix}

    def forward_dynamics(self) -> dict[str, Callable]:
        """`forward_dynamics_aba` and `forward_dynamics_crb`."""

        def by(function: Callable) -> Callable:
            def forward(q: Any, qd: Any, tau: Any) -> Any:
                b, links = self.base, {}
                if b:
                    forces = jnp.zeros((self.model.number_of_links(), 6), q.dtype)
                    links = {"link_forces": forces.at[0].set(tau[:6])}
                data = self._data(q, qd)
                base, s = function(self.model, data, joint_forces=tau[b:], **links)
                return jnp.concatenate([base, s]) if b else s

            return forward

        model = js.model
        return {"aba": by(model.forward_dynamics_aba)} | {
            "crb": by(model.forward_dynamics_crb)
        }

    def _data(self, q: Any, qd: Any) -> Any:
        build = js.data.JaxSimModelData.build
        if not self.base:
            return build(
                self.model,
                joint_positions=q,
                joint_velocities=qd,
                velocity_representation=BODY,
            )
        return build(
            self.model,
            base_position=q[:3],
            base_quaternion=q[3:7],
            joint_positions=q[7:],
            base_linear_velocity=qd[:3],
            base_angular_velocity=qd[3:6],
            joint_velocities=qd[6:],
            velocity_representation=BODY,
        )


def sdf(robot: Any) -> str:
    """The robot as SDF: joints stand in their parent, links in their joint."""
    root = ET.Element("sdf", version="1.10")
    model = ET.SubElement(root, "model", name=robot.description["name"])
    parents = ["world" if robot.is_floating else "base"]
    parents += [body["name"] for body in robot.bodies]
    if not robot.is_floating:
        _link(model, "base", None, 1.0, np.zeros(3), np.eye(3))
        _joint(model, "fixed", "fixed", "world", "base")
    for body in robot.bodies:
        joint, name = body["joint"], body["name"]
        pose = None if joint["type"] == "free" else f"j_{name}"
        _link(model, name, pose, body["mass"], body["com"], body["inertia"])
        if joint["type"] != "free":
            parent = parents[body["parent"] + 1]
            element = _joint(model, f"j_{name}", "revolute", parent, name)
            place = joint["placement"]
            _pose(element, place["p"], place["R"], parent)
            axis = ET.SubElement(element, "axis")
            ET.SubElement(axis, "xyz").text = _text(joint["axis"])
            limit = ET.SubElement(axis, "limit")
            ET.SubElement(limit, "lower").text = "-1e16"
            ET.SubElement(limit, "upper").text = "1e16"
    return ET.tostring(root, encoding="unicode")


def _link(
    model: ET.Element, name: str, pose: str | None, mass: float, com: Any, inertia: Any
) -> None:
    link = ET.SubElement(model, "link", name=name)
    if pose:
        _pose(link, np.zeros(3), np.eye(3), pose)
    inertial = ET.SubElement(link, "inertial")
    _pose(inertial, com, np.eye(3))
    ET.SubElement(inertial, "mass").text = repr(float(mass))
    element = ET.SubElement(inertial, "inertia")
    for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)):
        value = repr(float(inertia[i][j]))
        ET.SubElement(element, f"i{'xyz'[i]}{'xyz'[j]}").text = value


def _joint(
    model: ET.Element, name: str, kind: str, parent: str, child: str
) -> ET.Element:
    joint = ET.SubElement(model, "joint", name=name, type=kind)
    ET.SubElement(joint, "parent").text = parent
    ET.SubElement(joint, "child").text = child
    return joint


def _pose(element: ET.Element, p: Any, R: Any, frame: str | None = None) -> None:
    R = np.asarray(R)
    roll, yaw = np.arctan2(R[2, 1], R[2, 2]), np.arctan2(R[1, 0], R[0, 0])
    pitch = np.arctan2(-R[2, 0], np.hypot(R[0, 0], R[1, 0]))
    pose = ET.SubElement(element, "pose", {"relative_to": frame} if frame else {})
    pose.text = _text([*p, roll, pitch, yaw])


def _text(values: Any) -> str:
    return " ".join(repr(float(value)) for value in values)
