"""Robots from URDF text: links, joints, inertias, joint effects and limits."""

import heapq
import os
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from jaxdyn.io._parts import Part, assemble, warn_of_doubts
from jaxdyn.io._pose import rpy_to_matrix
from jaxdyn.io._xml import read_xml
from jaxdyn.io.urdf._xml import MOMENTS, clean, label, numbers, required
from jaxdyn.model import Inertial, Model, ModelBuilder, unit_vectors

_JOINTS = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "floating": "free",
    "planar": "planar",
}


def load_urdf(
    source: str | os.PathLike[str],
    *,
    floating_base: bool = False,
    merge_fixed: bool = True,
    gravity: Sequence[Any] | np.ndarray = (0.0, 0.0, -9.81),
    allow_massless: bool = False,
    check_inertia: bool | None = None,
    ignore: Iterable[str] = (),
    dtype: Any = None,
) -> Model:
    """The model of a robot described in URDF.

    The bodies keep the order of the `<link>` elements wherever parents stand before
    their children; a link that stands before its parent comes as soon as its parent is
    there. Joint types: revolute and continuous, prismatic, fixed, floating (free) and
    planar. A planar joint has the URDF axis as its normal; its first direction is the
    projection of the joint's x axis onto the plane, or of y if x is the normal.

    Limits lower and upper are read for revolute and prismatic joints only. A limit that
    is not given is infinite, also where the specification would put zero, and so is one
    that is the largest double, as `to_urdf` writes it.

    Shapes, materials, contact, sensors, transmissions and `<gazebo>` elements without
    effect on the motion are skipped. Any other element or attribute that is not known
    is an error, and so is `<mimic>`.

    Args:
        source: a path, or the URDF text itself (a str whose first character, after
            white space, is "<").
        floating_base: the root link becomes a body on a free joint to the base "world".
            Otherwise the root link is the base, and its mass plays no role.
        merge_fixed: links on fixed joints become frames of the body that carries them
            and give it their mass. Otherwise they are bodies.
        gravity: acceleration of free fall in world axes; URDF does not hold it.
        allow_massless: accept moving links without `<inertial>`, as if a mass of zero
            stood in the file.
        check_inertia: None warns of inertias that violate the triangle inequality, and
            True makes them an error. False accepts them, and joints that no inertia
            resists (see `singular_joints`).
        ignore: names of elements and attributes to be skipped.
        dtype: floating-point type of the leaves, by default JAX's.

    Raises:
        ValueError: the text is no URDF, its links form no tree, data are missing or
            wrong, or it holds something the model would not have.
    """
    robot = read_xml(source, "URDF", ("robot",))
    clean(robot, "robot", {ignore} if isinstance(ignore, str) else set(ignore))
    links, joints = _named(robot, "link"), _named(robot, "joint")
    name = robot.get("name", "robot")
    if not links:
        raise ValueError(f"robot {name!r} has no <link>: add at least one.")
    joint_above = _joint_above(links, joints)
    root, *others = _parents_first(list(links), joint_above)

    inertials = {link: _inertial(links[link]) for link in links}
    parts = [_part(joint_above[link], inertials[link]) for link in others]
    if floating_base:
        if "world" in links:
            raise ValueError(
                "link 'world' has the name of the base of a floating robot: rename it, "
                "or remove it and its joint."
            )
        free = Part(root, "world", "free", inertial=inertials[root] or Inertial())
        parts = [free, *parts]
    if not allow_massless:
        _check_masses(parts, inertials)
    for part in parts:
        part.options["check_inertia"] = bool(check_inertia)

    base = "world" if floating_base else root
    builder = ModelBuilder(name, gravity=gravity, base=base)
    assemble(builder, parts, merge_fixed)
    if not builder.names:
        raise ValueError(
            f"robot {name!r} has no joint that moves: load it with floating_base=True, "
            "or keep its fixed links as bodies with merge_fixed=False."
        )
    model = builder.build(dtype, check_inertia=check_inertia is not False)
    if check_inertia is None:
        warn_of_doubts({part.name: part.inertial for part in parts})
    return model


def _named(robot: ET.Element, tag: str) -> dict[str, ET.Element]:
    found: dict[str, ET.Element] = {}
    for element in robot.findall(tag):
        name = element.get("name", "")
        if name in found:
            raise ValueError(f"two {tag}s have the name {name!r}: rename one of them.")
        found[name] = element
    return found


def _joint_above(
    links: dict[str, ET.Element], joints: dict[str, ET.Element]
) -> dict[str, ET.Element]:
    """For each link but the root the joint whose child it is."""
    above: dict[str, ET.Element] = {}
    for joint in joints.values():
        for role in ("parent", "child"):
            if _end(joint, role) not in links:
                raise ValueError(
                    f"{label(joint)}: the {role} link {_end(joint, role)!r} does not "
                    f"exist, expected one of: {', '.join(links)}."
                )
        child = _end(joint, "child")
        if child in above:
            raise ValueError(
                f"link {child!r} is the child of {label(above[child])} and of "
                f"{label(joint)}, expected one joint: remove one; a closed loop is cut "
                "there and closed again with ModelBuilder.add_loop."
            )
        above[child] = joint
    return above


