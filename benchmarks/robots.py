"""The robots, built with jaxdyn and written for everybody else.

`python -m benchmarks.robots FOLDER NAME ...` writes them.
Names: arm, humanoid, chain50, tree10, ... Chains and trees may have any size. No robot
has limits, friction or armature.
"""

import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jaxdyn as jd
from benchmarks.problem import Robot

X, Y, Z = np.eye(3)
LEG = (("hip_yaw", Z), ("hip_roll", X), ("hip_pitch", Y), ("knee", Y))
LEG += (("ankle_pitch", Y), ("ankle_roll", X))
WAIST = (("waist_yaw", Z), ("waist_roll", X), ("waist_pitch", Y))
ARM = (("shoulder_pitch", Y), ("shoulder_roll", X), ("shoulder_yaw", Z))
ARM += (("elbow", Y), ("wrist_yaw", Z), ("wrist_pitch", Y), ("wrist_roll", X))


def make(name: str) -> jd.Model:
    """The robot of a name."""
    if name == "arm":
        return arm()
    if name == "humanoid":
        return humanoid()
    if name.startswith("chain"):
        return jd.robots.chain(int(name.removeprefix("chain")))
    if name.startswith("tree"):
        n = int(name.removeprefix("tree"))
        return jd.robots.random_tree(0, n, joints=("revolute",))
    raise ValueError(f"no robot {name!r}, expected arm, humanoid, chain<n> or tree<n>.")


def arm() -> jd.Model:
    """Seven revolute joints about z, in frames with numbers without any pattern."""
    rng = np.random.default_rng(7)
    b = jd.ModelBuilder("arm")
    for i in range(7):
        b.add_body(
            f"link{i + 1}",
            i - 1,
            axis=Z,
            R=_rotation(rng),
            p=rng.uniform(-0.3, 0.3, 3),
            inertial=_inertial(rng, 3.0 / (i + 1)),
        )
    return b.build()


def humanoid() -> jd.Model:
    """A free pelvis, two legs of 6, a waist of 3, two arms of 7 joints: 35 dof."""
    rng = np.random.default_rng(35)
    b = jd.ModelBuilder("humanoid")
    b.add_body("pelvis", joint="free", inertial=_inertial(rng, 10.0))

    def limb(side: str, parent: str, start: Any, step: Any, joints: tuple) -> str:
        for i, (name, axis) in enumerate(joints):
            place = np.asarray(step) * (i > 0) + np.asarray(start) * (i == 0)
            place = place + rng.uniform(-0.02, 0.02, 3)
            mass = rng.uniform(0.5, 3.0)
            inertial = _inertial(rng, mass)
            b.add_body(side + name, parent, axis=axis, p=place, inertial=inertial)
            parent = side + name
        return parent

    limb("left_", "pelvis", (0.0, 0.1, -0.1), (0.0, 0.0, -0.15), LEG)
    limb("right_", "pelvis", (0.0, -0.1, -0.1), (0.0, 0.0, -0.15), LEG)
    chest = limb("", "pelvis", (0.0, 0.0, 0.1), (0.0, 0.0, 0.05), WAIST)
    limb("left_", chest, (0.0, 0.2, 0.3), (0.0, 0.0, -0.1), ARM)
    limb("right_", chest, (0.0, -0.2, 0.3), (0.0, 0.0, -0.1), ARM)
    return b.build()


def write(model: jd.Model, folder: Path) -> Robot:
    """The model as dictionary, URDF and MJCF in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    robot = Robot(folder)
    (folder / "robot.json").write_text(json.dumps(jd.to_dict(model)))
    robot.urdf.write_text(urdf(model))
    robot.mjcf.write_text(mjcf(model))
    return robot


def urdf(model: jd.Model) -> str:
    """URDF as most readers want it.

    A floating base is the root, without a joint. A fixed base has some inertia, which
    nothing depends on: not all readers accept a link without.
    """
    root = ET.fromstring(jd.to_urdf(model))
    base = root.find(f"link[@name='{model.topology.base}']")
    assert base is not None
    if model.joints[0] == "free":
        floating = root.find("joint[@type='floating']")
        assert floating is not None
        root.remove(floating)
        root.remove(base)
    else:
        inertial = ET.SubElement(base, "inertial")
        ET.SubElement(inertial, "origin", xyz="0 0 0", rpy="0 0 0")
        ET.SubElement(inertial, "mass", value="1.0")
        moments = {"ixx": "1.0", "iyy": "1.0", "izz": "1.0"}
        products = {"ixy": "0.0", "ixz": "0.0", "iyz": "0.0"}
        ET.SubElement(inertial, "inertia", moments | products)
    return ET.tostring(root, encoding="unicode")


def mjcf(model: jd.Model) -> str:
    """MJCF of a model of free and revolute joints.

    Without shapes and limits there are no contacts and no constraints.
    """
    root = ET.Element("mujoco", model=model.name)
    ET.SubElement(root, "compiler", angle="radian", autolimits="false")
    ET.SubElement(root, "option", gravity=_text(model.gravity), integrator="Euler")
    elements = [ET.SubElement(root, "worldbody")]
    for i, name in enumerate(model.names):
        pose = {"pos": _text(model.p[i]), "quat": _text(_quaternion(model.R[i]))}
        parent = elements[model.parents[i] + 1]
        body = ET.SubElement(parent, "body", {"name": name, **pose})
        elements.append(body)
        _inertial_element(body, model, i)
        joint = {"name": model.joint_names[i], "type": "free"}
        if model.joints[i] == "revolute":
            joint |= {"type": "hinge", "axis": _text(model.axis[i])}
        ET.SubElement(body, "joint", joint)
    return ET.tostring(root, encoding="unicode")


def main(arguments: list[str]) -> None:
    """Write the named robots with their reference results."""
    folder, *names = arguments
    sys.setrecursionlimit(20_000)  # the XML of long chains is as deep as they are long
    jax.config.update("jax_enable_x64", True)
    for name in names:
        write(make(name), Path(folder) / name)


def _inertial(rng: np.random.Generator, mass: float) -> jd.Inertial:
    box = jd.Inertial.box(mass, rng.uniform(0.05, 0.3, 3))
    return box.moved(_rotation(rng), rng.uniform(-0.1, 0.1, 3))


def _rotation(rng: np.random.Generator) -> np.ndarray:
    Q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return Q * np.linalg.det(Q)


def _inertial_element(body: ET.Element, model: jd.Model, i: int) -> None:
    I = np.asarray(model.inertia[i], float)
    entries = I[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    ET.SubElement(
        body,
        "inertial",
        mass=_text([model.mass[i]]),
        pos=_text(model.com[i]),
        fullinertia=_text(entries),
    )


def _quaternion(R: Any) -> np.ndarray:
    """The quaternion w, x, y, z of a rotation: the null vector of a 4 x 4 matrix."""
    R = np.asarray(R, float)
    K = np.zeros((4, 4))
    K[0, 0] = np.trace(R)
    K[0, 1:] = K[1:, 0] = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    K[1:, 1:] = R + R.T - np.trace(R) * np.eye(3)
    return np.linalg.eigh(K)[1][:, -1]


def _text(values: Any) -> str:
    return " ".join(repr(float(value)) for value in values)


if __name__ == "__main__":
    main(sys.argv[1:])
