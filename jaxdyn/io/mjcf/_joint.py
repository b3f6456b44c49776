"""One joint of an MJCF body, and the chain of parts that several of them make."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxdyn.io._parts import Part
from jaxdyn.io._pose import rotation_about
from jaxdyn.io.mjcf._compiler import Compiler
from jaxdyn.io.mjcf._item import Item

_TYPES = {
    "hinge": "revolute",
    "slide": "prismatic",
    "ball": "spherical",
    "free": "free",
}
_EFFECTS = {
    "armature": "armature",
    "damping": "damping",
    "frictionloss": "friction",
    "stiffness": "stiffness",
}


@dataclass(frozen=True)
class Joint:
    """A joint in MuJoCo's body frame.

    Attributes:
        name: its name in the file, if any.
        kind: its type in jaxdyn.
        anchor: the point that it holds; zero where it plays no role.
        R, p: the motion at q = 0, from the pose that the file draws.
        options: further arguments of `ModelBuilder.add_body`.
    """

    name: str | None
    kind: str
    anchor: np.ndarray
    R: np.ndarray
    p: np.ndarray
    options: dict[str, Any]


def read_joint(item: Item, R: np.ndarray, p: np.ndarray, compiler: Compiler) -> Joint:
    """The joint of an element that stands in a frame with the pose (R, p)."""
    kind = "free" if item.tag == "freejoint" else item.attributes.get("type", "hinge")
    if kind not in _TYPES:
        item.fail(f"type is {kind!r}, expected one of: {', '.join(_TYPES)}")
    options: dict[str, Any] = {
        ours: item.number(theirs, 0.0) for theirs, ours in _EFFECTS.items()
    }
    turn, slide, anchor = np.eye(3), np.zeros(3), np.zeros(3)
    if kind in ("hinge", "ball"):
        anchor = p + R @ item.numbers("pos", 3, (0, 0, 0))
    if kind in ("hinge", "slide"):
        unit = compiler.angle if kind == "hinge" else 1.0
        axis = item.direction("axis", R @ item.numbers("axis", 3, (0, 0, 1)))
        ref = item.number("ref", 0.0) * unit
        if kind == "hinge":
            turn = rotation_about(axis, -ref)
        else:
            slide = -ref * axis
        options |= {"axis": axis, "rest": item.number("springref", 0.0) * unit}
        options |= _limits(item, compiler, unit)
    if kind == "free" and (options["stiffness"] or options["friction"]):
        item.fail(
            "stiffness and frictionloss of a free joint are not supported, expected 0: "
            'set them to zero, or use <freejoint> in place of <joint type="free">'
        )
    name = item.attributes.get("name")
    return Joint(name, _TYPES[kind], anchor, turn, slide, options)


def _limits(item: Item, compiler: Compiler, unit: float) -> dict[str, Any]:
    """Limits of position and of force, where the file sets them."""
    limits = {}
    span = _span(item, "range", "limited", compiler)
    if span is not None:
        limits |= {"lower": span[0] * unit, "upper": span[1] * unit}
    span = _span(item, "actuatorfrcrange", "actuatorfrclimited", compiler)
    if span is not None:
        limits["effort"] = np.abs(span).max()
    return limits


def _span(item: Item, key: str, switch: str, compiler: Compiler) -> np.ndarray | None:
    limited = item.word(switch, "auto", ("auto", "true", "false"))
    span = item.numbers(key, 2, (0, 0))
    if limited == "auto" and key in item.attributes and not compiler.autolimits:
        item.fail(
            f'{key} is given without {switch}, which autolimits="false" asks for: set '
            f"{switch} to true or false"
        )
    if limited == "true" and span[0] >= span[1]:
        item.fail(f"{key} is {span.tolist()}, expected a lower and a higher number")
    return None if limited == "false" or span[0] >= span[1] else span


def joint_chain(
    body: str,
    parent: str,
    pose: tuple[np.ndarray, np.ndarray],
    joints: list[Joint],
    options: Mapping[str, Any],
) -> tuple[list[Part], np.ndarray]:
    """The parts that carry a body, and the place of MuJoCo's origin in the last one.

    Every joint but the last moves a massless part, named for the body and the joint. A
    part has its origin at the anchor of its joint and the axes of the body.

    Args:
        body, parent: names of the body and of its parent part.
        pose: pose of MuJoCo's body frame in the parent part.
        joints: the joints of the body.
        options: further arguments of `ModelBuilder.add_body` for all of them.
    """
    R, p = pose
    if not joints:
        return [Part(body, parent, "fixed", R, p, options=dict(options))], np.zeros(3)
    parts = []
    for k, joint in enumerate(joints, start=1):
        last = k == len(joints)
        if joint.kind == "free":
            R, p = np.eye(3), np.zeros(3)  # its q is the pose in the world
        part = Part(
            name=body if last else f"{body}_{joint.name or k}",
            parent=parent,
            joint=joint.kind,
            R=R @ joint.R,
            p=p + R @ (joint.anchor + joint.p),
            options={**options, **joint.options},
        )
        part.options["joint_name"] = joint.name or f"j_{part.name}"
        parts.append(part)
        parent, R, p = part.name, np.eye(3), -joint.anchor
    return parts, p
