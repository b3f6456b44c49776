"""Poses, velocities, accelerations and Jacobians of the bodies."""

import difflib
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.algorithms.couplings import along_columns, of_tree
from jaxdyn.algorithms.kinematics._log_depth import parallel_motions, parallel_poses
from jaxdyn.algorithms.steps import (
    Base,
    Motion,
    motions,
    poses,
    product,
    screw,
    step_frames,
)
from jaxdyn.model import Model, Nq, Nv, arguments, whole
from jaxdyn.program import collect, compiled, from_parents, put, take
from jaxdyn.spatial import Mat3, Twist, Vec3, cross

Place = tuple[int, int | None]  # a body, and a frame on it


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


@compiled("method")
@of_tree()
def forward_kinematics(model: Model, q: Nq, *, method: str = "walk") -> Poses:
    """The pose of every body frame in the world.

    R_i = R_p C_i Rz(theta_i), p_i = p_p + R_p b_i + e_i d_i.

    Args:
        method: "walk" outward, O(n), or "parallel": O(n log n) operations in O(log n)
            dependent steps.
    """
    model, q = arguments(model, q=q)
    last = model.topology.steps.last
    if _is_parallel("forward_kinematics", method):
        R, p = take(parallel_poses(model, q), last)
    else:
        R, p = collect(model.topology.lanes, poses(model, q), last)
    Q = take(step_frames(model), model.topology.steps.last)
    return Poses(product(R.array(), jnp.swapaxes(Q, -1, -2)), p.array())


@compiled()
@of_tree()
def frame_poses(model: Model, q: Nq) -> Poses:
    """The pose in the world of every frame in `model.frame_names`."""
    model, q = arguments(model, q=q)
    bodies = forward_kinematics(model, q)
    world = jnp.eye(3, dtype=q.dtype), jnp.zeros(3, q.dtype)
    at = np.array(model.frame_bodies, int)  # -1 is the world
    R, p = from_parents(at, (bodies.R, bodies.p), world)
    moved = product(R, model.frame_p[..., None])[..., 0]
    return Poses(product(R, model.frame_R), p + moved)


@compiled("method")
@of_tree()
def body_velocities(
    model: Model, q: Nq, qd: Nv, *, base: Base = None, method: str = "walk"
) -> Velocities:
    """The velocity of every body: of its origin and angular, in world axes.

    [Angeles] eqs. 7.25a, 7.33a, 7.34e, for the joint origins: w_i = w_p + e turn qd and
    v_i = v_p + w_p x a_i + e slide qd, with a_i from the parent's origin.

    Args:
        base: motion of the base; by default it rests.
        method: as in `forward_kinematics`.
    """
    model, q, qd, base = arguments(model, q=q, qd=qd, base=base)
    moved = parallel_motions if _is_parallel("body_velocities", method) else motions
    at = take(moved(model, q, qd, None, base), model.topology.steps.last)
    return Velocities(at.v.array(), at.w.array())


@compiled("method")
@of_tree()
def body_accelerations(
    model: Model, q: Nq, qd: Nv, qdd: Nv, *, base: Base = None, method: str = "walk"
) -> Accelerations:
    """The acceleration of every body: of its origin and angular, without gravity.

    [Angeles] eqs. 7.25b, 7.33b, 7.34f, for the joint origins and every joint: with a
    from the parent's origin, dw_i = dw_p + w_p x e turn qd + e turn qdd and dv_i = dv_p
    + dw_p x a + w_p x (w_p x a) + 2 w_p x e slide qd + e slide qdd.

    Args:
        base: motion of the base; by default it rests.
        method: as in `forward_kinematics`.
    """
    model, q, qd, qdd, base = arguments(model, q=q, qd=qd, qdd=qdd, base=base)
    moved = parallel_motions if _is_parallel("body_accelerations", method) else motions
    at = take(moved(model, q, qd, qdd, base), model.topology.steps.last)
    return Accelerations(at.dv.array(), at.dw.array())


def jacobian(
    model: Model, q: Nq, body: str | int, point: Float[Array, "3"] | None = None
) -> Float[Array, "6 nv"]:
    """The matrix J with [v; w] = J qd for a body, linear rows first, in world axes.

    Args:
        body: name or index of a body, or name of a frame.
        point: where v is taken, in the axes of that body or frame; by default its
            origin.
    """
    return jacobian_at(model, q, point, place=moving_place(model, body))


