"""Robots to URDF text."""

import os
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from typing import Any

import numpy as np

from jaxdyn.io._pose import matrix_to_rpy
from jaxdyn.io._writing import (
    Lost,
    check_lost,
    check_names,
    direction,
    is_uniform,
    loses_friction_speed,
    on_host,
    pieces,
    relations_of,
    save,
    text,
    values_of,
)
from jaxdyn.io.urdf._mimic import lost_mimics, write_mimics
from jaxdyn.io.urdf._transmissions import lost_actuators, write_transmissions
from jaxdyn.io.urdf._xml import MOMENTS
from jaxdyn.model import JOINT_TYPES, Model

_DROPPABLE = (
    *("armature", "friction_speed", "stiffness", "loops", "forces", "actuators"),
    "couplings",
    *("damping", "friction", "effort", "velocity", "lower", "upper"),
)


def to_urdf(
    model: Model,
    path: str | os.PathLike[str] | None = None,
    *,
    drop: Iterable[str] = (),
) -> str:
    """The model as URDF text, with numbers that keep every digit of a double.

    Bodies become links, the base is the root link, frames become empty links on fixed
    joints. A free joint is written as floating. Universal, cylindrical and planar
    joints become revolute and prismatic joints `<joint>_1`, `<joint>_2`, ... around
    links `<body>_1`, ... of zero mass. A revolute joint without finite limits is
    continuous; an infinite limit that must be written is the largest double. Motors are
    simple transmissions; joints that follow one other joint have `<mimic>`. Gravity is
    no property of the robot in URDF and not written.

    `load_urdf` reads the same model back, except for split joints, which stay split,
    and for bodies on fixed joints, which it merges unless it is told otherwise.

    Args:
        path: a file to be written too; it appears complete or not at all.
        drop: what may be lost because URDF cannot hold it: armature, friction_speed
            (of joints with friction), stiffness (with the rest position), loops,
            forces, actuators that are not motors of one joint each without limits but
            its effort; couplings that are not linear in one joint, so that the joint
            moves on its own; of free joints damping, friction, effort and velocity that
            differ between the degrees of freedom, and the limits lower and upper.

    Raises:
        ValueError: the model has helical or spherical joints, or something URDF cannot
            hold that is not in `drop`, or names that would not be unique; or a leaf has
            the wrong shape, as in a batch of models.
    """
    relations, model = relations_of(model), on_host(model)
    lost = [*_lost(model), *lost_mimics(model, relations)]
    dropped = check_lost("URDF", lost, drop, _DROPPABLE)
    robot = ET.Element("robot", name=model.name)
    ET.SubElement(robot, "link", name=model.topology.base)
    for i in range(model.n):
        _body(robot, model, i)
    for k, name in enumerate(model.frame_names):
        ET.SubElement(robot, "link", name=name)
        carrier = _link(model, model.frame_bodies[k])
        joint_name = model.topology.frame_joint_names[k]
        joint = _joint(robot, joint_name, "fixed", carrier, name)
        _origin(joint, model.frame_R[k], model.frame_p[k])
    write_mimics(robot, model, relations)
    if model.actuators and "actuators" not in dropped:
        write_transmissions(robot, model)
    for tag in ("link", "joint"):
        check_names("URDF", tag, (x.get("name", "") for x in robot.findall(tag)))
    ET.indent(robot)
    content = ET.tostring(robot, encoding="unicode") + "\n"
    save(path, content)
    return content


def _body(robot: ET.Element, model: Model, i: int) -> None:
    """One body on its joint, in pieces of one degree of freedom each but for free."""
    name, titles = model.names[i], pieces(model, i)
    kind = JOINT_TYPES[model.joints[i]]
    body = model.mass[i], model.com[i], model.inertia[i]
    nothing = 0.0, np.zeros(3), np.zeros((3, 3))
    links = [*(f"{name}_{k}" for k in range(1, len(titles))), name]
    parent, R, p = _link(model, model.parents[i]), model.R[i], model.p[i]
    for k, link in enumerate(links):
        element = ET.SubElement(robot, "link", name=link)
        _inertial(element, *(body if link == name else nothing))
        joint = _joint(robot, titles[k], _type(model, i, k), parent, link)
        _origin(joint, R, p)
        if kind.axes:
            ET.SubElement(joint, "axis", xyz=text(direction(model, i, k)))
        _effects(joint, model, i, slice(k, k + 1) if kind.axes else slice(None))
        parent, R, p = link, np.eye(3), np.zeros(3)


