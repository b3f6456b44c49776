"""Configurations in which frames stand at given places."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix
from jaxtyping import Array, Bool, Float, Int

from jaxdyn.algorithms.kinematics import (
    Place,
    Poses,
    forward_kinematics,
    integrate,
    moving_place,
)
from jaxdyn.model import Model, Nq
from jaxdyn.motion._inputs import check_rotation, inputs, reach, search_bounds
from jaxdyn.program import alone

Frame = str | int
Problem = tuple[Model, Any, "Goal"]


class IKSolution(eqx.Module):
    """What `inverse_kinematics` found.

    Attributes:
        q: the configuration, within the limits of the joints if these are respected.
        error: the largest distance of a frame from its position and the largest angle
            from its rotation, in metres and radians; zero for what was not asked.
        converged: whether both are within the tolerance.
        steps: how many steps were taken.
    """

    q: Float[Array, " nq"]
    error: Float[Array, "2"]
    converged: Bool[Array, ""]
    steps: Int[Array, ""]


def inverse_kinematics(
    model: Model,
    q0: Nq,
    frame: Frame | Sequence[Frame],
    position: Float[Array, "*frames 3"] | None = None,
    rotation: Float[Array, "*frames 3 3"] | None = None,
    *,
    limits: bool = True,
    tolerance: float | None = None,
    max_steps: int = 200,
    throw: bool = True,
) -> IKSolution:
    r"""A configuration in which a frame has a given position, rotation or both.

    Levenberg and Marquardt's method for the tangent step d from q0, any joint type:

    $$\min_d\; \|p(q) - p^*\|^2 + \tfrac12 \|R(q) - R^*\|_F^2
      + \|\max(q_l - q, 0)\|^2 + \|\max(q - q_u, 0)\|^2,
      \quad q = \mathrm{integrate}(q_0, d)$$

    A metre weighs as much as a radian. All terms are smooth, and all vanish at a
    solution. Which solution is found depends on q0; a minimum that is none is reported,
    and another q0 may help. Derivatives are those of the implicit function theorem: the
    least change of d that keeps the frame in place, also where the arm is redundant or
    singular. `error`, `converged` and `steps` have none.

    Args:
        frame: name of a frame, name or index of a body, or several of them; then
            `position` and `rotation` have a row for each.
        position: of the frame's origin, in the world.
        rotation: matrix that turns components in the frame to the world.
        limits: whether q stays between `model.lower` and `model.upper`.
        tolerance: largest error in metres and radians; 1e-9 (float32: 1e-5) by default.
        throw: whether a failure raises; otherwise it is `converged`.

    Raises:
        ValueError: no such frame, wrong shapes, neither position nor rotation, or a
            matrix that is no rotation.
        RuntimeError: the frame did not get there within the tolerance.
    """
    places, lead = _places(model, frame)
    if position is None and rotation is None:
        raise ValueError(
            "position and rotation are None, expected one of them or both."
        )
    given = dict(q0=(q0, (model.nq,)), position=(position, (*lead, 3)))
    given["rotation"] = (rotation, (*lead, 3, 3))
    model, q0, position, rotation = inputs(model, **given)
    if rotation is not None:
        check_rotation("rotation", rotation)
    bound = search_bounds(tolerance, max_steps, q0.dtype)
    goal = Goal(places, position, rotation)
    found = _solve(model, q0, goal, bound, limits, max_steps)
    if not throw:
        return found
    return reach(
        found,
        found.converged,
        f"inverse_kinematics: {_listed(frame)} of model {model.name!r} stayed "
        "{:.3g} m and {:.3g} rad away: out of reach, beyond the limits of the joints, "
        "or a minimum on the way; start from another q0 (throw=False returns what was "
        "found).",
        *found.error,
    )


class Goal(eqx.Module):
    """Where some frames are to stand; fields may be None."""

    places: tuple[Place, ...] = eqx.field(static=True)
    position: Float[Array, "*frames 3"] | None
    rotation: Float[Array, "*frames 3 3"] | None

    def differences(self, model: Model, q: Any) -> tuple[Any, Any]:
        """Rows of p - p* and of the columns of R - R* divided by the root of two.

        For small angles the length of the latter is the angle. Zero for what is None.
        """
        at = poses_of(model, q, self.places)
        p = R = jnp.zeros((1, 3), q.dtype)
        if self.position is not None:
            p = at.p - self.position.reshape(-1, 3)
        if self.rotation is not None:
            R = (at.R - self.rotation.reshape(-1, 3, 3)).reshape(-1, 9) / jnp.sqrt(2)
        return p, R.astype(q.dtype)

    def error(self, model: Model, q: Any) -> Float[Array, "2"]:
        """The largest distance and the largest angle; without derivatives."""
        p, R = self.differences(*jax.lax.stop_gradient((model, q)))
        distance = jnp.sqrt((p**2).sum(axis=-1)).max()
        half = jnp.sqrt((R**2).sum(axis=-1)).max() / 2
        angle = 2 * jnp.arcsin(jnp.minimum(half, 1))
        return jax.lax.stop_gradient(jnp.stack([distance, angle]))


def poses_of(model: Model, q: Any, places: tuple[Place, ...]) -> Poses:
    """The poses of frames or bodies in the world."""
    bodies = forward_kinematics(model, q)
    R, p = [], []
    for i, k in places:
        R_i, p_i = bodies.R[i], bodies.p[i]
        if k is not None:
            R_i, p_i = R_i @ model.frame_R[k], p_i + R_i @ model.frame_p[k]
        R.append(R_i)
        p.append(p_i)
    return Poses(jnp.stack(R), jnp.stack(p))


def _listed(frame: Any) -> str:
    frames = frame if isinstance(frame, list | tuple) else [frame]
    return ", ".join(map(repr, frames))


def _places(model: Model, frame: Any) -> tuple[tuple[Place, ...], tuple[int, ...]]:
    """All places that are meant, and the leading axis of arrays with a row for each."""
    if isinstance(frame, list | tuple):
        if not frame:
            raise ValueError("frame is empty, expected one frame or more.")
        return tuple(moving_place(model, f) for f in frame), (len(frame),)
    return (moving_place(model, frame),), ()


@alone("limits", "max_steps")
def _solve(
    model: Model, q0: Any, goal: Goal, tolerance: Any, limits: bool, max_steps: int
) -> IKSolution:
    d, steps = _step_to(limits, max_steps, (model, q0, goal))
    q = integrate(model, q0, d)
    q = within(model, q) if limits else q
    error = goal.error(model, q)
    return IKSolution(q, error, (error <= tolerance).all(), steps)


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _step_to(limits: bool, max_steps: int, problem: Problem) -> tuple[Any, Any]:
    """The tangent step from q0 to a minimum, and how many steps led there."""
    return least_step(partial(_residual, limits), problem, problem[0].nv, max_steps)


def least_step(
    residual: Callable, problem: tuple, size: int, max_steps: int
) -> tuple[Any, Any]:
    """The d near 0 at which the squares of residual(d, problem) are least.

    Returns:
        d in the type of problem[1], and how many steps led there.
    """
    own = problem[1].dtype
    dtype = jnp.result_type(float)  # the only one in which the solver's numbers agree
    problem = jax.tree.map(lambda x: x.astype(dtype), problem)
    accuracy = float(jnp.finfo(dtype).eps) ** 0.75
    found = optimistix.least_squares(
        residual,
        optimistix.LevenbergMarquardt(rtol=accuracy, atol=accuracy),
        jnp.zeros(size, dtype),
        problem,
        max_steps=max_steps,
        throw=False,
    )
    return found.value.astype(own), found.stats["num_steps"]


@_step_to.defjvp
def _(limits: bool, max_steps: int, primals: Any, tangents: Any) -> Any:
    """The least change of the step that keeps the residual as it is."""
    d, steps = _step_to(limits, max_steps, *primals)
    J = jax.jacfwd(lambda d: _residual(limits, d, *primals))(d)
    rate = jax.jvp(lambda x: _residual(limits, d, x), primals, tangents)[1]
    zero = np.zeros((), jax.dtypes.float0)
    return (d, steps), (-jnp.linalg.pinv(J) @ rate, zero)


def _residual(limits: bool, d: Any, problem: Problem) -> Any:
    """The numbers of which the sum of squares is to vanish."""
    model, q0, goal = problem
    q = integrate(model, q0, d)
    rows = [x.reshape(-1) for x in goal.differences(model, q)]
    return jnp.concatenate([*rows, q - within(model, q)] if limits else rows)


def within(model: Model, q: Any) -> Any:
    """The nearest q within the limits of the joints."""
    q = jnp.where(q < model.lower, model.lower, q)
    return jnp.where(q > model.upper, model.upper, q)
