"""Motions from one configuration to another: cycloidal and polynomial."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.algorithms.kinematics import difference, integrate
from jaxdyn.model import Model, Nq, Nv
from jaxdyn.motion._inputs import inputs, positive
from jaxdyn.motion._motion import JointMotion, PathMotion, Time, horner, quintic


class Cycloidal(PathMotion):
    """A cycloidal motion along the tangent step `d` from `q0`; see `cycloidal`."""

    model: Model
    q0: Float[Array, " nq"]
    d: Float[Array, " nv"]
    duration: Float[Array, ""]

    def path(self, t: Float[Array, ""]) -> Nq:
        """The configuration at a time from 0 to duration."""
        return integrate(self.model, self.q0, self.d * cycloid(t / self.duration))


class Polynomial(PathMotion):
    """A tangent step from `q0` that is a polynomial in t / duration."""

    model: Model
    q0: Float[Array, " nq"]
    coefficients: Float[Array, "6 nv"]
    duration: Float[Array, ""]

    def path(self, t: Float[Array, ""]) -> Nq:
        """The configuration at a time from 0 to duration."""
        step = horner(self.coefficients, t / self.duration)
        return integrate(self.model, self.q0, step)


def cycloidal(model: Model, q0: Nq, q1: Nq, duration: Time) -> Cycloidal:
    r"""The motion from q0 to q1 whose rates and accelerations vanish at both ends.

    $$q(t) = q_0 + (q_1 - q_0)
      \left(\frac{t}{T} - \frac{1}{2\pi}\sin\frac{2\pi t}{T}\right)$$

    [Mohan] eq. 38, [Shah] eq. 15. Joints with a quaternion take the shortest way,
    `integrate(q0, s d)` with d = `difference(q0, q1)` and s the bracket.
    """
    given = dict(q0=(q0, (model.nq,)), q1=(q1, (model.nq,)))
    model, q0, q1 = inputs(model, **given)
    T = positive("duration", duration, q0.dtype)
    return Cycloidal(model, q0, difference(model, q0, q1), T)


def polynomial(
    model: Model,
    q0: Nq,
    q1: Nq,
    duration: Time,
    *,
    qd0: Nv | None = None,
    qd1: Nv | None = None,
    qdd0: Nv | None = None,
    qdd1: Nv | None = None,
) -> Polynomial:
    """The polynomial of fifth degree from q0 to q1 with given rates at both ends.

    Rates that are not given are zero. The polynomial is that of the tangent step from
    q0. Outside of 0 to `duration` the motion rests: rates at the ends that are not zero
    are those of t = 0 and t = duration, and jump to zero beyond.
    """
    nq, nv = model.nq, model.nv
    given = dict(q0=(q0, (nq,)), q1=(q1, (nq,)), qd0=(qd0, (nv,)), qd1=(qd1, (nv,)))
    given |= dict(qdd0=(qdd0, (nv,)), qdd1=(qdd1, (nv,)))
    model, q0, q1, *rates = inputs(model, **given)
    T = positive("duration", duration, q0.dtype)
    zero = jnp.zeros(nv, q0.dtype)
    v0, v1, a0, a1 = (zero if rate is None else rate for rate in rates)
    ends = JointMotion(q0, v0, a0), JointMotion(q1, v1, a1)
    return Polynomial(model, q0, quintic(model, *ends, T), T)


def cycloid(u: Float[Array, ""]) -> Float[Array, ""]:
    """The way from 0 to 1 as u goes from 0 to 1, at rest at both ends."""
    return u - jnp.sin(2 * jnp.pi * u) / (2 * jnp.pi)
