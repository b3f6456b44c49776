"""Couplings: joints whose positions are functions of other coordinates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float
from numpy.polynomial import Polynomial

from jaxdyn.model._check import as_numbers

RATE_LEAVES = (
    *("armature", "damping", "friction", "friction_speed"),
    *("stiffness", "effort", "velocity"),
)
POSITION_LEAVES = ("rest", "lower", "upper")
DEGREE = 4


class Couplings(eqx.Module):
    r"""Joints that follow the independent coordinates z of a model.

    $$q_i = \sum_j l_{ij} z_j + \sum_p c_{ip} u_i^p, \qquad u_i = \sum_j s_{ij} z_j$$

    All of them have one position and one velocity. Such a joint has no coordinate in z,
    unless it is geared: then another one than its own, as that of a motor.

    Attributes:
        linear: l, one row for each coupled joint, one column for each of its sources.
        inner: s.
        polynomial: c, from the power 0 to 4.
        armature, damping, friction, friction_speed, stiffness, effort, velocity, rest,
            lower, upper: as in `Model`, of the joints without a coordinate.
        joints: the bodies that the coupled joints move.
        sources: for each of them the bodies at the places of whose joints its z stand.
        is_geared: whether another coordinate has the place of the joint in z.
        is_dense: whether the inertia matrix of the tree has no inverse, as with a joint
            that moves no mass but follows one that does.
        tree: the topology in which every joint has its own coordinates.
    """

    linear: Float[Array, "m k"]
    inner: Float[Array, "m k"]
    polynomial: Float[Array, "m 5"]
    armature: Float[Array, " d"]
    damping: Float[Array, " d"]
    friction: Float[Array, " d"]
    friction_speed: Float[Array, " d"]
    stiffness: Float[Array, " d"]
    effort: Float[Array, " d"]
    velocity: Float[Array, " d"]
    rest: Float[Array, " d"]
    lower: Float[Array, " d"]
    upper: Float[Array, " d"]
    joints: tuple[int, ...] = eqx.field(static=True)
    sources: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    is_geared: tuple[bool, ...] = eqx.field(static=True)
    is_dense: bool = eqx.field(static=True)
    tree: Any = eqx.field(static=True)  # a Topology, which builds on these elements

    @property
    def width(self) -> int:
        """The columns of `linear`: the most sources of a joint, at least one."""
        return max([1, *map(len, self.sources)])

    def relations(self) -> "list[Relation]":
        """The same as numbers, for readers and writers."""
        rows = zip(self.joints, self.sources, strict=True)
        linear, inner, powers = (
            np.asarray(x, float).tolist()
            for x in (self.linear, self.inner, self.polynomial)
        )
        return [
            Relation(
                joint,
                dict(zip(sources, linear[k], strict=False)),
                dict(zip(sources, inner[k], strict=False)),
                tuple(powers[k]),
                self.is_geared[k],
            )
            for k, (joint, sources) in enumerate(rows)
        ]


@dataclass(frozen=True)
class Relation:
    """One coupling in numbers: `joint`, and the keys of both mappings, are bodies.

    If `is_geared`, the place of the joint belongs to another coordinate.
    """

    joint: int
    linear: Mapping[int, float] = field(default_factory=dict)
    inner: Mapping[int, float] = field(default_factory=dict)
    polynomial: tuple[float, ...] = (0.0,) * (DEGREE + 1)
    is_geared: bool = False

    @property
    def is_linear(self) -> bool:
        """Whether the joint is a linear function and a constant."""
        return not any(self.polynomial[1:]) or not any(self.inner.values())

    @property
    def sources(self) -> tuple[int, ...]:
        """The bodies whose joints' places the coordinates have."""
        used = [*self.linear.items(), *self.inner.items()]
        return tuple(sorted({body for body, value in used if value}))


