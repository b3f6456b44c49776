"""Twists and wrenches: six numbers of two kinds, which must not be mixed.

Both have their linear part first and belong to an origin. They are dual: the power of a
wrench at a twist is the same about every origin.
"""

from typing import TypeVar, overload

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from jaxdyn.spatial._components import Components, pytree
from jaxdyn.spatial._scalars import Scalar
from jaxdyn.spatial._vec3 import Mat3, Vec3, cross
from jaxdyn.spatial._vec3 import dot as vector_dot

P = TypeVar("P", bound="Pair")


class Pair(Components):
    """Two vectors that belong to an origin, the linear part first."""

    @classmethod
    def zero(cls: type[P], dtype: DTypeLike) -> P:
        """Both vectors zero, of scalars with the given dtype."""
        return cls(*(Vec3.zero(dtype),) * 2)  # type: ignore

    @classmethod
    def of(cls: type[P], a: Float[Array, "... 6"]) -> P:
        """The pair whose components are the last axis of `a`."""
        linear, angular = ([a[..., k + i] for i in range(3)] for k in (0, 3))
        return cls(Vec3(*linear), Vec3(*angular))  # type: ignore

    def array(self) -> Float[Array, "... 6"]:
        """The components stacked along a new last axis."""
        return jnp.concatenate([x.array() for x in vars(self).values()], axis=-1)

    def rotate(self: P, r: Mat3) -> P:
        """The same in axes turned by `r`."""
        return self._of([r @ x for x in vars(self).values()])


@pytree
class Twist(Pair):
    """Velocity `v` of an origin and angular velocity `w`, or the rates of both."""

    v: Vec3
    w: Vec3

    def shift(self, a: Vec3) -> "Twist":
        """The same motion at the point `a` instead of the origin: v + w x a."""
        return Twist(self.v + cross(self.w, a), self.w)

    def cross(self, other: "Twist") -> "Twist":
        """The motion cross product: the rate of `other` if it moves with this twist."""
        v = cross(self.w, other.v) + cross(self.v, other.w)
        return Twist(v, cross(self.w, other.w))


@pytree
class Wrench(Pair):
    """Force `f` and moment `n` about an origin, or momenta."""

    f: Vec3
    n: Vec3

    def shift(self, a: Vec3) -> "Wrench":
        """The wrench about the origin, if this one is about the point `a`: n + a x f.

        The transpose of `Twist.shift`: dot(t.shift(a), w) = dot(t, w.shift(a)).
        """
        return Wrench(self.f, self.n + cross(a, self.f))


@overload
def dot(a: Vec3, b: Vec3) -> Scalar: ...
@overload
def dot(a: Twist, b: Wrench) -> Scalar: ...
def dot(a: Components, b: Components) -> Scalar:
    """The scalar product of two vectors, or the power v . f + w . n of a wrench."""
    if isinstance(a, Twist) and isinstance(b, Wrench):
        return vector_dot(a.v, b.f) + vector_dot(a.w, b.n)
    if isinstance(a, Vec3) and isinstance(b, Vec3):
        return vector_dot(a, b)
    kinds = f"{type(a).__name__} and {type(b).__name__}"
    raise TypeError(f"dot of {kinds}, expected two Vec3, or a Twist and a Wrench.")
