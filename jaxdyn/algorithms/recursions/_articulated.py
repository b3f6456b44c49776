"""Forward dynamics by articulated bodies."""

from jaxtyping import Array

from jaxdyn.algorithms.recursions._factor import Eliminated, Factor, eliminate, stays
from jaxdyn.algorithms.steps import (
    Base,
    MovingFrame,
    PlacedStep,
    StepTerms,
    accelerate,
    base_frame,
    external_wrenches,
    inertias,
    less_external,
    rates,
    step_terms,
)
from jaxdyn.model import FExt, Model, Nq, Nv
from jaxdyn.program import collect, inward, outward, spread
from jaxdyn.spatial import (
    ArticulatedInertia,
    Mat3,
    RigidInertia,
    Scalar,
    Twist,
    Vec3,
    Wrench,
    dot,
)


def articulated(
    model: Model, q: Nq, qd: Nv, tau: Nv, f_ext: FExt = None, base: Base = None
) -> tuple[Nv, Factor]:
    r"""The joint accelerations under the joint forces `tau`, and the factor of M.

    $$u_i = \tau_i - p_i^T P_i, \quad P_{i-1} = \ldots + A^T (P_i + \bar M_i c_i +
      \psi_i u_i), \quad \ddot q_i = u_i / \hat m_i - \psi_i^T (A a_{i-1} + c_i)$$

    Three walks, O(n): [Ghosal] eqs. 46 to 50, which hold at rest, with the velocity
    terms: c_i in the acceleration of the links and w x (w x h), w x I w in their
    wrenches P_i.
    """
    t, still = model.topology, Twist.zero(q.dtype)

    def motion(
        parent: tuple[Mat3, Vec3, Vec3], x: tuple[StepTerms, Array, Array | None]
    ):
        (R0, r0, w0), (terms, pi, external) = parent, x
        at, step = accelerate(MovingFrame(R0, w0, still), terms)
        inertia = RigidInertia.of(pi).rotate(at.R)
        P = less_external(inertia.wrench(at.w, still), external)
        placed = PlacedStep(step, r0 + step.a, inertia)
        return (at.R, placed.r, at.w), (placed, P, at.rate)

    def gather(  # eqs. 46 and 47
        children: tuple[ArticulatedInertia, Wrench],
        x: tuple[PlacedStep, Wrench, Twist, Scalar, Scalar],
    ):
        at, P, c, stay, tau = x
        M_hat, P = at.inertia.articulated() + children[0], P + children[1]
        psi, m_hat, M_bar = eliminate(M_hat, at.step, stay)
        u = tau - at.step.along(P)
        P = P + M_bar.apply(c) + psi * u
        handed = M_bar.shift(at.step.a), at.step.to_parent(P)
        return handed, (Eliminated(at.step, at.r, psi, m_hat), c, u / m_hat)

    def release(parent: Twist, x: tuple[Eliminated, Twist, Scalar]):  # eqs. 48 to 50
        at, c, u = x
        a = at.step.to_child(parent) + c
        qdd = u - dot(a, at.psi)
        return a + at.step.column(qdd), qdd

    root = base_frame(model, q.dtype, base)
    external = external_wrenches(model, f_ext)
    terms = step_terms(model, q, qd, None), inertias(model), external
    start = root.R, Vec3.zero(q.dtype), root.w
    moved = outward(t.lanes, motion, start, spread(t.lanes, terms))
    forces = zip(stays(model), spread(t.lanes, rates(t, tau)), strict=True)
    rows = tuple((*x, *y) for x, y in zip(moved, forces, strict=True))
    tip = ArticulatedInertia.zero(q.dtype), Wrench.zero(q.dtype)
    _, kept = inward(t.lanes, gather, tip, rows)
    qdd = outward(t.lanes, release, root.rate, kept)
    factor = Factor(tuple(level[0] for level in kept), t)
    return collect(t.lanes, qdd, t.dof_steps), factor
