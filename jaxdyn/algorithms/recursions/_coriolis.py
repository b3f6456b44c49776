"""The matrix of Coriolis and centrifugal forces."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.algorithms.recursions._joint_forces import gyroscopic_forces
from jaxdyn.algorithms.steps import WorldStep, filled, inertias, motions, pairs, screw
from jaxdyn.model import Model, Nq, Nv, Topology
from jaxdyn.program import collect, from_parents, inward, spread, take
from jaxdyn.spatial import (
    Mat3,
    RigidInertia,
    Twist,
    Vec3,
    Wrench,
    cross,
    cross_columns,
    dot,
    pytree,
    skew,
)


@pytree
class VelocityMatrix:
    """The matrix B = [0, -skew(u); 0, Y] of a body, or of a composite body."""

    u: Vec3
    Y: Mat3

    @staticmethod
    def zero(dtype: jnp.dtype) -> "VelocityMatrix":
        """The zero matrix, of scalars with the given dtype."""
        o = Vec3.zero(dtype)
        return VelocityMatrix(o, Mat3(o, o, o))

    def __add__(self, other: "VelocityMatrix") -> "VelocityMatrix":
        return VelocityMatrix(self.u + other.u, self.Y + other.Y)

    def apply(self, p: Twist) -> Wrench:
        """The product B p."""
        return Wrench(cross(p.w, self.u), self.Y @ p.w)

    def transposed(self, p: Twist) -> Vec3:
        """The moment of Bᵀ p, whose force is zero."""
        return cross(self.u, p.v) + self.Y.T @ p.w

    def carried(self, M: RigidInertia, v: Vec3) -> "VelocityMatrix":
        """The same for a body of inertia M whose origin moves with v besides."""
        Y = self.Y - cross_columns(M.h, skew(v))
        return VelocityMatrix(self.u + v * M.m, Y)

    def shift(self, a: Vec3) -> "VelocityMatrix":
        """The same matrix about a new origin, from which the old one is at `a`."""
        return VelocityMatrix(self.u, self.Y - cross_columns(a, skew(self.u)))


def velocity_matrix(M: RigidInertia, w: Vec3) -> VelocityMatrix:
    """B of a body that turns with w about its origin, as in `coriolis`."""
    half = cross_columns(w, M.I.mat()) * 0.5
    return VelocityMatrix(cross(w, M.h), half + half.T - skew(M.I @ w * 0.5))


def coriolis(model: Model, q: Nq, qd: Nv) -> Float[Array, "nv nv"]:
    r"""The matrix C(q, qd) with C qd the velocity forces and Mdot - 2 C skew.

    $$C = N^T (M \dot N + B N), \quad B_i = \begin{bmatrix} 0 & -\tilde u \\ 0 & Y
      \end{bmatrix}, \quad u = \omega \times h, \quad
      Y = \tfrac12 (\tilde\omega I - I \tilde\omega - \widetilde{I \omega})$$

    [Shah] eq. 13 with B in the place of Omega M E, whose product with the twist is the
    same, but which makes Mdot_i - 2 B_i skew for each body. Composite bodies by an
    inward walk, then all pairs of joints, O(n²), as in `composite`. Where q are
    coordinates the entries are the Christoffel symbols of M.
    """
    t = model.topology

    def compose(
        children: tuple[RigidInertia, VelocityMatrix],
        x: tuple[RigidInertia, Vec3, Vec3, Vec3],
    ):
        (M_c, B_c), (M, w, a, da) = children, x
        B, M = velocity_matrix(M, w) + B_c, M + M_c
        return (M.shift(a), B.carried(M, da).shift(a)), (M, B)

    at, o = motions(model, q, qd), Vec3.zero(q.dtype)
    twist = take(at.twist, t.step_carriers)
    a, da = (x - from_parents(t.steps.parent, x, o) for x in (at.p, twist.v))
    M = RigidInertia.of(inertias(model)).rotate(at.R)
    tip = RigidInertia.zero(q.dtype), VelocityMatrix.zero(q.dtype)
    _, kept = inward(t.lanes, compose, tip, spread(t.lanes, (M, twist.w, a, da)))
    step = WorldStep(at.R.z, *screw(model), a)
    M, B = collect(t.lanes, kept, t.dof_steps)
    C = _entries(t, M, B, *take((step.column(1), at.p, twist), t.dof_steps))
    if not t.quaternion_bodies.size:
        return C
    momentum = model.armature * qd
    return C + jax.jacfwd(lambda x: gyroscopic_forces(model, momentum, x))(qd)


def _entries(
    t: Topology, M: RigidInertia, B: VelocityMatrix, p: Twist, r: Vec3, twist: Twist
) -> Float[Array, "nv nv"]:
    """All entries: C_ij with i on the path to j, and C_ji."""
    dp, Mp = Twist(cross(twist.w, p.v), cross(twist.w, p.w)), M.apply(p)
    upper = pairs(t, p, r, M.apply(dp) + B.apply(p))
    turned, v_i = take((p.w, twist.v), t.pairs[0])
    k_j, f_j, v_j = take((B.transposed(p), Mp.f, twist.v), t.pairs[1])
    lower = pairs(t, dp, r, Mp) + dot(turned, k_j + cross(v_j - v_i, f_j))
    return filled(t, upper, lower)
