"""Joints that follow others: `<mimic>`."""

import xml.etree.ElementTree as ET
from collections.abc import Iterator

from jaxdyn.io._writing import Lost, text
from jaxdyn.io.urdf._findings import Findings
from jaxdyn.io.urdf._xml import label, numbers, required
from jaxdyn.model import Model, ModelBuilder, Relation

_SINGLE = ("revolute", "continuous", "prismatic")  # with one coordinate


def add_couplings(
    builder: ModelBuilder, joints: dict[str, ET.Element], found: Findings
) -> None:
    """Let joints with `<mimic>` follow others; all problems are one error."""
    for name, joint in joints.items():
        mimic = joint.find("mimic")
        of = "" if mimic is None else mimic.get("joint", "")
        if mimic is not None and of in joints:
            found.tried(_couple, builder, joint, joints)
        elif mimic is not None:
            problem = (
                f"{label(joint)} follows joint {of!r}, which is not there, expected "
                f"one of: {', '.join(joints)}: correct it, or load a joint that moves "
                f"on its own with skip=({'joint/mimic/' + name!r},)."
            )
            became = f"left out: no joint {of!r}, it moves on its own"
            found.repaired(problem, "joint/mimic", name, became, True)
    found.raise_problems()


def _couple(
    builder: ModelBuilder, joint: ET.Element, joints: dict[str, ET.Element]
) -> None:
    """Let a joint follow another: q = multiplier q of the other + offset."""
    owner, mimic = label(joint), required(label(joint), joint, "mimic")
    name, of = joint.get("name", ""), mimic.get("joint", "")
    other = joints[of].get("type")
    kinds = (*_SINGLE, "fixed")
    if joint.get("type") not in _SINGLE or other not in kinds or of == name:
        raise ValueError(
            f"{owner}: <mimic joint={of!r}> needs two joints that are "
            f"{', '.join(_SINGLE)}: correct it, or load the joint as one that moves on "
            f"its own, with skip=({'joint/mimic/' + name!r},)."
        )
    multiplier, offset = (
        numbers(owner, mimic, key, 1)[0] if key in mimic.attrib else default
        for key, default in (("multiplier", 1.0), ("offset", 0.0))
    )
    ratios = {} if other == "fixed" else {of: multiplier}
    builder.add_coupling(name, ratios, offset=offset)


def lost_mimics(model: Model, relations: list[Relation]) -> Iterator[Lost]:
    """The couplings that are not linear functions of one joint."""
    for x in relations:
        if not _is_mimic(x):
            yield "couplings", f"joint {model.joint_names[x.joint]!r}"


def write_mimics(robot: ET.Element, model: Model, relations: list[Relation]) -> None:
    """Add `<mimic>` to the joints that follow one other joint."""
    joints = {joint.get("name"): joint for joint in robot.findall("joint")}
    for x in filter(_is_mimic, relations):
        (source,) = x.sources
        ET.SubElement(
            joints[model.joint_names[x.joint]],
            "mimic",
            joint=model.joint_names[source],
            multiplier=text([x.linear[source]]),
            offset=text([x.polynomial[0]]),
        )


def _is_mimic(x: Relation) -> bool:
    return x.is_linear and not x.is_geared and len(x.sources) == 1
