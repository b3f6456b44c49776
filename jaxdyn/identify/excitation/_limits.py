"""What the joints of a robot may do: limits of positions, rates and forces."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.algorithms.kinematics import neutral
from jaxdyn.io import column_names
from jaxdyn.model import Model


class Limits(eqx.Module):
    """Limits of all joints.

    Attributes:
        middle, half: centre and half of the range of q; for the quaternion of a joint,
            which has no limits, the identity and infinity.
        velocity, effort: the largest rates and forces.
        reach: the largest tangent steps from the middle; for a rotation a quarter turn.
    """

    middle: Float[Array, " nq"]
    half: Float[Array, " nq"]
    velocity: Float[Array, " nv"]
    effort: Float[Array, " nv"]
    reach: Float[Array, " nv"]

    def used(self, q: Any, qd: Any, tau: Any) -> dict[str, Any]:
        """How much of each limit is used, as a part of it, at one time."""
        return dict(
            position=jnp.abs(q - self.middle) / self.half,
            velocity=jnp.abs(qd) / self.velocity,
            effort=jnp.abs(tau) / self.effort,
        )


def limits_of(
    model: Model, lower: Any = None, upper: Any = None, *, velocity: Any, effort: Any
) -> Limits:
    """The limits that are given, and for those that are None the ones of the model.

    Raises:
        ValueError: a limit has the wrong shape, is not finite or leaves no room.
    """
    low, high = _array(model, "lower", lower), _array(model, "upper", upper)
    rate, force = _array(model, "velocity", velocity), _array(model, "effort", effort)
    turns = np.zeros(model.nq, bool)
    turns[model.topology.quaternion_q] = True
    for name, values in (("lower", low), ("upper", high)):
        _check(model, name, "q", values, np.isfinite(values) | turns, "a finite number")
    for name, values in (("velocity", rate), ("effort", force)):
        symbol = "qd" if name == "velocity" else "tau"
        is_right = np.isfinite(values) & (values > 0)
        _check(model, name, symbol, values, is_right, "a finite positive number")
    is_right = (low < high) | turns
    _check(model, "lower", "q", low, is_right, "less than upper", high)
    middle, half = np.array(neutral(model)), np.full(model.nq, np.inf)
    middle[~turns] = (low[~turns] + high[~turns]) / 2
    half[~turns] = (high[~turns] - low[~turns]) / 2
    reach, t = np.full(model.nv, np.pi / 2), model.topology
    reach[t.plain_v] = half[t.plain_q]
    reach[t.position_v] = half[t.position_q]
    return Limits(*map(jnp.asarray, (middle, half, rate, force, reach)))


def _array(model: Model, name: str, given: Any) -> np.ndarray:
    leaf = getattr(model, name)
    values = np.asarray(leaf if given is None else given, float)
    if values.shape not in ((), leaf.shape):
        raise ValueError(
            f"{name} has shape {values.shape}, expected () or {leaf.shape} for model "
            f"{model.name!r}: one number for all, or one for each coordinate."
        )
    return np.broadcast_to(values, leaf.shape)


def _check(
    model: Model,
    name: str,
    symbol: str,
    values: np.ndarray,
    is_right: np.ndarray,
    expected: str,
    than: np.ndarray | None = None,
) -> None:
    for k in np.flatnonzero(~is_right):
        other = "" if than is None else f" {than[k]:g}"
        raise ValueError(
            f"{name} of {column_names(model, symbol)[k]} is {values[k]:g}, expected "
            f"{expected}{other}: give {name}= to excite, or in the model."
        )
