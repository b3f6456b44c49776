"""Inverse dynamics by the recursive Newton-Euler method."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.algorithms.steps import (
    BaseMotion,
    accelerate,
    base_state,
    inertias,
    joint_terms,
    less_external,
    wrenches,
)
from jaxdyn.model import Model
from jaxdyn.program import Laned, collect, inward, outward, spread
from jaxdyn.spatial import RigidInertia, Vec3, cross, dot


def newton_euler(
    model: Model,
    q: Float[Array, " nq"],
    qd: Float[Array, " nv"],
    qdd: Float[Array, " nv"] | None,
    f_ext: Float[Array, "n 6"] | None = None,
    base: BaseMotion | None = None,
) -> Float[Array, " nv"]:
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
    model: Model,
    q: Float[Array, " nq"],
    qd: Float[Array, " nv"],
    qdd: Float[Array, " nv"],
    f_ext: Float[Array, "n 6"] | None = None,
    base: BaseMotion | None = None,
) -> Float[Array, "n 6"]:
    """Force and moment that each body receives through its joint, [Ghosal] eq. 45."""
    kept = _recursion(model, q, qd, qdd, f_ext, base)
    wrench = tuple(level[1] for level in kept)
    f, n = collect(model.topology.lanes, wrench, model.topology.steps.last)
    return jnp.concatenate([f.array(), n.array()], axis=-1)


def world(model: Model, q: Any, base: BaseMotion | None) -> Any:
    """Axes, w, dv, dw of the base, which accelerates against gravity."""
    R, _, w, dv, dw = base_state(q.dtype, base)
    return (R, w, dv - Vec3.of(model.gravity), dw)  # eq. 7.44


def _recursion(
    model: Model, q: Any, qd: Any, qdd: Any, f_ext: Any, base: BaseMotion | None
) -> Laned:
    """For each step its force and the wrench (f, n) at its origin, laned."""
    lanes = model.topology.lanes

    def motion(parent: Any, x: Any) -> Any:  # eqs. 7.25, 7.33, 7.34, 7.38a and b
        joint, pi, external = x
        (R, w, dv, dw), a = accelerate(parent, joint)
        f, n = RigidInertia.of(pi).rotate(R).wrench(w, dv, dw)
        f, n = less_external(f, n, external)
        return (R, w, dv, dw), (f, n, R.z, a, joint[0].turn, joint[0].slide)

    def transmit(children: Any, x: Any) -> Any:  # eqs. 7.38c and d, 7.39, 7.40
        f, n, e, a, turn, slide = x
        f, n = f + children[0], n + children[1]
        tau = turn * dot(e, n) + slide * dot(e, f)
        return (f, n + cross(a, f)), (tau, (f, n))

    terms = joint_terms(model, q, qd, qdd), inertias(model), wrenches(model, f_ext)
    loads = outward(lanes, motion, world(model, q, base), spread(lanes, terms))
    o = Vec3.zero(q.dtype)
    return inward(lanes, transmit, (o, o), loads)[1]
