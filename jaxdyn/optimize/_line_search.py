"""L-BFGS with a line search of one evaluation a step, as an optimiser of optax.

The line searches of optax hold the program of the cost and its gradient two times more;
here it stands once, which compiles in a third of the time.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

DECREASE, CURVATURE = 1e-4, 0.9  # of the weak Wolfe conditions
TRIALS = 20  # along one direction


class LineSearchState(NamedTuple):
    """The point at which a search began, and how far it got."""

    memory: Any  # of L-BFGS
    x: Any
    f: Any  # the cost at x
    slope: Any  # of the cost along the direction
    direction: Any  # where the search goes
    t: Any  # the step that is tried, in units of the direction
    low: Any  # a step known to be too short
    high: Any  # a step known to be too long
    trials: Any  # how many were tried; 0 before the first evaluation


def lbfgs(memory_size: int) -> optax.GradientTransformationExtraArgs:
    """L-BFGS, whose updates go from one trial of its line search to the next.

    A trial that satisfies the weak Wolfe conditions is the start of the next direction;
    one that does not, or is not finite, narrows the bracket. The conditions keep the
    curvature of the memory positive.
    """
    inner = optax.scale_by_lbfgs(memory_size)

    def init(params: Any) -> Any:
        number = jnp.zeros((), jax.tree.leaves(params)[0].dtype)
        return LineSearchState(
            memory=inner.init(params),
            x=params,
            f=number,
            slope=number,
            direction=optax.tree.zeros_like(params),
            t=number,
            low=number,
            high=number + jnp.inf,
            trials=jnp.asarray(0),
        )

    def update(updates: Any, state: Any, params: Any = None, **given: Any) -> Any:
        grad, s, x, f = updates, state, params, given["value"]
        is_finite = jnp.isfinite(f) & jnp.isfinite(optax.tree.norm(grad))
        falls = is_finite & (f <= s.f + DECREASE * s.t * s.slope)
        bends = optax.tree.vdot(grad, s.direction) >= CURVATURE * s.slope
        is_accepted = (falls & bends) | (s.trials == 0)
        # a search that fails goes back to where it began, and forgets its memory
        lost = s._replace(memory=inner.init(s.x), t=0 * s.t, trials=0 * s.trials)
        again = _select(s.trials < TRIALS, _narrowed(s, f, falls), lost)
        new = _select(is_accepted, _started(inner, s.memory, x, f, grad), again)
        step = jax.tree.map(lambda a, d, x: a + new.t * d - x, new.x, new.direction, x)
        return step, new

    return optax.GradientTransformationExtraArgs(init, update)


def _select(chosen: Any, a: LineSearchState, b: LineSearchState) -> LineSearchState:
    return jax.tree.map(lambda a, b: jnp.where(chosen, a, b), a, b)


def _started(inner: Any, memory: Any, x: Any, f: Any, grad: Any) -> LineSearchState:
    """A search from x along the direction of L-BFGS."""
    turned, memory = inner.update(grad, memory, x)
    direction = optax.tree.scale(-1.0, turned)
    one = jnp.ones_like(f)
    return LineSearchState(
        memory=memory,
        x=x,
        f=f,
        slope=optax.tree.vdot(grad, direction),
        direction=direction,
        t=one,
        low=0 * one,
        high=one * jnp.inf,
        trials=jnp.asarray(1),
    )


def _narrowed(s: LineSearchState, f: Any, falls: Any) -> LineSearchState:
    """The same search with a step that is longer, if the cost falls, or shorter.

    Between a step that is too long and one that is not, the next is where a parabola
    through the start has its minimum, within the shorter half.
    """
    low = jnp.where(falls, s.t, s.low)
    high = jnp.where(falls, s.high, s.t)
    rise = f - s.f - s.slope * s.t
    is_convex = jnp.isfinite(rise) & (rise > 0)
    least = -s.slope * s.t**2 / (2 * jnp.where(is_convex, rise, 1))
    width: Any = jnp.where(jnp.isfinite(high), high - low, 0)
    middle: Any = jnp.clip(
        jnp.where(is_convex, least, low), low + 0.01 * width, low + width / 2
    )
    middle = jnp.where(falls, low + width / 2, middle)
    t = jnp.where(jnp.isfinite(high), middle, 2 * low)
    return s._replace(t=t, low=low, high=high, trials=s.trials + 1)
