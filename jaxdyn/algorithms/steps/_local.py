"""What each elementary step knows by itself, before any walk.

As in the papers, the frame of a step has its third axis along the joint axis, so that
the joint is Rz(theta) and a slide along z, whatever the user's axis. The frame of a
body is the frame of its last step but for a constant rotation Q.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.model import FExt, Model, Nq, Nv, Topology, directions
from jaxdyn.program import exchange, from_parents, put, take
from jaxdyn.spatial import (
    Mat3,
    Quaternion,
    RigidInertia,
    Scalar,
    Sym3,
    Twist,
    Vec3,
    Wrench,
    cos_sin,
    cross,
    frame_along,
    pytree,
)


@pytree
class LocalStep:
    """One elementary step of a joint at the current q, in its own axes.

    Attributes:
        C: [3, 3] rotation from the parent step's axes to its own, before it turns.
        b: [3] offset of the joint in the parent step's axes, before it slides.
        c, s: cosine and sine of the angle about z.
        d: displacement along z.
        turn, slide: angular and linear velocity along z per unit rate.
    """

    C: Scalar
    b: Scalar
    c: Scalar
    s: Scalar
    d: Scalar
    turn: Scalar
    slide: Scalar


@pytree
class StepTerms:
    """What the motion of one step depends on, but for that of its parent.

    Attributes:
        local: the step at the current q.
        qd, qdd: its velocity and acceleration; `qdd` None is zero.
        bias: what it adds to (dv, dw) besides, in its axes, or None: `inner_bias`.
    """

    local: LocalStep
    qd: Scalar
    qdd: Scalar | None
    bias: Twist | None


def local_steps(model: Model, q: Nq) -> LocalStep:
    """All steps at `q`, in their own axes.

    What the model alone decides (C, b) is not batched when q is, and stays in small
    arrays; the rest is one number per step.
    """
    topology, steps = model.topology, model.topology.steps
    one = jnp.eye(3, dtype=model.dtype)
    Q = step_frames(model)
    Q0 = jnp.swapaxes(from_parents(steps.parent, Q, one), -1, -2)
    first = steps.first[:, None]
    R, p = take((_orthogonal(model.R), model.p), steps.body)
    C0 = product(Q0, jnp.where(first[:, None], R, one))
    offset: Array = jnp.where(first, p, 0)
    b = product(Q0, offset[..., None])[..., 0]
    C = product(C0, Q)

    turned, free = topology.quaternion_steps, topology.free_steps
    if turned.size:
        rotation = Quaternion.of(take(q, topology.quaternion_q)).unit().matrix().array()
        before, after = take((C0, Q), turned)
        C = exchange(C, turned, product(product(before, rotation), after))
    if free.size:
        position = take(q, topology.position_q)[..., None]
        b = b + put(product(take(C0, free), position)[..., 0], free, len(b))

    turn, slide = screw(model)
    coordinate = take(q, steps.q)
    c, s = cos_sin(turn * coordinate)
    return LocalStep(C, b, c, s, slide * coordinate, turn, slide)


def step_terms(model: Model, q: Nq, qd: Nv, qdd: Nv | None) -> StepTerms:
    """The terms of all steps."""
    t = model.topology
    second = None if qdd is None else rates(t, qdd)
    return StepTerms(local_steps(model, q), rates(t, qd), second, inner_bias(model, qd))


def rates(topology: Topology, x: Nv) -> Float[Array, " steps"]:
    """Joint velocities, accelerations or forces of all steps; zero for fixed joints."""
    return take(x, topology.steps.v)


def inner_bias(model: Model, qd: Nv) -> Twist | None:
    """What joints with a quaternion add to (dv, dw), in the axes of their last step.

    Their columns are fixed in the moved body, not each in the step before: the extra
    velocity products of the sequence of steps are subtracted from dw, and the linear
    velocity in body axes turns with the body. None if there are no such joints.
    """
    topology = model.topology
    if not topology.quaternion_bodies.size:
        return None
    w = Vec3.of(take(qd, topology.quaternion_v))
    b_w = Vec3(-w.y * w.z, w.x * w.z, -w.x * w.y)
    last, size = topology.steps.last, len(topology.steps.body)
    dw = put(b_w, last[topology.quaternion_bodies], size)
    if not topology.free_bodies.size:
        return Twist(jax.tree.map(jnp.zeros_like, dw), dw)
    w = Vec3.of(take(qd, topology.position_v + 3))
    b_v = cross(w, Vec3.of(take(qd, topology.position_v)))
    return Twist(put(b_v, last[topology.free_bodies], size), dw)


def inertias(model: Model) -> Float[Array, "steps 10"]:
    """The parameters pi of what each step moves, in its own axes.

    Only the last step of a joint carries the body; the others have no mass.
    """
    last = model.topology.steps.last
    Q = Mat3.of(take(step_frames(model), last))
    com, inertia = Vec3.of(model.com), Sym3.of(model.inertia)
    body = RigidInertia.about_center(model.mass, com, inertia).rotate(Q.T)
    pi = jnp.stack(jax.tree.leaves(body), axis=-1)
    return at_last_steps(model, pi)


def at_last_steps(model: Model, rows: Float[Array, "n k"]) -> Float[Array, "steps k"]:
    """What belongs to the bodies, at the steps that carry them; zero at the others."""
    steps = model.topology.steps
    return put(rows, steps.last, len(steps.body))


def external_wrenches(model: Model, f_ext: FExt) -> Float[Array, "steps 6"] | None:
    """The external wrench on what each step moves, or None."""
    return None if f_ext is None else at_last_steps(model, f_ext)


def less_external(wrench: Wrench, external: Float[Array, "*steps 6"] | None) -> Wrench:
    """A wrench less the external one, if there is one."""
    return wrench if external is None else wrench - Wrench.of(external)


def step_frames(model: Model) -> Float[Array, "steps 3 3"]:
    """For each step the rotation Q from body axes to axes with z along the step."""
    steps, table = model.topology.steps, directions(jnp, model.axis, model.axis2)
    chosen = take(table, steps.direction * model.n + steps.body)
    return frame_along(Vec3.of(chosen)).array()


def screw(model: Model) -> tuple[Float[Array, " steps"], Float[Array, " steps"]]:
    """Angular and linear velocity along its axis of each step per unit rate."""
    steps = model.topology.steps
    turn = jnp.asarray(steps.turn, model.dtype)
    slide = jnp.asarray(steps.slide, model.dtype)
    pitch: Array = take(model.pitch, steps.body)
    return turn, jnp.where(steps.pitched, pitch, slide)


def _orthogonal(R: Float[Array, "n 3 3"]) -> Float[Array, "n 3 3"]:
    """Rotations in float32 made orthogonal again; their derivatives stay as they are.

    Rounded they stretch the links, which along 1000 of them adds up to 1e-5. What is
    off by more than rounding is meant to be so.
    """
    if R.dtype != jnp.float32:
        return R
    excess: Array = product(R, product(R.swapaxes(-1, -2), R)) - R
    is_rounding = jnp.abs(excess).max(axis=(-1, -2), keepdims=True) < 1e-6
    return R - jax.lax.stop_gradient(jnp.where(is_rounding, 0.5 * excess, 0))


def product(A: Array, B: Array) -> Array:
    """Matrix products written out: full precision on every backend."""
    return (A[..., :, :, None] * B[..., None, :, :]).sum(axis=-2)
