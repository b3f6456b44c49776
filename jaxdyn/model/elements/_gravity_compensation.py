"""Forces that carry a part of the weight of bodies."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.model.elements._forces import (
    FORCES,
    AbstractForce,
    BodyState,
    Loads,
    as_leaf,
    body_index,
)
from jaxdyn.program import take

if TYPE_CHECKING:
    from jaxdyn.model._model import Model


class GravityCompensation(AbstractForce):
    r"""The force $-m\,g$ at points of bodies, with the gravity g of the model.

    Attributes:
        bodies: the bodies, by name or index; one may stand there several times.
        points: where the forces act, in the axes of their bodies.
        masses: m, the masses whose weight they carry.
    """

    bodies: tuple[Any, ...] = eqx.field(static=True)
    points: Float[Array, "k 3"] = eqx.field(converter=as_leaf)
    masses: Float[Array, " k"] = eqx.field(converter=as_leaf)

    def loads(self, model: "Model", at: BodyState) -> Loads:
        """One wrench for each point, about the origin of its body."""
        f = -self.masses[:, None] * model.gravity[None]
        wrenches = jnp.concatenate([f, jnp.cross(self._arms(at), f)], axis=1)
        return Loads(self.bodies, wrenches)

    def energy(self, model: "Model", at: BodyState) -> Float[Array, ""]:
        """Opposite to the potential energy of the masses at the points."""
        x = take(at.p, np.array(self.bodies)) + self._arms(at)
        return (self.masses[:, None] * x * model.gravity[None]).sum()

    def joint_slopes(self, model: "Model", at: BodyState) -> tuple[Array, Array]:
        """Zero: weight changes slowly."""
        return jnp.zeros_like(at.qd), jnp.zeros_like(at.qd)

    def placed(self, model: "Model") -> "GravityCompensation":
        """The element with indices of its bodies."""
        if not isinstance(self.bodies, tuple | list):
            raise ValueError(
                f"gravity compensation: bodies is {self.bodies!r}, expected a list."
            )
        k = len(self.bodies)
        shapes = jnp.shape(self.points), jnp.shape(self.masses)
        if shapes != ((k, 3), (k,)):
            raise ValueError(
                f"gravity compensation of {k} bodies has points and masses of shapes "
                f"{shapes[0]} and {shapes[1]}, expected {(k, 3)} and {(k,)}."
            )
        bodies = tuple(body_index(model, body) for body in self.bodies)
        if -1 in bodies:
            raise ValueError("gravity compensation acts on the world, expected bodies.")
        return replace(self, bodies=bodies)

    def _arms(self, at: BodyState) -> Any:
        """From the origins of the bodies to the points, in world axes."""
        R = take(at.R, np.array(self.bodies))
        return (R * self.points[:, None, :]).sum(axis=-1)


FORCES["gravity_compensation"] = GravityCompensation
