"""Motions given by numbers of order one, from rest to rest and within limits."""

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.interpolate import CubicSpline

from jaxdyn.algorithms.kinematics import integrate, neutral
from jaxdyn.dynamics import inverse_dynamics
from jaxdyn.io import column_names
from jaxdyn.model import Model
from jaxdyn.motion import Fourier, JointMotion, Spline, spline


class Limits(eqx.Module):
    """Limits of all joints."""

    middle: Float[Array, " nq"]  # of the range of q; the identity for a quaternion
    half: Float[Array, " nq"]  # of the range of q; infinite for a quaternion
    velocity: Float[Array, " nv"]  # the largest rates
    effort: Float[Array, " nv"]  # the largest forces
    reach: Float[Array, " nv"]  # tangent steps from the middle; of rotations 1/4 turn

    def used(self, q: Any, qd: Any, tau: Any) -> dict[str, Any]:
        """How much of each limit is used, as a part of it, at one time."""
        return dict(
            position=jnp.abs(q - self.middle) / self.half,
            velocity=jnp.abs(qd) / self.velocity,
            effort=jnp.abs(tau) / self.effort,
        )


def limits_of(
    model: Model,
    *,
    lower: Any = None,
    upper: Any = None,
    velocity: Any = None,
    effort: Any = None,
) -> Limits:
    """The limits that are given, and for those that are None the ones of the model."""
    given = dict(lower=lower, upper=upper, velocity=velocity, effort=effort)
    low, high, rate, force = (_array(model, name, x) for name, x in given.items())
    turns = np.zeros(model.nq, bool)
    turns[model.topology.quaternion_q] = True
    for name, values in (("lower", low), ("upper", high)):
        _check(model, name, "q", values, np.isfinite(values) | turns, "a finite number")
    for name, symbol, values in (("velocity", "qd", rate), ("effort", "tau", force)):
        is_right = np.isfinite(values) & (values > 0)
        _check(model, name, symbol, values, is_right, "a finite positive number")
    _check(model, "lower", "q", low, (low < high) | turns, "less than upper", high)
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


Form = Literal["fourier", "spline"]
DENSE = 4  # limits are looked at so many times more often than samples are taken
ROOM = 1e-3  # part of all limits that is left free, for what lies in between
_SIZES = 24  # that are tried in each round
_ROUNDS = 4


class Shape(eqx.Module):
    """A motion in numbers of order one: its centre, and how it moves about it."""

    centre: Float[Array, "*starts nv"]
    weights: Float[Array, "*starts rows nv"]


class Plan(eqx.Module):
    """How a `Shape` becomes a motion within the limits."""

    model: Model
    limits: Limits
    amplitudes: Float[Array, "rows nv"]  # with which a weight alone uses its limits
    duration: float = eqx.field(static=True)
    form: Form = eqx.field(static=True)

    def motion(self, shape: Shape) -> Fourier | Spline:
        """The motion, from rest to rest without acceleration at both ends."""
        step = shape.centre * self.limits.reach
        q0 = integrate(self.model, self.limits.middle, step)
        steps = shape.weights * self.amplitudes
        if self.form == "fourier":
            sines, cosines = jnp.split(steps, 2)
            T = jnp.asarray(self.duration)
            return Fourier(self.model, q0, sines, cosines, T, rest=True)
        times = jnp.asarray(np.linspace(0, self.duration, len(steps)))
        quiet = jnp.asarray(_without_end_accelerations(len(steps)))
        return spline(self.model, times, q0[None] + quiet @ steps)

    def states(self, shape: Shape, count: int) -> JointMotion:
        """The motion at equal distances of time."""
        move = self.motion(shape)
        return jax.vmap(move)(jnp.linspace(0, self.duration, count))

    def used(self, shape: Shape, samples: int) -> dict[str, Any]:
        """The largest part of each limit that is used, also between the samples."""
        m = self.states(shape, DENSE * (samples - 1) + 1)
        tau = jax.vmap(inverse_dynamics, (None, 0, 0, 0))(self.model, m.q, m.qd, m.qdd)
        used = jax.vmap(self.limits.used)(m.q, m.qd, tau)
        return jax.tree.map(lambda x: x.max(axis=0), used)


