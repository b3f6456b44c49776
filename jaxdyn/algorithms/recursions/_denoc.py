"""Dynamics by the decoupled natural orthogonal complement (DeNOC) matrices."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.algorithms.recursions._factor import (
    Factor,
    eliminate,
    factor_of,
    pivot_terms,
)
from jaxdyn.algorithms.recursions._noc import layout, natural, propagation
from jaxdyn.algorithms.steps import (
    BaseMotion,
    Joint,
    base_state,
    inertias,
    joint_terms,
    joints,
    less_external,
    mirrored,
    move,
    rates,
    wrenches,
)
from jaxdyn.model import Model, arguments
from jaxdyn.program import Laned, collect, compiled, inward, outward, spread, take
from jaxdyn.spatial import ArticulatedInertia, RigidInertia, Vec3, cross


def denoc(
    model: Model,
    q: Float[Array, " nq"],
    qd: Float[Array, " nv"],
    qdd: Float[Array, " nv"] | None,
    f_ext: Float[Array, "n 6"] | None = None,
    base: BaseMotion | None = None,
) -> Float[Array, " nv"]:
    r"""Joint forces of the rigid bodies alone, gravity included.

    $$\tau = N_d^T N_l^T w, \qquad w = M \dot t + \Omega M E t - w^E$$

    [Shah] Table 1: twists and their rates from module to module outward, wrenches
    inward; O(n). The modules run as lanes. Gravity is subtracted from the acceleration
    of the base.
    """
    t, o = model.topology, Vec3.zero(q.dtype)

    def collect_wrench(children: Any, x: Any) -> Any:
        joint, _, w = x
        w = w[0] + children[0], w[1] + children[1]  # w~ = w + A^T w~ of the children
        return joint.to_parent(*w), joint.along(*w)

    loads = _forward(model, q, qd, qdd, f_ext, base)
    _, tau = inward(t.lanes, collect_wrench, (o, o), loads)
    return collect(t.lanes, tau, t.dof_steps)


def denoc_forward(
    model: Model,
    q: Float[Array, " nq"],
    qd: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    f_ext: Float[Array, "n 6"] | None = None,
    base: BaseMotion | None = None,
) -> tuple[Float[Array, " nv"], Factor]:
    r"""Joint accelerations under the joint forces `tau`, and the factor of M.

    $$U D U^T \ddot q = \varphi, \qquad \varphi = \tau - N_d^T N_l^T w \;
      (\ddot q = 0)$$

    [Shah] eqs. 19 to 23 and Table 3, [Mohan] section 4, in three walks, O(n): wrenches
    w at zero joint accelerations outward, elimination inward, substitution outward. In
    the papers the second walk forms the sum of wrenches for phi and the vector eta for
    phi_hat = phi - p^T eta apart. Both are handed down by A^T, so here they travel as
    one vector. That saves a walk, and more than two digits on a chain of 1000 links,
    where the two cancel.
    """
    t, o = model.topology, Vec3.zero(q.dtype)

    def inwards(children: Any, x: Any) -> Any:
        (joint, inertia, w), stay, tau = x
        M_hat = inertia.articulated() + children[0]
        psi, m_hat, M_bar = eliminate(M_hat, joint, stay)
        f, n = w[0] + children[1][0], w[1] + children[1][1]
        phi_hat = tau - joint.along(f, n)
        eta = f + psi[0] * phi_hat, n + psi[1] * phi_hat
        handed = M_bar.shift(joint.a), joint.to_parent(*eta)
        return handed, ((joint, psi, m_hat), phi_hat / m_hat)

    loads = _forward(model, q, qd, None, f_ext, base)
    forces = spread(t.lanes, rates(t, tau))
    rows = tuple(zip(loads, pivot_terms(model), forces, strict=True))
    tip = ArticulatedInertia.zero(q.dtype), (o, o)
    _, kept = inward(t.lanes, inwards, tip, rows)
    factored, phi_tilde = zip(*kept, strict=True)
    factor = factor_of(t, factored)
    return factor.substitute(phi_tilde), factor


def denoc_inertia(model: Model, q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
    r"""The inertia matrix M(q), without the armature of the joints.

    $$i_{ij} = p_i^T A_{ji}^T \tilde M_j p_j, \qquad
      \tilde M_j = M_j + \sum_k A_{kj}^T \tilde M_k A_{kj}$$

    [Mohan] eqs. 28 and 29, [Shah] eqs. 13, 16 and 17: the composite masses by an inward
    walk; A_ji p_i are the blocks of N = N_l N_d. O(n²).
    """
    t = model.topology

    def compose(children: RigidInertia, x: tuple[Joint, RigidInertia]) -> Any:
        joint, M = x
        return (M + children).shift(joint.a), M + children

    tip = RigidInertia.zero(q.dtype)
    _, kept = inward(t.lanes, compose, tip, joints(model, q))
    body = t.steps.body[t.dof_steps]
    at = layout(model, q)
    N = take(natural(model, at, at.origin), body)  # [j, :, i]: A_ji p_i
    M = collect(t.lanes, kept, t.steps.last[body])
    p = jnp.diagonal(N, axis1=0, axis2=2).T
    psi = M.apply(Vec3.of(p[:, :3]), Vec3.of(p[:, 3:]))
    psi = jnp.concatenate([psi[0].array(), psi[1].array()], axis=-1)
    i, j = t.pairs
    entries = (N * psi[:, :, None]).sum(axis=1).ravel()
    return mirrored(t, take(entries, j * t.nv + i))


@compiled()
def denoc_matrices(
    model: Model, q: Float[Array, " nq"]
) -> tuple[Float[Array, "twists twists"], Float[Array, "twists nv"]]:
    r"""The matrices N_l and N_d with $t = N_l N_d \dot q$.

    The twists t of the bodies are stacked, each [v; w] at its body origin in world
    axes. N_l is block lower triangular with A_ij below its unit diagonal, N_d block
    diagonal with the columns p_i of each joint: [Mohan] eq. 8c. For a tree, A_ij is
    zero unless body j is on the path from the base to body i. ([Shah] eq. 10 cuts the
    same product by modules instead of bodies.)
    """
    model, q = arguments(model, q=q)
    t = model.topology
    owns = t.steps.body[t.dof_steps] == np.arange(model.n)[:, None]
    at = layout(model, q)
    N_d = jnp.where(owns[:, None], natural(model, at, at.origin), 0)
    return propagation(model, at), N_d.reshape(6 * model.n, model.nv)


def _forward(
    model: Model, q: Any, qd: Any, qdd: Any, f_ext: Any, base: BaseMotion | None
) -> Laned:
    """[Shah] Table 1, step 1: joint, inertia and wrench w of each link, laned."""
    lanes = model.topology.lanes

    def twist_rate(parent: Any, joint: Joint, qd: Any, qdd: Any) -> Any:
        w0, dt0 = parent
        p_v, p_w = joint.column(qd)
        dv, dw = joint.to_child(*dt0)  # A dt0
        # (dA/dt) t0, in which the offset changes by w0 x a + p_v, and Omega p qd
        dv = dv + cross(w0, cross(w0, joint.a) + p_v + p_v)
        dw = dw + cross(w0, p_w)
        if qdd is not None:  # p qdd
            dv, dw = dv + joint.column(qdd)[0], dw + joint.column(qdd)[1]
        return w0 + p_w, (dv, dw)

    def outwards(parent: Any, x: Any) -> Any:
        (R0, r0, w0, dt0), ((link, qd, qdd, bias), pi, external) = parent, x
        R, a, e = move(R0, link)
        joint = Joint(e, link.turn, link.slide, a, r0 + a)
        w, (dv, dw) = twist_rate((w0, dt0), joint, qd, qdd)
        if bias is not None:
            dv, dw = dv + R @ bias[1], dw + R @ bias[0]
        M = RigidInertia.of(pi).rotate(R)
        f, n = M.wrench(w, dv, dw)  # w = M dt + Omega M E t - w_E
        wrench = less_external(f, n, external)
        return (R, joint.r, w, (dv, dw)), (joint, M, wrench)

    terms = joint_terms(model, q, qd, qdd), inertias(model), wrenches(model, f_ext)
    R, _, w, dv, dw = base_state(q.dtype, base)
    root = R, Vec3.zero(q.dtype), w, (dv - Vec3.of(model.gravity), dw)
    return outward(lanes, outwards, root, spread(lanes, terms))
