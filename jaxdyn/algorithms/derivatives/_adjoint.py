"""The gradient of inverse dynamics in closed form, by an outward and an inward walk."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.algorithms.kinematics import difference
from jaxdyn.algorithms.recursions import passive_forces, world
from jaxdyn.algorithms.steps import (
    BaseMotion,
    accelerate,
    inertias,
    inner_bias,
    joint_terms,
    less_external,
    rates,
    wrenches,
)
from jaxdyn.model import Model
from jaxdyn.program import collect, inward, outward, spread, take
from jaxdyn.spatial import RigidInertia, Vec3, cross, dot


def inverse_gradient(
    model: Model,
    rate: Float[Array, " nv"],
    q: Float[Array, " nq"],
    qd: Float[Array, " nv"],
    qdd: Float[Array, " nv"],
    f_ext: Float[Array, "n 6"] | None = None,
    base: BaseMotion | None = None,
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    r"""The gradient of $\lambda^T \tau(q, \dot q, \ddot q)$ by q and qd; O(n).

    That is the power of the wrenches (f, n) of all bodies at the twists (V, W) = N
    lambda, which the outward recursion yields. The walk inward sums the gradients x' by
    the vectors x of each step: first of its own body,

    $$(dv', dw') = M (V, W), \quad V' = f, \quad W' = n, \quad
      w' = (w \times h) \times V + h \times (V \times w) + I w \times W
      + I (W \times w)$$

    then of its subtree, and from these by its offset a and by the vectors x_0 of its
    parent, with e its axis and y = w_0 x a + 2 e slide qd,

    $$a' = dv' \times dw_0 + (dv' \times w_0) \times w_0 + V' \times W_0, \quad
      dw_0' = dw' + a \times dv', \quad W_0' = W' + a \times V',$$

    $$w_0' = w' + e\,\dot q \times dw' + y \times dv' + a \times (dv' \times w_0)$$

    When a joint turns, its subtree turns. As the power stays the same if the parent
    turns as well, the gradient is $-e^T (a \times a' + \sum x_0 \times x_0')$.
    """
    t = model.topology
    joints, others = joint_terms(model, q, qd, qdd), rates(t, rate)
    terms = joints, others, inertias(model), wrenches(model, f_ext)
    o = Vec3.zero(q.dtype)
    root = world(model, q, base), (o, o)
    loads = outward(t.lanes, _load, root, spread(t.lanes, terms))
    tip = (o, o, o, o, o), None if f_ext is None else o

    def add(children: Any, x: Any) -> Any:
        own, step = x
        return sum_step(jax.tree.map(jnp.add, own, children), step)

    kept = inward(t.lanes, add, tip, loads)[1]
    return by_state(model, rate, q, qd, collect(t.lanes, kept))


def by_state(
    model: Model, rate: Any, q: Any, qd: Any, kept: Any
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """The gradient by q and qd from what `sum_step` kept of all steps."""
    t = model.topology
    by_qd, by_bias, e, screw, moved = kept
    turn, slide = screw
    T, a_ = take(moved, t.moving_steps)
    by_step = turn * dot(e, T) + slide * dot(e, a_)
    by_d, by_qd = (take(x, t.dof_steps) for x in (by_step, by_qd))
    if t.quaternion_bodies.size:
        by_q = jax.vjp(lambda x: difference(model, q, x), q)[1](by_d)[0]
        by_qd = by_qd + jax.vjp(lambda x: inner_bias(model, x), qd)[1](by_bias)[0]
    else:
        by_q = by_d
    passive = jax.vjp(lambda q, qd: passive_forces(model, q, qd), q, qd)[1](rate)
    return by_q + passive[0], by_qd + passive[1]


def _load(parent: Any, x: Any) -> Any:
    """One step outward: its motion and the gradients of the power of its body."""
    (state, (V0, W0)), (joint, other, *_) = parent, x
    moved, a = accelerate(state, joint)
    link, e = joint[0], moved[0].z
    V = V0 + cross(W0, a) + e * (link.slide * other)
    W = W0 + e * (link.turn * other)
    return (moved, (V, W)), body_gradients(moved, (V, W), a, parent, x)


def body_gradients(moved: Any, twist: Any, a: Vec3, parent: Any, x: Any) -> Any:
    """The gradients of the power of one body, and what `sum_step` needs of its step.

    Args:
        moved, twist: axes, w, dv, dw, and V, W of the step; `parent` those of its
            parent; a: its offset.
        x: its terms of `accelerate`, its rate, its parameters, its external wrench.
    """
    (R, w, dv, dw), (link, qd, _, bias), (_, _, pi, external) = moved, x[0], x
    M = RigidInertia.of(pi).rotate(R)
    f, n = less_external(*M.wrench(w, dv, dw), external)
    own = (f, n, *M.apply(*twist), by_spin(M, w, twist)), by_turn(external, twist)
    state, before = parent
    axes = None if bias is None else R
    step = R.z, a, (*state[1:], *before), (link.turn, link.slide, qd), axes
    return own, step


def by_spin(M: RigidInertia, w: Vec3, twist: tuple[Vec3, Vec3]) -> Vec3:
    """The gradient w' of the power of one body by its angular velocity."""
    V, W = twist
    w_ = cross(cross(w, M.h), V) + cross(M.h, cross(V, w))
    return w_ + cross(M.I @ w, W) + M.I @ cross(W, w)


def by_turn(external: Any, twist: tuple[Vec3, Vec3]) -> Vec3 | None:
    """The same by a turn of the body, in which its external wrench stays as it is."""
    if external is None:
        return None
    force, moment = Vec3.of(external[..., :3]), Vec3.of(external[..., 3:])
    return cross(force, twist[0]) + cross(moment, twist[1])


def sum_step(subtree: Any, step: Any) -> Any:
    """One step inward from the gradients of its subtree: those by its parent."""
    (V_, W_, dv_, dw_, w_), turned = subtree
    e, a, before, (turn, slide, qd), axes = step
    w0, dv0, dw0, V0, W0 = before
    x, y = cross(dv_, w0), cross(w0, a) + e * (2 * slide * qd)
    by_qd = dot(e, (w_ + cross(dw_, w0)) * turn + x * (2 * slide))
    a_ = cross(dv_, dw0) + cross(x, w0) + cross(V_, W0)
    W0_, dw0_ = W_ + cross(a, V_), dw_ + cross(a, dv_)
    w0_ = w_ + cross(e * (turn * qd), dw_) + cross(y, dv_) + cross(a, x)
    T = cross(a, a_) + cross(w0, w0_) + cross(dv0, dv_) + cross(dw0, dw0_)
    T = T + cross(V0, V_) + cross(W0, W0_)
    if turned is not None:
        T = T - turned
    by_bias = None if axes is None else (axes.T @ dw_, axes.T @ dv_)
    handed = (V_, W0_, dv_, dw0_, w0_), turned
    return handed, (by_qd, by_bias, e, (turn, slide), (-T, a_))
