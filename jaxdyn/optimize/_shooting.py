"""The cost of a motion by its torques, in one piece or in pieces that are to meet."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.algorithms.kinematics import difference, integrate
from jaxdyn.dynamics import mass_matrix
from jaxdyn.model import Model
from jaxdyn.optimize._costs import CostFunction, cost_of
from jaxdyn.simulate import rollout


class Forces(eqx.Module):
    r"""Joint forces within limits, from coordinates u of the size of one.

    $$\tau = \frac{s u}{\sqrt{1 + (s u / l)^2}}$$

    That is s u where the limit l is infinite, and zero where it is zero.
    """

    scale: Float[Array, " nv"]  # s, the forces in which coordinates are counted
    limit: Float[Array, " nv"]  # l, which may be infinite

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


class SingleShooting(eqx.Module):
    """The cost of the motion under torques: a function of their coordinates u."""

    model: Model
    q0: Float[Array, " nq"]
    qd0: Float[Array, " nv"]
    dt: Float[Array, ""]
    forces: Forces
    cost: CostFunction
    integrator: str = eqx.field(static=True)

    def __call__(self, u: Float[Array, "steps nv"]) -> Float[Array, ""]:
        """What the motion costs."""
        taus = self.forces.at(u)
        q, qd = rollout(
            *(self.model, self.q0, self.qd0, taus, self.dt), integrator=self.integrator
        )
        return cost_of(self.cost, q, qd, taus)


class Unknowns(eqx.Module):
    """Coordinates of the torques, and the states where pieces after the first start."""

    u: Float[Array, "steps nv"]
    d: Float[Array, "nodes nv"]  # tangent steps from the nodes of the problem
    v: Float[Array, "nodes nv"]  # rates, times the duration of a piece


class MultipleShooting(eqx.Module):
    r"""The augmented Lagrangian of a motion in pieces that are to meet.

    $$\text{cost} + \lambda^T c + \frac\mu2 c^T c$$

    c are the defects: the states in which pieces start less those in which the pieces
    before them end, rates times the duration of a piece.
    """

    whole: SingleShooting
    nodes: Float[Array, "nodes nq"]  # from which the unknown steps are counted
    duration: Float[Array, ""]  # of a piece
    multipliers: Float[Array, "nodes pair nv"]  # lambda
    penalty: Float[Array, ""]  # mu

    def __call__(self, x: Unknowns) -> Float[Array, ""]:
        """The augmented Lagrangian."""
        q, qd, taus, c = self.pieces(x)
        c = c * jnp.stack([jnp.ones_like(self.duration), self.duration])[None, :, None]
        value = cost_of(self.whole.cost, q, qd, taus)
        return value + (self.multipliers * c + self.penalty / 2 * c**2).sum()

    def pieces(self, x: Unknowns) -> tuple[Any, Any, Any, Any]:
        """The states at all times, the torques, and the defects."""
        of, nodes, rates = self.whole, self.places(x), x.v / self.duration
        taus = of.forces.at(x.u)
        q0 = jnp.concatenate([of.q0[None], nodes])
        qd0 = jnp.concatenate([of.qd0[None], rates])

        def piece(q0: Any, qd0: Any, taus: Any) -> Any:
            return rollout(of.model, q0, qd0, taus, of.dt, integrator=of.integrator)

        q, qd = jax.vmap(piece)(q0, qd0, taus.reshape(len(q0), -1, of.model.nv))
        apart = jax.vmap(lambda a, b: difference(of.model, a, b))
        defects = jnp.stack([apart(q[:-1, -1], nodes), rates - qd[:-1, -1]], axis=1)
        return _joined(q), _joined(qd), taus, defects

    def places(self, x: Unknowns) -> Float[Array, "nodes nq"]:
        """The configurations in which pieces after the first start."""
        return jax.vmap(lambda q, d: integrate(self.whole.model, q, d))(self.nodes, x.d)

    def around(self, x: Unknowns) -> tuple["MultipleShooting", Unknowns]:
        """The same problem with its nodes where x is."""
        moved = eqx.tree_at(lambda p: p.nodes, self, self.places(x))
        return moved, Unknowns(x.u, jnp.zeros_like(x.d), x.v)


def _joined(rows: Float[Array, "pieces rows k"]) -> Float[Array, "times k"]:
    """One row for each time: where pieces meet, the start of the later one."""
    before = rows[:, :-1].reshape(-1, rows.shape[-1])
    return jnp.concatenate([before, rows[-1, -1:]])
