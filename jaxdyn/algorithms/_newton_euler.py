"""Inverse dynamics by the recursive Newton-Euler method."""

from typing import Any

from jaxtyping import Array, Float

from jaxdyn.algorithms._kinematics import BaseMotion, accelerate, base_state
from jaxdyn.algorithms._links import inertias, inner_bias, links, rates, wrenches
from jaxdyn.algorithms._walk import collect, inward, outward, spread
from jaxdyn.model import Model
from jaxdyn.spatial import RigidInertia, Vec3, cross, dot


def newton_euler(
    model: Model,
    q: Float[Array, " nq"],
    qd: Float[Array, " nv"],
    qdd: Float[Array, " nv"],
    f_ext: Float[Array, "n 6"] | None = None,
    base: BaseMotion | None = None,
) -> Float[Array, " nv"]:
    r"""Joint forces of the rigid bodies alone, gravity included.

    $$\tau = N^T (M \dot t + \Omega M E t - w^E)$$

    Outward and inward recursions, O(n): [Angeles] Algorithms 7.4.1 and 7.4.2, with eqs.
    7.25, 7.33, 7.38 and 7.44; all vectors in world axes, moments about the link origins
    instead of the centres of mass. Gravity enters as an upward acceleration of the
    base.
    """
    lanes = model.topology.lanes
    terms = (
        links(model, q),
        rates(model.topology, qd),
        rates(model.topology, qdd),
        inner_bias(model, qd),
    )
    external = None if f_ext is None else wrenches(model, f_ext)

    def wrench(body: RigidInertia, w: Vec3, dv: Vec3, dw: Vec3) -> Any:
        f, n = body.apply(dv, dw)  # eqs. 7.38a and b, about the link origin
        return f + cross(w, cross(w, body.h)), n + cross(w, body.I @ w)

    def motion(parent: Any, x: Any) -> Any:  # eqs. 7.25 and 7.33
        joint, pi, external = x
        (R, w, dv, dw), a = accelerate(parent, joint)
        f, n = wrench(RigidInertia.of(pi).rotate(R), w, dv, dw)
        if external is not None:
            f, n = f - Vec3.of(external[:3]), n - Vec3.of(external[3:])
        return (R, w, dv, dw), (f, n, R.z, a, joint[0].turn, joint[0].slide)

    def transmit(children: Any, x: Any) -> Any:  # eqs. 7.38c and d, 7.44
        f, n, e, a, turn, slide = x
        f, n = f + children[0], n + children[1]
        tau = turn * dot(e, n) + slide * dot(e, f)
        return (f, n + cross(a, f)), tau

    R, _, w, dv, dw = base_state(q.dtype, base)
    root = (R, w, dv - Vec3.of(model.gravity), dw)
    loads = outward(
        lanes, motion, root, spread(lanes, (terms, inertias(model), external))
    )
    o = Vec3.zero(q.dtype)
    _, tau = inward(lanes, transmit, (o, o), loads)
    return collect(lanes, tau, model.topology.dof_steps)
