"""Inverse dynamics by the recursive Newton-Euler method."""

from jaxtyping import Array, Float

from jaxdyn.algorithms.steps import (
    Base,
    MovingFrame,
    StepTerms,
    WorldStep,
    accelerate,
    base_frame,
    external_wrenches,
    inertias,
    less_external,
    step_terms,
)
from jaxdyn.model import FExt, Model, Nq, Nv
from jaxdyn.program import Laned, collect, inward, outward, spread
from jaxdyn.spatial import RigidInertia, Scalar, Wrench


def newton_euler(
    model: Model, q: Nq, qd: Nv, qdd: Nv | None, f_ext: FExt = None, base: Base = None
) -> Nv:
    r"""Joint forces of the rigid bodies alone, gravity included.

    $$\tau = N^T (M \dot t + \Omega M E t - w^E)$$

    Outward and inward recursions, O(n): [Angeles] Algorithms 7.4.1 and 7.4.2, with eqs.
    7.25, 7.33, 7.34, 7.38 to 7.40 and 7.44, [Ghosal] eqs. 43 to 45; all vectors in
    world axes, moments about the link origins instead of the centres of mass. Gravity
    enters as an upward acceleration of the base. `qdd` None is zero.
    """
    kept = _recursion(model, q, qd, qdd, f_ext, base)
    tau = tuple(level[0] for level in kept)
    return collect(model.topology.lanes, tau, model.topology.dof_steps)


def transmitted_wrenches(
    model: Model, q: Nq, qd: Nv, qdd: Nv, f_ext: FExt = None, base: Base = None
) -> Float[Array, "n 6"]:
    """Force and moment that each body receives through its joint, [Ghosal] eq. 45."""
    kept = _recursion(model, q, qd, qdd, f_ext, base)
    wrench = tuple(level[1] for level in kept)
    return collect(model.topology.lanes, wrench, model.topology.steps.last).array()


def _recursion(
    model: Model, q: Nq, qd: Nv, qdd: Nv | None, f_ext: FExt, base: Base
) -> Laned[tuple[Scalar, Wrench]]:
    """For each step its force and the wrench at its origin, laned."""
    lanes = model.topology.lanes

    # eqs. 7.25, 7.33, 7.34, 7.38a and b
    def motion(parent: MovingFrame, x: tuple[StepTerms, Array, Array | None]):
        terms, pi, external = x
        at, step = accelerate(parent, terms)
        wrench = RigidInertia.of(pi).rotate(at.R).wrench(at.w, at.rate)
        return at, (step, less_external(wrench, external))

    # eqs. 7.38c and d, 7.39, 7.40
    def transmit(children: Wrench, x: tuple[WorldStep, Wrench]):
        step, wrench = x
        wrench = wrench + children
        return step.to_parent(wrench), (step.along(wrench), wrench)

    external = external_wrenches(model, f_ext)
    terms = spread(lanes, (step_terms(model, q, qd, qdd), inertias(model), external))
    loads = outward(lanes, motion, base_frame(model, q.dtype, base), terms)
    return inward(lanes, transmit, Wrench.zero(q.dtype), loads)[1]
