"""Descent by optax: one loop for all optimisers, with reasons to stop in words."""

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jaxtyping import Array, Float
from tqdm import tqdm

from jaxdyn.optimize._line_search import lbfgs

PATIENCE = 50  # steps in which the least cost does not change, or is never finite
BLOCK = 25  # evaluations in one call of the program
# one object for all calls: another would be compiled anew
LBFGS, LBFGS_LONG = lbfgs(20), lbfgs(100)
Options = dict[str, Any] | None
GOES_ON, FLAT, STALLED, NOT_FINITE = range(4)


class Descent(eqx.Module):
    """What a descent found."""

    x: Any  # the arguments with the least cost of all steps
    costs: Float[Array, " evaluations"]  # at the start and after each step
    gradient_norms: Float[Array, " evaluations"]
    first: Float[Array, ""]  # the gradient norm with which others are compared
    status: int = eqx.field(static=True)  # why it ended: GOES_ON if no steps were left

    @property
    def steps(self) -> int:
        """How many steps were taken."""
        return len(self.costs) - 1

    @property
    def is_converged(self) -> bool:
        """Whether it ended because there was nothing more to gain."""
        return self.status in (FLAT, STALLED)

    @property
    def sentence(self) -> str:
        """How it ended, in words."""
        if self.status == NOT_FINITE:
            when = f"after {self.steps} steps" if self.steps else "at the start"
            return (
                f"The cost or its gradient is not finite {when}: the motion or the "
                "cost leaves the numbers. Take shorter steps dt, a smaller learning "
                "rate, or another start."
            )
        first = float(self.first)
        slope = float(self.gradient_norms[-1]) / first if first else 0.0
        ending = f"the gradient is {slope:.1e} of the first one."
        if self.status == FLAT:
            return f"The cost is least after {self.steps} steps: {ending}"
        if self.status == STALLED:
            return (
                f"The cost did not change any more in the last {PATIENCE} of "
                f"{self.steps} steps; {ending}"
            )
        return f"All {self.steps} steps are used and the cost still falls; {ending}"


class _Search(eqx.Module):
    """What one step hands to the next."""

    x: Any
    state: Any  # of the optimiser at x
    best: Any  # the unknowns with the least cost so far
    lowest: Any  # that cost
    mark: Any  # a least cost
    since: Any  # for how many steps none was much lower
    misses: Any  # for how many steps the cost was not finite
    first: Any  # gradient norm to compare with; negative before there is one
    rows: Any  # costs and gradient norms of the last evaluations
    k: Any  # how many rows there are
    left: Any  # how many evaluations may follow
    status: Any


def descend(
    problem: Callable,
    x: Any,
    optimizer: optax.GradientTransformation,
    steps: int,
    *,
    gradient_tolerance: float,
    cost_tolerance: float,
    first: Any = -1.0,
    bar: tqdm | None = None,
    compiler_options: Options = None,
) -> Descent:
    """Where a differentiable `problem` is least, by steps of `optimizer` from x.

    Args:
        problem: a pytree and function x -> cost; its arrays may change from call to
            call without being compiled anew.
        gradient_tolerance: of the norm of the gradient, relative to the first one.
        cost_tolerance: of the change of the least cost in `PATIENCE` steps, relative.
        first: a gradient norm to compare with instead.
        compiler_options: as in `jax.jit`.
    """
    dtype = jax.tree.leaves(x)[0].dtype
    optimizer = optax.with_extra_args_support(optimizer)
    count, infinite = jnp.asarray(0), jnp.asarray(jnp.inf, dtype)
    with free_promotion():
        state = optimizer.init(x)
    search = _Search(
        *(x, state, x),
        *(infinite, infinite, count, count, jnp.asarray(first, dtype)),
        *(jnp.zeros((BLOCK, 2), dtype), count),
        *(jnp.asarray(steps + 1), jnp.asarray(GOES_ON)),
    )
    tolerances = jnp.asarray([gradient_tolerance, cost_tolerance], dtype)
    advance = with_options(_advance, compiler_options)
    rows = []
    while search.left > 0 and search.status == GOES_ON:
        search = advance(problem, optimizer, search, tolerances)
        rows.append(search.rows[: int(search.k)])
        if bar is not None:
            bar.update(int(search.k))
    costs, norms = jnp.concatenate(rows).T
    return Descent(search.best, costs, norms, search.first, int(search.status))