def _end(joint: ET.Element, role: str) -> str:
    name = required(label(joint), joint, role).get("link")
    if name is None:
        raise ValueError(
            f"{label(joint)}: <{role}> has no attribute 'link': name the {role} link."
        )
    return name


def _parents_first(names: list[str], joint_above: dict[str, ET.Element]) -> list[str]:
    """The links in file order, except that none stands before its parent."""
    roots = [name for name in names if name not in joint_above]
    if len(roots) > 1:
        raise ValueError(
            f"links {', '.join(map(repr, roots))} have no parent, expected one root "
            "link: join the others to it, with fixed joints if they do not move."
        )
    place = {name: i for i, name in enumerate(names)}
    children: dict[str, list[str]] = {name: [] for name in names}
    for name, joint in joint_above.items():
        children[_end(joint, "parent")].append(name)
    ready, ordered = [place[name] for name in roots], []
    while ready:
        ordered.append(names[heapq.heappop(ready)])
        for name in children[ordered[-1]]:
            heapq.heappush(ready, place[name])
    lost = set(names) - set(ordered)
    if lost:
        path = [min(lost, key=lambda name: place[name])]
        while (parent := _end(joint_above[path[-1]], "parent")) not in path:
            path.append(parent)
        cycle = [parent, *reversed(path[path.index(parent) :])]
        raise ValueError(
            f"links {' -> '.join(map(repr, cycle))} form a cycle, expected a tree: "
            "remove one of their joints and close the loop with ModelBuilder.add_loop."
        )
    return ordered


def _check_masses(parts: list[Part], inertials: dict[str, Inertial | None]) -> None:
    """Each moving link, with all that is fixed to it, has an `<inertial>`."""
    has_inertial = {name: found is not None for name, found in inertials.items()}
    for part in reversed(parts):
        if part.joint == "fixed":
            has_inertial[part.parent] |= has_inertial[part.name]
        elif not has_inertial[part.name]:
            raise ValueError(
                f"link {part.name!r} moves but has no <inertial>: add it (mass and "
                "inertia may be zero), or load the robot with allow_massless=True."
            )


def _part(joint: ET.Element, inertial: Inertial | None) -> Part:
    """The child link of a joint."""
    owner, kind = label(joint), joint.get("type")
    if kind not in _JOINTS:
        raise ValueError(
            f"{owner}: joint type {kind!r} is not known, expected one of: "
            f"{', '.join(_JOINTS)}. Write the joint as one of these, or as several."
        )
    options: dict[str, Any] = {"joint_name": joint.get("name")}
    if kind not in ("fixed", "floating"):
        axis = joint.find("axis")
        options["axis"] = (
            np.array([1.0, 0.0, 0.0])
            if axis is None
            else numbers(owner, axis, "xyz", 3)
        )
    if kind == "planar":
        options["axis2"] = _in_plane(options["axis"])
    limits = ("lower", "upper") if kind in ("revolute", "prismatic") else ()
    for tag, keys in (
        ("dynamics", ("damping", "friction")),
        ("limit", (*limits, "effort", "velocity")),
    ):
        element = joint.find(tag)
        for key in keys:
            if element is not None and key in element.attrib:
                finite = tag == "dynamics"
                options[key] = numbers(owner, element, key, 1, finite)[0]
    R, p = _pose(owner, joint)
    return Part(
        name=_end(joint, "child"),
        parent=_end(joint, "parent"),
        joint=_JOINTS[kind],
        R=R,
        p=p,
        inertial=inertial or Inertial(),
        options=options,
    )


def _pose(owner: str, element: ET.Element) -> tuple[np.ndarray, np.ndarray]:
    """Rotation and position of the `<origin>` of an element, identity without one."""
    origin = element.find("origin")
    xyz = rpy = np.zeros(3)
    if origin is not None and "xyz" in origin.attrib:
        xyz = numbers(owner, origin, "xyz", 3)
    if origin is not None and "rpy" in origin.attrib:
        rpy = numbers(owner, origin, "rpy", 3)
    return rpy_to_matrix(rpy), xyz


def _inertial(link: ET.Element) -> Inertial | None:
    """The `<inertial>` of a link in the link's axes, or None if it has none."""
    owner, inertial = label(link), link.find("inertial")
    if inertial is None:
        return None
    mass = numbers(owner, required(owner, inertial, "mass"), "value", 1)[0]
    inertia = required(owner, inertial, "inertia")
    xx, xy, xz, yy, yz, zz = (numbers(owner, inertia, key, 1)[0] for key in MOMENTS)
    I = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return Inertial(mass, np.zeros(3), I).moved(*_pose(owner, inertial))


def _in_plane(normal: np.ndarray) -> np.ndarray:
    """The first direction of a planar joint: x projected onto the plane, or y."""
    n = unit_vectors(normal)  # zero stays zero, which the builder reports
    x, y, _ = np.eye(3)
    along = x - n[0] * n
    return along if np.linalg.norm(along) > 1e-6 else y - n[1] * n
