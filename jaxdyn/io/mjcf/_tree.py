"""The bodies of an MJCF file as parts, in the order of the file."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from jaxdyn.io._parts import Part
from jaxdyn.io.mjcf._compiler import Compiler
from jaxdyn.io.mjcf._defaults import Defaults
from jaxdyn.io.mjcf._inertia import Piece, body_inertial
from jaxdyn.io.mjcf._item import Item, check_children, label, refuse
from jaxdyn.io.mjcf._joint import joint_chain, read_joint
from jaxdyn.io.mjcf._schema import READ_IN_BODY, SKIPPED_IN_BODY
from jaxdyn.model import Inertial

WORLD = "world"
_JOINTS = ("joint", "freejoint")


@dataclass(frozen=True)
class Frame:
    """A named frame, fixed to a part with the pose (R, p).

    `kind` is what the file calls it, "site" or "frame".
    """

    kind: str
    name: str
    body: str
    R: np.ndarray
    p: np.ndarray


@dataclass(frozen=True)
class _Place:
    """An element, and where it stands.

    Attributes:
        element: the element.
        body: the name of the body around it.
        childclass: the default class that its surroundings give it.
        R, p: pose in that body of the frame in which it stands.
    """

    element: Element
    body: str
    childclass: str | None = None
    R: np.ndarray = field(default_factory=lambda: np.eye(3))
    p: np.ndarray = field(default_factory=lambda: np.zeros(3))

    def inner(self, R: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The pose in the body of a frame with the pose (R, p) in this one."""
        return self.R @ R, self.p + self.R @ p

    @property
    def label(self) -> str:
        """The element as error messages name it."""
        return label(self.element, f"body {self.body!r}")


def _inside(place: _Place) -> list[_Place]:
    """The elements in one, last one first."""
    return [replace(place, element=element) for element in place.element][::-1]


