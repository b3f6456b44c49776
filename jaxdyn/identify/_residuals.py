"""How far a model is from data, in standard deviations, one row at a time."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.dynamics import forward_dynamics, inverse_dynamics
from jaxdyn.io import Log
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
            it is not known take 1: intervals are scaled by what is left over.
        method: of `inverse_dynamics`.
    """

    std: Std = 1.0
    method: str = eqx.field(static=True, default="newton_euler")

    def rows(self, model: Model, data: Any) -> Sample:
        """The rows of a log."""
        return samples(model, data)

    def unknowns(self, rows: Sample) -> None:
        """Nothing but parameters is unknown."""

    def __call__(
        self, model: Model, unknowns: None, row: Sample
    ) -> Float[Array, " nv"]:
        """The residual of one row."""
        tau = inverse_dynamics(model, row.q, row.qd, row.qdd, method=self.method)
        return (tau - row.tau) / self.std


class Acceleration(eqx.Module):
    """Accelerations of the model, by forward dynamics, less those that were measured.

    Loops of the model are respected.

    Attributes:
        std: the noise of the accelerations, one number or one for each joint.
    """

    std: Std = 1.0

    def rows(self, model: Model, data: Any) -> Sample:
        """The rows of a log."""
        return samples(model, data)

    def unknowns(self, rows: Sample) -> None:
        """Nothing but parameters is unknown."""

    def __call__(
        self, model: Model, unknowns: None, row: Sample
    ) -> Float[Array, " nv"]:
        """The residual of one row."""
        qdd = forward_dynamics(model, row.q, row.qd, row.tau)
        return (qdd - row.qdd) / self.std


def samples(model: Model, log: Any) -> Sample:
    """The rows of a log that has all parts.

    Raises:
        ValueError: it has not.
    """
    if not isinstance(log, Log):
        raise ValueError(
            f"data is a {type(log).__name__}, expected a Log: use load_log or Log.of."
        )
    advice = {
        "qd": "call filtered(log, model, cutoff=...) first",
        "qdd": "call filtered(log, model, cutoff=...) first",
        "tau": "joint forces must be measured",
    }
    for name, text in advice.items():
        if getattr(log, name) is None:
            raise ValueError(f"the log has no {name}: {text}.")
    sizes = {"q": model.nq, "qd": model.nv}
    for name, size in sizes.items():
        shape = jnp.shape(getattr(log, name))
        if len(shape) != 2 or shape[1] != size:
            raise ValueError(
                f"{name} of the log has shape {shape}, expected (times, {size}) for "
                f"model {model.name!r}."
            )
    parts = (log.q, log.qd, log.qdd, log.tau)
    return Sample(*(jnp.asarray(x, model.dtype) for x in parts))
