"""Robots from MJCF, the model files of MuJoCo."""

import os
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from jaxdyn.io._parts import Part, assemble, warn_of_doubts
from jaxdyn.io.mjcf._compiler import Compiler, merged
from jaxdyn.io.mjcf._defaults import Defaults
from jaxdyn.io.mjcf._equality import add_loops
from jaxdyn.io.mjcf._item import refuse
from jaxdyn.io.mjcf._schema import READ_SECTIONS, REFUSED_SECTIONS, SKIPPED_SECTIONS
from jaxdyn.io.mjcf._source import read_source
from jaxdyn.io.mjcf._tree import WORLD, Frame, Tree
from jaxdyn.model import Inertial, Model, ModelBuilder


def load_mjcf(
    source: str | os.PathLike[str],
    *,
    merge_fixed: bool = True,
    check_inertia: bool | None = None,
    ignore: Iterable[str] = (),
    dtype: Any = None,
) -> Model:
    """The model of a robot described in MJCF.

    Bodies and coordinates keep the order of the file, which is MuJoCo's; `to_mujoco`
    and `from_mujoco` convert states. The base is the worldbody, "world". Joint types:
    hinge (revolute), slide (prismatic), ball (spherical) and free. A body without joint
    is fixed.

    A body with several joints becomes a chain: each joint but the last moves a massless
    body `<body>_<joint>`, or `<body>_1`, `<body>_2`, ... where the joint has no name.
    The origin of a body is the anchor (`pos`) of its last joint, if that is a hinge or
    a ball; where it differs from MuJoCo's origin, MuJoCo's body frame is the frame
    `<body>_frame`. Named sites are frames too, called `<site>_site` if a body has the
    same name. A body without name is `body_<number>`, counted from 1 as in MuJoCo; a
    joint without name is `j_<body>`.

    Poses are read in every notation, joints with ref, range, damping, armature,
    stiffness and springref, frictionloss and actuatorfrcrange (its larger end is the
    effort limit); further default classes, frames, included files, gravity and the
    settings of the compiler. Without `<inertial>` a body has the mass of its geoms;
    that of meshes is not computed.

    The equality constraints connect and weld become loops, "spherical" and "fixed",
    between bodies or sites; what they hold is taken as MuJoCo takes it, from the
    configuration that the file draws (its qpos0) where the file does not give it. They
    are exact: solref, solimp and torquescale, which soften them in MuJoCo, play no
    role. Constraints with active="false" or switched off by `<flag equality>` are left
    out.

    Contacts are not modelled: geoms serve for inertia only. Limits are data, and the
    range of a ball joint has no place among them. Sections that draw, measure or
    describe are skipped, and motors too, since tau acts on the joints. Anything else
    that changes the motion is an error, such as other equality constraints, tendons,
    actuators with a force of their own, fluids, gravity compensation and elements that
    generate others.

    Args:
        source: a path, or the MJCF text itself (a str whose first character, after
            white space, is "<").
        merge_fixed: bodies without joint become frames of the body that carries them
            and give it their mass. Otherwise they are bodies.
        check_inertia: None warns of inertias that violate the triangle inequality, and
            True makes them an error. False accepts them, and joints that no inertia
            resists (see `singular_joints`).
        ignore: tags to be skipped wherever they stand, such as "equality", and
            attributes that are not supported, such as "gravcomp".
        dtype: floating-point type of the leaves, by default JAX's.

    Raises:
        ValueError: the text is no MJCF, data are missing or wrong, or it holds
            something the model would not have.
    """
    root = read_source(source, {ignore} if isinstance(ignore, str) else set(ignore))
    compiler, defaults = Compiler.read(root), Defaults(root)
    _check_sections(root, defaults)
    tree = Tree(compiler, defaults, {"check_inertia": bool(check_inertia)})
    tree.read(root)
    _check_mass(tree.parts)
    for part in tree.parts:
        if part.joint == "fixed":
            part.options["joint_name"] = tree.fixed_joint_name(part.name)
    builder = ModelBuilder(root.attrib["model"], gravity=_gravity(root), base=WORLD)
    assemble(builder, _scaled(tree.parts, compiler.settotalmass), merge_fixed)
    merged_parts = {
        part.name: part for part in tree.parts if merge_fixed and part.joint == "fixed"
    }
    for frame in tree.frames:
        _add_frame(builder, frame, merged_parts, tree)
    add_loops(builder, root, tree, partial(_carried, merged_parts))
    model = builder.build(dtype, check_inertia=check_inertia is not False)
    if check_inertia is None:
        warn_of_doubts({part.name: part.inertial for part in tree.parts})
    return model


