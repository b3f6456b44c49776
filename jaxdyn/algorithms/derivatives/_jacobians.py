"""Derivatives of inverse dynamics in closed form."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.algorithms.kinematics import integrate
from jaxdyn.algorithms.recursions import VelocityMatrix, passive_forces, velocity_matrix
from jaxdyn.algorithms.steps import (
    Base,
    Motion,
    base_motion,
    external_wrenches,
    filled,
    inertias,
    less_external,
    mirrored,
    motions,
    pairs,
    screw,
)
from jaxdyn.model import FExt, Model, Nq, Nv
from jaxdyn.program import collect, from_parents, inward, spread, take
from jaxdyn.spatial import RigidInertia, Twist, Vec3, Wrench, cross, pytree, skew


@pytree
class StepMotion:
    """One step and its motion, gravity included as acceleration.

    Attributes:
        before, own: motion of its parent and its own.
        screw: turn and slide of the step.
        place, twist: origin and twist of the body that carries its column.
        a: offset from the parent's origin.
    """

    before: Motion
    own: Motion
    screw: tuple[Array, Array]
    place: Vec3
    twist: Twist
    a: Vec3


@pytree
class Columns:
    """The columns of one step: p, p', p'', and p' + pdot."""

    p: Twist
    p1: Twist
    p2: Twist
    rate: Twist


@pytree
class Composite:
    """The composite body of a step: M, B, w; and E, or None (see `_recursion`)."""

    M: RigidInertia
    B: VelocityMatrix
    w: Wrench
    E: VelocityMatrix | None


@pytree
class ColumnWrenches:
    """The wrenches of a composite body that the columns of its joint bring about.

    Attributes:
        r: place of the joint.
        Mp, Bp: M p and 2 Bᵀ p; turning: p x* w.
        by_q, by_qd: 2 B p' + M p'', and 2 B p + M (p' + pdot).
        Ep, Etp: E p and Eᵀ p, or None without external wrenches.
    """

    r: Vec3
    Mp: Wrench
    Bp: Wrench
    turning: Wrench
    by_q: Wrench
    by_qd: Wrench
    Ep: Wrench | None
    Etp: Wrench | None


def inverse_slopes(
    model: Model, q: Nq, qd: Nv, qdd: Nv, f_ext: FExt = None, base: Base = None
) -> tuple[Float[Array, "nv nv"], Float[Array, "nv nv"], Float[Array, "nv nv"]]:
    r"""The derivatives of the joint forces by q (along tangents), qd and qdd.

    With p the columns of the joints, t and a twist and acceleration (gravity included;
    a subscript p marks the parent's value at the joint), and the motion cross product,

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
    at, x = _recursion(model, q, qd, qdd, f_ext, base)

    def entries(column: Twist, wrench: Wrench) -> Array:
        return pairs(t, column, x.r, wrench)

    q_upper = entries(at.p, x.by_q)
    q_upper = q_upper + jnp.where(_apart(model), entries(at.p, x.turning), 0)
    q_lower = entries(at.p1, x.Bp) + entries(at.p2, x.Mp)
    if x.Ep is not None and x.Etp is not None:
        q_upper = q_upper + entries(at.p, x.Ep)
        q_lower = q_lower + entries(at.p, x.Etp)
    qd_lower = entries(at.p, x.Bp) + entries(at.rate, x.Mp)
    in_joints = _joint_slopes(model, q, qd)
    return (
        filled(t, q_upper, q_lower) + in_joints[0],
        filled(t, entries(at.p, x.by_qd), qd_lower) + in_joints[1],
        mirrored(t, entries(at.p, x.Mp)) + jnp.diag(model.armature),
    )


def _recursion(
    model: Model, q: Nq, qd: Nv, qdd: Nv, f_ext: FExt, base: Base
) -> tuple[Columns, ColumnWrenches]:
    """For each coordinate its columns and the wrenches they bring about.

    An external wrench keeps its direction in the world when the body turns. The term
    p x* w then needs the correction E p, where E = [0, -skew(F); 0, E'] is of the form
    of B and is composed like it.
    """
    t = model.topology

    def inwards(children: Composite, x: tuple[StepMotion, Array, Array | None]):
        step, pi, external = x
        own = _composite(step.own, RigidInertia.of(pi), external, children)
        columns, a = _columns(step), step.a
        E = None if own.E is None else own.E.shift(a)
        handed = Composite(own.M.shift(a), own.B.shift(a), own.w.shift(a), E)
        return handed, (columns, _wrenches(own, columns, step.own.p))

    M, w = RigidInertia.zero(q.dtype), Wrench.zero(q.dtype)
    none = VelocityMatrix.zero(q.dtype)
    tip = Composite(M, none, w, None if f_ext is None else none)
    steps = _steps(model, q, qd, qdd, base)
    rows = spread(t.lanes, (steps, inertias(model), external_wrenches(model, f_ext)))
    return collect(t.lanes, inward(t.lanes, inwards, tip, rows)[1], t.dof_steps)


def _composite(
    at: Motion, M: RigidInertia, external: Array | None, children: Composite
) -> Composite:
    """The composite body of a step, from its own body and its children."""
    M = M.rotate(at.R)
    B = velocity_matrix(M, at.w).carried(M, at.v) + children.B
    w = less_external(M.wrench(at.w, at.rate), external) + children.w
    E = children.E
    if external is not None and E is not None:
        F = Wrench.of(external)
        E = E + VelocityMatrix(F.f, skew(F.n).T)
    return Composite(M + children.M, B, w, E)


def _wrenches(body: Composite, x: Columns, r: Vec3) -> ColumnWrenches:
    M, B, w, p = body.M, body.B, body.w, x.p
    turning = Wrench(cross(p.w, w.f), cross(p.v, w.f) + cross(p.w, w.n))
    by_q = _twice(B.apply(x.p1)) + M.apply(x.p2)
    by_qd = _twice(B.apply(p)) + M.apply(x.rate)
    Ep = None if body.E is None else body.E.apply(p)
    Etp = None if body.E is None else _moment(body.E.transposed(p))
    Bp = _twice(_moment(B.transposed(p)))
    return ColumnWrenches(r, M.apply(p), Bp, turning, by_q, by_qd, Ep, Etp)


def _steps(model: Model, q: Nq, qd: Nv, qdd: Nv, base: Base) -> StepMotion:
    """All steps and their motions."""
    t, g = model.topology, Vec3.of(model.gravity)
    root, at = base_motion(q.dtype, base), motions(model, q, qd, qdd, base)
    root = replace(root, rate=replace(root.rate, v=root.dv - g))
    g = jax.tree.map(lambda x: x[None], g)
    at = replace(at, rate=replace(at.rate, v=at.dv - g))
    before = from_parents(t.steps.parent[t.moving_steps], at, root)
    place, twist = take((at.p, at.twist), t.step_carriers)
    a = at.p - from_parents(t.steps.parent, at.p, root.p)
    return StepMotion(before, at, screw(model), place, twist, a)


def _columns(x: StepMotion) -> Columns:
    """p, p', p'' and p' + pdot of one step."""
    before, own, (turn, slide) = x.before, x.own, x.screw
    p = Twist(own.R.z * slide, own.R.z * turn)
    c = own.p - before.p
    twist, rate = before.twist.shift(c), before.rate.shift(c)
    rate = Twist(rate.v - cross(before.w, before.v), rate.w)
    p1 = twist.cross(p)
    p2 = rate.cross(p) + twist.cross(p1)
    return Columns(p, p1, p2, p1 + x.twist.shift(own.p - x.place).cross(p))


def _apart(model: Model) -> np.ndarray:
    """For each pair whether they are not of one joint with a quaternion."""
    t = model.topology
    body = t.steps.body[t.dof_steps]
    i, j = t.pairs
    return (body[i] != body[j]) | ~np.isin(body[i], t.quaternion_bodies)


def _joint_slopes(model: Model, q: Nq, qd: Nv) -> tuple[Array, Array]:
    """The derivatives of the forces in the joints by q and by qd."""

    def at(d: Array) -> Array:
        return passive_forces(model, integrate(model, q, d), qd)

    by_qd = jax.jacfwd(lambda qd: passive_forces(model, q, qd))(qd)
    return jax.jacfwd(at)(jnp.zeros_like(qd)), by_qd


def _moment(n: Vec3) -> Wrench:
    return Wrench(jax.tree.map(jnp.zeros_like, n), n)


def _twice(a: Wrench) -> Wrench:
    return a + a
