"""Configurations in which the loops of a mechanism are closed."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int

from jaxdyn.algorithms.kinematics import forward_kinematics, integrate
from jaxdyn.algorithms.loops import loop_frames, loop_jacobian, loop_residual, loop_rows
from jaxdyn.model import ROWS, Model, Nq, chosen_joints
from jaxdyn.motion._inputs import inputs, search_bounds
from jaxdyn.motion._inverse_kinematics import least_step, within
from jaxdyn.program import alone, take


class Assembly(eqx.Module):
    """What `close_loops` found.

    Attributes:
        q: the configuration.
        error: of each loop the distance and the angle by which it is open, in metres
            and radians; see `loop_errors`.
        converged: whether all of them are within the tolerance.
        steps: how many steps were taken.
    """

    q: Float[Array, " nq"]
    error: Float[Array, "loops 2"]
    converged: Bool[Array, ""]
    steps: Int[Array, ""]


def close_loops(
    model: Model,
    q_guess: Nq,
    *,
    hold: str | int | Sequence[str | int] = (),
    limits: bool = False,
    tolerance: float | None = None,
    max_steps: int = 200,
    throw: bool = True,
) -> Assembly:
    r"""A configuration near a guess in which all loops are closed.

    Levenberg and Marquardt's method for the tangent step d from the guess, any joint
    type. Held axes count with their difference, $\|z_a - z_b\|$, which is zero where
    they agree but not where they are opposite: a flipped joint is no solution.

    Which solution is found depends on the guess, as for a four-bar that closes with the
    coupler on either side. Derivatives are those by the leaves of the model and by the
    coordinates that are held, right to second order; where these leave q free, it moves
    as little as it can. The rest of the guess has none, neither have `error`,
    `converged` and `steps`.

    Args:
        hold: joints whose coordinates stay as in the guess, such as the crank: their
            names, or names or indices of their bodies.
        limits: whether q stays between `model.lower` and `model.upper`.
        tolerance: largest error in metres and radians; 1e-9 (float32: 1e-5) by default.
        throw: whether a failure raises; otherwise it is `converged`.

    Raises:
        ValueError: wrong shapes, or a joint that the model has not.
        RuntimeError: a loop stayed open by more than the tolerance.
    """
    held = chosen_joints(model, "hold", hold)
    model, q_guess = inputs(model, q_guess=(q_guess, (model.nq,)))
    bound = search_bounds(tolerance, max_steps, q_guess.dtype)
    found = _solve(model, q_guess, bound, held, limits, max_steps)
    return _closed(model, found) if throw else found


def loop_errors(model: Model, q: Nq) -> Float[Array, "loops 2"]:
    """Distance and angle by which each loop is open, without derivatives.

    The distance along the directions that the cut joint holds; the angle between axes
    that it holds together (z, or all three), pi if they are opposite, or by which axes
    are not at right angles ("universal").
    """
    if not model.loops:
        return jnp.zeros((0, 2), q.dtype)
    model, q = lax.stop_gradient((model, q))
    lengths, axes, sines = _openings(model, q)
    half = jnp.sqrt((axes**2).sum(axis=-1)) / 2
    angle = jnp.maximum(2 * _arcsin(half), _arcsin(jnp.abs(sines).max(axis=-1)))
    return jnp.stack([jnp.sqrt((lengths**2).sum(axis=-1)), angle], axis=-1)


@alone("held", "limits", "max_steps")
def _solve(
    model: Model, q0: Any, tolerance: Any, held: tuple, limits: bool, max_steps: int
) -> Assembly:
    t = model.topology
    still_v, still_q = (
        np.isin(np.repeat(np.arange(model.n), np.diff(start)), held)
        for start in (t.v_start, t.q_start)
    )
    free = np.flatnonzero(~still_v)
    fixed = lax.stop_gradient((model, q0))
    if free.size and model.loops:
        d, steps = _step_to(*fixed, free, limits, max_steps)
    else:
        d, steps = jnp.zeros(model.nv, q0.dtype), jnp.asarray(0)
    q: Any = integrate(model, jnp.where(still_q, q0, fixed[1]), d)
    if limits:
        q = jnp.where(still_q, q, within(model, q))
    if free.size and model.loops:
        error, refined = loop_errors(model, q), _newton(model, q, free)
        is_better = loop_errors(model, refined).max() <= error.max()
        if limits:
            is_better &= (still_q | (refined == within(model, refined))).all()
        # the derivatives are Newton's also where the value is not
        follows = refined - lax.stop_gradient(refined)
        closed = lax.stop_gradient(jnp.where(is_better, refined, q)) + follows
        q = jnp.where((error <= tolerance).all(), closed, q)
    error = loop_errors(model, q)
    return Assembly(q, error, (error <= tolerance).all(), steps)


def _step_to(
    model: Model, q_guess: Any, free: Any, limits: bool, max_steps: int
) -> tuple[Any, Any]:
    """The tangent step from the guess to a minimum, and how many steps led there."""

    def whole(d: Any) -> Any:
        return jnp.zeros(model.nv, d.dtype).at[free].set(d)

    def residual(d: Any, problem: Any) -> Any:
        model, q_guess = problem
        q = integrate(model, q_guess, whole(d))
        rows = [x.reshape(-1) for x in _openings(model, q)]
        return jnp.concatenate([*rows, q - within(model, q)] if limits else rows)

    d, steps = least_step(residual, (model, q_guess), free.size, max_steps)
    return whole(d), steps


def _newton(model: Model, q: Any, free: Any) -> Any:
    """A solution after two of Newton's steps, each the shortest of the free joints.

    The first has the first derivatives by all that q does not yet follow, the second
    the second ones. Where loops are overconstrained, rows depend on others only at the
    solution: small singular values are left out.
    """
    share = float(jnp.finfo(q.dtype).eps) ** 0.5

    def step(q: Any, _: None) -> Any:
        J = jnp.linalg.pinv(loop_jacobian(model, q)[:, free], rtol=share)
        d = -jnp.matmul(J, loop_residual(model, q), precision="highest")
        return integrate(model, q, jnp.zeros(model.nv, q.dtype).at[free].set(d)), None

    return lax.scan(step, q, None, length=2)[0]


def _openings(model: Model, q: Any) -> tuple[Any, Any, Any]:
    """What vanishes where loops are closed, with a row for each of them.

    The rows that are lengths [loops rows], the differences of held axes [loops 9], of
    the length of the angle if that is small, and the other rows, sines [loops rows].
    """
    poses = forward_kinematics(model, q)
    a, b = loop_frames(model, poses)
    kinds = [[ROWS[row] for row in loop.rows] for loop in model.loops]
    held = [sorted({k for row in rows for k in row.aligned}) for rows in kinds]
    weights = np.array([1 / max(len(axes) - 1, 1) for axes in held]) ** 0.5
    holds = np.array([[float(k in axes) for k in range(3)] for axes in held])
    scale = jnp.asarray(weights[:, None] * holds, q.dtype)[:, None, :]
    axes = (a.A - b.A).array() * scale
    residual = loop_rows(model, poses).residual
    is_length = [[row.is_length for row in rows] for rows in kinds]
    is_sine = [[not (row.is_length or row.aligned) for row in rows] for rows in kinds]
    lengths, sines = (_by_loop(residual, chosen) for chosen in (is_length, is_sine))
    return lengths, axes.reshape(-1, 9), sines


def _by_loop(residual: Any, chosen: list[list[bool]]) -> Float[Array, "loops rows"]:
    """The chosen rows of each loop, zero in place of the others."""
    place = np.full((len(chosen), max(map(len, chosen))), residual.size)
    places = [(k, i) for k, rows in enumerate(chosen) for i in range(len(rows))]
    for row, (k, i) in enumerate(places):
        if chosen[k][i]:
            place[k, i] = row
    return take(residual, place)


def _arcsin(x: Any) -> Any:
    return jnp.arcsin(jnp.minimum(x, 1))


def _closed(model: Model, found: Assembly) -> Assembly:
    """The assembly, if its loops are closed; otherwise an error that names one."""
    worst = jnp.argmax(found.error.max(axis=-1)) if model.loops else 0

    def failure(loop: str, distance: str, angle: str) -> str:
        return (
            f"close_loops: {loop} of model {model.name!r} stays open by {distance} m "
            f"and {angle} rad: it is out of reach, too much is held or limited, or a "
            "minimum is on the way; start from another q_guess (throw=False returns "
            "what was found)."
        )

    if isinstance(found.converged, Tracer):
        texts = [failure(loop.name, "...", "...") for loop in model.loops]
        wrong = ~found.converged
        return eqx.branched_error_if(found, wrong, worst, texts) if texts else found
    if not found.converged:
        sizes = (f"{float(x):.3g}" for x in found.error[worst])
        raise RuntimeError(failure(model.loops[int(worst)].name, *sizes))
    return found
