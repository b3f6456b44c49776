"""Robots from URDF text: links, joints, inertias, joint effects and limits."""

import heapq
import os
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np

from jaxdyn.io._inertias import check_choice, judged, note_singular
from jaxdyn.io._parts import Part, assemble, free_name, warn_of_changes
from jaxdyn.io._xml import path_of, read_xml
from jaxdyn.io.urdf._findings import Findings
from jaxdyn.io.urdf._mimic import add_couplings
from jaxdyn.io.urdf._parts import end, inertial, part_of
from jaxdyn.io.urdf._transmissions import take_motors, with_motors
from jaxdyn.io.urdf._visuals import visuals
from jaxdyn.io.urdf._xml import by_name, check_processed, clean, label
from jaxdyn.model import Inertial, Model, ModelBuilder


def load_urdf(
    source: str | os.PathLike[str],
    *,
    floating_base: bool = False,
    merge_fixed: bool = True,
    gravity: Sequence[Any] | np.ndarray = (0.0, 0.0, -9.81),
    inertia: str = "as given",
    skip: Iterable[str] = (),
    strict: bool = False,
    dtype: Any = None,
) -> Model:
    """The model of a robot described in URDF.

    The bodies keep the order of the `<link>` elements wherever parents stand before
    their children; a link that stands before its parent comes as soon as its parent is
    there. Joint types: revolute and continuous, prismatic, fixed, floating (free),
    planar, and spherical, which is not in the specification. A planar joint has the
    URDF axis as its normal; its first direction is the projection of the joint's x axis
    onto the plane, or of y if x is the normal. A robot in which nothing moves is a free
    body. A limit that is not given, or is the largest double, as `to_urdf` writes it,
    is infinite; lower and upper are read for revolute and prismatic joints only. Joints
    with `<mimic>` follow others exactly and have no coordinates of their own, see
    `Model.with_coupling`. Simple transmissions are motors in `model.actuators` unless
    they have no effort interface; their controls are motor efforts, see `jd.actuate`.

    `model.visuals` has the `<visual>` elements. `package://name/rest` is looked for in
    all folders above the file and in ROS_PACKAGE_PATH. `model.report` lists what is not
    read, left out or repaired, missing mesh files too, and a warning names what changes
    the motion: docs/conventions.md has a table. A link without `<inertial>` has no
    mass; where no inertia resists a joint, forward dynamics raise an error.

    Args:
        source: a path, or the URDF text itself (a str whose first character, after
            white space, is "<").
        floating_base: the root link becomes a body on a free joint to the base "world".
            Otherwise the root link is the base, and its mass plays no role.
        merge_fixed: links on fixed joints become frames of the body that carries them
            and give it their mass. Otherwise they are bodies.
        gravity: acceleration of free fall in world axes; URDF does not hold it.
        inertia: what becomes of inertias that no body has: negative principal values,
            or a violation of the triangle inequality. They are kept "as given"; or
            replaced by the "nearest" possible ones (see `Inertial.nearest`); or are an
            "error". Values that are negative by rounding become zero.
        skip: what to leave out, by place as "joint/mimic", "robot/gazebo" or
            "joint/dynamics/@spring", or of one link or joint as "joint/mimic/finger".
        strict: True makes repairs and what URDF does not have an error.
        dtype: floating-point type of the leaves, by default JAX's.

    Raises:
        ValueError: the text is no URDF or not processed by xacro, its links form no
            tree, or data are missing or wrong.
    """
    check_choice(inertia)
    robot = read_xml(source, "URDF", ("robot",))
    check_processed(robot)
    path, found = path_of(source), Findings(skip, strict)
    links, joints = (by_name(robot, tag, found) for tag in ("link", "joint"))
    motors = take_motors(robot, joints, found)
    drawn = visuals(robot, links, Path() if path is None else path.parent, found)
    clean(robot, found)
    name = robot.get("name") or "robot"
    if not links:
        found.wrong(f"robot {name!r} has no <link>: add at least one.")
    joint_above = _joint_above(links, joints, found)
    found.raise_problems()
    root, *others = _parents_first(list(links), joint_above)

    inertials = {link: found.tried(inertial, links[link]) for link in links}
    parts = [part_of(joint_above[link], inertials[link], found) for link in others]
    found.raise_problems()
    is_still = all(part.joint == "fixed" for part in parts)
    if is_still and not floating_base and (merge_fixed or not parts):
        problem = (
            f"robot {name!r} has no joint that moves: load it with floating_base=True, "
            "or keep its fixed links as bodies with merge_fixed=False."
        )
        found.repaired(problem, "robot", name, "nothing moves: one free body")
        floating_base = True
    base = _free_base(links, found) if floating_base else root
    if floating_base:
        free = Part(root, base, "free", inertial=inertials[root] or Inertial())
        parts = [free, *parts]
    _check_masses(parts, inertials, found)
    _check_inertias(parts, inertia, found)
    found.raise_problems()

    builder = ModelBuilder(name, gravity=gravity, base=base)
    assemble(builder, parts, merge_fixed, drawn)
    add_couplings(builder, joints, found)
    builder.notes += found.notes
    model = builder.build(dtype, check_inertia=False)
    note_singular(model, strict)
    model = with_motors(model, motors)
    warn_of_changes(model)
    return model


