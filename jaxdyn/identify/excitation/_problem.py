"""The search for an excitation: random motions, improved within limits."""

from functools import cache
from typing import Any, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from tqdm import tqdm

from jaxdyn.identify._rows import check_counts, check_tree
from jaxdyn.identify.excitation import _plan as plans
from jaxdyn.identify.excitation._aim import Aim, Criterion, loss, rounded
from jaxdyn.identify.excitation._plan import Form, Plan, Shape
from jaxdyn.identify.linear import FREE, base_parameters, regressor_rows
from jaxdyn.model import Model

DRAWN = 8  # random motions that give units and starts
_WEIGHTS = 1.0, 1000.0  # of what is beyond the limits, at the first and the last step
_RATE = 0.03  # of Adam, at the first step
_NOISE = 0.01  # of the largest forces


class Problem(eqx.Module):
    """What shall be known of which robot, by which motions."""

    plan: Plan
    aim: Aim
    samples: int = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)

    def values(self, shapes: Shape) -> np.ndarray:
        """The criterion of each motion, infinity where it is no number."""
        Y = regressors(self.plan, shapes, self.samples)
        values = np.asarray(_values(self.aim, Y))
        return np.where(np.isfinite(values), values, np.inf)

    def feasible(
        self, found: Shape, starts: Shape, before: np.ndarray
    ) -> tuple[Shape, np.ndarray]:
        """The motions within their limits and the criterion of each.

        Where that is not better than before, the start is kept.
        """
        count = len(before)
        rows = np.arange(max(DRAWN, count)) % count  # the number for which it compiled
        shapes, keeps = plans.scaled(self.plan, pick(found, rows), self.samples)
        after = np.where(np.asarray(keeps), self.values(shapes), np.inf)[:count]
        is_better = after < before

        def choose(new: Any, old: Any) -> Any:
            better = is_better.reshape(-1, *(1,) * (old.ndim - 1))
            return jnp.where(better, new[:count], old)

        return jax.tree.map(choose, shapes, starts), np.minimum(after, before)


