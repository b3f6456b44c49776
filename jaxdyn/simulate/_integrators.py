"""Steps of fixed length: from a state and what drives it to the next state."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from jaxdyn.algorithms.forces import actuate
from jaxdyn.algorithms.kinematics import configuration_rate, integrate, unit_quaternions
from jaxdyn.algorithms.steps import Base
from jaxdyn.dynamics import (
    constrained_dynamics,
    forward_dynamics,
    implicit_dynamics,
    inverse_dynamics,
)
from jaxdyn.model import FExt, Model, Nq, Nv

NEWTON_STEPS = 25  # at most; three or four are usual
Step = tuple[Nq, Nv]


class Drive(eqx.Module):
    """What acts on a model during a step, and how its accelerations are found.

    Attributes:
        control: joint forces, or controls of the actuators if `actuated`.
        f_ext, base, method: as in `forward_dynamics`.
        loop_method: that of `constrained_dynamics`.
    """

    control: Float[Array, " controls"]
    f_ext: FExt
    base: Base
    method: str = eqx.field(static=True)
    loop_method: str = eqx.field(static=True)
    actuated: bool = eqx.field(static=True)

    def forces(self, model: Model, q: Nq, qd: Nv) -> Nv:
        """The joint forces in a state."""
        if not self.actuated:
            return self.control
        return actuate(model, q, qd, self.control)

    def accelerations(self, model: Model, q: Nq, qd: Nv, tau: Nv) -> Nv:
        """The joint accelerations, with the loops of the model closed."""
        options: Any = dict(f_ext=self.f_ext, base=self.base)
        if not model.loops:
            return forward_dynamics(model, q, qd, tau, **options, method=self.method)
        options |= dict(method=self.loop_method)
        return constrained_dynamics(model, q, qd, tau, **options)[0]


def _semi_implicit_euler(drive: Drive, model: Model, q: Nq, qd: Nv, h: Any) -> Step:
    tau = drive.forces(model, q, qd)
    qd = qd + h * drive.accelerations(model, q, qd, tau)
    return integrate(model, q, h * qd), qd


def _implicit(drive: Drive, model: Model, q: Nq, qd: Nv, h: Any) -> Step:
    def accelerations(model: Model, tau: Nv) -> Nv:
        return drive.accelerations(model, q, qd, tau)

    def servos(q: Nq, qd: Nv) -> Nv:
        return drive.forces(model, q, qd)

    tau = jnp.zeros_like(qd) if drive.actuated else drive.control
    law = servos if drive.actuated else None
    qd = qd + h * implicit_dynamics(accelerations, model, q, qd, tau, h, law)
    return integrate(model, q, h * qd), qd


def _rk4(drive: Drive, model: Model, q: Nq, qd: Nv, h: Any) -> Step:
    def rate(q: Any, qd: Any) -> Any:
        tau = drive.forces(model, q, qd)
        qdd = drive.accelerations(model, q, qd, tau)
        return configuration_rate(model, q, qd), qdd

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


def _implicit_midpoint(drive: Drive, model: Model, q: Nq, qd: Nv, h: Any) -> Step:
    """With v the mean of both rates: tau = ID(q + h/2 v, v, 2 (v - qd) / h)."""
    turns = np.isin(np.arange(model.nv), model.topology.quaternion_v)
    options: Any = dict(f_ext=drive.f_ext, base=drive.base)

    def half(v: Any) -> Any:
        return jnp.where(turns, h / 2 * v, 0), jnp.where(turns, 0, h / 2 * v)

    def residual(v: Any) -> Any:
        turn, slide = half(v)
        middle = integrate(model, integrate(model, q, turn), slide)
        needed = inverse_dynamics(model, middle, v, 2 / h * (v - qd), **options)
        return needed - drive.forces(model, middle, v)

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


INTEGRATORS: dict[str, Callable[[Drive, Model, Nq, Nv, Any], Step]] = {
    "implicit": _implicit,
    "semi_implicit_euler": _semi_implicit_euler,
    "rk4": _rk4,
    "implicit_midpoint": _implicit_midpoint,
}
