"""What each entry of q and qd is: its name, its kind and its unit."""

from typing import NamedTuple

from jaxdyn.model import Model

_PARTS = {  # names of the entries of joints with several; else they are numbered
    "cylindrical": ("angle", "slide"),
    "planar": ("x", "y", "angle"),
    "spherical": ("x", "y", "z", "w"),
    "free": ("x", "y", "z", "qx", "qy", "qz", "qw"),
}
_RATE_PARTS = {**_PARTS, "free": ("vx", "vy", "vz", "wx", "wy", "wz")}


class Units(NamedTuple):
    """How lengths, times, forces and the like are called in plots."""

    length: str = "m"
    time: str = "s"
    force: str = "N"
    moment: str = "N m"
    energy: str = "J"
    power: str = "W"


SI = Units()
MOLECULAR = Units("Å", "ps", "Da Å/ps²", "Da Å²/ps²", "Da Å²/ps²", "Da Å²/ps³")


class Coordinate(NamedTuple):
    """One entry of q or qd."""

    name: str  # of its joint, and of the entry where the joint has several
    kind: str  # "angle", "length" or "quaternion"
    body: int  # that the joint moves
    part: int  # which entry of its joint it is


def positions(model: Model) -> tuple[Coordinate, ...]:
    """The entries of q."""
    found = []
    for i, joint in enumerate(model.joints):
        kind, kinds = model.topology.types[i], _kinds(model, i)
        if kind.quaternion is not None:
            kinds = ["length"] * (kind.nq - 4) + ["quaternion"] * 4
        found += _named(model, i, kinds, _PARTS.get(joint))
    return tuple(found)


def rates(model: Model) -> tuple[Coordinate, ...]:
    """The entries of qd, qdd and tau."""
    joints = enumerate(model.joints)
    named = (_named(model, i, _kinds(model, i), _RATE_PARTS.get(x)) for i, x in joints)
    return tuple(entry for entries in named for entry in entries)


def _kinds(model: Model, i: int) -> list[str]:
    kind = model.topology.types[i]
    return ["angle" if step.turn else "length" for step in kind.steps][: kind.nv]


class Quantity(NamedTuple):
    """A quantity of the joints: its name and its units of angles and of lengths."""

    name: str
    angle: str
    length: str

    def unit(self, kind: str) -> str:
        """The unit of an entry of this kind."""
        return {"angle": self.angle, "length": self.length, "quaternion": "1"}[kind]

    def title(self, kind: str) -> str:
        """What a plot of the entries of this kind shows."""
        return f"{self.name} ({kind if kind == 'quaternion' else self.unit(kind)})"


def quantities(units: Units) -> dict[str, Quantity]:
    """The quantities of joints by their letters."""
    s, m = units.time, units.length
    return {
        "q": Quantity("joint positions", "rad", m),
        "qd": Quantity("joint rates", f"rad/{s}", f"{m}/{s}"),
        "qdd": Quantity("joint accelerations", f"rad/{s}²", f"{m}/{s}²"),
        "tau": Quantity("joint forces", units.moment, units.force),
    }


def kinds_in(coordinates: tuple[Coordinate, ...]) -> dict[str, list[int]]:
    """The indices of the entries of each kind, angles first."""
    found = {"angle": [], "length": [], "quaternion": []}
    for k, entry in enumerate(coordinates):
        found[entry.kind].append(k)
    return {kind: entries for kind, entries in found.items() if entries}


def _named(
    model: Model, body: int, kinds: list[str], parts: tuple[str, ...] | None
) -> list[Coordinate]:
    joint = model.joint_names[body]
    if len(kinds) == 1:
        return [Coordinate(joint, kinds[0], body, 0)]
    parts = parts or tuple(str(k + 1) for k in range(len(kinds)))
    pairs = enumerate(zip(parts, kinds, strict=False))  # a quaternion has one more part
    return [Coordinate(f"{joint} {part}", x, body, k) for k, (part, x) in pairs]
