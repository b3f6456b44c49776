"""The `<compiler>` settings of an MJCF file, and the poses they give meaning to."""

from dataclasses import dataclass
from xml.etree.ElementTree import Element

import numpy as np

from jaxdyn.io._pose import quaternion_to_matrix, rotation_about
from jaxdyn.io.mjcf._item import Item, check_children
from jaxdyn.io.mjcf._schema import ORIENTATIONS

_BOOLEANS = ("true", "false")


@dataclass(frozen=True)
class Compiler:
    """The settings that change what the rest of a file means.

    Attributes:
        angle: radians per unit of angle in the file.
        eulerseq: the axes of `euler`; lower case turns with the body, upper case not.
        autolimits: whether a range alone makes a limit.
        inertiafromgeom: "true", "false" or "auto".
        groups: first and last geom group that counts for inertia.
        boundmass, boundinertia: lower bounds for every body.
        balanceinertia: whether an impossible inertia becomes its mean.
        settotalmass: the mass to which the model is scaled, not if zero or less.
    """

    angle: float
    eulerseq: str
    autolimits: bool
    inertiafromgeom: str
    groups: tuple[int, int]
    boundmass: float
    boundinertia: float
    balanceinertia: bool
    settotalmass: float

    @staticmethod
    def read(root: Element) -> "Compiler":
        """The settings of all `<compiler>` sections of a model, later ones win."""
        item = merged(root, "compiler")
        sequence = item.attributes.get("eulerseq", "xyz")
        if len(sequence) != 3 or not set(sequence) <= set("xyzXYZ"):
            item.fail(f"eulerseq is {sequence!r}, expected three of x, y, z, X, Y, Z")
        angle = item.word("angle", "degree", ("degree", "radian"))
        first, last = item.numbers("inertiagrouprange", 2, (0, 5))
        return Compiler(
            angle=np.pi / 180 if angle == "degree" else 1.0,
            eulerseq=sequence,
            autolimits=item.word("autolimits", "true", _BOOLEANS) == "true",
            inertiafromgeom=item.word("inertiafromgeom", "auto", (*_BOOLEANS, "auto")),
            groups=(int(first), int(last)),
            boundmass=item.number("boundmass", 0.0),
            boundinertia=item.number("boundinertia", 0.0),
            balanceinertia=item.word("balanceinertia", "false", _BOOLEANS) == "true",
            settotalmass=item.number("settotalmass", -1.0),
        )

    def pose(self, item: Item) -> tuple[np.ndarray, np.ndarray]:
        """Rotation and position of an element in the frame in which it stands."""
        if "fromto" in item.attributes:
            return self._between(item)
        return self._rotation(item), item.numbers("pos", 3, (0, 0, 0))

    def _between(self, item: Item) -> tuple[np.ndarray, np.ndarray]:
        """The frame half-way between two points, z from the second to the first."""
        ends = item.numbers("fromto", 6)
        placed = [key for key in ORIENTATIONS if key in item.attributes]
        if placed or item.numbers("pos", 3, (0, 0, 0)).any():
            item.fail(
                f"fromto and {', '.join(placed) or 'pos'} are both given: keep one"
            )
        start, end = ends[:3], ends[3:]
        return _turned_z(item.direction("fromto", start - end)), (start + end) / 2

    def _rotation(self, item: Item) -> np.ndarray:
        given = [key for key in ORIENTATIONS if key in item.attributes]
        if len(given) > 1:
            item.fail(f"{' and '.join(given)} are both given, expected one orientation")
        if not given:
            return np.eye(3)
        if given == ["quat"]:
            w, x, y, z = item.direction("quat", item.numbers("quat", 4))
            return quaternion_to_matrix(x, y, z, w)
        if given == ["axisangle"]:
            *axis, angle = item.numbers("axisangle", 4)
            axis = item.direction("axisangle", np.array(axis))
            return rotation_about(axis, angle * self.angle)
        if given == ["euler"]:
            return self._euler(item.numbers("euler", 3) * self.angle)
        if given == ["zaxis"]:
            return _turned_z(item.direction("zaxis", item.numbers("zaxis", 3)))
        axes = item.numbers("xyaxes", 6)
        x = item.direction("xyaxes", axes[:3])
        y = item.direction("xyaxes", axes[3:] - x * (x @ axes[3:]))
        return np.column_stack([x, y, np.cross(x, y)])

    def _euler(self, angles: np.ndarray) -> np.ndarray:
        R = np.eye(3)
        for letter, angle in zip(self.eulerseq, angles, strict=True):
            turn = rotation_about(np.eye(3)["xyz".index(letter.lower())], angle)
            R = R @ turn if letter.islower() else turn @ R
        return R


def merged(root: Element, path: str) -> Item:
    """All elements at a path as one, later attributes over earlier ones."""
    attributes: dict[str, str] = {}
    for element in root.findall(path):
        check_children(element)
        attributes |= element.attrib
    tag = path.split("/")[-1]
    return Item(tag, f"<{tag}>", attributes)


def _turned_z(z: np.ndarray) -> np.ndarray:
    """The smallest rotation that turns the z axis to the unit vector `z`."""
    axis = np.cross([0.0, 0.0, 1.0], z)
    sine = np.linalg.norm(axis)
    axis = axis / sine if sine > 1e-10 else np.array([1.0, 0.0, 0.0])
    return rotation_about(axis, np.arctan2(sine, z[2]))
