"""How the least squares of a fit are found: by optax, or by Levenberg and Marquardt."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import optimistix

from jaxdyn.identify._problem import Problem, Unknowns, size_of
from jaxdyn.identify._rows import check_counts

_GAIN = 0.999  # of the loss, for which it is worth to go on
_NOTHING = 1e-24  # a loss that is rounding


class LevenbergMarquardt(eqx.Module):
    """Damped Gauss-Newton steps with exact Jacobians, by optimistix, on all rows.

    The tool of choice for up to some hundred parameters. A search that seems to be over
    begins once more with little damping, and is over when that gains nothing: heavily
    damped steps are short wherever they are.

    Attributes:
        rtol, atol: of coordinates and residuals; by default 1e-10 (float32: 1e-4).
        steps: at most.
        every: steps between checkpoints, after which the damping starts anew.
    """

    rtol: float | None = eqx.field(static=True, default=None)
    atol: float | None = eqx.field(static=True, default=None)
    steps: int = eqx.field(static=True, default=200)
    every: int = eqx.field(static=True, default=50)

    forward = True  # Jacobians are made column by column

    def __check_init__(self) -> None:
        check_counts(steps=self.steps, every=self.every)

    def start(self, problem: Problem, held: Any) -> "_Climb":
        """The state before the first step."""
        x = problem.start()
        losses = jnp.zeros(self.steps, x.theta.dtype)
        least = jnp.asarray(jnp.inf, losses.dtype)
        return _Climb(x, jnp.asarray(0), jnp.asarray(False), least, losses)

    def is_over(self, at: "_Climb") -> bool:
        """Whether there are no more steps."""
        return self.is_settled(at) or int(at.k) >= self.steps

    def is_settled(self, at: "_Climb") -> bool:
        """Whether nothing more is to be gained."""
        return bool(at.is_over)

    def best(self, at: "_Climb") -> Unknowns:
        """The unknowns that were found."""
        return at.x

    def solver(self, dtype: Any) -> optimistix.LevenbergMarquardt:
        """That of optimistix."""
        usual = 1e-10 if dtype == jnp.float64 else 1e-4
        return optimistix.LevenbergMarquardt(self.rtol or usual, self.atol or usual)

    @eqx.filter_jit
    def advance(self, problem: Problem, held: Any, at: "_Climb") -> "_Climb":
        """The next steps, by the parts of which optimistix makes its own loop."""
        solver, tags = self.solver(at.losses.dtype), frozenset()
        until = jnp.minimum(at.k + self.every, self.steps)

        def function(x: Any, _: None) -> Any:
            return problem.vector(x), None

        struct = jax.eval_shape(lambda: function(at.x, None)[0])
        state = solver.init(function, at.x, None, {}, struct, None, tags)
        # its first step size has the default precision, whatever that of the unknowns
        step_size = state.search_state.step_size.astype(at.losses.dtype)
        state = eqx.tree_at(lambda s: s.search_state.step_size, state, step_size)
        arrays, rest = eqx.partition(state, eqx.is_array)

        def goes_on(carried: Any) -> Any:
            return (carried[0].k < until) & ~carried[0].is_over  # seems to be

        def step(carried: Any) -> Any:
            at, arrays = carried
            state = eqx.combine(arrays, rest)
            x, state, _ = solver.step(function, at.x, None, {}, state, tags)
            is_over, _ = solver.terminate(function, x, None, {}, state, tags)
            squares = (state.f_info.residual**2).sum() / (2 * problem.count)
            # the first residual is of the start: if it is not finite there is no way on
            is_over = is_over | ~jnp.isfinite(squares)
            losses = at.losses.at[at.k].set(squares)
            at = _Climb(x, at.k + 1, is_over, at.least, losses)
            return at, eqx.filter(state, eqx.is_array)

        at, _ = jax.lax.while_loop(goes_on, step, (at, arrays))
        loss = at.losses[at.k - 1]
        is_settled = ~(loss < _GAIN * at.least) | (loss < _NOTHING)
        least = jnp.where(at.is_over, loss, at.least)
        return _Climb(at.x, at.k, at.is_over & is_settled, least, at.losses)


class _Climb(eqx.Module):
    """What some steps of Levenberg and Marquardt hand to the next."""

    x: Unknowns
    k: Any
    is_over: Any
    least: Any  # loss when it seemed to be over the last time
    losses: Any

    looks, validations = 0, np.zeros(0)  # at held-out rows there are none


class Optax(eqx.Module):
    """Steps of any optax optimiser along gradients by reverse mode.

    Attributes:
        optimizer: of optax, with its schedule.
        steps: how many.
        batch: rows in a step, drawn without repetition; None for all.
        every: steps between looks at held-out rows and checkpoints.
        patience: looks without a better one after which the search ends, with the best
            one as its result; None to take all steps and return the last.
        seed: of the batches.
    """

    optimizer: optax.GradientTransformation
    steps: int = eqx.field(static=True, default=1000)
    batch: int | None = eqx.field(static=True, default=None)
    every: int = eqx.field(static=True, default=50)
    patience: int | None = eqx.field(static=True, default=None)
    seed: int = eqx.field(static=True, default=0)

    forward = False

    def __check_init__(self) -> None:
        check_counts(steps=self.steps, every=self.every, patience=self.patience)

    def start(self, problem: Problem, held: Any) -> "_Walk":
        """The state before the first step."""
        if self.batch is not None and not 1 <= self.batch <= problem.count:
            raise ValueError(
                f"batch is {self.batch}, expected 1 to {problem.count}, the rows that "
                "are fitted."
            )
        if self.patience is not None and held is None:
            raise ValueError(
                "patience needs held-out rows: give validation a larger share."
            )
        x, nothing = problem.start(), jnp.asarray(0)
        dtype, looks = x.theta.dtype, -(-self.steps // self.every)
        optimizer = optax.with_extra_args_support(self.optimizer)
        return _Walk(
            x=x,
            state=optimizer.init(x),  # pyright: ignore[reportArgumentType]
            k=nothing,
            losses=jnp.zeros(self.steps, dtype),
            best=x,
            lowest=jnp.asarray(jnp.inf, dtype),
            looks=nothing,
            since=nothing,
            validations=jnp.zeros(looks, dtype),
        )

    def is_over(self, at: "_Walk") -> bool:
        """Whether there are no more steps."""
        k = int(at.k)
        failed = k > 0 and not np.isfinite(at.losses[k - 1])
        return failed or self.is_settled(at) or k >= self.steps

    def is_settled(self, at: "_Walk") -> bool:
        """Whether nothing more is to be gained."""
        return self.patience is not None and int(at.since) >= self.patience

    def best(self, at: "_Walk") -> Unknowns:
        """The unknowns that were found."""
        return at.x if self.patience is None else at.best

    @eqx.filter_jit
    def advance(self, problem: Problem, held: Any, at: "_Walk") -> "_Walk":
        """The next steps, and a look at the held-out rows."""
        optimizer = optax.with_extra_args_support(self.optimizer)
        key = jax.random.key(self.seed)

        def batch(k: Any) -> Any:
            if self.batch is None:
                return None
            drawn, rows = jax.random.fold_in(key, k), (self.batch,)
            return jax.random.choice(drawn, problem.count, rows, replace=False)

        def step(k: Any, carried: Any) -> Any:
            x, state, losses = carried
            chosen = batch(k)

            def loss(x: Any) -> Any:
                return problem.loss(x, chosen)

            value, slope = jax.value_and_grad(loss)(x)
            given = dict(value=value, grad=slope, value_fn=loss)
            update, state = optimizer.update(slope, state, x, **given)
            return optax.apply_updates(x, update), state, losses.at[k].set(value)

        until = jnp.minimum(at.k + self.every, self.steps)
        carried = at.x, at.state, at.losses
        x, state, losses = jax.lax.fori_loop(at.k, until, step, carried)
        nothing = jnp.full_like(at.lowest, jnp.inf)
        size = nothing if held is None else size_of(problem, x, held)
        is_best = size < at.lowest
        return _Walk(
            x=x,
            state=state,
            k=until,
            losses=losses,
            best=jax.tree.map(lambda a, b: jnp.where(is_best, a, b), x, at.best),
            lowest=jnp.where(is_best, size, at.lowest),
            looks=at.looks + 1,
            since=jnp.where(is_best, 0, at.since + 1),
            validations=at.validations.at[at.looks].set(size),
        )


class _Walk(eqx.Module):
    """What some steps of an optimiser hand to the next."""

    x: Unknowns
    state: Any
    k: Any
    losses: Any
    best: Unknowns
    lowest: Any
    looks: Any
    since: Any
    validations: Any
