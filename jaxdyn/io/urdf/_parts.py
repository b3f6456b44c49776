"""One link and one joint of a URDF file."""

import xml.etree.ElementTree as ET
from typing import Any

import numpy as np

from jaxdyn.io._parts import Part
from jaxdyn.io._pose import rpy_to_matrix
from jaxdyn.io.urdf._findings import Findings
from jaxdyn.io.urdf._xml import MOMENTS, label, numbers, required
from jaxdyn.model import Inertial, unit_vectors

_SAME = ("revolute", "prismatic", "fixed", "planar", "spherical")
_JOINTS = {name: name for name in _SAME} | {
    "continuous": "revolute",
    "floating": "free",
}


def end(joint: ET.Element, role: str) -> str:
    """The name of the parent or child link of a joint."""
    name = required(label(joint), joint, role).get("link")
    if name is None:
        raise ValueError(
            f"{label(joint)}: <{role}> has no attribute 'link': name the {role} link."
        )
    return name


def part_of(joint: ET.Element, inertial: Inertial | None, found: Findings) -> Part:
    """The child link of a joint."""
    owner, kind = label(joint), joint.get("type", "")
    if kind not in _JOINTS:
        found.wrong(
            f"{owner}: joint type {kind!r} is not known, expected one of: "
            f"{', '.join(_JOINTS)}. Write the joint as one of these, or as several."
        )
    options = found.tried(_effects, joint, kind) or {}
    _check_limits(joint, options, found)
    R, p = found.tried(pose, owner, joint) or (np.eye(3), np.zeros(3))
    return Part(
        name=end(joint, "child"),
        parent=end(joint, "parent"),
        joint=_JOINTS.get(kind, "fixed"),
        R=R,
        p=p,
        inertial=inertial or Inertial(),
        options=options,
    )


def _effects(joint: ET.Element, kind: str) -> dict[str, Any]:
    """Axes, effects and limits of a joint, arguments of `ModelBuilder.add_body`."""
    owner, axis = label(joint), joint.find("axis")
    effects: dict[str, Any] = {"joint_name": joint.get("name")}
    if kind == "fixed":
        return effects
    if kind not in ("floating", "spherical"):
        given = np.eye(3)[0] if axis is None else numbers(owner, axis, "xyz", 3)
        effects["axis"] = given
    if kind == "planar":
        effects["axis2"] = _in_plane(effects["axis"])
    limits = ("lower", "upper") if kind in ("revolute", "prismatic") else ()
    groups: dict[str, tuple[str, ...]] = {"dynamics": ("damping", "friction")}
    groups["limit"] = (*limits, "effort", "velocity")
    for tag, keys in groups.items():
        element = joint.find(tag)
        for key in keys:
            if element is not None and key in element.attrib:
                finite = tag == "dynamics"
                effects[key] = numbers(owner, element, key, 1, finite)[0]
    return effects


def _check_limits(joint: ET.Element, effects: dict[str, Any], found: Findings) -> None:
    """Remove limits that cannot be."""
    wrong: dict[str, tuple[str, ...]] = {
        f"negative {key}": (key,)
        for key in ("effort", "velocity")
        if effects.get(key, 0) < 0
    }
    if effects.get("lower", -np.inf) > effects.get("upper", np.inf):
        wrong["lower exceeds upper"] = ("lower", "upper")
    for why, keys in wrong.items():
        values = ", ".join(f"{key} {effects.pop(key)}" for key in keys)
        problem = f"{label(joint)}: {why} ({values}): correct the <limit>."
        name = joint.get("name", "")
        found.repaired(problem, "joint/limit", name, f"no limit: {why}")


def pose(owner: str, element: ET.Element) -> tuple[np.ndarray, np.ndarray]:
    """Rotation and position of the `<origin>` of an element, identity without one."""
    origin = element.find("origin")
    xyz = rpy = np.zeros(3)
    if origin is not None and "xyz" in origin.attrib:
        xyz = numbers(owner, origin, "xyz", 3)
    if origin is not None and "rpy" in origin.attrib:
        rpy = numbers(owner, origin, "rpy", 3)
    return rpy_to_matrix(rpy), xyz


def inertial(link: ET.Element) -> Inertial | None:
    """The `<inertial>` of a link in the link's axes, or None if it has none."""
    owner, found = label(link), link.find("inertial")
    if found is None:
        return None
    mass = numbers(owner, required(owner, found, "mass"), "value", 1)[0]
    inertia = required(owner, found, "inertia")
    xx, xy, xz, yy, yz, zz = (numbers(owner, inertia, key, 1)[0] for key in MOMENTS)
    I = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return Inertial(mass, np.zeros(3), I).moved(*pose(owner, found))


def _in_plane(normal: np.ndarray) -> np.ndarray:
    """The first direction of a planar joint: x projected onto the plane, or y."""
    n = unit_vectors(normal)  # zero stays zero, which the builder reports
    x, y, _ = np.eye(3)
    along = x - n[0] * n
    return along if np.linalg.norm(along) > 1e-6 else y - n[1] * n
