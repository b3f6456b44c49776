"""Events that end a simulation."""

from typing import Any

import diffrax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxdyn.model import Model
from jaxdyn.simulate._trajectory import State


def joint_limit_event(model: Model, *, root_finder: Any = None) -> diffrax.Event:
    """The event that a joint leaves its range, from `model.lower` to `model.upper`.

    Without a root finder, such as `optimistix.Newton(1e-8, 1e-8)`, the simulation ends
    with the step on which that happens. A motion must start within the limits.

    Raises:
        ValueError: no joint has a limit.
    """
    limits = (model.lower, model.upper)
    if not any(isinstance(x, Tracer) or np.isfinite(x).any() for x in limits):
        raise ValueError(
            f"model {model.name!r} has no finite joint limit, expected one at least: "
            "set lower and upper where it is built."
        )

    def distance(t: Any, y: State, args: Any, **_: Any) -> Any:
        return jnp.minimum(y.q - model.lower, model.upper - y.q).min()

    return diffrax.Event(distance, root_finder, direction=False)
