"""The links in world axes: what one outward walk makes of the model at q."""

from dataclasses import dataclass
from typing import Any

import jax
from jaxtyping import Array, Float

from jaxdyn.algorithms._kinematics import move
from jaxdyn.algorithms._links import inertias, links
from jaxdyn.algorithms._walk import Laned, outward, spread
from jaxdyn.model import Model
from jaxdyn.spatial import Mat3, RigidInertia, Scalar, Vec3, cross, dot


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Body:
    """One step in world axes, about its own origin.

    Attributes:
        e: joint axis.
        turn, slide: angular and linear velocity along `e` per unit rate.
        a: offset from the parent's origin; r: place in the world.
        inertia: mass, first moment and inertia of what the step moves.
    """

    e: Vec3
    turn: Scalar
    slide: Scalar
    a: Vec3
    r: Vec3
    inertia: RigidInertia

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


def bodies(model: Model, q: Float[Array, " nq"]) -> Laned:
    """All steps in world axes, laned."""
    lanes = model.topology.lanes

    def place(parent: Any, x: Any) -> Any:
        (R0, r0), (link, pi) = parent, x
        R, a, e = move(R0, link)
        inertia = RigidInertia.of(pi).rotate(R)
        return (R, r0 + a), Body(e, link.turn, link.slide, a, r0 + a, inertia)

    root = Mat3.identity(q.dtype), Vec3.zero(q.dtype)
    return outward(
        lanes, place, root, spread(lanes, (links(model, q), inertias(model)))
    )
