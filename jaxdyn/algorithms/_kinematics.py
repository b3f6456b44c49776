"""Poses, velocities, accelerations and Jacobians of the bodies."""

from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.algorithms._compiled import compiled
from jaxdyn.algorithms._links import (
    Link,
    joint_terms,
    links,
    product,
    screw,
    step_frames,
)
from jaxdyn.algorithms._rows import put, take
from jaxdyn.algorithms._walk import collect, from_parents, outward, spread
from jaxdyn.model import Model, arguments
from jaxdyn.spatial import Mat3, Vec3, cross, turn_z


class Poses(eqx.Module):
    """Poses of bodies or frames: x_world = R x + p."""

    R: Float[Array, "n 3 3"]
    p: Float[Array, "n 3"]


class Velocities(eqx.Module):
    """Velocity `v` of each body origin and angular velocity `w`, in world axes."""

    v: Float[Array, "n 3"]
    w: Float[Array, "n 3"]


class Accelerations(eqx.Module):
    """Acceleration `dv` of each body origin and angular `dw`, in world axes."""

    dv: Float[Array, "n 3"]
    dw: Float[Array, "n 3"]


def _at_rest() -> Float[Array, "3"]:
    return jnp.zeros(3, jnp.float32)  # the type that yields to every other


class BaseMotion(eqx.Module):
    """Motion of the base at the instant it coincides with the world frame.

    Attributes:
        v, w: velocity of its origin and angular velocity, in world axes.
        dv, dw: their rates. What is left out is zero.
    """

    v: Float[Array, "3"] = eqx.field(default_factory=_at_rest)
    w: Float[Array, "3"] = eqx.field(default_factory=_at_rest)
    dv: Float[Array, "3"] = eqx.field(default_factory=_at_rest)
    dw: Float[Array, "3"] = eqx.field(default_factory=_at_rest)


@compiled()
def forward_kinematics(model: Model, q: Float[Array, " nq"]) -> Poses:
    """The pose of every body frame in the world.

    One outward walk, O(n): R_i = R_p C_i Rz(theta_i), p_i = p_p + R_p b_i + e_i d_i.
    """
    model, q = arguments(model, q=q)
    R, p = collect(model.topology.lanes, poses(model, q), model.topology.steps.last)
    Q = take(step_frames(model), model.topology.steps.last)
    return Poses(product(R.array(), jnp.swapaxes(Q, -1, -2)), p.array())


@compiled()
def frame_poses(model: Model, q: Float[Array, " nq"]) -> Poses:
    """The pose in the world of every frame in `model.frame_names`."""
    model, q = arguments(model, q=q)
    bodies = forward_kinematics(model, q)
    world = jnp.eye(3, dtype=q.dtype), jnp.zeros(3, q.dtype)
    at = np.array(model.frame_bodies, int)  # -1 is the world
    R, p = from_parents(at, (bodies.R, bodies.p), world)
    moved = product(R, model.frame_p[..., None])[..., 0]
    return Poses(product(R, model.frame_R), p + moved)


@compiled()
def body_velocities(
    model: Model,
    q: Float[Array, " nq"],
    qd: Float[Array, " nv"],
    *,
    base: BaseMotion | None = None,
) -> Velocities:
    """The velocity of every body: of its origin and angular, in world axes.

    [Angeles] eqs. 7.25a, 7.33a, 7.34e, for the joint origins: w_i = w_p + e turn qd and
    v_i = v_p + w_p x a_i + e slide qd, with a_i from the parent's origin.
    """
    model, q, qd, base = arguments(model, q=q, qd=qd, base=base)
    at = take(motions(model, q, qd, None, base), model.topology.steps.last)
    return Velocities(at.v.array(), at.w.array())


@compiled()
def body_accelerations(
    model: Model,
    q: Float[Array, " nq"],
    qd: Float[Array, " nv"],
    qdd: Float[Array, " nv"],
    *,
    base: BaseMotion | None = None,
) -> Accelerations:
    """The acceleration of every body: of its origin and angular, without gravity.

    [Angeles] eqs. 7.25b, 7.33b, 7.34f, for the joint origins and every joint: with a
    from the parent's origin, dw_i = dw_p + w_p x e turn qd + e turn qdd and dv_i = dv_p
    + dw_p x a + w_p x (w_p x a) + 2 w_p x e slide qd + e slide qdd.
    """
    model, q, qd, qdd, base = arguments(model, q=q, qd=qd, qdd=qdd, base=base)
    at = take(motions(model, q, qd, qdd, base), model.topology.steps.last)
    return Accelerations(at.dv.array(), at.dw.array())


