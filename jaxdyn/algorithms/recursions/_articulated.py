"""Forward dynamics by articulated bodies."""

from typing import Any

from jaxtyping import Array, Float

from jaxdyn.algorithms.recursions._factor import (
    Factor,
    eliminate,
    factor_of,
    pivot_terms,
)
from jaxdyn.algorithms.steps import (
    BaseMotion,
    Joint,
    accelerate,
    base_state,
    inertias,
    joint_terms,
    less_external,
    rates,
    wrenches,
)
from jaxdyn.model import Model
from jaxdyn.program import collect, inward, outward, spread
from jaxdyn.spatial import ArticulatedInertia, RigidInertia, Vec3, dot


def articulated(
    model: Model,
    q: Float[Array, " nq"],
    qd: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    f_ext: Float[Array, "n 6"] | None = None,
    base: BaseMotion | None = None,
) -> tuple[Float[Array, " nv"], Factor]:
    r"""The joint accelerations under the joint forces `tau`, and the factor of M.

    $$u_i = \tau_i - p_i^T P_i, \quad P_{i-1} = \ldots + A^T (P_i + \bar M_i c_i +
      \psi_i u_i), \quad \ddot q_i = u_i / \hat m_i - \psi_i^T (A a_{i-1} + c_i)$$

    Three walks, O(n): [Ghosal] eqs. 46 to 50, which hold at rest, with the velocity
    terms: c_i in the acceleration of the links and w x (w x h), w x I w in their
    wrenches P_i.
    """
    t, zero = model.topology, Vec3.zero(q.dtype)

    def motion(parent: Any, x: Any) -> Any:
        (R0, r0, w0), (terms, pi, external) = parent, x
        link = terms[0]
        (R, w, c_v, c_w), a = accelerate((R0, w0, zero, zero), terms)
        inertia = RigidInertia.of(pi).rotate(R)
        wrench = less_external(*inertia.wrench(w, zero, zero), external)
        joint = Joint(R.z, link.turn, link.slide, a, r0 + a)
        return (R, r0 + a, w), ((joint, inertia), wrench, (c_v, c_w))

    def gather(children: Any, x: Any) -> Any:  # eqs. 46 and 47
        ((joint, inertia), P, c), stay, tau = x
        M_hat = inertia.articulated() + children[0]
        P = P[0] + children[1][0], P[1] + children[1][1]
        psi, m_hat, M_bar = eliminate(M_hat, joint, stay)
        u = tau - joint.along(*P)
        f, n = M_bar.apply(*c)
        P = P[0] + f + psi[0] * u, P[1] + n + psi[1] * u
        handed = M_bar.shift(joint.a), joint.to_parent(*P)
        return handed, ((joint, psi, m_hat), c, u / m_hat)

    def release(parent: Any, x: Any) -> Any:  # eqs. 48 to 50
        (joint, psi, _), c, u = x
        dv, dw = joint.to_child(*parent)
        dv, dw = dv + c[0], dw + c[1]
        qdd = u - dot(psi[0], dv) - dot(psi[1], dw)
        p_v, p_w = joint.column(qdd)
        return (dv + p_v, dw + p_w), qdd

    R, _, w, dv, dw = base_state(q.dtype, base)
    terms = joint_terms(model, q, qd, None), inertias(model), wrenches(model, f_ext)
    moved = outward(t.lanes, motion, (R, zero, w), spread(t.lanes, terms))
    forces = spread(t.lanes, rates(t, tau))
    rows = tuple(zip(moved, pivot_terms(model), forces, strict=True))
    tip = ArticulatedInertia.zero(q.dtype), (zero, zero)
    _, kept = inward(t.lanes, gather, tip, rows)
    qdd = outward(t.lanes, release, (dv - Vec3.of(model.gravity), dw), kept)
    factor = factor_of(t, tuple(level[0] for level in kept))
    return collect(t.lanes, qdd, t.dof_steps), factor
