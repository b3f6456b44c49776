"""Robots to MJCF text."""

import os
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from typing import Any

import numpy as np

from jaxdyn.io._parts import free_name
from jaxdyn.io._pose import matrix_to_quaternion
from jaxdyn.io._writing import (
    check_lost,
    check_names,
    direction,
    on_host,
    pieces,
    relations_of,
    save,
    text,
    values_of,
)
from jaxdyn.io.mjcf._compile import compiled
from jaxdyn.io.mjcf._held import DROPPABLE, compensation, lost, lost_of_joint
from jaxdyn.io.mjcf._principal import LEAST, principal
from jaxdyn.io.mjcf._write_actuators import force_ranges, write_actuators
from jaxdyn.io.mjcf._write_couplings import lost_couplings, write_couplings
from jaxdyn.model import JOINT_TYPES, Inertial, Loop, Model

_DEEPEST = 490  # bodies one inside the other: MuJoCo refuses elements 500 deep
_TYPES = {"spherical": "ball", "free": "free"}
_ATTRIBUTES = {
    "armature": "armature",
    "damping": "damping",
    "friction": "frictionloss",
    "stiffness": "stiffness",
}
_CONSTRAINTS = {"spherical": "connect", "fixed": "weld"}
Sites = dict[str, tuple[int, Any, Any]]  # name: body, rotation, place


def to_mjcf(
    model: Model,
    path: str | os.PathLike[str] | None = None,
    *,
    drop: Iterable[str] = (),
) -> str:
    """The model as MJCF text, which MuJoCo has compiled; numbers keep every digit.

    Revolute, prismatic, spherical and free joints are hinge, slide, ball and free.
    Universal, cylindrical and planar joints are joints `<joint>_1`, `<joint>_2`, ... of
    one body. Frames are sites; spherical and fixed loops are connect and weld between
    the sites `<loop>_a` and `<loop>_b`, or frames that are there already. The body of a
    free joint is drawn at its rest position. Couplings are equality constraints of
    joints and fixed tendons. Moving bodies have a mass and principal
    inertias of at least 1e-14, because MuJoCo refuses zeros.

    Friction is frictionloss, which is dry in MuJoCo and smooth in jaxdyn. Loops and
    couplings are soft in MuJoCo, and joints stop at their limits.

    `load_mjcf` reads a model with the same dynamics back. Its bodies stand depth first,
    as MuJoCo numbers them; the base is "world"; joints of one body and bodies on fixed
    joints are as `from_mujoco_model` says.

    Args:
        path: a file to be written too; it appears complete or not at all.
        drop: what may be lost because MJCF cannot hold it: velocity; friction_speed (of
            joints with friction); lower and upper that are equal, an effort of zero, or
            one that differs from the range in which actuators are clipped; actuators
            with activations; couplings that are gears; forces other than the
            compensation of weight at centres of mass. Of spherical and free joints also
            the limits lower, upper and effort, and armature, damping, friction and
            stiffness that differ between the degrees of freedom; of spherical joints
            stiffness with a rest position; of free joints armature and friction, which
            act otherwise in MuJoCo.

    Raises:
        ValueError: the model has helical joints, free joints that are not placed at the
            origin of the world, loops other than spherical and fixed, inertias that no
            body has, a body 'world', or something else that MJCF cannot hold and that
            is not in `drop`; or MuJoCo refuses the text; or a leaf has the wrong shape,
            as in a batch of models.
    """
    relations, model = relations_of(model), on_host(model)
    missing = [*lost(model), *lost_couplings(model, relations)]
    dropped = check_lost("MJCF", missing, drop, DROPPABLE)
    root = ET.Element("mujoco", model=model.name)
    ET.SubElement(root, "compiler", angle="radian")
    ET.SubElement(root, "option", gravity=text(model.gravity))
    bodies = _bodies(root, model, dropped)
    places = zip(model.frame_bodies, model.frame_R, model.frame_p, strict=True)
    sites: Sites = dict(zip(model.frame_names, places, strict=True))
    if model.loops:
        equality = ET.SubElement(root, "equality")
        for loop in model.loops:
            _constraint(equality, loop, sites)
    write_couplings(root, model, relations)
    for name, (body, R, p) in sites.items():
        ET.SubElement(bodies[body], "site", {"name": name, **_pose(R, p)})
    if model.actuators and "actuators" not in dropped:
        write_actuators(root, model)
    joints = (name for i in range(model.n) for name in pieces(model, i))
    check_names("MJCF", "joint", joints)
    if "world" in model.names:
        raise ValueError(
            "body 'world' has the name of the world, which MuJoCo refuses: rename it."
        )
    ET.indent(root)
    content = ET.tostring(root, encoding="unicode") + "\n"
    compiled(content)  # MuJoCo has the last word
    save(path, content)
    return content


