"""What each elementary step knows by itself, before any walk.

As in the papers, the frame of a step has its third axis along the joint axis, so that
the joint is Rz(theta) and a slide along z, whatever the user's axis. The frame of a body
is the frame of its last step but for a constant rotation Q.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.algorithms._walk import from_parents
from jaxdyn.model import DIRECTIONS, Model
from jaxdyn.spatial import Mat3, Quaternion, Scalar, Vec3, cross, frame_along


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Link:
    """The joint of one step at the current q.

    Attributes:
        C: rotation from the parent step's axes to this step's, before it turns.
        b: offset of the joint in the parent step's axes, before it slides.
        c, s: cosine and sine of the angle about z.
        d: displacement along z.
        turn, slide: angular and linear velocity along z per unit rate.
    """

    C: Mat3
    b: Vec3
    c: Scalar
    s: Scalar
    d: Scalar
    turn: Scalar
    slide: Scalar


def links(model: Model, q: Float[Array, " nq"]) -> Link:
    """The links of all steps at `q`."""
    topology, steps = model.topology, model.topology.steps
    Q = step_frames(model)
    Q0 = from_parents(steps.parent, Q, Mat3.identity(model.dtype))
    first = jnp.asarray(steps.first)
    R = jnp.where(
        first[:, None, None], model.R[steps.body], jnp.eye(3, dtype=model.dtype)
    )
    p = jnp.where(first[:, None], model.p[steps.body], 0)
    C0 = Q0.T @ Mat3.of(R)
    C, b = C0 @ Q, Q0.T @ Vec3.of(p)

    turned, free = _first_steps(model, "quaternion"), _first_steps(model, "position")
    if turned.size:
        rotation = Quaternion.of(q[topology.quaternion_q]).unit().matrix()
        C = _replace(C, turned, _rows(C0, turned) @ rotation @ _rows(Q, turned))
    if free.size:
        moved = _rows(C0, free) @ Vec3.of(q[topology.position_q])
        b = _replace(b, free, _rows(b, free) + moved)

    turn, slide = screw(model)
    coordinate = q.at[steps.q].get(mode="fill", fill_value=0)
    angle = turn * coordinate
    return Link(C, b, jnp.cos(angle), jnp.sin(angle), slide * coordinate, turn, slide)


def rates(model: Model, x: Float[Array, " nv"]) -> Float[Array, " steps"]:
    """Joint velocities, accelerations or forces of all steps; zero for fixed joints."""
    return x.at[model.topology.steps.v].get(mode="fill", fill_value=0)


def inner_bias(model: Model, qd: Float[Array, " nv"]) -> tuple[Vec3, Vec3] | None:
    """What a joint with a quaternion adds to (dw, dv) by itself, in its last step's axes.

    Its columns are fixed in the moved body, not each in the step before: the products of
    rates that the sequence of steps brings in are taken out of dw again, and the linear
    velocity in body axes turns with the body. None if no joint has a quaternion.
    """
    topology = model.topology
    if not topology.quaternion_bodies.size:
        return None
    w = Vec3.of(qd[topology.quaternion_v])
    b_w = Vec3(-w.y * w.z, w.x * w.z, -w.x * w.y)
    zero = jnp.zeros(topology.steps.body.shape, qd.dtype)
    none = Vec3(zero, zero, zero)
    dw = _replace(none, topology.steps.last[topology.quaternion_bodies], b_w)
    if not topology.free_bodies.size:
        return dw, none
    w = Vec3.of(qd[topology.position_v + 3])
    b_v = cross(w, Vec3.of(qd[topology.position_v]))
    return dw, _replace(none, topology.steps.last[topology.free_bodies], b_v)


def step_frames(model: Model) -> Mat3:
    """For each step the rotation Q from body-like axes to axes with z along the step."""
    steps = model.topology.steps
    x, y, z = (
        jnp.broadcast_to(row, model.axis.shape) for row in jnp.eye(3, dtype=model.dtype)
    )
    axis3 = jnp.cross(model.axis, model.axis2)
    table = dict(axis=model.axis, axis2=model.axis2, axis3=axis3, x=x, y=y, z=z)
    stacked = jnp.stack([table[name] for name in DIRECTIONS])
    return frame_along(Vec3.of(stacked[steps.direction, steps.body]))


def screw(model: Model) -> tuple[Float[Array, " steps"], Float[Array, " steps"]]:
    """Angular and linear velocity along its axis of each step per unit rate."""
    steps = model.topology.steps
    turn = jnp.asarray(steps.turn, model.dtype)
    slide = jnp.asarray(steps.slide, model.dtype)
    return turn, jnp.where(steps.pitched, model.pitch[steps.body], slide)


def _first_steps(model: Model, part: str) -> Any:
    topology = model.topology
    bodies = (
        topology.quaternion_bodies if part == "quaternion" else topology.free_bodies
    )
    widths = [len(topology.types[i].steps) for i in bodies]
    return topology.steps.last[bodies] - widths + 1 if bodies.size else bodies


def _rows(tree: Any, index: Any) -> Any:
    return jax.tree.map(lambda x: x[index], tree)


def _replace(tree: Any, index: Any, rows: Any) -> Any:
    return jax.tree.map(lambda x, y: x.at[index].set(y), tree, rows)
