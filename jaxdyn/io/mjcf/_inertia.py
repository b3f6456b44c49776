"""Mass and inertia of an MJCF body, from `<inertial>` or from its geoms."""

from dataclasses import dataclass

import numpy as np

from jaxdyn.io.mjcf._compiler import Compiler
from jaxdyn.io.mjcf._item import Item
from jaxdyn.model import Inertial

_SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "ellipsoid": 3, "box": 3}
_STATIC = ("plane", "hfield")  # MuJoCo gives them no mass
_SHAPED = ("mesh", "sdf")


@dataclass(frozen=True)
class Piece:
    """An element that gives mass, in a frame with the pose (R, p) in its body."""

    item: Item
    R: np.ndarray
    p: np.ndarray


def body_inertial(
    name: str,
    body: Item,
    inertial: Piece | None,
    geoms: list[Piece],
    compiler: Compiler,
) -> Inertial:
    """The inertial data of a body in MuJoCo's body frame, by the compiler's rules."""
    given = None if inertial is None else _given(inertial, compiler)
    if given is not None:
        given.check(name, triangle=False)  # balanceinertia may still mend the rest
    rule = compiler.inertiafromgeom
    result = given or Inertial()
    if rule == "true" or (rule == "auto" and given is None):
        solids = [_solid(geom, compiler) for geom in geoms]
        total = sum((solid for solid in solids if solid.mass > 0), Inertial())
        result = total if total.mass > 0 else result
    if result.mass == 0 and compiler.boundmass > 0:
        body.fail(
            "boundmass gives a mass to a body that has none, and nothing says where "
            "its centre is: give it an <inertial>"
        )
    return _bounded(result, compiler)


def _given(piece: Piece, compiler: Compiler) -> Inertial:
    item = piece.item
    mass = item.numbers("mass", 1)[0]
    com = item.numbers("pos", 3)
    R, _ = compiler.pose(item)
    if "fullinertia" in item.attributes:
        if "diaginertia" in item.attributes or (R != np.eye(3)).any():
            item.fail(
                "fullinertia stands together with diaginertia or an orientation: keep "
                "one of them"
            )
        xx, yy, zz, xy, xz, yz = item.numbers("fullinertia", 6)
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    else:
        inertia = R @ np.diag(item.numbers("diaginertia", 3, (0, 0, 0))) @ R.T
    return Inertial(mass, com, inertia).moved(piece.R, piece.p)


def _solid(piece: Piece, compiler: Compiler) -> Inertial:
    """The mass of one geom; none if its group does not count."""
    item = piece.item
    kind = item.word("type", "sphere", (*_SIZES, *_STATIC, *_SHAPED))
    mass = item.number("mass", np.nan)
    density = item.number("density", 1000.0)
    if mass < 0 or density < 0:
        item.fail("mass or density is negative, expected zero or more")
    first, last = compiler.groups
    counts = first <= item.number("group", 0.0) <= last
    massless = mass == 0 or (np.isnan(mass) and density == 0)
    if kind in _STATIC or not counts or massless:
        return Inertial()
    if kind in _SHAPED or "mesh" in item.attributes:
        item.fail(
            "the mass of a mesh is not computed: give the body an <inertial>, or the "
            'geom mass="0"'
        )
    volume, solid = _unit_solid(kind, _size(item, kind))
    R, p = compiler.pose(item)
    mass = density * volume if np.isnan(mass) else mass
    return solid.scaled(mass).moved(R, p).moved(piece.R, piece.p)


def _size(item: Item, kind: str) -> np.ndarray:
    """The half sizes of a geom; with `fromto` the last one is half that distance."""
    size = item.numbers("size", (1, 2, 3))
    count = _SIZES[kind]
    if "fromto" in item.attributes:
        if kind == "sphere":
            item.fail("fromto is given, expected a capsule, cylinder, ellipsoid or box")
        ends = item.numbers("fromto", 6)
        half = np.linalg.norm(ends[3:] - ends[:3]) / 2
        size = np.array([size[0]] * (count - 1) + [half])
    if size.size < count or not (size[:count] > 0).all():
        item.fail(
            f"size is {item.attributes['size']!r}, expected {count} positive "
            f"number{'s' if count > 1 else ''} for a {kind}"
        )
    return size[:count]


def _unit_solid(kind: str, size: np.ndarray) -> tuple[float, Inertial]:
    """The volume of a solid, and its inertial data with a mass of one."""
    if kind == "box":
        return 8 * float(np.prod(size)), Inertial.box(1.0, 2 * size)
    if kind in ("sphere", "ellipsoid"):
        radii = np.broadcast_to(size, 3)
        return 4 / 3 * np.pi * float(np.prod(radii)), Inertial.ellipsoid(1.0, radii)
    r, length = size[0], 2 * size[1]
    if kind == "cylinder":
        return np.pi * r**2 * length, Inertial.cylinder(1.0, r, length)
    return np.pi * r**2 * (length + 4 / 3 * r), Inertial.capsule(1.0, r, length)


def _bounded(inertial: Inertial, compiler: Compiler) -> Inertial:
    """The data after boundmass, boundinertia and balanceinertia."""
    mass, inertia = inertial.mass, inertial.inertia
    if compiler.boundmass > 0:
        mass = max(mass, compiler.boundmass)
    principal, axes = np.linalg.eigh(inertia)
    if compiler.boundinertia > max(principal[0], 0.0):
        principal = np.maximum(principal, compiler.boundinertia)
        inertia = axes @ np.diag(principal) @ axes.T
    low, middle, high = principal
    if compiler.balanceinertia and low + middle < high:
        inertia = (low + middle + high) / 3 * np.eye(3)
    return Inertial(mass, inertial.com, inertia)
