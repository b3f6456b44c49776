"""How far a model is from data, in standard deviations, one row at a time."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.dynamics import forward_dynamics, inverse_dynamics
from jaxdyn.identify._rows import check_positive, check_tree, log_arrays
from jaxdyn.model import Model

Std = float | Float[Array | np.ndarray, " nv"]


class Sample(eqx.Module):
    """A state with its acceleration and the joint forces, a row of a log."""

    q: Float[Array, "*rows nq"]
    qd: Float[Array, "*rows nv"]
    qdd: Float[Array, "*rows nv"]
    tau: Float[Array, "*rows nv"]


class Torque(eqx.Module):
    """Joint forces of the model, by inverse dynamics, less those that were measured.

    Attributes:
        std: the noise of the measured forces, one number or one for each joint. Where
            it is not known take 1: intervals are scaled by what is left over. Priors
            are weighed by it: beside them it should be right.
        method: of `inverse_dynamics`.
    """

    std: Std = 1.0
    method: str = eqx.field(static=True, default="newton_euler")

    def rows(self, model: Model, data: Any) -> Sample:
        """The rows of a log."""
        check_tree(model)
        check_positive("std of Torque", self.std, model.nv)
        return samples(model, data)

    def unknowns(self, rows: Sample) -> None:
        """Nothing but parameters is unknown."""

    def __call__(
        self, model: Model, unknowns: None, row: Sample
    ) -> Float[Array, " nv"]:
        """The residual of one row."""
        tau = inverse_dynamics(model, row.q, row.qd, row.qdd, method=self.method)
        return (tau - row.tau) / jnp.asarray(self.std, tau.dtype)


class Acceleration(eqx.Module):
    """Accelerations of the model, by forward dynamics, less those that were measured.

    Loops of the model are respected.

    Attributes:
        std: the noise of the accelerations, one number or one for each joint.
    """

    std: Std = 1.0

    def rows(self, model: Model, data: Any) -> Sample:
        """The rows of a log."""
        check_positive("std of Acceleration", self.std, model.nv)
        return samples(model, data)

    def unknowns(self, rows: Sample) -> None:
        """Nothing but parameters is unknown."""

    def __call__(
        self, model: Model, unknowns: None, row: Sample
    ) -> Float[Array, " nv"]:
        """The residual of one row."""
        qdd = forward_dynamics(model, row.q, row.qd, row.tau)
        return (qdd - row.qdd) / jnp.asarray(self.std, qdd.dtype)


def samples(model: Model, log: Any) -> Sample:
    """The rows of a log that has all parts."""
    parts = log_arrays(model, log, ("q", "qd", "qdd", "tau"))
    return Sample(**{k: jnp.asarray(x, model.dtype) for k, x in parts.items()})
