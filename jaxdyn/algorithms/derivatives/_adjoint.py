"""The gradient of inverse dynamics in closed form, by an outward and an inward walk."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from jaxdyn.algorithms.kinematics import difference
from jaxdyn.algorithms.recursions import passive_forces
from jaxdyn.algorithms.steps import (
    Base,
    MovingFrame,
    StepTerms,
    WorldStep,
    accelerate,
    base_frame,
    external_wrenches,
    inertias,
    inner_bias,
    less_external,
    rates,
    step_terms,
)
from jaxdyn.model import FExt, Model, Nq, Nv
from jaxdyn.program import collect, inward, outward, spread, take
from jaxdyn.spatial import (
    Mat3,
    RigidInertia,
    Scalar,
    Twist,
    Vec3,
    Wrench,
    cross,
    dot,
    pytree,
)


@pytree
class PowerGradient:
    """The gradients of the power of a body, or of a subtree, as in `inverse_gradient`.

    Attributes:
        by_twist: (V', W'); by_rate: (dv', dw'); by_w: w'.
        by_turn: by a turn of the body, of external wrenches alone, or None.
    """

    by_twist: Wrench
    by_rate: Wrench
    by_w: Vec3
    by_turn: Vec3 | None

    @staticmethod
    def zero(dtype: jnp.dtype, has_external: bool) -> "PowerGradient":
        """What arrives at the tips."""
        o, none = Vec3.zero(dtype), Wrench.zero(dtype)
        return PowerGradient(none, none, o, o if has_external else None)


@pytree
class StepAdjoint:
    """What `sum_step` needs of one step.

    Attributes:
        step, qd: the step in world axes and its velocity.
        w0, rate0, virtual0: w, (dv, dw) and (V, W) of its parent.
        axes: its axes if joints have an inner bias, or None.
    """

    step: WorldStep
    qd: Scalar
    w0: Vec3
    rate0: Twist
    virtual0: Twist
    axes: Mat3 | None


@pytree
class StepGradient:
    """The gradients by one step.

    Attributes:
        e, turn, slide: those of the step.
        by_qd: by its velocity; by_bias: by its inner bias, or None.
        by_pose: by a shift and a turn of its axes.
    """

    e: Vec3
    turn: Scalar
    slide: Scalar
    by_qd: Scalar
    by_bias: Twist | None
    by_pose: Wrench


Virtual = tuple[MovingFrame, Twist]  # a moving frame and its (V, W)


def inverse_gradient(
    model: Model, adjoint: Nv, q: Nq, qd: Nv, qdd: Nv, f_ext: FExt, base: Base
) -> tuple[Nq, Nv]:
    r"""The gradient of $\lambda^T \tau(q, \dot q, \ddot q)$ by q and qd; O(n).

    With lambda = `adjoint` that is the power of the wrenches (f, n) of all bodies at
    the virtual twists (V, W) = N lambda, which the outward recursion yields. The walk
    inward sums the gradients x' by the vectors x of each step: first of its own body,

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
    t, external = model.topology, external_wrenches(model, f_ext)
    x = step_terms(model, q, qd, qdd), rates(t, adjoint), inertias(model), external
    root = base_frame(model, q.dtype, base), Twist.zero(q.dtype)
    loads = outward(t.lanes, _load, root, spread(t.lanes, x))
    tip = PowerGradient.zero(q.dtype, f_ext is not None)

    def add(children: PowerGradient, x: tuple[PowerGradient, StepAdjoint]):
        own, step = x
        return sum_step(jax.tree.map(jnp.add, own, children), step)

    kept = inward(t.lanes, add, tip, loads)[1]
    return by_state(model, adjoint, q, qd, collect(t.lanes, kept))


