"""The elements that a URDF file may hold, and the numbers in them."""

import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator

import numpy as np

from jaxdyn.io._files import numbers as read_numbers

_CONTENT = {
    "robot": ("link", "joint"),
    "link": ("inertial",),
    "inertial": ("origin", "mass", "inertia"),
    "joint": ("origin", "parent", "child", "axis", "limit", "dynamics"),
}
MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_ATTRIBUTES = {
    "robot": ("name", "version"),
    "link": ("name", "type"),
    "inertial": (),
    "joint": ("name", "type"),
    "origin": ("xyz", "rpy"),
    "mass": ("value",),
    "inertia": MOMENTS,
    "parent": ("link",),
    "child": ("link",),
    "axis": ("xyz",),
    "limit": ("lower", "upper", "effort", "velocity"),
    "dynamics": ("damping", "friction"),
}
_SCHEMA = "{http://www.w3.org/2001/XMLSchema-instance}"  # for editors
# shapes, contact, sensors and control: none of them enters the equations of motion
_SKIPPED = {
    *("visual", "collision", "material", "contact", "sensor", "transmission"),
    *("safety_controller", "calibration", "ros2_control", "gazebo"),
}
# what a <gazebo> element may change, with the texts that leave it unchanged
_OFF = ("", "0", "0.0", "false")
_GAZEBO_DYNAMICS = {
    **dict.fromkeys(("turnGravityOff", "kinematic", "static", "dampingFactor"), _OFF),
    **dict.fromkeys(("implicitSpringDamper", "cfmDamping", "velocity_decay"), _OFF),
    **dict.fromkeys(("springStiffness", "springReference"), _OFF),
    **dict.fromkeys(("spring_stiffness", "spring_reference"), _OFF),
    "gravity": ("1", "true"),
    **dict.fromkeys(("joint", "link", "inertial"), ()),
}
_GAZEBO_CLOSED = ("plugin", "sensor", "visual", "collision", "material")


def clean(element: ET.Element, owner: str, ignore: set[str]) -> None:
    """Remove what is skipped or ignored from the tree; raise on what is not known."""
    known = _ATTRIBUTES[element.tag]
    for attribute in list(element.attrib):
        if attribute in ignore:
            del element.attrib[attribute]
        elif attribute not in known and not attribute.startswith(_SCHEMA):
            raise ValueError(
                f"{owner}: attribute {attribute!r} of <{element.tag}> is not known, "
                f"expected some of: {', '.join(known) or 'none'}. Remove it, or skip "
                f"it with ignore=({attribute!r},)."
            )
    for child in list(element):
        if child.tag == "gazebo" and "gazebo" not in ignore:
            _check_gazebo(child)
        if child.tag in _SKIPPED | ignore:
            element.remove(child)
            continue
        _check_known(element, child, owner)
        is_part = child.tag in ("link", "joint")
        clean(child, label(child) if is_part else owner, ignore)


def _check_known(element: ET.Element, child: ET.Element, owner: str) -> None:
    known = _CONTENT.get(element.tag, ())
    if child.tag == "mimic":
        raise ValueError(
            f"{owner}: <mimic joint={child.get('joint')!r}> couples two joints, and a "
            "model holds no such coupling: make the joint fixed, or load it as a joint "
            "that moves on its own with ignore=('mimic',)."
        )
    if child.tag.startswith("{"):
        raise ValueError(
            f"{owner}: <{child.tag}> belongs to another language: run the file through "
            "its processor (xacro) first, or skip the element with "
            f"ignore=({child.tag!r},)."
        )
    if child.tag not in known:
        raise ValueError(
            f"{owner}: element <{child.tag}> in <{element.tag}> is not known, expected "
            f"some of: {', '.join(known) or 'none'}. Remove it, or skip it with "
            f"ignore=({child.tag!r},)."
        )
    if element.tag != "robot" and len(element.findall(child.tag)) > 1:
        raise ValueError(
            f"{owner}: <{element.tag}> has more than one <{child.tag}>, expected one: "
            "remove the others."
        )


def _check_gazebo(gazebo: ET.Element) -> None:
    for element in _below(gazebo):
        text = (element.text or "").strip()
        if text.lower() not in _GAZEBO_DYNAMICS.get(element.tag, (text.lower(),)):
            raise ValueError(
                f"<gazebo reference={gazebo.get('reference', '')!r}>: <{element.tag}> "
                f"{text!r} changes the motion, and the model would not have it: remove "
                "it, or skip all such elements with ignore=('gazebo',)."
            )


def _below(element: ET.Element) -> Iterator[ET.Element]:
    pending = list(element)
    while pending:
        child = pending.pop(0)
        if child.tag not in _GAZEBO_CLOSED:
            yield child
            pending[:0] = child


def label(element: ET.Element) -> str:
    """The tag and name of a link or joint, for messages."""
    if not element.get("name"):
        raise ValueError(f"a <{element.tag}> has no name: give it one.")
    return f"{element.tag} {element.get('name')!r}"


def required(owner: str, element: ET.Element, tag: str) -> ET.Element:
    """The element with this tag below another, which must have it."""
    found = element.find(tag)
    if found is None:
        raise ValueError(f"{owner}: <{element.tag}> has no <{tag}>: add it.")
    return found


def numbers(
    owner: str, element: ET.Element, attribute: str, count: int, finite: bool = True
) -> np.ndarray:
    """The numbers of an attribute, which must be there.

    Without `finite`, infinite numbers are accepted, and the largest double is one.
    """
    text = element.get(attribute)
    wanted = "one number" if count == 1 else f"{count} numbers separated by spaces"
    if text is None:
        raise ValueError(
            f"{owner}: <{element.tag}> has no attribute {attribute!r}: add it, "
            f"{wanted}."
        )
    try:
        values = read_numbers(text.split())
    except ValueError:
        values = np.array([])
    if values.size != count or np.isnan(values).any():
        raise ValueError(
            f"{owner}: <{element.tag} {attribute}={text!r}>: expected {wanted}."
        )
    is_infinite = np.abs(values) >= sys.float_info.max
    if finite and is_infinite.any():
        raise ValueError(
            f"{owner}: <{element.tag} {attribute}={text!r}>: expected finite numbers."
        )
    return np.where(is_infinite, np.copysign(np.inf, values), values)