@compiled("place")
@of_tree(along_columns)
def jacobian_at(
    model: Model, q: Nq, point: Float[Array, "3"] | None = None, *, place: Place
) -> Float[Array, "6 nv"]:
    """As `jacobian`, for a place instead of a name."""
    at = jnp.zeros(3, model.dtype) if point is None else point
    model, q, at = arguments(model, q=q, point=at)
    i, c = place[0], _attachment(model, place, at)
    steps, support = model.topology.steps, model.topology.support(i)
    support = support[steps.v[support] < model.nv]  # without fixed joints
    R, p = collect(model.topology.lanes, poses(model, q))
    (turn, slide), axes, origins = take((screw(model), R.z, p), support)
    R, p = jax.tree.map(lambda x: x[steps.last[i]], (R, p))
    columns = Twist(axes * slide, axes * turn).shift(p + R @ c - origins)
    return put(columns.array(), steps.v[support], model.nv).T


def jacobian_dot_qd(
    model: Model, q: Nq, qd: Nv, body: str | int, point: Float[Array, "3"] | None = None
) -> Float[Array, "6"]:
    """The product Jdot qd of `jacobian`: the acceleration at qdd = 0, no gravity."""
    return _jacobian_dot_qd(model, q, qd, point, place=moving_place(model, body))


@compiled("place")
def _jacobian_dot_qd(
    model: Model, q: Nq, qd: Nv, point: Float[Array, "3"] | None, *, place: Place
) -> Float[Array, "6"]:
    at = jnp.zeros(3, model.dtype) if point is None else point
    model, q, qd, at = arguments(model, q=q, qd=qd, point=at)
    c, last = _attachment(model, place, at), model.topology.steps.last[place[0]]
    at = jax.tree.map(lambda x: x[last], motions(*whole(model, q, qd)))
    r = at.R @ c
    rate = at.rate.shift(r)
    return Twist(rate.v + cross(at.w, cross(at.w, r)), rate.w).array()


@compiled()
@of_tree()
def center_of_mass(model: Model, q: Nq) -> Float[Array, "3"]:
    """The centre of mass of all bodies, in the world; NaN if none has mass."""
    model, q = arguments(model, q=q)
    bodies = forward_kinematics(model, q)
    centers = bodies.p + product(bodies.R, model.com[..., None])[..., 0]
    return (model.mass[:, None] * centers).sum(axis=0) / model.mass.sum()


def body_motions(
    model: Model, q: Nq, qd: Nv, qdd: Nv | None = None, base: Base = None
) -> Motion:
    """The motion of every body, gravity not included; axes are those of the body."""
    last = model.topology.steps.last
    at = take(motions(model, q, qd, qdd, base), last)
    Q = jnp.swapaxes(take(step_frames(model), last), -1, -2)
    return replace(at, R=Mat3.of(product(at.R.array(), Q)))


def _is_parallel(quantity: str, method: str) -> bool:
    if method not in ("walk", "parallel"):
        raise ValueError(
            f"{quantity}: method is {method!r}, expected one of: walk, parallel."
        )
    return method == "parallel"


def moving_place(model: Model, body: str | int) -> Place:
    """The index of a body and of a frame on it, None for the body itself.

    Args:
        body: name or index of a body, or name of a frame.

    Raises:
        ValueError: there is none of that name, or it is fixed to the world.
    """
    frame = model.find("frame_names", body) if isinstance(body, str) else None
    if frame is None and isinstance(body, str) and body not in model.topology.names:
        names = [*model.frame_names, *model.names]
        close = difflib.get_close_matches(body, names, 1)
        hint = f"; did you mean {close[0]!r}?" if close else "."
        raise ValueError(
            f"model {model.name!r} has no frame or body {body!r}, expected one of: "
            f"{', '.join(names)}{hint}"
        )
    if frame is None:
        return model.body(body), None
    if model.frame_bodies[frame] < 0:
        raise ValueError(f"frame {body!r} is fixed to the world: it does not move.")
    return model.frame_bodies[frame], frame


def _attachment(model: Model, place: Place, point: Float[Array, "3"]) -> Vec3:
    """A point of a body or frame in the axes of that body's last step."""
    (i, frame), c = place, Vec3.of(point)
    if frame is not None:
        c = Vec3.of(model.frame_p[frame]) + Mat3.of(model.frame_R[frame]) @ c
    Q = Mat3.of(step_frames(model)[model.topology.steps.last[i]])
    return Q.T @ c