def _check_sections(root: Element, defaults: Defaults) -> None:
    """Raise a `ValueError` for a section that the model cannot express."""
    known = (*READ_SECTIONS, *SKIPPED_SECTIONS, *REFUSED_SECTIONS)
    names = _named(root)
    for section in root:
        if section.tag not in known:
            refuse(section, "<mujoco>", f"one of {', '.join(known)}")
        for element in section:
            if section.tag in REFUSED_SECTIONS:
                refuse(element, f"<{section.tag}>", "a tree of rigid bodies without it")
            if section.tag == "actuator":
                _check_actuator(element, defaults, names)


def _named(root: Element) -> dict[str, list[str]]:
    """The names of joints, bodies and sites, by what an actuator calls them."""
    found: dict[str, list[str]] = {"joint": [], "freejoint": [], "body": [], "site": []}
    for world in root.findall("worldbody"):
        for element in world.iter():
            if element.tag in found and "name" in element.attrib:
                found[element.tag].append(element.attrib["name"])
    joints, sites = found["joint"] + found["freejoint"], found["site"]
    return {
        **dict.fromkeys(("joint", "jointinparent"), joints),
        **dict.fromkeys(("site", "refsite", "slidersite", "cranksite"), sites),
        "body": found["body"],
        "tendon": [],
    }


def _check_actuator(
    element: Element, defaults: Defaults, names: dict[str, list[str]]
) -> None:
    """Raise unless it acts on what is there, with no force without control."""
    expected = "a motor, or a general actuator without bias"
    if element.tag not in ("motor", "general"):
        refuse(element, "<actuator>", expected)
    item = defaults.item(element, "<actuator>", None)
    if element.tag == "general" and item.attributes.get("biastype", "none") != "none":
        refuse(element, "<actuator>", expected)
    for key, known in names.items():
        if item.attributes.get(key, "") not in ("", *known):
            item.fail(
                f"{key} is {item.attributes[key]!r}, expected one of: "
                f"{', '.join(known) or 'none'}"
            )


def _gravity(root: Element) -> np.ndarray:
    gravity = merged(root, "option").numbers("gravity", 3, (0, 0, -9.81))
    switch = merged(root, "option/flag")
    is_on = switch.word("gravity", "enable", ("enable", "disable")) == "enable"
    return gravity if is_on else np.zeros(3)


def _check_mass(parts: list[Part]) -> None:
    """Raise a `ValueError` for a moving body that carries no mass at all."""
    heavy = set()
    for part in reversed(parts):
        inertial = part.inertial
        if inertial.mass > 0 or inertial.inertia.any() or part.name in heavy:
            heavy |= {part.name, part.parent}
        elif part.joint != "fixed":
            raise ValueError(
                f"<body name={part.name!r}> moves, but neither it nor what it carries "
                "has mass: give it an <inertial>, or a geom with mass."
            )


def _scaled(parts: list[Part], mass: float) -> list[Part]:
    """The parts with the given total mass; as they are if it is zero or less."""
    total = sum(part.inertial.mass for part in parts)
    if mass <= 0 or total <= 0:
        return parts

    def scaled(x: Inertial) -> Inertial:
        return Inertial(x.mass * mass / total, x.com, x.inertia * mass / total)

    return [replace(part, inertial=scaled(part.inertial)) for part in parts]


def _add_frame(
    builder: ModelBuilder, frame: Frame, merged_parts: dict[str, Part], tree: Tree
) -> None:
    """Add a frame to the body that carries it once fixed parts are merged."""
    is_taken = frame.name in tree.names["body"]
    name = f"{frame.name}_{frame.kind}" if is_taken else frame.name
    body, R, p = _carried(merged_parts, frame.body, frame.R, frame.p)
    joint_name = tree.fixed_joint_name(name)
    builder.add_frame(name, body, R=R, p=p, joint_name=joint_name)


def _carried(
    merged_parts: dict[str, Part], body: str, R: np.ndarray, p: np.ndarray
) -> tuple[str, np.ndarray, np.ndarray]:
    """The body that carries a frame of a part, and the pose of the frame in it."""
    while body in merged_parts:
        part = merged_parts[body]
        body, R, p = part.parent, part.R @ R, part.p + part.R @ p
    return body, R, p