def problem_of(
    model: Model,
    duration: float,
    *,
    parameters: Any = FREE,
    harmonics: int = 5,
    form: Form = "fourier",
    criterion: Criterion = "worst",
    noise: Any = None,
    samples: int = 150,
    **limits: Any,
) -> Problem:
    """The problem for checked numbers, in double precision; errors as in `excite`."""
    check_tree(model)
    _check_known("criterion", criterion, Criterion)
    _check_known("form", form, Form)
    if form == "spline" and model.topology.quaternion_q.size:
        raise ValueError(
            f"model {model.name!r} has joints with quaternions, whose splines are not "
            "without acceleration at both ends: use form='fourier'."
        )
    check_counts(harmonics=harmonics)
    if not (np.isfinite(duration) and duration > 0):
        raise ValueError(f"duration is {duration}, expected a positive number.")
    model = model.astype(jnp.float64)
    bounds = plans.limits_of(model, **limits)
    std = _noise(model, noise, np.asarray(bounds.effort))
    base = base_parameters(model, parameters=parameters)
    plan = plans.plan_of(model, bounds, float(duration), harmonics, form)
    names = tuple(base.names[k] for k in base.independent)
    columns = base.columns[base.independent]
    least = 2 + -(-len(names) // model.nv)  # the first and the last one are at rest
    if samples < least:
        raise ValueError(
            f"samples is {samples}, expected {least} or more for {len(names)} "
            f"parameters and {model.nv} joint forces in each."
        )
    scale = _scale(plan, columns, names, std, samples)
    at = tuple(int(k) for k in columns)
    return Problem(plan, Aim(jnp.asarray(std), scale, at, criterion), samples, names)


def random_shapes(
    plan: Plan, key: Any, samples: int, each_joint: bool, count: int
) -> Shape:
    """Random motions as large as the limits allow."""
    shapes = plans.drawn(plan, jax.random.split(key, count), each_joint)
    shapes, keeps = plans.scaled(plan, shapes, samples)
    good = np.flatnonzero(keeps)
    if not len(good):
        raise ValueError(
            f"none of {count} random motions of model {plan.model.name!r} keeps the "
            "limits, expected that it can hold itself in the middle of its range: "
            "give a larger effort=, or another range by lower= and upper=."
        )
    return pick(shapes, good[np.arange(count) % len(good)])


def improved(
    problem: Problem, shapes: Any, optimizer: Any, steps: int, progress: bool
) -> tuple[Any, np.ndarray]:
    """The motions after steps of the optimizer, and the criteria at each step."""
    soft = rounded(problem.plan.model, problem.plan.limits.velocity)
    problem = eqx.tree_at(lambda p: p.plan.model, problem, soft)
    state = jax.vmap(optimizer.init)(shapes)
    history = []
    for weight in tqdm(np.geomspace(*_WEIGHTS, steps), disable=not progress):
        args = problem, shapes, state, jnp.asarray(weight), optimizer
        shapes, state, values = _step(*args)
        history.append(values)
    return shapes, np.asarray(history)


@cache
def adam(steps: int) -> optax.GradientTransformation:
    """The optimizer by default: one object, so that it compiles once."""
    return optax.adam(optax.cosine_decay_schedule(_RATE, steps))


def pick(shapes: Shape, rows: Any) -> Shape:
    """Some of the motions; a batch of one for None."""
    return jax.tree.map(lambda x: x[rows], shapes)


@eqx.filter_jit
def _step(
    problem: Problem, shapes: Any, state: Any, weight: Any, optimizer: Any
) -> Any:
    def one(shape: Shape) -> Any:
        return loss(problem.plan, problem.aim, shape, problem.samples, weight)

    (_, values), slopes = jax.vmap(jax.value_and_grad(one, has_aux=True))(shapes)
    with jax.numpy_dtype_promotion("standard"):  # optimizers count in integers
        changes, state = jax.vmap(optimizer.update)(slopes, state, shapes)
    return optax.apply_updates(shapes, changes), state, values


@eqx.filter_jit
def _values(aim: Aim, Y: Any) -> Any:
    return jax.vmap(lambda Y: aim.value(aim.information(Y)))(jnp.asarray(Y))


def regressors(plan: Plan, shapes: Shape, samples: int) -> np.ndarray:
    """The regressors of several motions, [motions, samples, nv, parameters]."""
    m = jax.tree.map(np.asarray, plans.sampled(plan, shapes, samples))
    rows = [x.reshape(-1, x.shape[-1]) for x in (m.q, m.qd, m.qdd)]
    Y = regressor_rows(plan.model, *rows)
    return Y.reshape(-1, samples, *Y.shape[1:])


def _scale(
    plan: Plan, columns: np.ndarray, names: Any, std: np.ndarray, samples: int
) -> Any:
    """The changes that random motions, always the same, show as much as the noise."""
    shapes = random_shapes(plan, jax.random.key(1), samples, True, DRAWN)
    Y = regressors(plan, shapes, samples)[..., columns] / std[:, None]
    size = np.sqrt((Y**2).sum(axis=2).mean(axis=(0, 1)))
    for k in np.flatnonzero(size == 0):
        raise ValueError(
            f"{names[k]} has no effect on motions within the limits, expected one: "
            "leave it out of parameters=, or give wider limits."
        )
    return jnp.asarray(1 / size)


def _noise(model: Model, noise: Any, effort: np.ndarray) -> np.ndarray:
    std = _NOISE * effort if noise is None else np.asarray(noise, float)
    if std.shape not in ((), (model.nv,)):
        raise ValueError(f"noise has shape {std.shape}, expected () or ({model.nv},).")
    if not (np.isfinite(std) & (std > 0)).all():
        raise ValueError(f"noise is {std}, expected finite positive numbers.")
    return np.broadcast_to(std, model.nv)


def _check_known(name: str, value: str, known: Any) -> None:
    names = get_args(known)
    if value not in names:
        raise ValueError(f"{name} is {value!r}, expected one of: {', '.join(names)}.")
