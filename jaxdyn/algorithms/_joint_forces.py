"""Forces that act in the joints by themselves: springs, dampers, friction."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.algorithms._configuration import difference
from jaxdyn.model import Model

FRICTION_SPEED = 1e-3  # rad/s or m/s at which Coulomb friction has 71 % of its size


def passive_forces(
    model: Model, q: Float[Array, " nq"], qd: Float[Array, " nv"]
) -> Float[Array, " nv"]:
    """What tau must overcome in the joints: springs, viscous and Coulomb friction.

    Coulomb friction is smooth: its sign is qd / sqrt(qd² + s²) with s =
    `FRICTION_SPEED`. A spring pulls along the shortest step to its rest position.
    """
    spring = model.stiffness * difference(model, model.rest, q)
    sign = qd / jnp.sqrt(qd**2 + FRICTION_SPEED**2)
    return spring + model.damping * qd + model.friction * sign
