"""What a reference motion returns, and the rates along any path of configurations."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.algorithms.kinematics import difference, integrate
from jaxdyn.model import Model, Nv
from jaxdyn.motion._inputs import real
from jaxdyn.program import alone
from jaxdyn.spatial import Quaternion, Vec3

Time = Float[Array, ""] | float
Path = Callable[[Any], Any]


class JointMotion(eqx.Module):
    """Position, velocity and acceleration of all joints at one time."""

    q: Float[Array, " nq"]
    qd: Float[Array, " nv"]
    qdd: Float[Array, " nv"]


def along(model: Model, path: Path, t: Float[Array, ""]) -> JointMotion:
    """The motion at time t along a path t -> q, for every joint type.

    qd is the rate of `difference(q(t), q(s))` in s at s = t: dq/dt for coordinates,
    velocities in body axes for quaternions and free joints. qdd is the rate of qd.
    """

    def state(t: Any) -> Any:
        q, rate = jax.jvp(path, (t,), (jnp.ones_like(t),))
        return _velocity(model, q, rate), q

    qd, qdd, q = jax.jvp(state, (t,), (jnp.ones_like(t),), has_aux=True)
    return JointMotion(q, qd, qdd)


def _velocity(model: Model, q: Any, rate: Any) -> Any:
    """The joint velocities at the rate dq/dt of q, which has unit quaternions.

    The derivative of `difference` at equal positions: 2 conj(u) du/dt for a quaternion
    u and Rᵀ dp/dt for a free position p.
    """
    t = model.topology
    qd = jnp.zeros(model.nv, q.dtype).at[t.plain_v].set(rate[t.plain_q])
    if t.quaternion_q.size:
        u, du = (Quaternion.of(x[t.quaternion_q]) for x in (q, rate))
        qd = qd.at[t.quaternion_v].set(2 * (u.T @ du).v.array())
    if t.position_q.size:
        R = Quaternion.of(q[t.free_quaternion_q]).matrix()
        moved = R.T @ Vec3.of(rate[t.position_q])
        qd = qd.at[t.position_v].set(moved.array())
    return qd


class PathMotion(eqx.Module):
    """A motion along `path`, at rest outside of its `duration`."""

    def __call__(self, t: Time) -> JointMotion:
        """Position, velocity and acceleration at time t."""
        return _follow(self, time(self, t))


@alone()
def _follow(motion: Any, t: Float[Array, ""]) -> JointMotion:
    return resting(lambda t: along(motion.model, motion.path, t), t, motion.duration)


def time(motion: Any, t: Time) -> Float[Array, ""]:
    """A time in the type of the motion."""
    return real("t", t, ()).astype(motion.duration.dtype)


def resting(
    inside: Callable[[Any], JointMotion], t: Float[Array, ""], duration: Any
) -> JointMotion:
    """A motion from 0 to `duration` that rests at its ends before and after."""
    early, late = t < 0, t > duration
    ended: Any = jnp.where(late, duration, t)
    motion = inside(jnp.where(early, 0, ended))

    def moving(rate: Any) -> Any:
        return jnp.where(early | late, 0, rate)

    return JointMotion(motion.q, moving(motion.qd), moving(motion.qdd))


def osculating(model: Model, state: JointMotion) -> Path:
    """A path t -> q that has the given position and rates at t = 0."""
    q, qd, bend = state.q, state.qd, _bend(model, state)
    return lambda t: integrate(model, q, t * qd + t * t / 2 * bend)


def _bend(model: Model, state: JointMotion) -> Nv:
    """The second derivative at q of the tangent step from q.

    It is qdd but for free joints, whose steps are in axes that stand still while those
    of their linear velocity turn: dv/dt + w x v.
    """
    at, turn = model.topology.position_v, model.topology.position_v + 3
    return state.qdd.at[at].add(jnp.cross(state.qd[turn], state.qd[at]))


def tangent_jet(f: Path, dtype: Any) -> tuple[Any, Any, Any]:
    """The value, first and second derivative of a function of t at t = 0."""
    zero, one = jnp.zeros((), dtype), jnp.ones((), dtype)

    def slope(t: Any) -> Any:
        return jax.jvp(f, (t,), (one,))

    (x, dx), (_, ddx) = jax.jvp(slope, (zero,), (one,))
    return x, dx, ddx


@alone()
def quintic(
    model: Model, start: JointMotion, end: JointMotion, duration: Any
) -> Float[Array, "6 nv"]:
    """Coefficients, by powers of t / duration, of the tangent step x(t) from start.q.

    The path `integrate(start.q, x(t))` has the position and rates of both ends.
    """
    path = osculating(model, end)
    x, v1, a1 = tangent_jet(lambda t: difference(model, start.q, path(t)), end.q.dtype)
    v0, v1 = start.qd * duration, v1 * duration
    a0, a1 = _bend(model, start) * duration**2, a1 * duration**2
    return jnp.stack(
        [
            jnp.zeros_like(x),
            v0,
            a0 / 2,
            10 * x - 6 * v0 - 4 * v1 - 1.5 * a0 + 0.5 * a1,
            -15 * x + 8 * v0 + 7 * v1 + 1.5 * a0 - a1,
            6 * x - 3 * v0 - 3 * v1 - 0.5 * a0 + 0.5 * a1,
        ]
    )


def horner(coefficients: Float[Array, "k nv"], u: Any) -> Any:
    """The polynomial in u with the given coefficients, lowest power first."""
    value = coefficients[-1]
    for c in coefficients[-2::-1]:
        value = value * u + c
    return value
