"""How each step moves: its place and motion in the world, from those of its parent."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.algorithms.steps._local import Link, joint_terms, links
from jaxdyn.model import Model
from jaxdyn.program import collect, outward, spread
from jaxdyn.spatial import Mat3, Vec3, cross, turn_z


def _at_rest() -> Float[Array, "3"]:
    return jnp.zeros(3, jnp.float32)  # the type that yields to every other


class BaseMotion(eqx.Module):
    """Motion of the base at the instant it coincides with the world frame.

    Attributes:
        v, w: velocity of its origin and angular velocity, in world axes.
        dv, dw: their rates. What is left out is zero.

    Name them: `BaseMotion(v=v, dw=dw)`.
    """

    _: KW_ONLY
    v: Float[Array, "3"] = eqx.field(default_factory=_at_rest)
    w: Float[Array, "3"] = eqx.field(default_factory=_at_rest)
    dv: Float[Array, "3"] = eqx.field(default_factory=_at_rest)
    dw: Float[Array, "3"] = eqx.field(default_factory=_at_rest)


def base_state(
    dtype: Any, base: BaseMotion | None
) -> tuple[Mat3, Vec3, Vec3, Vec3, Vec3]:
    """Rotation, velocities and accelerations of the base."""
    if base is None:
        o = Vec3.zero(dtype)
        return Mat3.identity(dtype), o, o, o, o
    v, w, dv, dw = (Vec3.of(x) for x in (base.v, base.w, base.dv, base.dw))
    return Mat3.identity(dtype), v, w, dv, dw


def move(R0: Mat3, link: Link) -> tuple[Mat3, Vec3, Vec3]:
    """Axes of a step, offset from its parent's origin, and its axis e, in the world."""
    R = turn_z(R0 @ Mat3.of(link.C), link.c, link.s)
    return R, R0 @ Vec3.of(link.b) + R.z * link.d, R.z


def poses(model: Model, q: Float[Array, " nq"]) -> Any:
    """The axes and origins of all steps, laned."""
    lanes = model.topology.lanes

    def pose(parent: Any, link: Link) -> Any:
        R0, p0 = parent
        R, a, _ = move(R0, link)
        return (R, p0 + a), (R, p0 + a)

    root = Mat3.identity(q.dtype), Vec3.zero(q.dtype)
    return outward(lanes, pose, root, spread(lanes, links(model, q)))


def accelerate(parent: Any, joint: Any) -> tuple[tuple[Mat3, Vec3, Vec3, Vec3], Vec3]:
    """Axes, w, dv, dw of a step from those of its parent, and its offset a.

    `joint` is the step's link, its qd, its qdd or None, its inner bias or None.
    """
    R, a, _ = move(parent[0], joint[0])
    return accelerated(parent, joint, R, a), a


def accelerated(
    parent: Any, joint: Any, R: Mat3, a: Vec3
) -> tuple[Mat3, Vec3, Vec3, Vec3]:
    """The same for a step whose axes and offset are known."""
    (link, qd, qdd, bias), (_, w0, dv0, dw0), e = joint, parent, R.z
    w_rel = e * (link.turn * qd)
    dv = dv0 + cross(dw0, a) + cross(w0, cross(w0, a) + e * (2 * link.slide * qd))
    dw = dw0 + cross(w0, w_rel)
    if qdd is not None:
        dv, dw = dv + e * (link.slide * qdd), dw + e * (link.turn * qdd)
    if bias is not None:
        dw, dv = dw + R @ bias[0], dv + R @ bias[1]
    return R, w0 + w_rel, dv, dw


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Motion:
    """Axes, place, velocities and accelerations of bodies or steps, in the world."""

    R: Mat3
    p: Vec3
    v: Vec3
    w: Vec3
    dv: Vec3
    dw: Vec3


def motions(
    model: Model,
    q: Float[Array, " nq"],
    qd: Float[Array, " nv"],
    qdd: Float[Array, " nv"] | None = None,
    base: BaseMotion | None = None,
) -> Motion:
    """The motion of every step, gravity not included; axes are those of the step."""
    lanes = model.topology.lanes

    def outwards(parent: Motion, joint: Any) -> Any:
        x, (link, rate, _, _) = parent, joint
        (R, w, dv, dw), a = accelerate((x.R, x.w, x.dv, x.dw), joint)
        v = x.v + cross(x.w, a) + R.z * (link.slide * rate)
        own = Motion(R, x.p + a, v, w, dv, dw)
        return own, own

    R, v, w, dv, dw = base_state(q.dtype, base)
    root = Motion(R, Vec3.zero(q.dtype), v, w, dv, dw)
    terms = spread(lanes, joint_terms(model, q, qd, qdd))
    return collect(lanes, outward(lanes, outwards, root, terms))
