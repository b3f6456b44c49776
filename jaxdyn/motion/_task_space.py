r"""Motions and forces of a frame: its pose and rates, its inertia, and its control.

With the Jacobian J of the frame and the inertia matrix M of the joints,

$$\Lambda = (J M^{-1} J^T)^{-1}, \qquad \bar J = M^{-1} J^T \Lambda, \qquad
  N = 1 - J^T \bar J^T$$

are the inertia that the frame shows to a force on it, the inverse of J whose motions
take the least kinetic energy, and the joint forces that do not move the frame: [Khatib]
A unified approach for motion and force control of robot manipulators, 1987.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.algorithms.kinematics import (
    Place,
    difference,
    forward_kinematics,
    jacobian,
    jacobian_dot_qd,
    moving_place,
)
from jaxdyn.dynamics import bias_forces, factor
from jaxdyn.model import Model, Nq, Nv, arguments
from jaxdyn.motion._controllers import Gain, Gains, check_driven, limited
from jaxdyn.motion._inputs import inputs, real
from jaxdyn.motion._inverse_kinematics import poses_of
from jaxdyn.program import alone, put

Matrix = Float[Array, "3 3"]
Point = Float[Array, "3"]
Twist6 = Float[Array, "6"]
Goal = Callable[[Any], tuple[Matrix, Point]]


def frame_pose(model: Model, q: Nq, frame: str | int) -> tuple[Matrix, Point]:
    """Axes and origin in the world of one frame or body, by name or index."""
    return _pose(model, q, (moving_place(model, frame),))


@alone("places")
def _pose(model: Model, q: Nq, places: tuple[Place, ...]) -> tuple[Matrix, Point]:
    model, q = arguments(model, q=q)
    found = poses_of(model, q, places)
    return found.R[0], found.p[0]


def frame_velocity(model: Model, q: Nq, qd: Nv, frame: str | int) -> Twist6:
    """Velocity of a frame's origin and its angular velocity, in world axes."""
    return _times(jacobian(model, q, frame), qd)


def frame_acceleration(
    model: Model, q: Nq, qd: Nv, qdd: Nv, frame: str | int
) -> Twist6:
    """Acceleration of a frame's origin and its angular one, without gravity."""
    moved = _times(jacobian(model, q, frame), qdd)
    return moved + jacobian_dot_qd(model, q, qd, frame)


def point_wrench(
    model: Model,
    q: Nq,
    frame: str | int,
    force: Float[Array, "3"],
    moment: Float[Array, "3"] | None = None,
    point: Float[Array, "3"] | None = None,
) -> Float[Array, "n 6"]:
    """A force and a moment on a frame as `f_ext`; several are added up.

    Args:
        frame: name or index of a body, or name of a frame.
        force, moment: in world axes.
        point: where the force acts, in the axes of the frame; by default its origin.
    """
    place = moving_place(model, frame)
    none = jnp.zeros(3, model.dtype)
    given = (
        force,
        none if moment is None else moment,
        none if point is None else point,
    )
    shapes = {"force": (3,), "moment": (3,), "point": (3,)}
    rows = {name: (x, shapes[name]) for name, x in zip(shapes, given, strict=True)}
    model, q, f, m, at = inputs(model, q=(q, (model.nq,)), **rows)
    R, p = _pose(model, q, (place,))
    origin = forward_kinematics(model, q).p[place[0]]
    arm = p + _times(R, at) - origin
    wrench = jnp.concatenate([f, m + jnp.cross(arm, f)])
    return put(wrench[None], np.array([place[0]]), model.n)