def by_state(
    model: Model, adjoint: Nv, q: Nq, qd: Nv, x: StepGradient
) -> tuple[Nq, Nv]:
    """The gradient by q and qd from those by all steps."""
    t = model.topology
    moved = take(x.by_pose, t.moving_steps)
    by_step = x.turn * dot(x.e, moved.n) + x.slide * dot(x.e, moved.f)
    by_d, by_qd = (take(y, t.dof_steps) for y in (by_step, x.by_qd))
    if t.quaternion_bodies.size:
        by_q = jax.vjp(lambda x: difference(model, q, x), q)[1](by_d)[0]
        by_qd = by_qd + jax.vjp(lambda x: inner_bias(model, x), qd)[1](x.by_bias)[0]
    else:
        by_q = by_d
    passive = jax.vjp(lambda q, qd: passive_forces(model, q, qd), q, qd)[1](adjoint)
    return by_q + passive[0], by_qd + passive[1]


def _load(parent: Virtual, x: tuple[StepTerms, Scalar, Array, Array | None]):
    """One step outward: its motion and the gradients of the power of its body."""
    (before, virtual0), (terms, adjoint, pi, external) = parent, x
    at, step = accelerate(before, terms)
    virtual = step.to_child(virtual0) + step.column(adjoint)
    M = RigidInertia.of(pi).rotate(at.R)
    f = less_external(M.wrench(at.w, at.rate), external)
    spin, turn = by_spin(M, at.w, virtual), by_turn(external, virtual)
    own = PowerGradient(f, M.apply(virtual), spin, turn)
    axes = None if terms.bias is None else at.R
    needed = StepAdjoint(step, terms.qd, before.w, before.rate, virtual0, axes)
    return (at, virtual), (own, needed)


def by_spin(M: RigidInertia, w: Vec3, virtual: Twist) -> Vec3:
    """The gradient w' of the power of one body by its angular velocity."""
    V, W = virtual.v, virtual.w
    w_ = cross(cross(w, M.h), V) + cross(M.h, cross(V, w))
    return w_ + cross(M.I @ w, W) + M.I @ cross(W, w)


def by_turn(external: Array | None, virtual: Twist) -> Vec3 | None:
    """The same by a turn of the body, in which its external wrench stays as it is."""
    if external is None:
        return None
    wrench = Wrench.of(external)
    return cross(wrench.f, virtual.v) + cross(wrench.n, virtual.w)


def sum_step(
    subtree: PowerGradient, x: StepAdjoint
) -> tuple[PowerGradient, StepGradient]:
    """One step inward from the gradients of its subtree: those by its parent."""
    V_, w_ = subtree.by_twist.f, subtree.by_w
    dv_, dw_ = subtree.by_rate.f, subtree.by_rate.n
    e, a, turn, slide = x.step.e, x.step.a, x.step.turn, x.step.slide
    w0, dv0, dw0, V0, W0 = x.w0, x.rate0.v, x.rate0.w, x.virtual0.v, x.virtual0.w
    x_, y = cross(dv_, w0), cross(w0, a) + e * (2 * slide * x.qd)
    by_qd = dot(e, (w_ + cross(dw_, w0)) * turn + x_ * (2 * slide))
    a_ = cross(dv_, dw0) + cross(x_, w0) + cross(V_, W0)
    by_twist0, by_rate0 = subtree.by_twist.shift(a), subtree.by_rate.shift(a)
    w0_ = w_ + cross(e * (turn * x.qd), dw_) + cross(y, dv_) + cross(a, x_)
    T = cross(a, a_) + cross(w0, w0_) + cross(dv0, dv_) + cross(dw0, by_rate0.n)
    T = T + cross(V0, V_) + cross(W0, by_twist0.n)
    if subtree.by_turn is not None:
        T = T - subtree.by_turn
    R = x.axes
    by_bias = None if R is None else Twist(R.T @ dv_, R.T @ dw_)
    handed = PowerGradient(by_twist0, by_rate0, w0_, subtree.by_turn)
    return handed, StepGradient(e, turn, slide, by_qd, by_bias, Wrench(a_, -T))
