"""The elements that a URDF file may hold, and the numbers in them."""

import sys
import xml.etree.ElementTree as ET
from collections.abc import Container, Iterator

import numpy as np

from jaxdyn.io._files import numbers as read_numbers
from jaxdyn.io._parts import free_name
from jaxdyn.io.urdf._findings import Findings

_CONTENT = {
    "robot": ("link", "joint"),
    "link": ("inertial",),
    "inertial": ("origin", "mass", "inertia"),
    "joint": ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic"),
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
    "mimic": ("joint", "multiplier", "offset"),
}
# in names of foreign elements and attributes: these would change the motion
_WORDS = (
    *("spring", "damp", "stiff", "friction", "rotor", "armature", "gear", "loop"),
    *("mass", "inertia", "gravity", "kinematic"),
)
# shapes, contact, sensors and control: none of them enters the equations of motion
_SKIPPED = {
    *("visual", "collision", "material", "contact", "sensor", "transmission"),
    *("safety_controller", "calibration", "ros2_control", "gazebo"),
}
_SEEN = ("link/visual", "robot/material")  # are read by `visuals`
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


def check_processed(robot: ET.Element) -> None:
    """Raise a `ValueError` for what xacro should have replaced."""
    declared = [key for key, uri in robot.attrib.items() if uri.endswith("/xacro")]
    prefixes = ("xacro:", *(f"{key.removeprefix('xmlns:')}:" for key in declared))
    for element in (robot, *_below(robot, _SKIPPED)):
        values = element.attrib.items() if element.tag in _ATTRIBUTES else ()
        words = [f'{key}="{x}"' for key, x in values if "${" in x or "$(" in x]
        if words or element.tag.startswith(prefixes):
            raise ValueError(
                f"<{' '.join([element.tag, *words])}> is written in xacro: process the "
                "file first, as with: xacro FILE > robot.urdf"
            )


def by_name(robot: ET.Element, tag: str, found: Findings) -> dict[str, ET.Element]:
    """All links or all joints by name; those without one get one."""
    elements = robot.findall(tag)
    taken = [element.get("name") for element in elements]
    result: dict[str, ET.Element] = {}
    for k, element in enumerate(elements):
        name = element.get("name") or free_name(f"{tag}_{k}", taken)
        if not element.get("name"):
            problem = f"a <{tag}> has no name: give it one."
            found.repaired(problem, tag, name, "named by its number: it has no name")
            element.set("name", name)
        if name in result:
            found.wrong(f"two {tag}s have the name {name!r}: rename one of them.")
        result[name] = element
    return result


def clean(
    element: ET.Element, found: Findings, path: str = "robot", name: str = "robot"
) -> None:
    """Remove all that is not read from the tree.

    Args:
        path: the place of the element, which starts at its robot, link or joint.
        name: of that robot, link or joint.
    """
    for attribute in [x for x in element.attrib if x not in _ATTRIBUTES[element.tag]]:
        text = element.attrib.pop(attribute)
        if ":" not in attribute and attribute != "xmlns":  # else for other programs
            _leave_foreign(element, f"@{attribute}", text, path, name, found)
    is_robot, kept = element.tag == "robot", []
    for child in element:
        is_left = child.tag == "mimic" and (
            element.get("type") == "fixed" or found.skips(f"{path}/mimic", name)
        )
        if is_left or child.tag not in _CONTENT.get(element.tag, ()):
            _leave(element, child, path, name, found)
        elif not is_robot and child.tag in [x.tag for x in kept]:
            problem = (
                f"{_owner(path, name)}: <{element.tag}> has more than one "
                f"<{child.tag}>, expected one: remove the others."
            )
            place = f"{path}/{child.tag}"
            found.repaired(problem, place, name, "several: the first counts")
        else:
            kept.append(child)
            part = child.tag, child.get("name", "")
            clean(child, found, *(part if is_robot else (f"{path}/{child.tag}", name)))
    element[:] = kept


def _leave(
    element: ET.Element, child: ET.Element, path: str, name: str, found: Findings
) -> None:
    """Note an element that is not read."""
    place = f"{path}/{child.tag}"
    changes = list(_changes(child)) if child.tag == "gazebo" else []
    if changes:
        name = child.get("reference", "")
        for tag, text in changes:
            problem = (
                f"<gazebo reference={name!r}>: <{tag}> {text!r} changes the motion, "
                "and the model would not have it: remove it, or skip all such elements "
                f"with skip=({place!r},)."
            )
            became = f"left out: <{tag}> {text}"
            found.left(problem, place, name or "robot", became, True)
    elif place == "joint/mimic" and element.get("type") != "fixed":
        found.note(place, name, "left out: the joint moves on its own", True)
    elif place in _SEEN:
        pass
    elif child.tag in _SKIPPED or place == "joint/mimic":
        found.note(place, name, "not read")
    else:
        text = (child.text or "").strip().lower()
        _leave_foreign(element, child.tag, text, path, name, found)


def _leave_foreign(
    element: ET.Element, key: str, text: str, path: str, name: str, found: Findings
) -> None:
    """Note an element, or an attribute `@key`, that URDF does not have."""
    place, word = f"{path}/{key}", key.lstrip("@")
    if key == word:
        what, known = f"element <{key}> in", _CONTENT.get(element.tag, ())
    else:
        what, known = f"attribute {word!r} of", _ATTRIBUTES[element.tag]
    problem = (
        f"{_owner(path, name)}: {what} <{element.tag}> is not known, expected some of: "
        f"{', '.join(known) or 'none'}. Remove it, or skip it with skip=({place!r},)."
    )
    acts = element.tag == "dynamics" or any(x in word.lower() for x in _WORDS)
    acts &= element.tag != "limit" and text not in _GAZEBO_DYNAMICS.get(word, ())
    became = f"{'left out' if acts else 'not read'}: URDF has no such {what.split()[0]}"
    found.left(problem, place, name, became, acts)


def _owner(place: str, name: str) -> str:
    tag = place.split("/")[0]
    return tag if tag == "robot" else f"{tag} {name!r}"


def _changes(gazebo: ET.Element) -> Iterator[tuple[str, str]]:
    """Tags and texts in a gazebo element that change the motion."""
    for element in _below(gazebo, _GAZEBO_CLOSED):
        text = (element.text or "").strip()
        if text.lower() not in _GAZEBO_DYNAMICS.get(element.tag, (text.lower(),)):
            yield element.tag, text


def _below(element: ET.Element, closed: Container[str]) -> Iterator[ET.Element]:
    pending = list(element)
    while pending:
        child = pending.pop(0)
        if child.tag not in closed:
            yield child
            pending[:0] = child


def label(element: ET.Element) -> str:
    """The tag and name of a link or joint, for messages."""
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
