"""Pose and motion of each step in the world, from those of its parent."""

from dataclasses import KW_ONLY
from typing import TypeAlias

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.algorithms.steps._local import (
    LocalStep,
    StepTerms,
    inertias,
    local_steps,
    step_terms,
)
from jaxdyn.algorithms.steps._world import WorldStep, move
from jaxdyn.model import Model, Nq, Nv
from jaxdyn.program import Laned, collect, outward, spread
from jaxdyn.spatial import Mat3, RigidInertia, Scalar, Twist, Vec3, cross, pytree

Pose: TypeAlias = tuple[Mat3, Vec3]  # axes and origin


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


Base: TypeAlias = BaseMotion | None  # None rests


@pytree
class Motion:
    """Axes, origin, twist and its rate of a body or step, in the world."""

    R: Mat3
    p: Vec3
    twist: Twist
    rate: Twist

    @property
    def v(self) -> Vec3:
        """The velocity of the origin."""
        return self.twist.v

    @property
    def w(self) -> Vec3:
        """The angular velocity."""
        return self.twist.w

    @property
    def dv(self) -> Vec3:
        """The acceleration of the origin."""
        return self.rate.v

    @property
    def dw(self) -> Vec3:
        """The angular acceleration."""
        return self.rate.w


@pytree
class MovingFrame:
    """What of a motion the next step's acceleration depends on.

    Attributes:
        R: axes; w: angular velocity; rate: (dv, dw).
    """

    R: Mat3
    w: Vec3
    rate: Twist


def base_motion(dtype: jnp.dtype, base: Base) -> Motion:
    """The motion of the base, without gravity."""
    R, o = Mat3.identity(dtype), Vec3.zero(dtype)
    if base is None:
        return Motion(R, o, Twist(o, o), Twist(o, o))
    v, w, dv, dw = (Vec3.of(x) for x in (base.v, base.w, base.dv, base.dw))
    return Motion(R, o, Twist(v, w), Twist(dv, dw))


def base_frame(model: Model, dtype: jnp.dtype, base: Base) -> MovingFrame:
    """The base, which accelerates against gravity: [Angeles] eq. 7.44."""
    at = base_motion(dtype, base)
    return MovingFrame(at.R, at.w, Twist(at.dv - Vec3.of(model.gravity), at.dw))


def poses(model: Model, q: Nq) -> Laned[Pose]:
    """The axes and origins of all steps, laned."""
    lanes = model.topology.lanes

    def pose(parent: Pose, step: LocalStep) -> tuple[Pose, Pose]:
        R0, p0 = parent
        R, moved = move(R0, step)
        return (R, p0 + moved.a), (R, p0 + moved.a)

    root = Mat3.identity(q.dtype), Vec3.zero(q.dtype)
    return outward(lanes, pose, root, spread(lanes, local_steps(model, q)))


@pytree
class PlacedStep:
    """A step, its place `r` in the world and the inertia of what it carries."""

    step: WorldStep
    r: Vec3
    inertia: RigidInertia


def world_steps(model: Model, q: Nq) -> Laned[PlacedStep]:
    """All steps in world axes with what they carry, laned."""
    lanes = model.topology.lanes

    def place(parent: Pose, x: tuple[LocalStep, Array]):
        (R0, r0), (local, pi) = parent, x
        R, step = move(R0, local)
        placed = PlacedStep(step, r0 + step.a, RigidInertia.of(pi).rotate(R))
        return (R, placed.r), placed

    root = Mat3.identity(q.dtype), Vec3.zero(q.dtype)
    rows = spread(lanes, (local_steps(model, q), inertias(model)))
    return outward(lanes, place, root, rows)


def accelerate(parent: MovingFrame, x: StepTerms) -> tuple[MovingFrame, WorldStep]:
    """A step as a moving frame from its parent, and the step in the world."""
    R, step = move(parent.R, x.local)
    return accelerated(parent, R, step, x.qd, x.qdd, x.bias), step


def accelerated(
    parent: MovingFrame,
    R: Mat3,
    step: WorldStep,
    qd: Scalar,
    qdd: Scalar | None,
    bias: Twist | None,
) -> MovingFrame:
    """The same for a step that is known in the world, with the axes R."""
    w0, dv0, dw0 = parent.w, parent.rate.v, parent.rate.w
    e, a, turn, slide = step.e, step.a, step.turn, step.slide
    w_rel = e * (turn * qd)
    dv = dv0 + cross(dw0, a) + cross(w0, cross(w0, a) + e * (2 * slide * qd))
    rate = Twist(dv, dw0 + cross(w0, w_rel))
    if qdd is not None:
        rate = rate + step.column(qdd)
    if bias is not None:
        rate = rate + bias.rotate(R)
    return MovingFrame(R, w0 + w_rel, rate)


def motions(
    model: Model, q: Nq, qd: Nv, qdd: Nv | None = None, base: Base = None
) -> Motion:
    """The motion of every step, gravity not included; axes are those of the step."""
    lanes = model.topology.lanes

    def outwards(parent: Motion, x: StepTerms) -> tuple[Motion, Motion]:
        at, step = accelerate(MovingFrame(parent.R, parent.w, parent.rate), x)
        v = parent.v + cross(parent.w, step.a) + step.e * (step.slide * x.qd)
        own = Motion(at.R, parent.p + step.a, Twist(v, at.w), at.rate)
        return own, own

    terms = spread(lanes, step_terms(model, q, qd, qdd))
    return collect(lanes, outward(lanes, outwards, base_motion(q.dtype, base), terms))
