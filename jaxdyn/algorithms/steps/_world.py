"""The joints in world axes, and what they carry."""

from dataclasses import dataclass
from typing import Any

import jax
from jaxtyping import Array, Float

from jaxdyn.algorithms.steps._local import inertias, links
from jaxdyn.algorithms.steps._motion import move
from jaxdyn.model import Model
from jaxdyn.program import Laned, outward, spread
from jaxdyn.spatial import Mat3, RigidInertia, Scalar, Vec3, cross, dot


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Joint:
    """One elementary step in world axes, at its own origin.

    Attributes:
        e: axis.
        turn, slide: angular and linear velocity along `e` per unit rate.
        a: offset from the parent's origin; r: place in the world.
    """

    e: Vec3
    turn: Scalar
    slide: Scalar
    a: Vec3
    r: Vec3

    def column(self, s: Scalar) -> tuple[Vec3, Vec3]:
        """The twist p s of the joint, linear part first."""
        return self.e * (self.slide * s), self.e * (self.turn * s)

    def along(self, f: Vec3, n: Vec3) -> Scalar:
        """The part pᵀ w of a wrench that acts along the joint."""
        return self.slide * dot(self.e, f) + self.turn * dot(self.e, n)

    def to_child(self, v: Vec3, w: Vec3) -> tuple[Vec3, Vec3]:
        """A_{i,p} t: the parent's twist, taken at this origin."""
        return v + cross(w, self.a), w

    def to_parent(self, f: Vec3, n: Vec3) -> tuple[Vec3, Vec3]:
        """A_{i,p}ᵀ w: a wrench at this origin, about the parent's."""
        return f, n + cross(self.a, f)


def joints(model: Model, q: Float[Array, " nq"]) -> Laned:
    """All joints in world axes with the inertia of what they carry, laned."""
    lanes = model.topology.lanes

    def place(parent: Any, x: Any) -> Any:
        (R0, r0), (link, pi) = parent, x
        R, a, e = move(R0, link)
        joint = Joint(e, link.turn, link.slide, a, r0 + a)
        return (R, r0 + a), (joint, RigidInertia.of(pi).rotate(R))

    root = Mat3.identity(q.dtype), Vec3.zero(q.dtype)
    rows = spread(lanes, (links(model, q), inertias(model)))
    return outward(lanes, place, root, rows)
