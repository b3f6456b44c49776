"""Events that end a simulation."""

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix
from jax.core import Tracer
from jaxtyping import Array, Float

from jaxdyn.model import Model, Nq
from jaxdyn.simulate._trajectory import State


class JointLimits(eqx.Module):
    """The condition of `joint_limit_event`: negative where a joint is out of range."""

    lower: Float[Array, " nq"]
    upper: Float[Array, " nq"]

    def __call__(self, t: Any, y: State, args: Any, **_: Any) -> Float[Array, ""]:
        """The least distance of a coordinate from a limit, with some slack."""
        return self.inside(y.q).min()

    def inside(self, q: Nq) -> Nq:
        """How far each coordinate is inside of its range; locked ones are always."""
        slack = 1e-10 if q.dtype == np.float64 else 1e-6  # as the solver's by default
        lower, upper = self.lower.astype(q.dtype), self.upper.astype(q.dtype)
        distance = jnp.minimum(q - lower, upper - q) + slack
        return jnp.where(lower < upper, distance, jnp.inf)


def joint_limit_event(model: Model, *, root_finder: Any = None) -> diffrax.Event:
    """The event that a joint leaves its range, from `model.lower` to `model.upper`.

    It has left it where it is 1e-10 beyond a limit (float32: 1e-6), in radians or
    metres: a joint may start on a limit, or rest there. Joints whose limits are equal
    are locked, and not watched. `simulate` refuses a start beyond a limit, and
    `Trajectory.reached_limits` names the joints that ended the motion.

    Args:
        root_finder: `optimistix.Bisection(1e-8, 1e-8, flip=True)` finds the end within
            a step, to these tolerances of time and position. By default the simulation
            ends with the step.

    Raises:
        ValueError: no joint has a limit, or all are locked; a root finder that follows
            slopes: the slope is zero where another joint rests on a limit.
    """
    if not isinstance(root_finder, optimistix.Bisection | None):
        raise ValueError(
            f"root_finder is {type(root_finder).__name__}, expected None or a "
            "bisection, since other joints may rest on a limit: give "
            "optimistix.Bisection(rtol, atol, flip=True)."
        )
    if not any(isinstance(x, Tracer) for x in (model.lower, model.upper)):
        lower, upper = np.asarray(model.lower), np.asarray(model.upper)
        has_limit = np.isfinite(lower) | np.isfinite(upper)
        if not (has_limit & (lower < upper)).any():
            raise ValueError(
                f"model {model.name!r} has no finite joint limit, expected one at "
                "least: set lower and upper where it is built."
            )
    limits = JointLimits(jnp.asarray(model.lower), jnp.asarray(model.upper))
    return diffrax.Event(limits, root_finder, direction=False)


def watched(event: diffrax.Event | None) -> list[JointLimits]:
    """The joint limits among the conditions of an event."""
    if event is None:
        return []
    conditions = jax.tree.leaves(event.cond_fn, is_leaf=callable)
    return [x for x in conditions if isinstance(x, JointLimits)]


def check_start(model: Model, q0: Any, qd0: Any, event: diffrax.Event | None) -> None:
    """Raise a `ValueError` for a start that is not finite, or beyond a watched limit.

    Known only outside of traced code.
    """
    for name, x in (("q0", q0), ("qd0", qd0)):
        for k in _marked(~jnp.isfinite(x)):
            raise ValueError(f"{name}[{k}] is {x[k]}, expected a finite number.")
    for limits in watched(event):
        for k in _marked(limits.inside(q0) < 0):
            body = np.searchsorted(model.topology.q_start, k, side="right") - 1
            raise ValueError(
                f"q0[{k}] is {q0[k]:.6g}, expected {limits.lower[k]:.6g} to "
                f"{limits.upper[k]:.6g}, the limits of joint "
                f"{model.joint_names[body]!r}: start within them, or without "
                "joint_limit_event."
            )


def _marked(wrong: Any) -> Any:
    return () if isinstance(wrong, Tracer) else np.flatnonzero(wrong)
