"""Derivatives of inverse dynamics in closed form."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.algorithms.kinematics import integrate
from jaxdyn.algorithms.recursions import passive_forces
from jaxdyn.algorithms.steps import (
    BaseMotion,
    Motion,
    base_state,
    filled,
    inertias,
    less_external,
    mirrored,
    motions,
    pairs,
    screw,
    wrenches,
)
from jaxdyn.model import Model
from jaxdyn.program import collect, from_parents, inward, spread, take
from jaxdyn.spatial import (
    Mat3,
    RigidInertia,
    Vec3,
    cross,
    cross_columns,
    skew,
)

Twist = tuple[Vec3, Vec3]


def inverse_slopes(
    model: Model,
    q: Float[Array, " nq"],
    qd: Float[Array, " nv"],
    qdd: Float[Array, " nv"],
    f_ext: Float[Array, "n 6"] | None = None,
    base: BaseMotion | None = None,
) -> tuple[Float[Array, "nv nv"], Float[Array, "nv nv"], Float[Array, "nv nv"]]:
    r"""The derivatives of the joint forces by q (tangent steps), qd and qdd.

    With p the columns of the joints, t and a twist and acceleration (gravity included),
    both of the parent at the joint where so marked, and the motion cross product,

    $$p' = t_p \times p, \quad p'' = a_p \times p + t_p \times p', \quad
      \dot p = t \times p$$

    $$\frac{\partial\tau_i}{\partial q_j} = p_i^T (2 B_j p'_j + M_j p''_j
      + p_j \times^* w_j), \qquad \frac{\partial\tau_j}{\partial q_i} =
      p_j^T (2 B_j p'_i + M_j p''_i)$$

    $$\frac{\partial\tau_i}{\partial \dot q_j} = p_i^T (2 B_j p_j
      + M_j (p'_j + \dot p_j)), \qquad \frac{\partial\tau_j}{\partial \dot q_i} =
      p_j^T (2 B_j p_i + M_j (p'_i + \dot p_i))$$

    for all i on the path to j, where M, B and w are the mass, the velocity matrix (that
    of `coriolis`) and the wrench of the composite body of j: [Singh]. One walk outward,
    one inward, then all pairs of joints, O(n²).
    """
    t = model.topology
    kept = _recursion(model, q, qd, qdd, f_ext, base)
    (p, p1, p2, rate), r, (Mp, Bp, turning), (by_q, by_qd), external = kept

    def entries(column: Twist, wrench: Twist) -> Any:
        return pairs(t, column, r, *wrench)

    q_upper = entries(p, by_q)
    q_upper = q_upper + jnp.where(_apart(model), entries(p, turning), 0)
    q_lower = entries(p1, Bp) + entries(p2, Mp)
    if external is not None:
        q_upper = q_upper + entries(p, external[0])
        q_lower = q_lower + entries(p, external[1])
    qd_lower = entries(p, Bp) + entries(rate, Mp)
    in_joints = _joint_slopes(model, q, qd)
    return (
        filled(t, q_upper, q_lower) + in_joints[0],
        filled(t, entries(p, by_qd), qd_lower) + in_joints[1],
        mirrored(t, entries(p, Mp)) + jnp.diag(model.armature),
    )


def _recursion(
    model: Model, q: Any, qd: Any, qdd: Any, f_ext: Any, base: BaseMotion | None
) -> Any:
    """For each coordinate its columns, its place and the wrenches they bring about.

    An external wrench keeps its direction in the world when the body turns. What the
    term p x* w is wrong by then is E p, where E = [0, -skew(F); 0, E'] is of the form
    of B and is composed like it.
    """
    t, o = model.topology, Vec3.zero(q.dtype)

    def inwards(children: Any, x: Any) -> Any:
        (before, own, joint), a, pi, external = x
        p, p1, p2, dp = _columns(before, own, joint)
        (M_c, u_c, Y_c), (f_c, n_c), E_c = children
        M = RigidInertia.of(pi).rotate(own.R)
        half = cross_columns(own.w, M.I.mat()) * 0.5
        Y = half + half.T - skew(M.I @ own.w * 0.5) - cross_columns(M.h, skew(own.v))
        u, Y = own.v * M.m + cross(own.w, M.h) + u_c, Y + Y_c
        f, n = less_external(*M.wrench(own.w, own.dv, own.dw), external)
        f, n, M, E = f + f_c, n + n_c, M + M_c, None
        if external is not None:
            E = E_c[0] + Vec3.of(external[:3]), E_c[1] - skew(Vec3.of(external[3:]))
        rate = _sum(p1, dp)
        turning = cross(p[1], f), cross(p[0], f) + cross(p[1], n)
        mass = M.apply(*p), _twice(_transposed(u, Y, p)), turning
        by_q = _sum(_twice(_times(u, Y, p1)), M.apply(*p2))
        by_qd = _sum(_twice(_times(u, Y, p)), M.apply(*rate))
        wrong = E and (_times(*E, p), _transposed(*E, p))
        handed = (M.shift(a), *_to_parent(a, u, Y)), (f, n + cross(a, f))
        kept = (p, p1, p2, rate), own.p, mass, (by_q, by_qd), wrong
        return (*handed, E and _to_parent(a, *E)), kept

    none = o, Mat3(o, o, o)
    tip = (RigidInertia.zero(q.dtype), *none), (o, o), None if f_ext is None else none
    rows = spread(t.lanes, _rows(model, q, qd, qdd, f_ext, base))
    return collect(t.lanes, inward(t.lanes, inwards, tip, rows)[1], t.dof_steps)


def _rows(model: Model, q: Any, qd: Any, qdd: Any, f_ext: Any, base: Any) -> Any:
    """What each step needs: motions before it and of it, gravity as acceleration."""
    t, o = model.topology, Vec3.zero(q.dtype)
    R0, v0, w0, dv0, dw0 = base_state(q.dtype, base)
    g = Vec3.of(model.gravity)
    root = Motion(R0, o, v0, w0, dv0 - g, dw0)
    at = motions(model, q, qd, qdd, base)
    at = replace(at, dv=at.dv - jax.tree.map(lambda x: x[None], g))
    before = from_parents(t.steps.parent[t.moving_steps], at, root)
    carrier = take((at.p, at.v, at.w), t.step_carriers)
    a = at.p - from_parents(t.steps.parent, at.p, o)
    joint = screw(model), carrier
    return (before, at, joint), a, inertias(model), wrenches(model, f_ext)


def _columns(before: Motion, own: Motion, joint: Any) -> tuple[Twist, ...]:
    """p, p', p'' and the rate of p of one step."""
    (turn, slide), (place, v, w) = joint
    p = own.R.z * slide, own.R.z * turn
    c = own.p - before.p
    twist = before.v + cross(before.w, c), before.w
    dv = before.dv + cross(before.dw, c) - cross(before.w, before.v)
    p1 = _moved(twist, p)
    p2 = _sum(_moved((dv, before.dw), p), _moved(twist, p1))
    return p, p1, p2, _moved((v + cross(w, own.p - place), w), p)


def _apart(model: Model) -> np.ndarray:
    """For each pair whether they are not of one joint with a quaternion."""
    t = model.topology
    body = t.steps.body[t.dof_steps]
    i, j = t.pairs
    return (body[i] != body[j]) | ~np.isin(body[i], t.quaternion_bodies)


def _joint_slopes(model: Model, q: Any, qd: Any) -> tuple[Any, Any]:
    """The derivatives of the forces in the joints by q and by qd."""

    def at(d: Any) -> Any:
        return passive_forces(model, integrate(model, q, d), qd)

    by_qd = jax.jacfwd(lambda qd: passive_forces(model, q, qd))(qd)
    return jax.jacfwd(at)(jnp.zeros_like(qd)), by_qd


def _moved(t: Twist, p: Twist) -> Twist:
    """The motion cross product t x p."""
    return cross(t[1], p[0]) + cross(t[0], p[1]), cross(t[1], p[1])


def _to_parent(a: Vec3, u: Vec3, Y: Mat3) -> tuple[Vec3, Mat3]:
    """The matrix [0, -skew(u); 0, Y] about the parent's origin."""
    return u, Y - cross_columns(a, skew(u))


def _times(u: Vec3, Y: Mat3, p: Twist) -> Twist:
    """The product of [0, -skew(u); 0, Y] with a column."""
    return cross(p[1], u), Y @ p[1]


def _transposed(u: Vec3, Y: Mat3, p: Twist) -> Twist:
    """The product of the transpose of [0, -skew(u); 0, Y] with a column."""
    return jax.tree.map(jnp.zeros_like, u), cross(u, p[0]) + Y.T @ p[1]


def _twice(a: Twist) -> Twist:
    return a[0] + a[0], a[1] + a[1]


def _sum(a: Twist, b: Twist) -> Twist:
    return a[0] + b[0], a[1] + b[1]
