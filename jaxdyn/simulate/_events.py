"""Events that end a simulation."""

from typing import Any

import diffrax
import jax.numpy as jnp
import numpy as np
import optimistix
from jax.core import Tracer

from jaxdyn.model import Model
from jaxdyn.simulate._trajectory import State


def joint_limit_event(model: Model, *, root_finder: Any = None) -> diffrax.Event:
    """The event that a joint leaves its range, from `model.lower` to `model.upper`.

    It has left it where it is 1e-10 beyond a limit (float32: 1e-6), in radians or
    metres: a joint may start on a limit, or rest there. Joints whose limits are equal
    are locked, and not watched. A motion must start within the limits.

    Args:
        root_finder: `optimistix.Bisection(1e-8, 1e-8, flip=True)` finds the end within
            a step, to these tolerances of time and position. By default the simulation
            ends with the step.

    Raises:
        ValueError: no joint has a limit, or all are locked; a root finder that follows
            slopes, which are none where another joint rests on a limit.
    """
    if not isinstance(root_finder, optimistix.Bisection | None):
        raise ValueError(
            f"root_finder is {type(root_finder).__name__}, expected None or a "
            "bisection, since other joints may rest on a limit: give "
            "optimistix.Bisection(rtol, atol, flip=True)."
        )
    lower, upper = model.lower, model.upper
    if not any(isinstance(x, Tracer) for x in (lower, upper)):
        lower, upper = np.asarray(lower), np.asarray(upper)
        has_limit = np.isfinite(lower) | np.isfinite(upper)
        if not (has_limit & (lower < upper)).any():
            raise ValueError(
                f"model {model.name!r} has no finite joint limit, expected one at "
                "least: set lower and upper where it is built."
            )
    slack = 1e-10 if model.dtype == np.float64 else 1e-6  # as the solver's by default

    def distance(t: Any, y: State, args: Any, **_: Any) -> Any:
        inside = jnp.minimum(y.q - lower, upper - y.q)
        return jnp.where(lower < upper, inside, jnp.inf).min() + slack

    return diffrax.Event(distance, root_finder, direction=False)