def _bodies(root: ET.Element, model: Model, dropped: set[str]) -> dict[int, ET.Element]:
    """The elements of all bodies, by index; -1 is the world."""
    bodies, depth = {-1: ET.SubElement(root, "worldbody")}, {-1: 0}
    carried = compensation(model) or {}
    ranges = force_ranges(model, dropped)
    for i, parent in enumerate(model.parents):
        depth[i] = depth[parent] + 1
        if depth[i] > _DEEPEST:
            raise ValueError(
                f"body {model.names[i]!r} has {depth[i] - 1} bodies between it and the "
                f"base, and MuJoCo reads up to {_DEEPEST - 1}: keep the model with "
                "to_dict."
            )
        place = {"name": model.names[i], **_pose(model.R[i], model.p[i])}
        if model.joints[i] == "free":  # drawn at rest: its q is its pose in the world
            rest = values_of(model, "rest", i)
            place |= {"pos": text(rest[:3]), "quat": text(rest[[6, 3, 4, 5]])}
        body = ET.SubElement(bodies[parent], "body", place)
        if i in carried:
            body.set("gravcomp", text([carried[i][0] / model.mass[i]]))
        for k in range(len(pieces(model, i)) if model.joints[i] != "fixed" else 0):
            _joint(body, model, i, k, ranges)
        _inertial(body, model, i)
        bodies[i] = body
    return bodies


def _joint(body: ET.Element, model: Model, i: int, k: int, ranges: np.ndarray) -> None:
    """The k-th piece of a body's joint, with its effects and limits."""
    kind = JOINT_TYPES[model.joints[i]]
    joint = ET.SubElement(body, "joint", name=pieces(model, i)[k])
    missing = lost_of_joint(model, i)
    for key, attribute in _ATTRIBUTES.items():
        value = values_of(model, key, i)[k]
        if value and key not in missing:
            joint.set(attribute, text([value]))
    if not kind.axes:
        joint.set("type", _TYPES[model.joints[i]])
        return
    joint.set("type", "hinge" if kind.steps[k].turn else "slide")
    joint.set("axis", text(direction(model, i, k)))
    rest, *ends = (values_of(model, key, i)[k] for key in ("rest", "lower", "upper"))
    if rest:
        joint.set("springref", text([rest]))
    for attribute, span in (
        ("range", ends),
        ("actuatorfrcrange", ranges[model.topology.v_start[i] + k]),
    ):
        if np.isfinite(span).any() and span[0] < span[1]:
            joint.set(attribute, text(span))


def _inertial(body: ET.Element, model: Model, i: int) -> None:
    """The mass of a body and its inertia in principal axes."""
    name, mass = model.names[i], float(model.mass[i])
    com, I = np.asarray(model.com[i]), np.asarray(model.inertia[i])
    doubt = Inertial(mass or 1.0, com, I).doubt()
    if doubt:
        nearest = "take the nearest ones: from_dict(to_dict(model), inertia='nearest')"
        advice = nearest if mass else "give it to the armature of the joint"
        raise ValueError(
            f"body {name!r}: {doubt}, which MuJoCo refuses: correct the inertia, or "
            f"{advice}."
        )
    least = 0.0 if model.joints[i] == "fixed" else LEAST
    values, axes = principal(I, least)
    inertial = {"mass": text([max(mass, least)]), "diaginertia": text(values)}
    inertial |= _pose(axes, com)
    ET.SubElement(body, "inertial", inertial)


def _constraint(equality: ET.Element, loop: Loop, sites: Sites) -> None:
    """A loop as a constraint between two sites, which are added where none is there."""
    if loop.joint not in _CONSTRAINTS:
        raise ValueError(
            f"loop {loop.name!r} is a {loop.joint} joint, which MJCF cannot hold, "
            f"expected one of: {', '.join(_CONSTRAINTS)}: cut the loop at another "
            "joint, or write the tree alone with model.without_loops()."
        )
    one, two = (_site(loop, side, sites) for side in "ab")
    kind = _CONSTRAINTS[loop.joint]
    ET.SubElement(equality, kind, name=loop.name, site1=one, site2=two)


def _site(loop: Loop, side: str, sites: Sites) -> str:
    """The name of the site at a frame of a loop, which is added if it is not there."""
    body, R, p = (getattr(loop, f"{key}_{side}") for key in ("body", "R", "p"))
    for name, (carrier, R_site, p_site) in sites.items():
        turn, shift = np.abs(R_site - R).max(), np.abs(p_site - p)
        if carrier == body and turn < 1e-14 and (shift <= 1e-15 * np.abs(p)).all():
            return name
    name = free_name(f"{loop.name}_{side}", sites)
    sites[name] = body, R, p
    return name


def _pose(R: Any, p: Any) -> dict[str, str]:
    x, y, z, w = matrix_to_quaternion(R)
    turn = {} if w == 1 else {"quat": text([w, x, y, z])}
    return {"pos": text(p), **turn}