def rotation_vector(R: Matrix) -> Point:
    """The logarithm of a rotation: its axis times its angle.

    Right with all derivatives for less than half a turn, where the axis jumps.
    """
    w = jnp.stack([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / 2
    square, cosine = (w * w).sum(), (jnp.trace(R) - 1) / 2
    is_small = square < 1e-4
    sine = jnp.sqrt(jnp.where(is_small, 1, square))
    # the series of asin(s) / s, to rounding where it is used
    terms = (1.0, 1 / 6, 3 / 40, 15 / 336, 105 / 3456, 945 / 42240)
    series = jnp.zeros_like(square)
    for c in reversed(terms):
        series = c + square * series
    near = jnp.where(cosine > 0, series, jnp.pi / jnp.sqrt(square + 1e-30) - series)
    return w * jnp.where(is_small, near, jnp.arctan2(sine, cosine) / sine)


def pose_error(R: Matrix, p: Point, R_goal: Matrix, p_goal: Point) -> Twist6:
    """The step from a pose to another: a way and a rotation vector in world axes."""
    turn = rotation_vector(jnp.matmul(R_goal, R.T, precision="highest"))
    return jnp.concatenate([p_goal - p, turn])


class TaskSpace(eqx.Module):
    """What a frame shows of the robot behind it, in one configuration.

    Attributes:
        J: the Jacobian of the frame, or some of its rows.
        inertia: Lambda, the inertia of the frame.
        inverse: the dynamically consistent inverse of J.
    """

    J: Float[Array, "rows nv"]
    inertia: Float[Array, "rows rows"]
    inverse: Float[Array, "nv rows"]

    def null(self, tau: Nv) -> Nv:
        """The part N tau of joint forces that does not accelerate the frame."""
        return tau - _times(self.J.T, _times(self.inverse.T, tau))


def task_space(
    model: Model,
    q: Nq,
    frame: str | int,
    *,
    rows: slice | tuple[int, ...] = slice(6),
    damping: Float[Array, ""] | float = 0.0,
) -> TaskSpace:
    """Inertia and dynamically consistent inverse of a frame, by the factor of M; O(n).

    Args:
        rows: of the Jacobian, three linear ones first: slice(3) for the position.
        damping: added to the diagonal of J M⁻¹ Jᵀ, for singular postures.
    """
    J = jacobian(model, q, frame)
    J = J[rows if isinstance(rows, slice) else jnp.array(rows)]
    X = factor(model, q).solve(J.T)
    mobility = jnp.matmul(J, X, precision="highest")
    one = jnp.eye(len(J), dtype=J.dtype)
    inertia = jnp.linalg.inv(mobility + damping * one)
    inertia = (inertia + inertia.T) / 2
    return TaskSpace(J, inertia, jnp.matmul(X, inertia, precision="highest"))


class OperationalSpace(eqx.Module):
    """A frame that follows a pose; see `operational_space`."""

    model: Model
    goal: Goal
    kp: Gains
    kd: Gains
    posture: Float[Array, " nq"]
    posture_gains: tuple[Gains, Gains]
    damping: Float[Array, ""]
    frame: str | int = eqx.field(static=True)
    saturate: bool = eqx.field(static=True)

    def __call__(self, t: Any, q: Nq, qd: Nv) -> Nv:
        """The joint forces at time t in a state."""
        model, q, qd = arguments(self.model, q=q, qd=qd)
        error = pose_error(*frame_pose(model, q, self.frame), *self.goal(t))
        at = task_space(model, q, self.frame, damping=self.damping)
        wanted = self.kp * error - self.kd * _times(at.J, qd)
        push = _times(at.inertia, wanted - jacobian_dot_qd(model, q, qd, self.frame))
        kp, kd = self.posture_gains
        own = at.null(kp * difference(model, q, self.posture) - kd * qd)
        tau = _times(at.J.T, push) + own + bias_forces(model, q, qd)
        return limited(model, tau) if self.saturate else tau


def operational_space(
    model: Model,
    frame: str | int,
    goal: Goal | tuple[Matrix, Point],
    kp: Gain,
    kd: Gain,
    *,
    posture: Nq,
    posture_kp: Gain = 0.0,
    posture_kd: Gain = 0.0,
    damping: float = 0.0,
    saturate: bool = False,
    free_joints: bool = False,
) -> OperationalSpace:
    r"""The law that makes the error of a frame's pose a damped oscillation.

    $$\tau = J^T \Lambda\, (k_p e - k_d J \dot q - \dot J \dot q) + h
      + N (k_p' (q^* - q) - k_d' \dot q)$$

    with e of `pose_error`; h are all forces that the motion needs.

    Args:
        frame: name or index of a body, or name of a frame.
        goal: axes and origin in the world, or a function of time for them.
        kp, kd: one number or six, in 1/s² and 1/s.
        posture: the configuration q* that joints seek as far as the frame allows.
        posture_kp, posture_kd: forces by position and by velocity.
        damping: of `task_space`.
        saturate: whether forces are cut at `model.effort`.
        free_joints: whether the law also pushes free joints, as thrusters do.

    Raises:
        ValueError: an unknown frame, wrong shapes, a model with loops or free joints.
    """
    check_driven("operational_space", model, free_joints)
    moving_place(model, frame)
    if not callable(goal):
        R, p = (
            real(name, x, shape, model).astype(model.dtype)
            for name, x, shape in zip(
                ("rotation", "position"), goal, ((3, 3), (3,)), strict=True
            )
        )
        goal = Still(R, p)
    model, posture = inputs(model, posture=(posture, (model.nq,)))
    gains = {"kp": (kp, 6), "kd": (kd, 6)}
    gains |= {
        "posture_kp": (posture_kp, model.nv),
        "posture_kd": (posture_kd, model.nv),
    }
    found = [_gain(name, x, size, model) for name, (x, size) in gains.items()]
    softness = jnp.asarray(damping, model.dtype)
    return OperationalSpace(
        *(model, goal, found[0], found[1], posture, (found[2], found[3])),
        *(softness, frame, saturate),
    )


class Still(eqx.Module):
    """The same pose at all times."""

    R: Matrix
    p: Point

    def __call__(self, t: Any) -> tuple[Matrix, Point]:
        """The pose."""
        return self.R, self.p


def _gain(name: str, value: Any, size: int, model: Model) -> Any:
    value = jnp.asarray(value).astype(model.dtype)
    if value.shape not in ((), (size,)):
        raise ValueError(
            f"{name} has shape {value.shape}, expected one number or {(size,)}."
        )
    return value


def _times(A: Array, x: Array) -> Array:
    return jnp.matmul(A, x, precision="highest")
