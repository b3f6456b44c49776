"""Joint forces within limits."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.dynamics import mass_matrix
from jaxdyn.model import Model


class Forces(eqx.Module):
    r"""Joint forces within limits, from coordinates u of the size of one.

    $$\tau = \frac{s u}{\sqrt{1 + (s u / l)^2}}$$

    That is s u where the limit l is infinite, and zero where it is zero.

    Attributes:
        scale: s, the forces in which coordinates are counted.
        limit: l, which may be infinite.
    """

    scale: Float[Array, " nv"]
    limit: Float[Array, " nv"]

    def at(self, u: Float[Array, "steps nv"]) -> Float[Array, "steps nv"]:
        """The joint forces at the coordinates u."""
        tau = self.scale[None] * u
        r = tau * self._inverse
        # in this order rounding does not lead beyond the limit
        bounded = jnp.where(self._is_bounded, self.limit, 0) * (r / jnp.sqrt(1 + r**2))
        return jnp.where(self._is_bounded, bounded, tau)

    def coordinates(self, tau: Float[Array, "steps nv"]) -> Float[Array, "steps nv"]:
        """The coordinates of joint forces that are within the limits."""
        return tau / jnp.sqrt(1 - (tau * self._inverse) ** 2) / self.scale[None]

    @property
    def _is_bounded(self) -> Any:
        return jnp.isfinite(self.limit)[None]

    @property
    def _inverse(self) -> Array:
        """The inverse of limits that are neither infinite nor zero; otherwise zero."""
        has_room = (self.limit > 0) & jnp.isfinite(self.limit)
        return jnp.where(has_room, 1 / jnp.where(has_room, self.limit, 1), 0)[None]


def joint_forces(model: Model, limits: Any, q0: Any, taus: Any, T: Any) -> Forces:
    """The given limits, or those of the model, which the first torques respect.

    Forces are counted in those that move their joint by a radian or metre in the time
    T, if the other joints stand still: 2 M_jj / T².

    Raises:
        ValueError: limits of a wrong shape or sign, torques that are not within them.
    """
    M = jnp.diagonal(mass_matrix(model, q0))
    scale = 2 * jnp.where(M > 0, M, 1) / T**2
    return Forces(scale, _limits(model, limits, taus))


def _limits(model: Model, limits: Any, taus: Any) -> Any:
    given = jnp.asarray(model.effort if limits is None else limits)
    name = "model.effort" if limits is None else "limits"
    if given.shape not in ((), (model.nv,)):
        raise ValueError(
            f"{name} has shape {given.shape}, expected one number or {(model.nv,)} for "
            f"model {model.name!r}."
        )
    if not (given >= 0).all():
        raise ValueError(f"{name} is {given}, expected numbers that are not negative.")
    limit = jnp.broadcast_to(given.astype(taus.dtype), model.nv)
    bound = np.asarray(limit)
    outside = (np.abs(taus) >= bound) & ~((bound == 0) & (np.asarray(taus) == 0))
    if outside.any():
        k, j = np.argwhere(outside)[0]
        raise ValueError(
            f"taus0[{k}, {j}] is {taus[k, j]:.6g}, expected less than the limit "
            f"{bound[j]:g} of {name}: start within the limits, such as at zero."
        )
    return limit
