"""Simulation with a fixed step."""

from typing import Any

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from jaxdyn.algorithms import compiled, integrate
from jaxdyn.dynamics import forward_dynamics
from jaxdyn.model import Model, arguments


@compiled()
def rollout(
    model: Model,
    q0: Float[Array, " nq"],
    qd0: Float[Array, " nv"],
    taus: Float[Array, "steps joints"],
    dt: Float[Array, "..."] | float,
) -> tuple[Float[Array, "times nq"], Float[Array, "times nv"]]:
    r"""The states at the times 0, dt, 2 dt, ... under the joint forces of each step.

    Semi-implicit Euler: $\dot q$ first, then q with the new $\dot q$; quaternions stay
    of unit length. All steps are one kernel. Its gradient keeps the states and computes
    each step again: memory grows by 3 nv + nq numbers a step.

    Args:
        taus: the joint forces of each step, which do not change during it.
        dt: the length of a step, the same for all.
    """
    model, q0, qd0, taus = arguments(model, q0=q0, qd0=qd0, taus=taus)
    if jnp.shape(dt):
        raise ValueError(f"dt has shape {jnp.shape(dt)}, expected one number.")
    step = jnp.asarray(dt, q0.dtype)

    def advance(state: Any, tau: Any) -> Any:
        q, qd = state
        qd = qd + step * forward_dynamics(model, q, qd, tau)
        q = integrate(model, q, step * qd)
        return (q, qd), (q, qd)

    _, (q, qd) = lax.scan(advance, (q0, qd0), taus)
    return jnp.concatenate([q0[None], q]), jnp.concatenate([qd0[None], qd])
