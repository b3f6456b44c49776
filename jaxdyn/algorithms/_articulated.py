"""Forward dynamics by articulated bodies."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.algorithms._bodies import Body
from jaxdyn.algorithms._kinematics import BaseMotion, accelerate, base_state
from jaxdyn.algorithms._links import inertias, inner_bias, links, rates, wrenches
from jaxdyn.algorithms._walk import collect, inward, outward, spread
from jaxdyn.model import Model
from jaxdyn.spatial import ArticulatedInertia, RigidInertia, Vec3, cross, dot


def articulated(
    model: Model,
    q: Float[Array, " nq"],
    qd: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    f_ext: Float[Array, "n 6"] | None = None,
    base: BaseMotion | None = None,
) -> Float[Array, " nv"]:
    r"""The joint accelerations under the joint forces `tau`.

    $$u_i = \tau_i - p_i^T P_i, \quad P_{i-1} = \ldots + A^T (P_i + \bar M_i c_i +
      \psi_i u_i), \quad \ddot q_i = u_i / \hat m_i - \psi_i^T (A a_{i-1} + c_i)$$

    Three walks, O(n): [Ghosal] eqs. 46 to 50, which hold at rest, with the velocity
    terms: c_i in the acceleration of the links and w x (w x h), w x I w in their
    wrenches P_i.
    """
    lanes, dtype = model.topology.lanes, q.dtype
    joints = (links(model, q), rates(model.topology, qd), inner_bias(model, qd))
    external = None if f_ext is None else wrenches(model, f_ext)
    zero = Vec3.zero(dtype)

    def motion(parent: Any, x: Any) -> Any:
        (link, qd, bias), pi, external = x
        (R0, r0, w0), still = parent, jnp.zeros((), dtype)
        (R, w, c_v, c_w), a = accelerate((R0, w0, zero, zero), (link, qd, still, bias))
        inertia = RigidInertia.of(pi).rotate(R)
        f, n = cross(w, cross(w, inertia.h)), cross(w, inertia.I @ w)
        if external is not None:
            f, n = f - Vec3.of(external[:3]), n - Vec3.of(external[3:])
        body = Body(R.z, link.turn, link.slide, a, r0 + a, inertia)
        return (R, r0 + a, w), (body, (f, n), (c_v, c_w))

    def gather(children: Any, x: Any) -> Any:
        (body, P, c), tau, armature, moves = x
        M_hat = body.inertia.articulated() + children[0]
        P = P[0] + children[1][0], P[1] + children[1][1]
        psi_hat = M_hat.apply(*body.column(1))
        m_hat = body.along(*psi_hat) + armature + (1 - moves)
        u = tau - body.along(*P)
        M_bar = M_hat.minus_square(*psi_hat, 1 / m_hat)
        f, n = M_bar.apply(*c)
        P = P[0] + f + psi_hat[0] * (u / m_hat), P[1] + n + psi_hat[1] * (u / m_hat)
        handed = M_bar.shift(body.a), body.to_parent(*P)
        return handed, (body, c, psi_hat, m_hat, u)

    def release(parent: Any, x: Any) -> Any:
        body, c, psi_hat, m_hat, u = x
        dv, dw = body.to_child(*parent)
        dv, dw = dv + c[0], dw + c[1]
        qdd = (u - dot(psi_hat[0], dv) - dot(psi_hat[1], dw)) / m_hat
        p_v, p_w = body.column(qdd)
        return (dv + p_v, dw + p_w), qdd

    R, _, w, dv, dw = base_state(dtype, base)
    rows = spread(lanes, (joints, inertias(model), external))
    moved = outward(lanes, motion, (R, zero, w), rows)
    t = model.topology
    forces = rates(t, tau), rates(t, model.armature), rates(t, jnp.ones(t.nv, dtype))
    rows = tuple((m, *f) for m, f in zip(moved, spread(lanes, forces), strict=True))
    tip = ArticulatedInertia.zero(dtype), (zero, zero)
    _, kept = inward(lanes, gather, tip, rows)
    qdd = outward(lanes, release, (dv - Vec3.of(model.gravity), dw), kept)
    return collect(lanes, qdd, t.dof_steps)
