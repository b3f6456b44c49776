"""What each elementary step knows by itself, before any walk.

As in the papers, the frame of a step has its third axis along the joint axis, so that
the joint is Rz(theta) and a slide along z, whatever the user's axis. The frame of a
body is the frame of its last step but for a constant rotation Q.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.model import DIRECTIONS, Model, Topology
from jaxdyn.program import exchange, from_parents, put, take
from jaxdyn.spatial import (
    Mat3,
    Quaternion,
    RigidInertia,
    Scalar,
    Sym3,
    Vec3,
    cos_sin,
    cross,
    frame_along,
)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Link:
    """The joint of one step at the current q.

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


def links(model: Model, q: Float[Array, " nq"]) -> Link:
    """The links of all steps at `q`.

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
    offset: Any = jnp.where(first, p, 0)
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
    return Link(C, b, c, s, slide * coordinate, turn, slide)


def joint_terms(
    model: Model,
    q: Float[Array, " nq"],
    qd: Float[Array, " nv"],
    qdd: Float[Array, " nv"] | None,
) -> Any:
    """What `accelerate` needs of each step: link, qd, qdd or None, inner bias."""
    t = model.topology
    second = None if qdd is None else rates(t, qdd)
    return links(model, q), rates(t, qd), second, inner_bias(model, qd)


def rates(topology: Topology, x: Float[Array, " nv"]) -> Float[Array, " steps"]:
    """Joint velocities, accelerations or forces of all steps; zero for fixed joints."""
    return take(x, topology.steps.v)


def inner_bias(model: Model, qd: Float[Array, " nv"]) -> tuple[Vec3, Vec3] | None:
    """What joints with a quaternion add to (dw, dv), in the axes of their last step.

    Their columns are fixed in the moved body, not each in the step before: the products
    of rates that the sequence of steps brings in are taken out of dw again, and the
    linear velocity in body axes turns with the body. None if there are no such joints.
    """
    topology = model.topology
    if not topology.quaternion_bodies.size:
        return None
    w = Vec3.of(take(qd, topology.quaternion_v))
    b_w = Vec3(-w.y * w.z, w.x * w.z, -w.x * w.y)
    last, size = topology.steps.last, len(topology.steps.body)
    dw = put(b_w, last[topology.quaternion_bodies], size)
    if not topology.free_bodies.size:
        return dw, jax.tree.map(jnp.zeros_like, dw)
    w = Vec3.of(take(qd, topology.position_v + 3))
    b_v = cross(w, Vec3.of(take(qd, topology.position_v)))
    return dw, put(b_v, last[topology.free_bodies], size)


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


def wrenches(
    model: Model, f_ext: Float[Array, "n 6"] | None
) -> Float[Array, "steps 6"] | None:
    """The external wrench on what each step moves, or None."""
    return None if f_ext is None else at_last_steps(model, f_ext)


def less_external(
    f: Vec3, n: Vec3, external: Float[Array, "*steps 6"] | None
) -> tuple[Vec3, Vec3]:
    """A wrench less the external one, if there is one."""
    if external is None:
        return f, n
    return f - Vec3.of(external[..., :3]), n - Vec3.of(external[..., 3:])


def step_frames(model: Model) -> Float[Array, "steps 3 3"]:
    """For each step the rotation Q from body axes to axes with z along the step."""
    steps, one = model.topology.steps, jnp.eye(3, dtype=model.dtype)
    axis3 = jnp.cross(model.axis, model.axis2)
    table = {
        "axis": model.axis,
        "axis2": model.axis2,
        "axis3": axis3,
        "plane": jnp.cross(axis3, model.axis),
        **{
            k: jnp.broadcast_to(row, (model.n, 3))
            for k, row in zip("xyz", one, strict=True)
        },
    }
    directions = jnp.concatenate([table[name] for name in DIRECTIONS])
    chosen = take(directions, steps.direction * model.n + steps.body)
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


def product(A: Any, B: Any) -> Any:
    """Matrix products written out: full precision on every backend."""
    return (A[..., :, :, None] * B[..., None, :, :]).sum(axis=-2)