def check_relation(
    label: str,
    joint: int,
    ratios: Mapping[int, Any],
    offset: Any,
    polynomial: Sequence[Any],
    argument: Mapping[int, Any],
    is_geared: bool = False,
) -> Relation:
    """The coupling offset + ratios z + polynomial of (argument z), checked.

    A joint among its own ratios is geared, or one that is said to be so.
    """
    if len(polynomial) > DEGREE + 1:
        raise ValueError(
            f"{label}: polynomial has {len(polynomial)} coefficients, expected at most "
            f"{DEGREE + 1}, from the power 0 to {DEGREE}."
        )
    powers = [_number(label, "a coefficient", c) for c in polynomial]
    powers += [0.0] * (DEGREE + 1 - len(powers))
    powers[0] += _number(label, "offset", offset)
    if any(powers[1:]) and not argument:
        raise ValueError(
            f"{label}: a polynomial needs an argument, expected the joints that it is "
            "a function of, as {'joint': 1.0}."
        )
    linear, inner = (
        {body: _number(label, "a ratio", value) for body, value in given.items()}
        for given in (ratios, argument)
    )
    if inner.get(joint):
        raise ValueError(
            f"{label}: the joint stands in its own polynomial, expected ratios alone."
        )
    if not any(powers[2:]):  # linear after all
        for body, value in inner.items():
            linear[body] = linear.get(body, 0.0) + powers[1] * value
        inner, powers[1] = {}, 0.0
    is_geared = is_geared or bool(linear.get(joint))
    return Relation(joint, linear, inner, tuple(powers), is_geared)


def _number(label: str, what: str, value: Any) -> float:
    number = as_numbers(value)
    if number is None or number.shape or not np.isfinite(number):
        raise ValueError(f"{label}: {what} is {value!r}, expected a finite number.")
    return float(number)


def resolved(relations: Sequence[Relation], names: Sequence[str]) -> list[Relation]:
    """The same couplings by independent coordinates alone, in the order of the bodies.

    A joint that follows another that follows a third follows the third.

    Raises:
        ValueError: a joint has two couplings, joints follow each other in a circle, a
            polynomial is one of another, or a gear matrix has no inverse.
    """
    known: dict[int, Relation] = {}
    for relation in relations:
        if relation.joint in known:
            raise ValueError(
                f"joint {names[relation.joint]!r} has two couplings, expected one."
            )
        known[relation.joint] = relation
    for joint in sorted(known):
        known[joint] = _without_followers(known[joint], known, names, ())
    geared = [known[joint] for joint in sorted(known) if known[joint].is_geared]
    places = [r.joint for r in geared]
    block = np.array([[r.linear.get(j, 0.0) for j in places] for r in geared])
    if geared and np.linalg.cond(block) > 1 / np.finfo(float).eps:
        raise ValueError(
            f"the gear matrix of joints {', '.join(repr(names[j]) for j in places)} is "
            f"{block.tolist()}, expected one that has an inverse."
        )
    return [known[joint] for joint in sorted(known)]


def _without_followers(
    relation: Relation,
    known: Mapping[int, Relation],
    names: Sequence[str],
    path: tuple[int, ...],
) -> Relation:
    """The relation with all sources that follow others replaced."""
    path = (*path, relation.joint)
    for body in relation.sources:
        if body in path[:-1]:
            circle = " -> ".join(repr(names[j]) for j in (*path, body))
            raise ValueError(
                f"joints follow each other in a circle: {circle}: leave one of their "
                "couplings out."
            )
        source = known.get(body)
        if body != relation.joint and source is not None and not source.is_geared:
            source = _without_followers(source, known, names, path)
            relation = _replaced(relation, source, names)
    return relation


def _replaced(relation: Relation, source: Relation, names: Sequence[str]) -> Relation:
    """The relation with one source replaced by what that follows."""
    linear, inner = dict(relation.linear), dict(relation.inner)
    ratio, factor = linear.pop(source.joint, 0.0), inner.pop(source.joint, 0.0)
    if not source.is_linear and (factor or not relation.is_linear):
        raise ValueError(
            f"joint {names[relation.joint]!r} follows a polynomial and joint "
            f"{names[source.joint]!r}, which follows another polynomial: expected one "
            "polynomial for each joint. Leave one of the two couplings out."
        )
    for body, value in source.linear.items():
        linear[body] = linear.get(body, 0.0) + ratio * value
        inner[body] = inner.get(body, 0.0) + factor * value
    follows = Polynomial(source.polynomial)
    if source.is_linear:  # what is constant in it moves the argument
        shift = Polynomial([factor * follows.coef[0], 1.0])
        own = Polynomial(relation.polynomial)(shift) + ratio * follows.coef[0]
    else:
        inner = dict(source.inner)
        own = relation.polynomial[0] + ratio * follows
    powers = np.zeros(DEGREE + 1)
    powers[: len(own.coef)] = own.coef[: DEGREE + 1]
    powers = tuple(powers.tolist())
    return Relation(relation.joint, linear, inner, powers, relation.is_geared)
