"""Smooth motion through waypoints."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.lax.linalg import tridiagonal_solve
from jaxtyping import Array, Float

from jaxdyn.algorithms.kinematics import difference, integrate
from jaxdyn.model import Model, Nq, Nv
from jaxdyn.motion._inputs import expect, inputs
from jaxdyn.motion._motion import PathMotion
from jaxdyn.program import alone


class Spline(PathMotion):
    """A cubic spline through waypoints; see `spline`.

    Attributes:
        values, slopes: those of the spline at the times. Without quaternions it is the
            tangent step from `q0`; with them it has a weight for each of the `steps`.
        steps: the tangent steps that are taken one after the other, each times its
            weight, or None.
    """

    model: Model
    times: Float[Array, " times"]
    q0: Float[Array, " nq"]
    values: Float[Array, "times k"]
    slopes: Float[Array, "times k"]
    steps: Float[Array, "k nv"] | None

    @property
    def duration(self) -> Float[Array, ""]:
        """The time of the last waypoint."""
        return self.times[-1]

    def path(self, t: Float[Array, ""]) -> Nq:
        """The configuration at a time from 0 to duration."""
        x = _hermite(self.times, self.values, self.slopes, t)
        if self.steps is None:
            return integrate(self.model, self.q0, x)

        def advance(q: Any, step: Any) -> Any:
            weight, d = step
            return integrate(self.model, q, weight * d), None

        return jax.lax.scan(advance, self.q0, (x, self.steps))[0]


def spline(
    model: Model,
    times: Float[Array, " times"],
    qs: Float[Array, "times nq"],
    *,
    qd0: Nv | None = None,
    qd1: Nv | None = None,
) -> Spline:
    r"""The motion through `qs` at `times` with continuous accelerations.

    The cubic spline, at rest at both ends or with the rates qd0 and qd1 there; outside
    it rests. With its cardinal form $c_k$, so that $\sum_{j \ge k} c_j(t) = C_k(t)$,

    $$q(t) = q_0 + \sum_k C_k(t)\, d_k, \quad d_k = q_k - q_{k-1}.$$

    With quaternions the steps $C_k d_k$, d_k = `difference(q[k - 1], q[k])`, are taken
    one after the other by `integrate`: at the times $C_k$ is 0 or 1, so the motion goes
    through all waypoints. From one to the next bodies take the shorter way, so less
    than half a turn; each call then takes as many steps as there are waypoints.

    Args:
        times: increasing, from 0 on; the last is the duration.
    """
    if jnp.ndim(times) != 1 or len(times) < 2:
        raise ValueError(
            f"times has shape {jnp.shape(times)}, expected two times or more."
        )
    count = len(times)
    given = dict(times=(times, (count,)), qs=(qs, (count, model.nq)))
    given |= dict(qd0=(qd0, (model.nv,)), qd1=(qd1, (model.nv,)))
    model, times, qs, *rates = inputs(model, **given)
    times = _increasing(times)
    zero = jnp.zeros(model.nv, qs.dtype)
    ends = [zero if rate is None else rate for rate in rates]
    return _spline(model, times, qs, ends)


def _increasing(times: Any) -> Any:
    """Times that increase from 0 on."""
    is_right = jnp.append(times[0] == 0, jnp.diff(times) > 0)
    if isinstance(is_right, Tracer) or is_right.all():
        return expect("times", times, is_right, "increasing times from 0 on")
    if not is_right[0]:
        raise ValueError(f"times[0] is {times[0]}, expected 0: subtract it from all.")
    k = int(jnp.argmin(is_right))
    raise ValueError(
        f"times[{k}] is {times[k]} after {times[k - 1]}, expected increasing times."
    )


@alone()
def _spline(model: Model, times: Any, qs: Any, ends: list) -> Spline:
    if not model.topology.quaternion_q.size:
        steps, values = None, qs - qs[:1]
    else:
        between = jax.vmap(difference, (None, 0, 0))(model, qs[:-1], qs[1:])
        steps = jnp.concatenate([ends[0][None], between, ends[1][None]])
        # weights: C_k is 1 from waypoint k on; those of the end rates are slopes only
        done = np.tri(len(times), len(steps))
        done[:, 0] = 0
        values = jnp.asarray(done, qs.dtype)
        ends = list(jnp.eye(len(steps), dtype=qs.dtype)[jnp.array([0, -1])])
    slopes = _slopes(times, values, *ends)
    return Spline(model, times, qs[0], values, slopes, steps)


def _slopes(times: Any, values: Any, first: Any, last: Any) -> Any:
    """The slopes at the times for which second derivatives are continuous."""
    h = jnp.diff(times)
    secants = jnp.diff(values, axis=0) / h[:, None]
    one, none = jnp.ones(1, h.dtype), jnp.zeros(1, h.dtype)
    before, after = h[:-1], h[1:]
    lower = jnp.concatenate([none, after, none])
    diagonal = jnp.concatenate([one, 2 * (before + after), one])
    upper = jnp.concatenate([none, before, none])
    inner = after[:, None] * secants[:-1] + before[:, None] * secants[1:]
    right = jnp.concatenate([first[None], 3 * inner, last[None]])
    return tridiagonal_solve(lower, diagonal, upper, right)


def _hermite(times: Any, values: Any, slopes: Any, t: Any) -> Any:
    """The cubic with the values and slopes at the two times around t."""
    k = jnp.clip(jnp.searchsorted(times, t, side="right") - 1, 0, len(times) - 2)
    h = times[k + 1] - times[k]
    u = (t - times[k]) / h
    y0, y1, m0, m1 = values[k], values[k + 1], h * slopes[k], h * slopes[k + 1]
    rise = y1 - y0
    return y0 + u * (m0 + u * (3 * rise - 2 * m0 - m1 + u * (m0 + m1 - 2 * rise)))
