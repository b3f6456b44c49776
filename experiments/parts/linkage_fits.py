"""Four-bar linkages fitted to a coupler path, and to accelerations."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

import jaxdyn as jd
from experiments.parts.timed_programs import QUICK

NEWTON_STEPS = 6  # from one crank angle to the next


@dataclass(frozen=True)
class Fit:
    """A fit: parameters and losses over its steps, and its gradient at the start."""

    found: np.ndarray
    losses: np.ndarray
    gradient: np.ndarray  # by automatic differentiation
    differences: np.ndarray  # the same by central differences


def shaped(model: jd.Model, lengths: Any) -> jd.Model:
    """The four-bar with other lengths of crank and coupler."""
    crank, coupler = lengths
    return eqx.tree_at(
        lambda m: (m.p, m.loops[0].p_a),
        model,
        (
            model.p.at[model.body("coupler"), 0].set(crank),
            model.loops[0].p_a.at[0].set(coupler),
        ),
    )


def assembled(model: jd.Model, start: Any, angles: Any) -> Any:
    """The closed configurations at crank angles, each from the one before.

    Newton's method for the angles of coupler and rocker with the crank held: of Psi
    only the columns of these two joints are needed.
    """

    def at(passive: Any, crank: Any) -> Any:
        q = closed(model, passive, crank)
        return q[1:], q

    return lax.scan(at, start, angles)[1]


def closed(model: jd.Model, passive: Any, crank: Any) -> Any:
    """The closed configuration at a crank angle, from angles of the other joints."""

    def newton(passive: Any, _: None) -> Any:
        q = jnp.concatenate([crank[None], passive])
        Psi = jd.loop_jacobian(model, q)[:, 1:]
        return passive - jnp.linalg.solve(Psi, jd.loop_residual(model, q)), None

    passive, _ = lax.scan(newton, passive, None, length=NEWTON_STEPS)
    return jnp.concatenate([crank[None], passive])


def path(model: jd.Model, start: Any, angles: Any, x: Any) -> Any:
    """The path of a coupler point; x is crank, coupler, and the point there."""
    shape = shaped(model, x[:2])
    coupler = model.body("coupler")

    def point(q: Any) -> Any:
        poses = jd.forward_kinematics(shape, q)
        return poses.p[coupler, :2] + poses.R[coupler, :2, :2] @ x[2:]

    # the first angle has a turn of its own to get from the given shape to this one
    q = assembled(shape, start, jnp.concatenate([angles[:1], angles]))[1:]
    return jax.vmap(point)(q)


def with_masses(model: jd.Model, masses: Any) -> jd.Model:
    """The four-bar with other masses of coupler and rocker, all else kept."""
    return eqx.tree_at(lambda m: m.mass, model, model.mass.at[1:].set(masses))


def accelerations(model: jd.Model, states: Any, masses: Any) -> Any:
    """The accelerations of the closed mechanism at some states."""
    heavy = with_masses(model, masses)
    return jax.vmap(lambda *x: jd.forward_dynamics(heavy, *x))(*states)


def closed_states(model: jd.Model, start: Any, angles: Any, seed: int) -> Any:
    """States at the crank angles with random closed rates, and joint forces."""
    rng = np.random.default_rng(seed)
    qs = assembled(model, start, angles)
    qds, taus = (
        jnp.asarray(scale * rng.normal(size=(len(angles), model.nv)))
        for scale in (3.0, 5.0)
    )
    rates = jax.vmap(lambda q, qd: jd.project_velocity(model, q, qd))
    return qs, rates(qs, qds), taus


def fit(loss: Callable, value: Callable, start: Any, steps: int, width: float) -> Fit:
    """The least loss by L-BFGS with reverse-mode gradients.

    `value` is the loss again, as a program of its own for central differences at the
    start, of that width.
    """
    solver = optax.lbfgs()
    value_and_grad = optax.value_and_grad_from_state(loss)

    def advance(carried: Any, _: None) -> Any:
        x, state = carried
        value, slope = value_and_grad(x, state=state)
        update, state = solver.update(
            slope, state, x, value=value, grad=slope, value_fn=loss
        )
        return (optax.apply_updates(x, update), state), (value, slope)

    @partial(jax.jit, compiler_options=QUICK)
    def solve(x: Any) -> Any:
        (found, _), rows = lax.scan(advance, (x, solver.init(x)), None, length=steps)
        return found, *rows

    found, losses, slopes = map(np.asarray, solve(jnp.asarray(start)))
    return Fit(found, losses, slopes[0], differences(value, start, width))


def gauss_newton(
    residual: Callable, value: Callable, start: Any, steps: int, width: float
) -> Fit:
    """The least mean square of a residual, with Jacobians by forward mode.

    `value` is that mean square as a program of its own, as in `fit`.
    """

    def advance(x: Any, _: None) -> Any:
        r, J = residual(x), jax.jacfwd(residual)(x)
        step = jnp.linalg.solve(J.T @ J, J.T @ r)
        return x - step, ((r**2).mean(), 2 * J.T @ r / r.size)

    @partial(jax.jit, compiler_options=QUICK)
    def solve(x: Any) -> Any:
        found, rows = lax.scan(advance, x, None, length=steps)
        return found, *rows

    found, losses, slopes = map(np.asarray, solve(jnp.asarray(start)))
    return Fit(found, losses, slopes[0], differences(value, start, width))


def differences(value: Callable, start: Any, width: float) -> np.ndarray:
    """The gradient of a loss by central differences."""
    steps = width * np.eye(len(start))
    ends = [(value(start + h), value(start - h)) for h in steps]
    return np.array([float(a - b) / (2 * width) for a, b in ends])