@compiled("body")
def jacobian(
    model: Model,
    q: Float[Array, " nq"],
    body: str | int,
    point: Float[Array, "3"] | None = None,
) -> Float[Array, "6 nv"]:
    """The matrix J with [v; w] = J qd for a body, linear rows first, in world axes.

    Args:
        body: name or index of a body, or name of a frame.
        point: where v is taken, in the axes of that body or frame; by default its
            origin.
    """
    at = jnp.zeros(3, model.dtype) if point is None else point
    model, q, at = arguments(model, q=q, point=at)
    i, c = _attachment(model, body, at)
    steps, support = model.topology.steps, model.topology.support(i)
    support = support[steps.v[support] < model.nv]  # without fixed joints
    R, p = collect(model.topology.lanes, poses(model, q))
    screws, axes, origins = take((screw(model), R.z, p), support)
    R, p = jax.tree.map(lambda x: x[steps.last[i]], (R, p))
    lever = p + R @ c - origins
    angular = axes * screws[0]
    linear = axes * screws[1] + cross(angular, lever)
    rows = jnp.concatenate([linear.array(), angular.array()], axis=-1)
    return put(rows, steps.v[support], model.nv).T


@compiled("body")
def jacobian_dot_qd(
    model: Model,
    q: Float[Array, " nq"],
    qd: Float[Array, " nv"],
    body: str | int,
    point: Float[Array, "3"] | None = None,
) -> Float[Array, "6"]:
    """The product Jdot qd of `jacobian`: the acceleration at qdd = 0, no gravity."""
    at = jnp.zeros(3, model.dtype) if point is None else point
    model, q, qd, at = arguments(model, q=q, qd=qd, point=at)
    i, c = _attachment(model, body, at)
    last = model.topology.steps.last[i]
    at = jax.tree.map(lambda x: x[last], motions(model, q, qd))
    r = at.R @ c
    dv = at.dv + cross(at.dw, r) + cross(at.w, cross(at.w, r))
    return jnp.concatenate([dv.array(), at.dw.array()])


@compiled()
def center_of_mass(model: Model, q: Float[Array, " nq"]) -> Float[Array, "3"]:
    """The centre of mass of all bodies, in the world; NaN if none has mass."""
    model, q = arguments(model, q=q)
    bodies = forward_kinematics(model, q)
    centers = bodies.p + product(bodies.R, model.com[..., None])[..., 0]
    return (model.mass[:, None] * centers).sum(axis=0) / model.mass.sum()


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
    (link, qd, qdd, bias), (R0, w0, dv0, dw0) = joint, parent
    R, a, e = move(R0, link)
    w_rel = e * (link.turn * qd)
    dv = dv0 + cross(dw0, a) + cross(w0, cross(w0, a) + e * (2 * link.slide * qd))
    dw = dw0 + cross(w0, w_rel)
    if qdd is not None:
        dv, dw = dv + e * (link.slide * qdd), dw + e * (link.turn * qdd)
    if bias is not None:
        dw, dv = dw + R @ bias[0], dv + R @ bias[1]
    return (R, w0 + w_rel, dv, dw), a


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


def body_motions(
    model: Model,
    q: Float[Array, " nq"],
    qd: Float[Array, " nv"],
    qdd: Float[Array, " nv"] | None = None,
    base: BaseMotion | None = None,
) -> Motion:
    """The motion of every body, gravity not included; axes are those of the body."""
    last = model.topology.steps.last
    at = take(motions(model, q, qd, qdd, base), last)
    Q = jnp.swapaxes(take(step_frames(model), last), -1, -2)
    return replace(at, R=Mat3.of(product(at.R.array(), Q)))


def _attachment(
    model: Model, body: str | int, point: Float[Array, "3"]
) -> tuple[int, Vec3]:
    """The body meant by a name, and the point in the axes of that body's last step."""
    c = Vec3.of(point)
    if isinstance(body, str) and body in model.frame_names:
        k = model.frame_names.index(body)
        i = model.frame_bodies[k]
        if i < 0:
            raise ValueError(f"frame {body!r} is fixed to the world: it does not move.")
        c = Vec3.of(model.frame_p[k]) + Mat3.of(model.frame_R[k]) @ c
    else:
        i = model.body(body)
    Q = Mat3.of(step_frames(model)[model.topology.steps.last[i]])
    return i, Q.T @ c
