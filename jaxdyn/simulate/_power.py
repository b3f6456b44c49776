"""The power balance along a trajectory."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.algorithms.kinematics import configuration_rate
from jaxdyn.algorithms.recursions import kinetic_energy, potential_energy, power
from jaxdyn.model import Model
from jaxdyn.simulate._trajectory import Trajectory


class PowerBalance(eqx.Module):
    """Where the energy of a motion comes from and goes to, at each of its times.

    Attributes:
        actuators, external: power of the joint forces and of the external wrenches.
        dissipated: power lost in friction.
        energy_rate: the rate of kinetic and potential energy.
        error: what is left over: actuators + external - dissipated - energy_rate.
        work: energy put in less energy lost since the first time.
        drift: the change of energy since the first time less that work.
    """

    actuators: Float[Array, " times"]
    external: Float[Array, " times"]
    dissipated: Float[Array, " times"]
    energy_rate: Float[Array, " times"]
    error: Float[Array, " times"]
    work: Float[Array, " times"]
    drift: Float[Array, " times"]


def power_balance(model: Model, trajectory: Trajectory) -> PowerBalance:
    """The power balance of a motion, [Mohan] section 5.

    The error is that of the accelerations: the energy rate is the exact derivative of
    the energies along qd and qdd. The drift is that of the integration, and of the
    quadrature of the work: cubics from row to row, which want rows close together.
    """
    at = trajectory
    flows, rate = _flows(model, at.q, at.qd, at.qdd, at.tau, at.f_ext)
    net = flows.actuators + flows.external - flows.dissipated
    work = _integral(at.ts, net)
    return PowerBalance(
        flows.actuators,
        flows.external,
        flows.dissipated,
        energy_rate=rate,
        error=net - rate,
        work=work,
        drift=at.energy - at.energy[0] - work,
    )


@jax.jit
def _flows(model: Model, *rows: Any) -> Any:
    """The powers and the rate of the energy in each row."""

    def energy(q: Any, qd: Any) -> Any:
        return kinetic_energy(model, q, qd) + potential_energy(model, q)

    def row(q: Any, qd: Any, qdd: Any, tau: Any, f_ext: Any) -> Any:
        flows = power(model, q, qd, tau, f_ext=f_ext)
        rates = configuration_rate(model, q, qd), qdd
        rate = jax.jvp(energy, (q, qd), rates)[1]
        return flows, rate

    return jax.vmap(row)(*rows)


def _integral(ts: Float[Array, " times"], f: Any) -> Float[Array, " times"]:
    """The integral of f from the first time on, by cubics from row to row.

    Their slopes are those of the parabola through a row and its neighbours.
    """
    h, secant = jnp.diff(ts), jnp.diff(f) / jnp.diff(ts)
    if len(ts) == 2:
        slope = jnp.concatenate([secant, secant])
    else:
        inner = (h[:-1] * secant[1:] + h[1:] * secant[:-1]) / (h[:-1] + h[1:])
        ends = 2 * secant[:1] - inner[:1], 2 * secant[-1:] - inner[-1:]
        slope = jnp.concatenate([ends[0], inner, ends[1]])
    parts = h * (f[:-1] + f[1:]) / 2 + h**2 * (slope[:-1] - slope[1:]) / 12
    return jnp.concatenate([jnp.zeros_like(f[:1]), jnp.cumsum(parts)])