def _free_base(links: dict[str, ET.Element], found: Findings) -> str:
    """The name of the base of a robot that floats."""
    base = free_name("world", links)
    if base != "world":
        problem = (
            "link 'world' has the name of the base of a floating robot: rename it."
        )
        found.repaired(problem, "link", "world", f"a body: the base is {base!r}")
    return base


def _check_inertias(parts: list[Part], how: str, found: Findings) -> None:
    """Repair inertias that no body has, or note them."""
    for part in parts:
        given, name = part.inertial, part.name
        if not found.strict:
            part.inertial = given.without_rounding()
        if part.inertial is not given:
            found.note("inertia", name, "not negative: its sign is rounding")
        result = found.tried(judged, {name: part.inertial}, how, found.strict, "link")
        if result:
            part.inertial = result[0][name]
            for note in result[1]:
                found.note(*astuple(note))


def _joint_above(
    links: dict[str, ET.Element], joints: dict[str, ET.Element], found: Findings
) -> dict[str, ET.Element]:
    """For each link but the root the joint whose child it is."""
    above: dict[str, ET.Element] = {}
    for joint in joints.values():
        ends = {role: found.tried(end, joint, role) for role in ("parent", "child")}
        for role, name in ends.items():
            if name is not None and name not in links:
                found.wrong(
                    f"{label(joint)}: the {role} link {name!r} does not exist, "
                    f"expected one of: {', '.join(links)}."
                )
        child = ends["child"] or ""
        if child in above:
            found.wrong(
                f"link {child!r} is the child of {label(above[child])} and of "
                f"{label(joint)}, expected one joint: remove one; a closed loop is cut "
                "there and closed again with ModelBuilder.add_loop."
            )
        above[child] = joint
    return above


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
        children[end(joint, "parent")].append(name)
    ready, ordered = [place[name] for name in roots], []
    while ready:
        ordered.append(names[heapq.heappop(ready)])
        for name in children[ordered[-1]]:
            heapq.heappush(ready, place[name])
    lost = set(names) - set(ordered)
    if lost:
        path = [min(lost, key=lambda name: place[name])]
        while (parent := end(joint_above[path[-1]], "parent")) not in path:
            path.append(parent)
        cycle = [parent, *reversed(path[path.index(parent) :])]
        raise ValueError(
            f"links {' -> '.join(map(repr, cycle))} form a cycle, expected a tree: "
            "remove one of their joints and close the loop with ModelBuilder.add_loop."
        )
    return ordered


def _check_masses(
    parts: list[Part], inertials: dict[str, Inertial | None], found: Findings
) -> None:
    """Note moving links that have no `<inertial>`, nor what is fixed to them."""
    has_inertial = {name: x is not None for name, x in inertials.items()}
    for part in reversed(parts):
        if part.joint == "fixed":
            has_inertial[part.parent] |= has_inertial[part.name]
        elif not has_inertial[part.name]:
            problem = (
                f"link {part.name!r} moves but has no <inertial>: add it (mass and "
                "inertia may be zero); strict=False loads the robot as it is."
            )
            found.repaired(problem, "link", part.name, "no mass: it has no <inertial>")