def plan_of(
    model: Model, limits: Limits, duration: float, harmonics: int, form: Form
) -> Plan:
    """The plan for motions of a number of harmonics, or as many knots times two."""
    reach, rows = np.asarray(limits.reach), 2 * harmonics
    if form == "fourier":
        rates = 2 * np.pi / duration * np.tile(np.arange(1, harmonics + 1), 2)
    else:
        rows += 2  # both ends
        rates = np.full(rows, rows / duration)
    amplitudes = np.minimum(reach, np.asarray(limits.velocity) / rates[:, None])
    return Plan(model, limits, jnp.asarray(amplitudes), duration, form)


def _without_end_accelerations(knots: int) -> np.ndarray:
    """The nearest values at the knots whose spline has no acceleration at its ends."""
    cardinal = CubicSpline(np.linspace(0, 1, knots), np.eye(knots), bc_type="clamped")
    ends = cardinal([0.0, 1.0], 2)
    return np.eye(knots) - np.linalg.pinv(ends) @ ends


@eqx.filter_jit
def sampled(plan: Plan, shapes: Shape, samples: int) -> JointMotion:
    """The samples of several motions."""
    return jax.vmap(lambda shape: plan.states(shape, samples))(shapes)


most_used = eqx.filter_jit(Plan.used)  # (plan, shape, samples)


@eqx.filter_jit
def drawn(plan: Plan, keys: Any, each_joint: bool) -> Shape:
    """Random motions of any size, or in which each joint uses its own range or rate.

    Centres are uniform in the middle half of the range, all coefficients are normal, of
    the size of the range.
    """
    return jax.vmap(lambda key: _draw(plan, key, each_joint))(keys)


def _draw(plan: Plan, key: Any, each_joint: bool) -> Shape:
    keys, (rows, nv) = jax.random.split(key), plan.amplitudes.shape
    centre = jax.random.uniform(keys[0], (nv,), float, -0.5, 0.5)
    steps = jax.random.normal(keys[1], (rows, nv), float) * plan.limits.reach[None]
    shape = Shape(centre, steps / plan.amplitudes)
    if not each_joint:
        return shape
    limits, t = plan.limits, plan.model.topology
    m = plan.states(shape, 16 * rows)
    most = jnp.abs(m.qd / limits.velocity[None]).max(axis=0)
    # |c + s x| < 1 at all times: 1 / s is the largest of |x| / (1 - c sign x)
    c = jnp.zeros(plan.model.nq).at[t.plain_q].set(centre[t.plain_v])[None]
    x = (m.q - limits.middle[None]) / limits.half[None] - c
    farthest = (jnp.abs(x) / (1 - c * jnp.sign(x))).max(axis=0)
    most = most.at[t.plain_v].max(farthest[t.plain_q])
    return Shape(centre, shape.weights / most[None])


@eqx.filter_jit
def scaled(plan: Plan, shapes: Shape, samples: int) -> tuple[Shape, Any]:
    """Motions about the same centres as large as the limits allow, and if any do."""
    return jax.vmap(lambda shape: _scale(plan, shape, samples))(shapes)


def _scale(plan: Plan, shape: Shape, samples: int) -> tuple[Shape, Any]:
    """The motion in the largest size that was tried and keeps all limits.

    In each round sizes are tried between the last that does and the next one. None does
    if the robot cannot hold its centre.
    """

    def size(s: Any) -> Shape:
        return Shape(shape.centre, s * shape.weights)

    def keeps(s: Any) -> Any:
        used = jax.tree.leaves(plan.used(size(s), samples))
        return jnp.stack([x.max(initial=0) <= 1 - ROOM for x in used]).all()

    def refine(between: Any, _: None) -> Any:
        low, wide = between
        tried: Array = low + wide * jnp.arange(0, 1, 1 / _SIZES)
        kept = jax.lax.map(keeps, tried)
        return (jnp.where(kept, tried, 0).max(), wide / _SIZES), kept.any()

    rates = plan.states(shape, samples).qd / plan.limits.velocity[None]
    widest = 1.1 / jnp.abs(rates).max()  # rates grow with the size
    start = jnp.zeros(()), widest
    (best, _), kept = jax.lax.scan(refine, start, None, length=_ROUNDS)
    return size(best), kept.all() & (best > 0)