@dataclass
class Tree:
    """What is read from the bodies of a file: parts, and frames on them.

    Attributes:
        compiler, defaults: what gives the elements their meaning.
        options: arguments of `ModelBuilder.add_body` for all parts.
        parts, frames: in the order of the file.
        origins: of each body where MuJoCo's origin is in its part.
        drawn: pose of MuJoCo's body frame in the world as the file draws it, at qpos0.
        names: those in use, by kind.
    """

    compiler: Compiler
    defaults: Defaults
    options: dict[str, Any]
    parts: list[Part] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    origins: dict[str, np.ndarray] = field(default_factory=lambda: {WORLD: np.zeros(3)})
    drawn: dict[str, tuple[np.ndarray, np.ndarray]] = field(
        default_factory=lambda: {WORLD: (np.eye(3), np.zeros(3))}
    )
    names: dict[str, set[str]] = field(
        default_factory=lambda: {"body": {WORLD}, "joint": set(), "site": set()}
    )
    count: int = 0

    def read(self, root: Element) -> None:
        """Read the bodies of all worldbody sections, depth first."""
        content: list[_Place] = []
        for world in root.findall("worldbody"):
            place = _Place(world, WORLD)
            Item("worldbody", "<worldbody>", world.attrib)  # checks the attributes
            content += self._content(replace(place, childclass=self._childclass(place)))
        for at in content:
            if at.element.tag in (*_JOINTS, "inertial"):
                raise ValueError(
                    f"{at.label}: the world neither moves nor has mass: put it in a "
                    "<body>, or remove it."
                )
        stack = self._sites_and_bodies(content)
        while stack:
            stack += self._read_body(stack.pop())

    def _content(self, place: _Place) -> Iterator[_Place]:
        """The elements in a body or frame, those inside frames included."""
        pending = _inside(place)
        while pending:
            at = pending.pop()
            element = at.element
            if element.tag == "frame":
                item = Item("frame", at.label, element.attrib)
                R, p = at.inner(*self.compiler.pose(item))
                frame = replace(at, childclass=self._childclass(at), R=R, p=p)
                pending += _inside(frame)
            elif element.tag in READ_IN_BODY:
                check_children(element, f"body {place.body!r}")
                yield at
            elif element.tag not in SKIPPED_IN_BODY:
                known = ", ".join((*READ_IN_BODY, *SKIPPED_IN_BODY, "frame"))
                refuse(element, f"body {place.body!r}", f"one of {known}")

    def _read_body(self, place: _Place) -> list[_Place]:
        """Add the parts of one body; the places of its child bodies, last one first."""
        self.count += 1
        name = place.element.get("name", f"body_{self.count}")
        item = Item("body", place.label, place.element.attrib)
        pose = place.inner(*self.compiler.pose(item))
        content = list(
            self._content(_Place(place.element, name, self._childclass(place)))
        )
        joints = [
            read_joint(self._item(at), at.R, at.p, self.compiler)
            for at in content
            if at.element.tag in _JOINTS
        ]
        if any(joint.kind == "free" for joint in joints):
            if len(joints) > 1 or place.body != WORLD:
                item.fail(
                    "a free joint stands beside another joint or in a nested body, "
                    "expected the only joint of a child of worldbody: move or remove it"
                )
        parts, origin = joint_chain(name, place.body, pose, joints, self.options)
        parts[-1].inertial = self._inertial(name, item, content).moved(
            np.eye(3), origin
        )
        self._add(parts)
        self._draw(name, place.body, pose, origin)
        if origin.any():
            frame = Frame("frame", f"{name}_frame", name, np.eye(3), origin)
            self.frames.append(frame)
        return self._sites_and_bodies([replace(at, p=at.p + origin) for at in content])

    def _draw(self, name: str, parent: str, pose: Any, origin: np.ndarray) -> None:
        """Keep where a body is drawn; its pose is given in the parent's part."""
        (R, p), (R_0, p_0) = pose, self.drawn[parent]
        self.drawn[name] = R_0 @ R, p_0 + R_0 @ (p - self.origins[parent])
        self.origins[name] = origin

    def _add(self, parts: list[Part]) -> None:
        for part in parts:
            self._claim("body", part.name)
            if part.joint != "fixed":
                self._claim("joint", part.options["joint_name"])
        self.parts += parts

    def _inertial(self, name: str, body: Item, content: list[_Place]) -> Inertial:
        given: Piece | None = None
        geoms = []
        for at in content:
            if at.element.tag in ("inertial", "geom"):
                piece = Piece(self._item(at), at.R, at.p)
                if at.element.tag == "geom":
                    geoms.append(piece)
                elif given is None:
                    given = piece
                else:
                    piece.item.fail("the body has two, expected one: remove the other")
        return body_inertial(name, body, given, geoms, self.compiler)

    def _sites_and_bodies(self, content: list[_Place]) -> list[_Place]:
        """Keep the named sites as frames; the places of the bodies, last one first."""
        for at in content:
            name = at.element.get("name")
            if at.element.tag == "site" and name is not None:
                self._claim("site", name)
                R, p = at.inner(*self.compiler.pose(self._item(at)))
                self.frames.append(Frame("site", name, at.body, R, p))
        return [at for at in reversed(content) if at.element.tag == "body"]

    def _item(self, at: _Place) -> Item:
        return self.defaults.item(at.element, f"body {at.body!r}", at.childclass)

    def _childclass(self, at: _Place) -> str | None:
        """The default class of what stands inside a body or frame."""
        childclass = at.element.get("childclass", at.childclass)
        self.defaults.check(childclass, at.label)
        return childclass

    def fixed_joint_name(self, name: str) -> str:
        """A name that is free for the joint of a fixed part or frame."""
        joint_name = f"j_{name}"
        while joint_name in self.names["joint"]:
            joint_name += "_"
        self.names["joint"].add(joint_name)
        return joint_name

    def _claim(self, kind: str, name: str) -> None:
        if name in self.names[kind]:
            raise ValueError(
                f"<{kind} name={name!r}>: another {kind} has this name, expected names "
                "that differ: rename one of them."
            )
        self.names[kind].add(name)
