"""Simulation with a fixed step."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from jaxdyn.algorithms.kinematics import configuration_rate, integrate, unit_quaternions
from jaxdyn.dynamics import check_resisted, forward_dynamics, inverse_dynamics
from jaxdyn.model import Model, Nq, Nv, arguments, is_index
from jaxdyn.program import alone, compiled
from jaxdyn.simulate._drift import check_closed, closed

Forces = Float[Array, "steps joints"]
Length = Float[Array, "..."] | float  # of a step
States = tuple[Float[Array, "times nq"], Float[Array, "times nv"]]
NEWTON_STEPS = 25  # at most; three or four are usual


def rollout(
    model: Model,
    q0: Nq,
    qd0: Nv,
    taus: Forces,
    dt: Length,
    *,
    integrator: str = "semi_implicit_euler",
    every: int = 1,
) -> States:
    r"""The states at the times 0, dt, 2 dt, ... under the joint forces of each step.

    Quaternions stay of unit length. The gradient keeps the states and computes each
    step again: with explicit steps memory grows by 3 nv + nq numbers a step, for a loss
    of rates too by 5 nv + nq. With `every` it keeps only the states that are returned,
    and for a while those between two of them: where every is about the root of the
    number of steps, memory grows as that root, for one more rollout of time.

    Loops of the model, closed in the first state, stay closed: explicit steps end with
    `project_configuration` and `project_velocity`. Midpoint steps are for models
    without loops.

    Values are not checked: where a state or a force is not finite, the states are not
    finite from there on.

    Args:
        taus: the joint forces of each step, which do not change during it.
        dt: the length of a step, the same for all.
        integrator: "semi_implicit_euler" is of first order: qd, then q with the new qd.
            "rk4" is the classical one of fourth order. Both are one kernel for all
            steps. "implicit_midpoint" is of second order and symmetric in time, so that
            the energy of a free motion wavers and does not drift; it is stable for
            stiff joints. Its equations are solved by Newton's method; where that fails
            the state is NaN from there on.
        every: return the first state and then that of each so many steps; divides
            the number of steps.

    Raises:
        ValueError: wrong shapes, an integrator that is not known or not for loops, a
            first state that opens a loop, steps that `every` does not divide.
    """
    if integrator not in INTEGRATORS:
        raise ValueError(
            f"rollout: integrator is {integrator!r}, expected one of: "
            f"{', '.join(INTEGRATORS)}."
        )
    if model.loops and integrator == "implicit_midpoint":
        raise ValueError(
            f"rollout: integrator is {integrator!r} for model {model.name!r} with "
            "loops, expected 'semi_implicit_euler' or 'rk4'."
        )
    check_resisted(model)
    check_closed(*arguments(model, q0=q0, qd0=qd0))
    steps = INTEGRATORS[integrator]
    if is_index(every) and every == 1:
        return steps(model, q0, qd0, taus, dt)
    is_number = is_index(every) and every > 1
    if not is_number or jnp.ndim(taus) != 2 or len(taus) % every:
        raise ValueError(
            f"rollout: every is {every!r} for taus of shape {jnp.shape(taus)}, "
            "expected a whole number of steps that divides the rows of taus."
        )
    return _pieces(model, q0, qd0, taus, dt, steps=steps, every=int(every))


@alone("steps", "every")
def _pieces(
    model: Model,
    q0: Nq,
    qd0: Nv,
    taus: Forces,
    dt: Length,
    *,
    steps: Callable,
    every: int,
) -> States:
    """Of each piece of so many steps the last state, all that a gradient keeps."""
    model, q0, qd0, taus = arguments(model, q0=q0, qd0=qd0, taus=taus)

    @jax.checkpoint
    def piece(state: Any, taus: Any) -> Any:
        q, qd = steps(model, *state, taus, dt)
        state = q[-1], qd[-1]
        return state, state

    rows = taus.reshape(len(taus) // every, every, model.nv)
    _, (q, qd) = lax.scan(piece, (q0, qd0), rows)
    return jnp.concatenate([q0[None], q]), jnp.concatenate([qd0[None], qd])


def _steps(
    advance: Callable, model: Model, q0: Nq, qd0: Nv, taus: Forces, dt: Length
) -> States:
    model, q0, qd0, taus = arguments(model, q0=q0, qd0=qd0, taus=taus)
    if jnp.shape(dt):
        raise ValueError(f"dt has shape {jnp.shape(dt)}, expected one number.")
    h = jnp.asarray(dt, q0.dtype)

    def step(state: Any, tau: Any) -> Any:
        state = advance(model, *state, tau, h)
        state = closed(model, *state) if model.loops else state
        return state, state

    _, (q, qd) = lax.scan(step, (q0, qd0), taus)
    return jnp.concatenate([q0[None], q]), jnp.concatenate([qd0[None], qd])


def _semi_implicit_euler(model: Model, q: Any, qd: Any, tau: Any, h: Any) -> Any:
    qd = qd + h * forward_dynamics(model, q, qd, tau)
    return integrate(model, q, h * qd), qd


def _rk4(model: Model, q: Any, qd: Any, tau: Any, h: Any) -> Any:
    def rate(q: Any, qd: Any) -> Any:
        return configuration_rate(model, q, qd), forward_dynamics(model, q, qd, tau)

    def stage(carried: Any, weights: Any) -> Any:
        (q_k, qd_k), (q_sum, qd_sum) = carried
        ahead, share = weights
        v, a = rate(q_k, qd_k)
        place = q + ahead * h * v, qd + ahead * h * a
        return (place, (q_sum + share * h * v, qd_sum + share * h * a)), None

    # the last stage goes nowhere; a loop, for the program of one stage is long
    ahead, share = jnp.array([[1 / 2, 1 / 2, 1, 0], [1 / 6, 1 / 3, 1 / 3, 1 / 6]])
    weights = ahead.astype(q.dtype), share.astype(q.dtype)
    (_, (q_new, qd_new)), _ = lax.scan(stage, ((q, qd), (q, qd)), weights)
    return unit_quaternions(model.topology, q_new), qd_new


def _implicit_midpoint(model: Model, q: Any, qd: Any, tau: Any, h: Any) -> Any:
    """With v the mean of both rates: tau = ID(q + h/2 v, v, 2 (v - qd) / h)."""
    turns = np.isin(np.arange(model.nv), model.topology.quaternion_v)

    def half(v: Any) -> Any:
        return jnp.where(turns, h / 2 * v, 0), jnp.where(turns, 0, h / 2 * v)

    def residual(v: Any) -> Any:
        turn, slide = half(v)
        middle = integrate(model, integrate(model, q, turn), slide)
        return inverse_dynamics(model, middle, v, 2 / h * (v - qd)) - tau

    def tangent_solve(linear: Callable, y: Any) -> Any:
        return jnp.linalg.solve(jax.jacfwd(linear)(jnp.zeros_like(y)), y)

    v = lax.custom_root(residual, qd, _newton, tangent_solve)
    turn, slide = half(v)
    # in the middle a free body slides along its axes there, for symmetry in time
    turned = integrate(model, integrate(model, q, turn), 2 * slide)
    return integrate(model, turned, turn), 2 * v - qd


def _newton(residual: Callable, start: Any) -> Any:
    """The root of a residual; NaN where Newton's method does not find it."""
    eps = 100 * jnp.finfo(start.dtype).eps

    def advance(carried: Any) -> Any:
        v, _, k = carried
        step = jnp.linalg.solve(jax.jacfwd(residual)(v), residual(v))
        return v - step, jnp.abs(step).max(initial=0), k + 1

    def goes_on(carried: Any) -> Any:
        v, size, k = carried
        return (size > eps * (1 + jnp.abs(v).max(initial=0))) & (k < NEWTON_STEPS)

    first = start, jnp.full((), jnp.inf, start.dtype), 0
    v, size, k = lax.while_loop(goes_on, advance, first)
    is_root = (k < NEWTON_STEPS) & jnp.isfinite(size)
    return jnp.where(is_root, v, jnp.nan)


def _explicit(advance: Callable) -> Callable:
    @compiled(flat=False)  # its gradient keeps the states alone
    def steps(model: Any, q0: Any, qd0: Any, taus: Any, dt: Any) -> Any:
        return _steps(advance, model, q0, qd0, taus, dt)

    return steps


INTEGRATORS = {
    "semi_implicit_euler": _explicit(_semi_implicit_euler),
    "rk4": _explicit(_rk4),
    "implicit_midpoint": alone()(partial(_steps, jax.checkpoint(_implicit_midpoint))),
}
