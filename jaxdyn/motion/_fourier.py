"""Periodic motion: a finite Fourier series about a configuration."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.algorithms.kinematics import integrate
from jaxdyn.model import Model, Nq
from jaxdyn.motion._inputs import inputs, positive
from jaxdyn.motion._motion import PathMotion, Time


class Fourier(PathMotion):
    """A tangent step from `q0` that is a finite Fourier series; see `fourier`.

    Attributes:
        rest: whether a polynomial takes the motion to rest at both ends.
    """

    model: Model
    q0: Float[Array, " nq"]
    sines: Float[Array, "harmonics nv"]
    cosines: Float[Array, "harmonics nv"]
    duration: Float[Array, ""]
    rest: bool = eqx.field(static=True)

    def path(self, t: Float[Array, ""]) -> Nq:
        """The configuration at a time from 0 to duration."""
        u = t / self.duration
        w = 2 * jnp.pi * jnp.arange(1, len(self.sines) + 1, dtype=u.dtype)
        step = jnp.sin(w * u) @ self.sines + jnp.cos(w * u) @ self.cosines
        if self.rest:
            slope, bend = _polynomials(u)
            step = step - slope * (w @ self.sines) + bend * (w**2 @ self.cosines)
        return integrate(self.model, self.q0, step)


def fourier(
    model: Model,
    q0: Nq,
    sines: Float[Array, "harmonics nv"],
    cosines: Float[Array, "harmonics nv"],
    duration: Time,
    *,
    rest: bool = True,
) -> Fourier:
    r"""The motion about q0 along a Fourier series, which ends where it starts.

    $$q(t) = q_0 + \sum_k a_k \sin \frac{2\pi k t}{T}
      + b_k \cos \frac{2\pi k t}{T} - p(t / T)$$

    with the rows $a_k$ of `sines` and $b_k$ of `cosines`. Joints with a quaternion
    take this step by `integrate`. The polynomial p of fifth degree is zero at both ends
    and has there the rates and accelerations of the series: the motion starts and ends
    at rest, without acceleration, and repeats smoothly.

    Args:
        duration: T, one period.
        rest: whether p is taken off; without it the series alone is left, with the
            frequencies k / T and no others, which at its ends is not at rest.
    """
    if jnp.ndim(sines) != 2 or not len(sines):
        raise ValueError(
            f"sines has shape {jnp.shape(sines)}, expected (harmonics, {model.nv}): a "
            "row for each harmonic."
        )
    shape = len(sines), model.nv
    given = dict(q0=(q0, (model.nq,)), sines=(sines, shape), cosines=(cosines, shape))
    model, q0, sines, cosines = inputs(model, **given)
    T = positive("duration", duration, q0.dtype)
    return Fourier(model, q0, sines, cosines, T, rest)


def _polynomials(u: Any) -> tuple[Any, Any]:
    """Zero at u = 0 and 1; one has slope 1 there, the other the second derivative 1."""
    slope = u - u**3 * (10 - u * (15 - 6 * u))
    bend = (u * (1 - u)) ** 2 / 2
    return slope, bend
