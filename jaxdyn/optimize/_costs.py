"""What a motion costs: pieces to be added, functions (q, qd, tau) of all its times."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.algorithms.kinematics import difference
from jaxdyn.model import Model
from jaxdyn.motion import JointMotion

CostFunction = Callable[..., Any]  # (q, qd, tau) -> one number
Weight = Float[Array, "..."] | float


class Cost(eqx.Module):
    """A function (q, qd, tau) -> number of the rows of a motion.

    q and qd have a row for each time, tau one for each step between them. Costs add,
    with each other and with functions of your own.
    """

    @abstractmethod
    def __call__(self, q: Any, qd: Any, tau: Any) -> Any:
        """What the motion costs."""

    def __add__(self, other: CostFunction) -> "Sum":
        return Sum((self, other))

    def __radd__(self, other: Any) -> "Cost":
        return self if other == 0 else Sum((other, self))  # `sum` begins with 0


class Sum(Cost):
    """The sum of costs."""

    terms: tuple[CostFunction, ...]

    def __call__(self, q: Any, qd: Any, tau: Any) -> Any:
        """What the motion costs by all terms."""
        return sum(cost_of(term, q, qd, tau) for term in self.terms)


class Reach(Cost):
    """The squared distance of the last state from a goal; see `reach`."""

    model: Model
    q: Float[Array, " nq"]
    qd: Float[Array, " nv"]
    weight: Float[Array, " nv"]
    rate_weight: Float[Array, " nv"]

    def __call__(self, q: Any, qd: Any, tau: Any) -> Any:
        """What the last state costs."""
        return _squares(self, self.q, self.qd, q[-1], qd[-1])


class Track(Cost):
    """The mean squared distance from a path over all times; see `track`."""

    model: Model
    q: Float[Array, "times nq"]
    qd: Float[Array, "times nv"]
    weight: Float[Array, " nv"]
    rate_weight: Float[Array, " nv"]

    def __call__(self, q: Any, qd: Any, tau: Any) -> Any:
        """What the distance from the path costs."""
        if len(q) != len(self.q):
            raise ValueError(
                f"track has a path of {len(self.q)} times for a motion of {len(q)}, "
                "expected equally many: one more than there are steps."
            )
        rows = jax.vmap(lambda *x: _squares(self, *x))
        return rows(self.q, self.qd, q, qd).mean()


class Effort(Cost):
    """The mean squared joint force; see `effort`."""

    weight: Float[Array, "..."]

    def __call__(self, q: Any, qd: Any, tau: Any) -> Any:
        """What the joint forces cost."""
        nv = tau.shape[1]
        if self.weight.shape not in ((), (nv,)):
            raise ValueError(
                f"effort has weights of shape {self.weight.shape}, expected one number "
                f"or {(nv,)}."
            )
        weight = jnp.broadcast_to(self.weight.astype(tau.dtype), tau.shape)
        return (weight * tau**2).sum(axis=1).mean()


def reach(
    model: Model,
    q: Float[Array, " nq"],
    qd: Float[Array, " nv"] | None = None,
    *,
    weight: Weight = 1.0,
    rate_weight: Weight = 1.0,
) -> Reach:
    r"""The cost of a last state away from a goal.

    $$\sum_i w_i\, d_i^2 + \sum_i w'_i\, (\text{qd}_i - \text{qd}^*_i)^2, \quad
      d = \mathrm{difference}(q^*, q)$$

    Args:
        q, qd: the goal; at rest without qd.
        weight, rate_weight: one number for all joints or nv of them, not negative.
    """
    goal = _rows(model, "q", q, (model.nq,))
    rest = jnp.zeros(model.nv) if qd is None else qd
    rates = _rows(model, "qd", rest, (model.nv,))
    return Reach(model, goal, rates, *_weights(model, weight, rate_weight))


def track(
    model: Model,
    path: Callable[..., JointMotion] | Float[Array, "times nq"],
    ts: Float[Array, " times"] | None = None,
    *,
    qd: Float[Array, "times nv"] | None = None,
    weight: Weight = 1.0,
    rate_weight: Weight = 0.0,
) -> Track:
    r"""The cost of a motion away from a path, the mean over all times.

    $$\frac1N \sum_k \Big(\sum_i w_i\, d_{ki}^2
      + \sum_i w'_i\, (\text{qd}_{ki} - \text{qd}^*_{ki})^2\Big), \quad
      d_k = \mathrm{difference}(q^*_k, q_k)$$

    Args:
        path: a motion of `jaxdyn.motion`, with the times `ts`, or a row of q for each
            time.
        qd: the rates of rows; zero if not given. A motion has its own.
        weight, rate_weight: one number for all joints or nv of them, not negative.
    """
    if callable(path):
        if ts is None:
            raise ValueError("ts is None, expected the times at which to follow path.")
        if qd is not None:
            raise ValueError("qd is given beside a motion, expected None: it has rates")
        motion = jax.vmap(path)(jnp.asarray(ts, model.dtype))
        path, qd = motion.q, motion.qd
    elif ts is not None:
        raise ValueError(
            "ts is given beside rows of q, expected None: there is one for each time."
        )
    rows = jnp.asarray(path)
    times = len(rows) if rows.ndim else 1
    rows = _rows(model, "path", rows, (times, model.nq))
    rates = jnp.zeros((times, model.nv)) if qd is None else qd
    rates = _rows(model, "qd", rates, (times, model.nv))
    return Track(model, rows, rates, *_weights(model, weight, rate_weight))


def effort(weight: Weight = 1.0) -> Effort:
    r"""The cost of joint forces, the mean over the steps of $\sum_i w_i \tau_i^2$.

    That is the integral over time, divided by the duration.

    Args:
        weight: one number for all joints or nv of them, not negative.
    """
    weight = jnp.asarray(weight)
    _check_weight("weight", weight)
    return Effort(weight)


def cost_of(cost: CostFunction, q: Any, qd: Any, tau: Any) -> Any:
    """One number for a motion, of a cost or a function of the user."""
    value = jnp.asarray(cost(q, qd, tau))
    if value.shape:
        raise ValueError(
            f"cost returned shape {value.shape}, expected one number: it is called as "
            f"(q, qd, tau) with the rows {q.shape}, {qd.shape}, {tau.shape} of a "
            "motion."
        )
    return value.astype(q.dtype)


def _squares(cost: Reach | Track, q: Any, qd: Any, q_now: Any, qd_now: Any) -> Any:
    """The weighted squared distance of one state from another."""
    given = (q, qd, cost.weight, cost.rate_weight)
    q, qd, w, rate_w = (x.astype(q_now.dtype) for x in given)
    apart = difference(cost.model, q, q_now)
    return (w * apart**2).sum() + (rate_w * (qd_now - qd) ** 2).sum()


def _rows(model: Model, name: str, value: Any, shape: tuple[int, ...]) -> Any:
    value = jnp.asarray(value)
    if value.shape != shape:
        raise ValueError(
            f"{name} has shape {value.shape}, expected {shape} for model "
            f"{model.name!r}."
        )
    return value.astype(model.dtype)


def _weights(model: Model, weight: Any, rate_weight: Any) -> Any:
    found = []
    for name, value in (("weight", weight), ("rate_weight", rate_weight)):
        value = jnp.asarray(value)
        if value.shape not in ((), (model.nv,)):
            raise ValueError(
                f"{name} has shape {value.shape}, expected one number or "
                f"{(model.nv,)} for model {model.name!r}."
            )
        _check_weight(name, value)
        found.append(jnp.broadcast_to(value.astype(model.dtype), model.nv))
    return found


def _check_weight(name: str, value: Any) -> None:
    if not (jnp.isfinite(value) & (value >= 0)).all():
        raise ValueError(f"{name} is {value}, expected numbers that are not negative.")
