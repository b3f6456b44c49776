"""Rigid and articulated inertia about the origin of a body: shift, rotate, apply."""

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from jaxdyn.spatial._components import Components, pytree
from jaxdyn.spatial._twist import Twist, Wrench
from jaxdyn.spatial._vec3 import (
    Mat3,
    Scalar,
    Sym3,
    Vec3,
    cross,
    cross_columns,
    outer,
    similarity,
    skew,
    skew_square,
    symmetric,
    upper,
)


@pytree
class RigidInertia(Components):
    """Mass `m`, first moment `h` = m c and inertia `I`, both about the origin."""

    m: Scalar
    h: Vec3
    I: Sym3

    @staticmethod
    def about_center(m: Scalar, c: Vec3, I_c: Sym3) -> "RigidInertia":
        """The inertia of mass `m` at `c` with `I_c` about the centre of mass."""
        return RigidInertia(m, c * m, I_c + skew_square(c, m))

    @staticmethod
    def zero(dtype: DTypeLike) -> "RigidInertia":
        """No mass at all, of scalars with the given dtype."""
        return RigidInertia(jnp.zeros((), dtype), Vec3.zero(dtype), Sym3.zero(dtype))

    @staticmethod
    def of(pi: Float[Array, "... 10"]) -> "RigidInertia":
        """The inertia whose ten parameters (m, h, I) are the last axis of `pi`."""
        h, I = Vec3.of(pi[..., 1:4]), Sym3(*(pi[..., k] for k in range(4, 10)))
        return RigidInertia(pi[..., 0], h, I)

    def apply(self, t: Twist) -> Wrench:
        """Force and moment (or momenta) f = m v + w x h, n = I w + h x v."""
        f, n = t.v * self.m + cross(t.w, self.h), self.I @ t.w + cross(self.h, t.v)
        return Wrench(f, n)

    def wrench(self, w: Vec3, rate: Twist) -> Wrench:
        """The wrench that accelerates the body: Newton's and Euler's equations.

        f = m dv + dw x h + w x (w x h), n = I dw + w x I w + h x dv, with the rate
        (dv, dw) of its twist.
        """
        spin = Wrench(cross(w, cross(w, self.h)), cross(w, self.I @ w))
        return self.apply(rate) + spin

    def shift(self, a: Vec3) -> "RigidInertia":
        """The same body about a new origin, from which the old one is at `a`."""
        h = self.h + a * self.m
        # I' = I - skew(a) skew(h) - skew(h') skew(a)
        y = cross_columns(a, skew(h + self.h)) * (-0.5)
        return RigidInertia(self.m, h, self.I + symmetric(y))

    def rotate(self, r: Mat3) -> "RigidInertia":
        """The same body in axes turned by `r`."""
        return RigidInertia(self.m, r @ self.h, similarity(r, self.I))

    def articulated(self) -> "ArticulatedInertia":
        """The same map as a 6 x 6 matrix in blocks."""
        return ArticulatedInertia(Sym3.diagonal(self.m), -skew(self.h), self.I)


@pytree
class ArticulatedInertia(Components):
    """The symmetric 6 x 6 map f = A v + B w, n = Bᵀ v + D w, linear part first."""

    A: Sym3
    B: Mat3
    D: Sym3

    @staticmethod
    def zero(dtype: DTypeLike) -> "ArticulatedInertia":
        """The zero map, of scalars with the given dtype."""
        o = Vec3.zero(dtype)
        return ArticulatedInertia(Sym3.zero(dtype), Mat3(o, o, o), Sym3.zero(dtype))

    def apply(self, t: Twist) -> Wrench:
        """Force and moment f = A v + B w, n = Bᵀ v + D w."""
        v, w = t.v, t.w
        return Wrench(self.A @ v + self.B @ w, self.B.T @ v + self.D @ w)

    def shift(self, a: Vec3) -> "ArticulatedInertia":
        """The same map about a new origin, from which the old one is at `a`.

        B' = B - A skew(a), D' = D + Y + Yᵀ with Y = skew(a) (B - A skew(a) / 2).
        """
        A_a = -cross_columns(a, self.A.mat()).T
        y = cross_columns(a, self.B - A_a * 0.5)
        return ArticulatedInertia(self.A, self.B - A_a, self.D + symmetric(y))

    def rotate(self, r: Mat3) -> "ArticulatedInertia":
        """The same map in axes turned by `r`."""
        B = r @ self.B @ r.T
        return ArticulatedInertia(similarity(r, self.A), B, similarity(r, self.D))

    def minus_dyad(self, a: Wrench, b: Wrench) -> "ArticulatedInertia":
        """The map less the dyad a bᵀ, which must be symmetric."""
        A, D = self.A - upper(a.f, b.f), self.D - upper(a.n, b.n)
        return ArticulatedInertia(A, self.B - outer(a.f, b.n), D)
