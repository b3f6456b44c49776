"""Robots to URDF text."""

import os
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxdyn.io._pose import matrix_to_rpy
from jaxdyn.io.urdf._xml import MOMENTS
from jaxdyn.model import FRICTION_SPEED, JOINT_TYPES, Model, arguments

_DROPPABLE = (
    *("armature", "friction_speed", "stiffness", "loops", "forces"),
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
    continuous; an infinite limit that must be written is the largest double. Gravity is
    no property of the robot in URDF and is not written.

    `load_urdf` reads the same model back, except for split joints, which stay split,
    and for bodies on fixed joints, which it merges unless it is told otherwise.

    Args:
        path: a file to be written too; it appears complete or not at all.
        drop: what may be lost because URDF cannot hold it: armature, friction_speed
            (of joints with friction), stiffness (with the rest position), loops,
            forces; of free joints damping, friction, effort and velocity that differ
            between the degrees of freedom, and the limits lower and upper.

    Raises:
        ValueError: the model has helical or spherical joints, or something URDF cannot
            hold that is not in `drop`, or names that would not be unique; or a leaf has
            the wrong shape, as in a batch of models.
    """
    (model,) = arguments(model)
    model = jax.tree.map(lambda leaf: np.asarray(leaf, float), model)
    _check_held(model, {drop} if isinstance(drop, str) else set(drop))
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
    _check_names(robot)
    ET.indent(robot)
    text = ET.tostring(robot, encoding="unicode") + "\n"
    if path is not None:
        _write(Path(path), text)
    return text


def _body(robot: ET.Element, model: Model, i: int) -> None:
    """One body on its joint, in pieces of one degree of freedom each but for free."""
    name, title = model.names[i], model.joint_names[i]
    kind = JOINT_TYPES[model.joints[i]]
    body = model.mass[i], model.com[i], model.inertia[i]
    nothing = 0.0, np.zeros(3), np.zeros((3, 3))
    pieces = kind.nv if kind.axes else 1
    links = [*(f"{name}_{k}" for k in range(1, pieces)), name]
    titles = [title] if pieces == 1 else [f"{title}_{k + 1}" for k in range(pieces)]
    parent, R, p = _link(model, model.parents[i]), model.R[i], model.p[i]
    for k, link in enumerate(links):
        element = ET.SubElement(robot, "link", name=link)
        _inertial(element, *(body if link == name else nothing))
        joint = _joint(robot, titles[k], _type(model, i, k), parent, link)
        _origin(joint, R, p)
        if kind.axes:
            ET.SubElement(joint, "axis", xyz=_text(_direction(model, i, k)))
        _effects(joint, model, i, slice(k, k + 1) if kind.axes else slice(None))
        parent, R, p = link, np.eye(3), np.zeros(3)


def _type(model: Model, i: int, k: int) -> str:
    """The URDF type of the k-th piece of a joint."""
    if not JOINT_TYPES[model.joints[i]].axes:
        return "floating" if model.joints[i] == "free" else "fixed"
    if not JOINT_TYPES[model.joints[i]].steps[k].turn:
        return "prismatic"
    limits = [_values(model, key, i)[k] for key in ("lower", "upper")]
    return "revolute" if np.isfinite(limits).any() else "continuous"


def _direction(model: Model, i: int, k: int) -> np.ndarray:
    """The axis of the k-th piece of a joint."""
    axis, axis2 = model.axis[i], model.axis2[i]
    axis3 = np.cross(axis, axis2)
    lines = {"axis": axis, "axis2": axis2, "axis3": axis3}
    lines["plane"] = np.cross(axis3, axis)
    return lines[JOINT_TYPES[model.joints[i]].steps[k].direction]


def _effects(joint: ET.Element, model: Model, i: int, piece: slice) -> None:
    """Damping, friction and limits of one piece of a joint."""

    def one(key: str, default: float) -> float:
        values = _values(model, key, i)[piece]
        return float(values[0]) if values.size and _uniform(values) else default

    damping, friction = one("damping", 0.0), one("friction", 0.0)
    if damping or friction:
        ET.SubElement(
            joint, "dynamics", damping=_text([damping]), friction=_text([friction])
        )
    limits = {key: one(key, np.inf) for key in ("effort", "velocity")}
    if joint.get("type") in ("revolute", "prismatic"):
        limits = {"lower": one("lower", 0.0), "upper": one("upper", 0.0), **limits}
    if joint.get("type") == "prismatic" or np.isfinite(list(limits.values())).any():
        largest = sys.float_info.max
        ET.SubElement(
            joint,
            "limit",
            {k: _text([np.clip(v, -largest, largest)]) for k, v in limits.items()},
        )


def _joint(
    robot: ET.Element, name: str, kind: str, parent: str, child: str
) -> ET.Element:
    joint = ET.SubElement(robot, "joint", name=name, type=kind)
    ET.SubElement(joint, "parent", link=parent)
    ET.SubElement(joint, "child", link=child)
    return joint


def _origin(element: ET.Element, R: Any, p: Any) -> None:
    ET.SubElement(element, "origin", xyz=_text(p), rpy=_text(matrix_to_rpy(R)))


def _inertial(link: ET.Element, mass: Any, com: Any, inertia: Any) -> None:
    inertial = ET.SubElement(link, "inertial")
    _origin(inertial, np.eye(3), com)
    ET.SubElement(inertial, "mass", value=_text([mass]))
    values = map(repr, inertia[np.triu_indices(3)].tolist())
    ET.SubElement(inertial, "inertia", dict(zip(MOMENTS, values, strict=True)))


def _text(values: Any) -> str:
    return " ".join(repr(float(value) + 0.0) for value in values)


def _link(model: Model, body: int) -> str:
    return model.topology.base if body < 0 else model.names[body]


def _values(model: Model, key: str, i: int) -> np.ndarray:
    """The entries of one body's joint in a leaf."""
    t = model.topology
    start = t.q_start if key in ("lower", "upper") else t.v_start
    return getattr(model, key)[start[i] : start[i + 1]]


def _uniform(values: np.ndarray) -> bool:
    return bool((values == values[:1]).all())


def _check_held(model: Model, dropped: set[str]) -> None:
    """Raise unless URDF can hold the model without what is dropped."""
    if not dropped <= set(_DROPPABLE):
        raise ValueError(
            f"drop names {', '.join(sorted(dropped - set(_DROPPABLE)))}, expected some "
            f"of: {', '.join(_DROPPABLE)}."
        )
    lost = [(what, where) for i in range(model.n) for what, where in _lost(model, i)]
    if model.loops:
        lost.append(("loops", f"model {model.name!r}"))
    if model.forces:
        lost.append(("forces", f"model {model.name!r}"))
    for what, where in lost:
        if what not in dropped:
            raise ValueError(
                f"{where} has {what}, which URDF cannot hold: keep it with to_dict, or "
                f"write the robot without it with drop=({what!r},)."
            )


def _lost(model: Model, i: int) -> list[tuple[str, str]]:
    """What URDF cannot hold of one joint, with the joint's name."""
    where, kind = f"joint {model.joint_names[i]!r}", model.joints[i]
    if kind in ("helical", "spherical"):
        raise ValueError(
            f"{where} is {kind}, which URDF cannot hold: keep the model with to_dict."
        )
    lost = [k for k in ("armature", "stiffness") if _values(model, k, i).any()]
    speed = _values(model, "friction_speed", i)[_values(model, "friction", i) > 0]
    if not np.allclose(speed, FRICTION_SPEED, rtol=1e-6, atol=0):  # of single precision
        lost.append("friction_speed")
    if kind == "free":
        each = ("damping", "friction", "effort", "velocity")
        lost += [key for key in each if not _uniform(_values(model, key, i))]
        ends = ("lower", "upper")
        lost += [key for key in ends if np.isfinite(_values(model, key, i)).any()]
    return [(what, where) for what in lost]


def _check_names(robot: ET.Element) -> None:
    for tag in ("link", "joint"):
        names = Counter(element.get("name") for element in robot.findall(tag))
        name, count = names.most_common(1)[0]
        if count > 1:
            raise ValueError(
                f"two {tag}s of the URDF would have the name {name!r}: rename one of "
                "the bodies, joints or frames; a split joint takes names that end in "
                "_1, _2."
            )


def _write(path: Path, text: str) -> None:
    """Write the file under another name first: it appears complete or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
