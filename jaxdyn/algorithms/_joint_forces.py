"""Forces that act in the joints by themselves: springs, dampers, friction."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.algorithms._configuration import difference, integrate
from jaxdyn.model import Model


def passive_forces(
    model: Model, q: Float[Array, " nq"], qd: Float[Array, " nv"]
) -> Float[Array, " nv"]:
    """What tau must overcome in the joints: springs, viscous and Coulomb friction."""
    return spring_forces(model, q) + dissipative_forces(model, qd)


def elastic_energy(model: Model, q: Float[Array, " nq"]) -> Float[Array, ""]:
    """The energy of the springs, 1/2 k d², d the shortest step from their rest."""
    d = difference(model, model.rest, q)
    return 0.5 * (model.stiffness * d**2).sum()


def spring_forces(model: Model, q: Float[Array, " nq"]) -> Float[Array, " nv"]:
    """The gradient of the elastic energy along tangent steps."""
    if not model.topology.quaternion_bodies.size:
        return model.stiffness * difference(model, model.rest, q)

    def energy(d: Float[Array, " nv"]) -> Float[Array, ""]:
        return elastic_energy(model, integrate(model, q, d))

    return jax.grad(energy)(jnp.zeros(model.nv, q.dtype))


def dissipative_forces(model: Model, qd: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """Viscous and Coulomb friction, which always takes energy."""
    return model.damping * qd + model.friction * friction_direction(model, qd)


def friction_direction(model: Model, qd: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """The smooth sign qd / sqrt(qd² + s²) of Coulomb friction, s = friction_speed."""
    return qd / jnp.sqrt(qd**2 + model.friction_speed**2)
