"""Twists and wrenches: six numbers of two kinds, which must not be mixed.

Both have their linear part first and belong to an origin. They are dual: the power of a
wrench at a twist is the same about every origin.
"""

from typing import overload

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from jaxdyn.spatial._components import Components, pytree
from jaxdyn.spatial._scalars import Scalar
from jaxdyn.spatial._vec3 import Mat3, Vec3, cross
from jaxdyn.spatial._vec3 import dot as vector_dot


@pytree
class Twist(Components):
    """Velocity `v` of an origin and angular velocity `w`, or the rates of both."""

    v: Vec3
    w: Vec3

    @staticmethod
    def zero(dtype: DTypeLike) -> "Twist":
        """The twist at rest, of scalars with the given dtype."""
        return Twist(*(Vec3.zero(dtype),) * 2)

    @staticmethod
    def of(a: Float[Array, "... 6"]) -> "Twist":
        """The twist whose components are the last axis of `a`."""
        return Twist(*_parts(a))

    def array(self) -> Float[Array, "... 6"]:
        """The components stacked along a new last axis."""
        return jnp.concatenate([self.v.array(), self.w.array()], axis=-1)

    def shift(self, a: Vec3) -> "Twist":
        """The same motion at the point `a` instead of the origin: v + w x a."""
        return Twist(self.v + cross(self.w, a), self.w)

    def rotate(self, r: Mat3) -> "Twist":
        """The same motion in axes turned by `r`."""
        return Twist(r @ self.v, r @ self.w)

    def cross(self, other: "Twist") -> "Twist":
        """The motion cross product: the rate of `other` if it moves with this twist."""
        v = cross(self.w, other.v) + cross(self.v, other.w)
        return Twist(v, cross(self.w, other.w))


@pytree
class Wrench(Components):
    """Force `f` and moment `n` about an origin, or momenta."""

    f: Vec3
    n: Vec3

    @staticmethod
    def zero(dtype: DTypeLike) -> "Wrench":
        """No force and no moment, of scalars with the given dtype."""
        return Wrench(*(Vec3.zero(dtype),) * 2)

    @staticmethod
    def of(a: Float[Array, "... 6"]) -> "Wrench":
        """The wrench whose components are the last axis of `a`."""
        return Wrench(*_parts(a))

    def array(self) -> Float[Array, "... 6"]:
        """The components stacked along a new last axis."""
        return jnp.concatenate([self.f.array(), self.n.array()], axis=-1)

    def shift(self, a: Vec3) -> "Wrench":
        """The wrench about the origin, if this one is about the point `a`: n + a x f.

        The transpose of `Twist.shift`: dot(t.shift(a), w) = dot(t, w.shift(a)).
        """
        return Wrench(self.f, self.n + cross(a, self.f))

    def rotate(self, r: Mat3) -> "Wrench":
        """The same wrench in axes turned by `r`."""
        return Wrench(r @ self.f, r @ self.n)


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


def _parts(a: Float[Array, "... 6"]) -> tuple[Vec3, Vec3]:
    return Vec3(*(a[..., k] for k in range(3))), Vec3(*(a[..., k] for k in range(3, 6)))
