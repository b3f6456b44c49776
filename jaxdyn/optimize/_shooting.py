"""The cost of a motion by its torques: in one piece, or in pieces that are to meet."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.algorithms.kinematics import difference, integrate
from jaxdyn.model import Model
from jaxdyn.optimize._costs import CostFunction, cost_of
from jaxdyn.optimize._limits import Forces
from jaxdyn.simulate import rollout


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
    """Coordinates of the torques, and the states in which pieces after the first start.

    Attributes:
        u: coordinates of the torques.
        d: tangent steps of the configurations from the nodes of the problem.
        v: rates, times the duration of a piece.
    """

    u: Float[Array, "steps nv"]
    d: Float[Array, "nodes nv"]
    v: Float[Array, "nodes nv"]


class MultipleShooting(eqx.Module):
    r"""The augmented Lagrangian of a motion in pieces that are to meet.

    $$\text{cost} + \lambda^T c + \frac\mu2 c^T c$$

    c are the defects: the states in which pieces start less those in which the pieces
    before them end, rates times the duration of a piece.

    Attributes:
        whole: the problem in one piece.
        nodes: the configurations from which the unknown steps are counted.
        duration: of a piece.
        multipliers: lambda.
        penalty: mu.
    """

    whole: SingleShooting
    nodes: Float[Array, "nodes nq"]
    duration: Float[Array, ""]
    multipliers: Float[Array, "nodes pair nv"]
    penalty: Float[Array, ""]

    def __call__(self, x: Unknowns) -> Float[Array, ""]:
        """The augmented Lagrangian."""
        q, qd, taus, c = self.pieces(x)
        c = c * jnp.stack([jnp.ones_like(self.duration), self.duration])[None, :, None]
        value = cost_of(self.whole.cost, q, qd, taus)
        return value + (self.multipliers * c + self.penalty / 2 * c**2).sum()

    def pieces(self, x: Unknowns) -> tuple[Any, Any, Any, Any]:
        """The states at all times, the torques, and the defects."""
        of = self.whole
        taus = of.forces.at(x.u)
        nodes = self.places(x)
        q0 = jnp.concatenate([of.q0[None], nodes])
        rates = x.v / self.duration
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