def _type(model: Model, i: int, k: int) -> str:
    """The URDF type of the k-th piece of a joint."""
    if not JOINT_TYPES[model.joints[i]].axes:
        return "floating" if model.joints[i] == "free" else "fixed"
    if not JOINT_TYPES[model.joints[i]].steps[k].turn:
        return "prismatic"
    limits = [values_of(model, key, i)[k] for key in ("lower", "upper")]
    return "revolute" if np.isfinite(limits).any() else "continuous"


def _effects(joint: ET.Element, model: Model, i: int, piece: slice) -> None:
    """Damping, friction and limits of one piece of a joint."""

    def one(key: str, default: float) -> float:
        values = values_of(model, key, i)[piece]
        return float(values[0]) if values.size and is_uniform(values) else default

    damping, friction = one("damping", 0.0), one("friction", 0.0)
    if damping or friction:
        ET.SubElement(
            joint, "dynamics", damping=text([damping]), friction=text([friction])
        )
    limits = {key: one(key, np.inf) for key in ("effort", "velocity")}
    if joint.get("type") in ("revolute", "prismatic"):
        limits = {"lower": one("lower", 0.0), "upper": one("upper", 0.0), **limits}
    if joint.get("type") == "prismatic" or np.isfinite(list(limits.values())).any():
        largest = sys.float_info.max
        ET.SubElement(
            joint,
            "limit",
            {k: text([np.clip(v, -largest, largest)]) for k, v in limits.items()},
        )


def _joint(
    robot: ET.Element, name: str, kind: str, parent: str, child: str
) -> ET.Element:
    joint = ET.SubElement(robot, "joint", name=name, type=kind)
    ET.SubElement(joint, "parent", link=parent)
    ET.SubElement(joint, "child", link=child)
    return joint


def _origin(element: ET.Element, R: Any, p: Any) -> None:
    ET.SubElement(element, "origin", xyz=text(p), rpy=text(matrix_to_rpy(R)))


def _inertial(link: ET.Element, mass: Any, com: Any, inertia: Any) -> None:
    inertial = ET.SubElement(link, "inertial")
    _origin(inertial, np.eye(3), com)
    ET.SubElement(inertial, "mass", value=text([mass]))
    values = map(repr, inertia[np.triu_indices(3)].tolist())
    ET.SubElement(inertial, "inertia", dict(zip(MOMENTS, values, strict=True)))


def _link(model: Model, body: int) -> str:
    return model.topology.base if body < 0 else model.names[body]


def _lost(model: Model) -> list[Lost]:
    """What URDF cannot hold, and which element has it."""
    lost = [
        (what, where) for i in range(model.n) for what, where in _of_joint(model, i)
    ]
    whole = f"model {model.name!r}"
    lost += lost_actuators(model)
    return lost + [(x, whole) for x in ("loops", "forces") if getattr(model, x)]


def _of_joint(model: Model, i: int) -> list[Lost]:
    """What URDF cannot hold of one joint."""
    where, kind = f"joint {model.joint_names[i]!r}", model.joints[i]
    if kind in ("helical", "spherical"):
        raise ValueError(
            f"{where} is {kind}, which URDF cannot hold: keep the model with to_dict."
        )
    lost = [k for k in ("armature", "stiffness") if values_of(model, k, i).any()]
    if loses_friction_speed(model, i):
        lost.append("friction_speed")
    if kind == "free":
        each = ("damping", "friction", "effort", "velocity")
        lost += [key for key in each if not is_uniform(values_of(model, key, i))]
        ends = ("lower", "upper")
        lost += [key for key in ends if np.isfinite(values_of(model, key, i)).any()]
    return [(what, where) for what in lost]
