"""Equality constraints of an MJCF file that close loops: connect and weld."""

from collections.abc import Callable
from xml.etree.ElementTree import Element

import numpy as np

from jaxdyn.io._pose import quaternion_to_matrix
from jaxdyn.io.mjcf._compiler import merged
from jaxdyn.io.mjcf._item import Item, check_children, refuse
from jaxdyn.io.mjcf._schema import LOOPS
from jaxdyn.io.mjcf._tree import WORLD, Tree
from jaxdyn.model import ModelBuilder

Pose = tuple[np.ndarray, np.ndarray]
Side = tuple[str, np.ndarray, np.ndarray]  # a part, and the pose of a frame in it
_JOINTS = {"connect": "spherical", "weld": "fixed"}


def add_loops(
    builder: ModelBuilder, root: Element, tree: Tree, carried: Callable[..., Side]
) -> None:
    """Add a loop for each equality constraint that is active.

    Args:
        builder: has all bodies.
        root: of the file.
        tree: what was read from it.
        carried: moves a frame from a part to the body that carries it.
    """
    switch = merged(root, "option/flag")
    is_on = switch.word("equality", "enable", ("enable", "disable")) == "enable"
    for section in root.findall("equality"):
        for element in section:
            if element.tag not in LOOPS:
                refuse(element, "<equality>", " or ".join(LOOPS))
            check_children(element, "<equality>")
            item = tree.defaults.item(element, "<equality>", None)
            active = item.word("active", "true", ("true", "false")) == "true"
            (part_a, *a), (part_b, *b) = (carried(*side) for side in _sides(item, tree))
            if is_on and active:
                builder.add_loop(
                    part_a,
                    tuple(a),
                    part_b,
                    tuple(b),
                    _JOINTS[element.tag],
                    name=element.get("name"),
                )


def _sides(item: Item, tree: Tree) -> tuple[Side, Side]:
    """The frames a and b of a constraint, on the parts of its two bodies or sites."""
    given = [k for k in ("body1", "body2", "site1", "site2") if k in item.attributes]
    if given == ["site1", "site2"]:
        surplus = [k for k in ("anchor", "relpose") if k in item.attributes]
        if surplus:
            item.fail(f"{surplus[0]} stands beside site1 and site2: keep one of them")
        a, b = (_site(item, key, tree) for key in given)
        return a, b
    if given not in (["body1"], ["body1", "body2"]):
        item.fail(
            f"{' and '.join(given) or 'nothing'} is given, expected body1, or body1 "
            "and body2, or site1 and site2"
        )
    name_a, name_b = (_body(item, key, tree) for key in ("body1", "body2"))
    if name_a == name_b:
        item.fail(f"body1 and body2 are both {name_a!r}, expected two bodies")
    place = _connected if item.tag == "connect" else _welded
    (R_a, p_a), (R_b, p_b) = place(item, tree.drawn[name_a], tree.drawn[name_b])
    o_a, o_b = (tree.origins[name] for name in (name_a, name_b))
    return (name_a, R_a, o_a + p_a), (name_b, R_b, o_b + p_b)


def _connected(item: Item, body1: Pose, body2: Pose) -> tuple[Pose, Pose]:
    """The anchor in body 1, and where it is in body 2 as the file draws them."""
    anchor = item.numbers("anchor", 3)
    R, p = _relative(body2, body1)
    return (np.eye(3), anchor), (np.eye(3), p + R @ anchor)


def _welded(item: Item, body1: Pose, body2: Pose) -> tuple[Pose, Pose]:
    """The anchor in body 2 with its axes, and the same frame in body 1.

    That is `relpose`, as in MuJoCo's own equations: its position is the anchor's, not
    that of body 2. If its quaternion is zero, it is as the file draws the bodies.
    """
    anchor = item.numbers("anchor", 3, (0, 0, 0))
    relative = item.numbers("relpose", 7, (0, 1, 0, 0, 0, 0, 0))
    if relative[3:].any():
        w, x, y, z = relative[3:]
        return (quaternion_to_matrix(x, y, z, w), relative[:3]), (np.eye(3), anchor)
    R, p = _relative(body1, body2)
    return (R, p + R @ anchor), (np.eye(3), anchor)


def _relative(a: Pose, b: Pose) -> Pose:
    """The pose of b in a."""
    return a[0].T @ b[0], a[0].T @ (b[1] - a[1])


def _body(item: Item, key: str, tree: Tree) -> str:
    name = item.attributes.get(key, WORLD)
    if name not in tree.drawn:
        item.fail(f"{key} is {name!r}, expected one of: {', '.join(tree.drawn)}")
    return name


def _site(item: Item, key: str, tree: Tree) -> Side:
    name = item.attributes[key]
    sites = {frame.name: frame for frame in tree.frames if frame.kind == "site"}
    if name not in sites:
        item.fail(f"{key} is {name!r}, expected one of: {', '.join(sites) or 'none'}")
    return sites[name].body, sites[name].R, sites[name].p
