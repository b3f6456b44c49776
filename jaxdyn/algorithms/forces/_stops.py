"""Joint limits as springs and dampers."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from jaxdyn.model import FORCES, AbstractForce, BodyState, Loads, Model, as_leaf
from jaxdyn.program import put, take


class JointStops(AbstractForce):
    r"""Stops at the limits `lower` and `upper` of the model's joints.

    Beyond a limit by e > 0 a stop pushes back with

    $$f = k\, r(e) + c\, r'(e)\, \dot e, \qquad r = \frac{e^2}{2 w} \; (e < w), \quad
      r = e - \frac{w}{2} \; (e \ge w)$$

    so that force and damping set in smoothly over the width w. Joints without limits
    and those with quaternions have no stops. `jd.joint_stops` makes them for a model.

    Attributes:
        stiffness, damping: k and c of each joint, nv numbers of the tree of all joints.
        width: w, in radians or metres.
    """

    stiffness: Float[Array, " nv"] = eqx.field(converter=as_leaf)
    damping: Float[Array, " nv"] = eqx.field(converter=as_leaf)
    width: Float[Array, ""] = eqx.field(converter=as_leaf, default=1e-3)

    def loads(self, model: Model, at: BodyState) -> Loads:
        """The forces in the joints."""
        k, c, rate = self._own(model, at)
        tau = jnp.zeros_like(rate)
        for e, sign in self._beyond(model, at):
            r, slope, _ = self._ramp(e)
            tau = tau - sign * (k * r + c * slope * sign * rate)
        return Loads(tau=put(tau, _places(model)[1], model.nv))

    def energy(self, model: Model, at: BodyState) -> Float[Array, ""]:
        """The energy of the springs."""
        k, *_ = self._own(model, at)
        (upper, _), (lower, _) = self._beyond(model, at)
        return (k * (self._ramp(upper)[2] + self._ramp(lower)[2])).sum()

    def joint_slopes(self, model: Model, at: BodyState) -> tuple[Array, Array]:
        """Damping and stiffness where a limit is passed."""
        k, c, _ = self._own(model, at)
        slope = sum(self._ramp(e)[1] for e, _ in self._beyond(model, at))
        places = _places(model)[1]
        return put(c * slope, places, model.nv), put(k * slope, places, model.nv)

    def placed(self, model: Model) -> "JointStops":
        """The element, its values checked."""
        shape = (model.tree.nv,)
        for name in ("stiffness", "damping"):
            value = getattr(self, name)
            if value.shape != shape or not _is_valid(value, np.greater_equal):
                raise ValueError(
                    f"joint stops: {name} is {value!r}, expected {shape[0]} finite "
                    f"numbers from zero on, one for each joint velocity of model "
                    f"{model.name!r}."
                )
        if self.width.shape or not _is_valid(self.width, np.greater):
            raise ValueError(
                f"joint stops: width is {self.width!r}, expected a positive number."
            )
        return self

    def _own(self, model: Model, at: BodyState) -> Any:
        """Stiffness, damping and rate of the joints that have coordinates."""
        places = _places(model)[1]
        return (take(x, places) for x in (self.stiffness, self.damping, at.qd))

    def _beyond(self, model: Model, at: BodyState) -> list[tuple[Array, int]]:
        """How far each joint is beyond its limits, and on which side."""
        places = _places(model)[0]
        q, lower, upper = (take(x, places) for x in (at.q, model.lower, model.upper))
        ends = ((q, upper, 1), (lower, q, -1))
        return [
            (jnp.where(jnp.isfinite(a) & jnp.isfinite(b), a - b, -1), side)
            for a, b, side in ends
        ]

    def _ramp(self, e: Array) -> tuple[Array, Array, Array]:
        """r, its slope and its integral."""
        w, e = self.width, jnp.maximum(e, 0)
        near, full = jnp.minimum(e, w), jnp.maximum(e - w, 0)
        r = near**2 / (2 * w) + full
        integral = near**3 / (6 * w) + full * (w + full) / 2
        return r, near / w, integral


FORCES["joint_stops"] = JointStops


def _places(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Where the joints without quaternions stand in q and in qd."""
    t = model.topology
    pairs = [
        (q, v)
        for i in range(model.n)
        for q, v in zip(
            range(t.q_start[i], t.q_start[i + 1]),
            range(t.v_start[i], t.v_start[i + 1]),
            strict=False,
        )
        if t.q_start[i + 1] - t.q_start[i] == t.v_start[i + 1] - t.v_start[i]
    ]
    return tuple(np.array(pairs, int).reshape(-1, 2).T)  # type: ignore


def _is_valid(value: Array, compare: Any) -> bool:
    if isinstance(value, Tracer):
        return True
    return bool(np.isfinite(value).all() and compare(value, 0).all())
