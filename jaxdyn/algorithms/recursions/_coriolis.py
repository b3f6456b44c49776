"""The matrix of Coriolis and centrifugal forces."""

from typing import Any

import jax
from jaxtyping import Array, Float

from jaxdyn.algorithms.recursions._joint_forces import gyroscopic_forces
from jaxdyn.algorithms.steps import (
    Joint,
    filled,
    inertias,
    motions,
    pairs,
    screw,
)
from jaxdyn.model import Model, Topology
from jaxdyn.program import collect, from_parents, inward, spread, take
from jaxdyn.spatial import (
    Mat3,
    RigidInertia,
    Vec3,
    cross,
    cross_columns,
    dot,
    skew,
)


def coriolis(
    model: Model, q: Float[Array, " nq"], qd: Float[Array, " nv"]
) -> Float[Array, "nv nv"]:
    r"""The matrix C(q, qd) with C qd the velocity forces and Mdot - 2 C skew.

    $$C = N^T (M \dot N + B N), \quad B_i = \begin{bmatrix} 0 & -\tilde u \\ 0 & Y
      \end{bmatrix}, \quad u = \omega \times h, \quad
      Y = \tfrac12 (\tilde\omega I - I \tilde\omega - \widetilde{I \omega})$$

    [Shah] eq. 13 with B in the place of Omega M E, whose product with the twist is the
    same, but which makes Mdot_i - 2 B_i skew for each body. Composite bodies by an
    inward walk, then all pairs of joints, O(n²), as in `composite`. Where q are
    coordinates the entries are the Christoffel symbols of M.
    """
    t, zero = model.topology, Vec3.zero(q.dtype)

    def compose(children: Any, x: Any) -> Any:
        joint, M, w, da = x
        M_c, u_c, Y_c = children
        half = cross_columns(w, M.I.mat()) * 0.5
        Y = half + half.T - skew(M.I @ w * 0.5) + Y_c
        M, u = M + M_c, cross(w, M.h) + u_c
        return _to_parent(M, u, Y, joint.a, da), (M, u, Y)

    at = motions(model, q, qd)
    v, w = take((at.v, at.w), t.step_carriers)
    a, da = (x - from_parents(t.steps.parent, x, zero) for x in (at.p, v))
    joint = Joint(at.R.z, *screw(model), a, at.p)
    M = RigidInertia.of(inertias(model)).rotate(at.R)
    tip = RigidInertia.zero(q.dtype), zero, Mat3(zero, zero, zero)
    _, kept = inward(t.lanes, compose, tip, spread(t.lanes, (joint, M, w, da)))
    composites = collect(t.lanes, kept, t.dof_steps)
    columns = take((joint, v, w), t.dof_steps)
    C = _entries(t, composites, *columns)
    if not t.quaternion_bodies.size:
        return C
    momentum = model.armature * qd
    return C + jax.jacfwd(lambda x: gyroscopic_forces(model, momentum, x))(qd)


def _to_parent(M: RigidInertia, u: Vec3, Y: Mat3, a: Vec3, da: Vec3) -> Any:
    """The same composite body about the parent's origin, which moves with -da."""
    u_moved = u + da * M.m
    Y = Y - cross_columns(M.h, skew(da)) - cross_columns(a, skew(u_moved))
    return M.shift(a), u_moved, Y


def _entries(t: Topology, composites: Any, joint: Joint, v: Vec3, w: Vec3) -> Any:
    """All entries: C_ij with i on the path to j, and C_ji."""
    M, u, Y = composites
    p_v, p_w = joint.column(1)
    f, n = M.apply(cross(w, p_v), cross(w, p_w))
    upper = pairs(t, (p_v, p_w), joint.r, f - cross(u, p_w), n + Y @ p_w)
    f, n = M.apply(p_v, p_w)
    dp = cross(w, p_v), cross(w, p_w)
    turned, v_i = take((p_w, v), t.pairs[0])
    k_j, f_j, v_j = take((cross(u, p_v) + Y.T @ p_w, f, v), t.pairs[1])
    lower = pairs(t, dp, joint.r, f, n) + dot(turned, k_j + cross(v_j - v_i, f_j))
    return filled(t, upper, lower)
