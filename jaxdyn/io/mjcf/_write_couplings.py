"""Joints that follow others as equality constraints of joints and fixed tendons."""

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping

from jaxdyn.io._writing import Lost, text
from jaxdyn.model import Model, Relation


def lost_couplings(model: Model, relations: list[Relation]) -> Iterator[Lost]:
    """The gears: MJCF has no other coordinates than those of joints."""
    for x in relations:
        if x.is_geared:
            yield "couplings", f"joint {model.joint_names[x.joint]!r}"


def write_couplings(root: ET.Element, model: Model, relations: list[Relation]) -> None:
    """Add the constraints: of two joints where it can be, of two tendons otherwise."""
    written = [x for x in relations if not x.is_geared]
    if not written:
        return
    equality = root.find("equality")
    equality = ET.SubElement(root, "equality") if equality is None else equality
    names, tendons = model.joint_names, None
    for x in written:
        joint, c = names[x.joint], list(x.polynomial)
        linear = {i: value for i, value in x.linear.items() if value}
        inner = {i: value for i, value in x.inner.items() if value and any(c[1:])}
        if len(x.sources) <= 1:  # linear y + P(s y), a polynomial of y
            slope, factor = sum(linear.values()), sum(inner.values())
            powers = [value * factor**p for p, value in enumerate(c)]
            powers[1] += slope
            joints = joint, *(names[i] for i in x.sources)
            ends = dict(zip(("joint1", "joint2"), joints, strict=False))
            ET.SubElement(equality, "joint", {**ends, "polycoef": text(powers)})
            continue
        if tendons is None:
            tendons = ET.SubElement(root, "tendon")
        sides = {f"{joint}_follows": {x.joint: 1.0, **_less(linear)}}
        sides |= {f"{joint}_argument": inner} if inner else {}
        for name, arms in sides.items():
            tendon = ET.SubElement(tendons, "fixed", name=name)
            for i, arm in arms.items():
                ET.SubElement(tendon, "joint", joint=names[i], coef=text([arm]))
        ends = dict(zip(("tendon1", "tendon2"), sides, strict=False))
        ET.SubElement(equality, "tendon", {**ends, "polycoef": text(c)})


def _less(arms: Mapping[int, float]) -> dict[int, float]:
    return {i: -arm for i, arm in arms.items()}