def with_options(function: Callable, options: Options) -> Callable:
    """The function, compiled with some options; the same program for equal ones."""
    return _compiled(function, tuple(sorted((options or {}).items())))


@cache
def _compiled(function: Callable, options: tuple) -> Callable:
    jit: Any = eqx.filter_jit  # which passes options of jax.jit on
    return jit(function, compiler_options=dict(options) or None)


def _advance(problem: Any, optimizer: Any, search: _Search, tolerances: Any) -> _Search:
    """A block of steps, or less where there is a reason to stop."""
    dtype = search.rows.dtype

    def cost(x: Any) -> Any:
        return problem(x).astype(dtype)

    def updated(x: Any, state: Any, value: Any, grad: Any) -> Any:
        given = dict(value=value, grad=grad, value_fn=cost)
        with free_promotion():
            update, state = optimizer.update(grad, state, x, **given)
            return optax.apply_updates(x, update), state

    def goes_on(s: _Search) -> Any:
        return (s.k < BLOCK) & (s.left > 0) & (s.status == GOES_ON)

    def step(s: _Search) -> _Search:
        value, grad = _value_and_grad(cost, s.x, s.state)
        s = _judged(s, value, optax.tree.norm(grad).astype(dtype), tolerances)
        x, state = lax.cond(
            (s.status == GOES_ON) & (s.left > 0),
            updated,
            lambda x, state, *_: (x, state),
            *(s.x, s.state, value, grad),
        )
        return eqx.tree_at(lambda s: (s.x, s.state), s, (x, state))

    start = eqx.tree_at(lambda s: s.k, search, jnp.zeros_like(search.k))
    return lax.while_loop(goes_on, step, start)


def _judged(s: _Search, value: Any, norm: Any, tolerances: Any) -> _Search:
    """The search after an evaluation, and whether there is a reason to stop."""
    is_finite = jnp.isfinite(value) & jnp.isfinite(norm)
    is_best = is_finite & (value < s.lowest)
    lowest = jnp.where(is_best, value, s.lowest)
    first = jnp.where(s.first < 0, norm, s.first)
    is_lower = (s.mark - lowest > tolerances[1] * jnp.abs(lowest)) | (
        jnp.isinf(s.mark) & is_finite
    )
    since: Any = jnp.where(is_lower, 0, s.since + 1)
    misses: Any = jnp.where(is_finite, 0, s.misses + 1)
    status = jnp.where((since >= PATIENCE) & is_finite, STALLED, GOES_ON)
    status = jnp.where(norm <= tolerances[0] * first, FLAT, status)
    # a line search comes back from a cost that is not finite, unknowns do not
    is_gone = ~jnp.isfinite(optax.tree.norm(s.x)) | jnp.isinf(lowest)
    is_lost = (misses >= PATIENCE) | (is_gone & ~is_finite)
    return dataclasses.replace(
        s,
        best=jax.tree.map(lambda a, b: jnp.where(is_best, a, b), s.x, s.best),
        lowest=lowest,
        mark=jnp.where(is_lower, lowest, s.mark),
        since=since,
        misses=misses,
        first=first,
        rows=s.rows.at[s.k].set(jnp.stack([value, norm])),
        k=s.k + 1,
        left=s.left - 1,
        status=jnp.where(is_lost, NOT_FINITE, status),
    )


def check_options(steps: int, **given: Any) -> None:
    """Raise a `ValueError` for steps or another number that is not positive."""
    if not isinstance(steps, int) or steps < 1:
        raise ValueError(f"steps is {steps!r}, expected a positive integer.")
    for name, value in given.items():
        if np.shape(value) != () or not 0 < float(value) < np.inf:
            raise ValueError(f"{name} is {value}, expected a positive number.")


@contextmanager
def free_promotion() -> Iterator[None]:
    """JAX's own rules for types and shapes, which optax needs, whatever is set."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def _value_and_grad(cost: Callable, x: Any, state: Any) -> tuple[Any, Any]:
    """The cost and its gradient, from a line search where that left them."""
    try:
        found = optax.tree.get(state, "value"), optax.tree.get(state, "grad")
    except KeyError:  # several: not known which is meant
        found = (None,)
    if any(x is None for x in found):
        return jax.value_and_grad(cost)(x)
    with free_promotion():
        return optax.value_and_grad_from_state(cost)(x, state=state)
