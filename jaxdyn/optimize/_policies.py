"""Policies whose parameters make a motion cost least."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jaxtyping import Array, Float
from tqdm import tqdm

from jaxdyn.model import Model, arguments
from jaxdyn.optimize import _descent as descent
from jaxdyn.optimize._costs import CostFunction, cost_of
from jaxdyn.simulate import rollout, step

Policy = Callable[..., Any]  # (t, q, qd) -> tau


class OptimizedPolicy(eqx.Module):
    """What `optimize_policy` found.

    Attributes:
        policy: the policy with the parameters found.
        ts: the times.
        taus, q, qd: the motions under it, one for each start.
        cost: what they cost, the mean over the starts.
        costs: the cost at the start and after each step of the optimiser.
        gradient_norms: of its gradient by all parameters.
        steps: how many steps the optimiser took.
        is_converged: whether there was nothing more to gain.
        message: how it ended, in words.
    """

    policy: Policy
    ts: Float[Array, " times"]
    taus: Float[Array, "*starts steps nv"]
    q: Float[Array, "*starts times nq"]
    qd: Float[Array, "*starts times nv"]
    cost: Float[Array, ""]
    costs: Float[Array, " evaluations"]
    gradient_norms: Float[Array, " evaluations"]
    steps: int
    is_converged: bool
    message: str = eqx.field(static=True)


class Learning(eqx.Module):
    """The mean cost of motions under a policy: a function of its free parameters."""

    model: Model
    fixed: Any
    q0: Float[Array, "*starts nq"]
    qd0: Float[Array, "*starts nv"]
    ts: Float[Array, " times"]
    cost: CostFunction
    integrator: str = eqx.field(static=True)

    def __call__(self, free: Any) -> Float[Array, ""]:
        """The mean cost."""
        return self.motions(free)[0]

    def motions(self, free: Any) -> tuple[Any, Any]:
        """The mean cost, and q, qd, taus of all starts."""
        policy = eqx.combine(free, self.fixed)

        def motion(q0: Any, qd0: Any) -> Any:
            rows = under(self.model, policy, q0, qd0, self.ts, self.integrator)
            return cost_of(self.cost, *rows), rows

        if self.q0.ndim == 1:
            return motion(self.q0, self.qd0)
        costs, rows = jax.vmap(motion)(self.q0, self.qd0)
        return costs.mean(), rows


def under(
    model: Model, policy: Policy, q0: Any, qd0: Any, ts: Any, integrator: str
) -> tuple[Any, Any, Any]:
    """The states at the times ts under a policy, and its forces in each step.

    The derivative of a step computes it again, as does that of the policy: the gradient
    keeps the states alone.
    """

    @jax.checkpoint
    def advance(state: Any, times: Any) -> Any:
        (q, qd), (t, h) = state, times
        tau = jnp.asarray(policy(t, q, qd))
        if tau.shape != (model.nv,):
            raise ValueError(
                f"policy returned shape {tau.shape}, expected {(model.nv,)}: it is "
                "called as (t, q, qd) for one state."
            )
        tau = tau.astype(q0.dtype)
        state = step(model, q, qd, tau, h, integrator=integrator)
        return state, (*state, tau)

    _, (q, qd, taus) = lax.scan(advance, (q0, qd0), (ts[:-1], jnp.diff(ts)))
    return jnp.concatenate([q0[None], q]), jnp.concatenate([qd0[None], qd]), taus


def optimize_policy(
    model: Model,
    policy: Policy,
    q0: Float[Array, "*starts nq"],
    qd0: Float[Array, "*starts nv"],
    ts: Float[Array, " times"],
    cost: CostFunction,
    *,
    where: Callable[[Any], Any] | None = None,
    integrator: str = "implicit",
    optimizer: optax.GradientTransformation | None = None,
    steps: int = 200,
    gradient_tolerance: float = 1e-6,
    cost_tolerance: float = 1e-7,
    compiler_options: dict[str, Any] | None = None,
    progress: bool = False,
    throw: bool = True,
) -> OptimizedPolicy:
    """The policy whose motions from some states cost least on the mean.

    A descent on the parameters of the policy, with gradients by reverse mode through
    all steps. The policy is asked at the beginning of each step, and its forces do not
    change during it, as those of a digital controller; give finer times for a better
    likeness to a continuous one, or pass the policy found to `simulate`.

    Args:
        policy: a function (t, q, qd) -> tau and pytree, such as an `eqx.Module`.
        q0, qd0: one state, or several in rows.
        ts: increasing times, the ends of the steps.
        cost: function (q, qd, tau) of all rows of one motion, as in `optimize_torques`.
        where: function that picks from the policy what is free, as in `eqx.tree_at`; by
            default all its arrays of floating-point numbers.
        integrator: as in `rollout`.
        optimizer: any of optax; by default L-BFGS, as in `optimize_torques`.
        steps: of the optimiser, at most.
        gradient_tolerance, cost_tolerance, compiler_options: as in `optimize_torques`.
        progress: whether a bar shows the steps.
        throw: whether a cost that is not finite raises; otherwise `message` says so.

    Raises:
        ValueError: wrong shapes, unknown options, a policy without free parameters,
            times that do not increase, a state that opens a loop.
        RuntimeError: the cost or its gradient is not finite.
    """
    q0, qd0, ts = jnp.asarray(q0), jnp.asarray(qd0), jnp.asarray(ts)
    _check_rows(model, q0, qd0)
    if ts.ndim != 1 or len(ts) < 2 or not (ts[1:] > ts[:-1]).all():
        raise ValueError(f"ts is {ts}, expected two increasing times or more.")
    options: dict[str, Any]
    options = dict(gradient_tolerance=gradient_tolerance, cost_tolerance=cost_tolerance)
    descent.check_options(steps, **options)
    options["compiler_options"] = compiler_options
    dtype = np.result_type(model.dtype, q0.dtype, qd0.dtype)
    model = model.astype(dtype)
    q0, qd0, ts = (x.astype(dtype) for x in (q0, qd0, ts))
    for state in zip(q0.reshape(-1, model.nq), qd0.reshape(-1, model.nv), strict=True):
        rest = jnp.zeros((1, model.nv), dtype)  # checks the integrator and the loops
        rollout(model, *state, rest, ts[1] - ts[0], integrator=integrator)
    free, fixed = _parameters(policy, where)
    problem = Learning(model, fixed, q0, qd0, ts, cost, integrator)
    optimizer = descent.LBFGS if optimizer is None else optimizer
    with tqdm(total=steps, disable=not progress, desc="policy") as bar:
        found = descent.descend(problem, free, optimizer, steps, **options, bar=bar)
    if found.status == descent.NOT_FINITE and throw:
        raise RuntimeError(f"{found.sentence} throw=False returns what was found.")
    motions = descent.with_options(Learning.motions, compiler_options)
    value, (q, qd, taus) = motions(problem, found.x)
    return OptimizedPolicy(
        policy=eqx.combine(found.x, fixed),
        ts=ts,
        taus=taus,
        q=q,
        qd=qd,
        cost=value,
        costs=found.costs,
        gradient_norms=found.gradient_norms,
        steps=found.steps,
        is_converged=found.is_converged,
        message=found.sentence,
    )


def _parameters(policy: Policy, where: Any) -> tuple[Any, Any]:
    """The free parameters of a policy, and the rest of it."""
    chosen = jax.tree.map(lambda _: where is None, policy)
    if where is not None:
        chosen = eqx.tree_at(where, chosen, replace_fn=lambda _: True)
    picked, rest = eqx.partition(policy, chosen)
    free, others = eqx.partition(picked, eqx.is_inexact_array)
    if not jax.tree.leaves(free):
        raise ValueError(
            f"policy {type(policy).__name__} has no free parameters, expected arrays "
            "of floating-point numbers"
            + ("." if where is None else " where `where` points.")
        )
    return free, eqx.combine(others, rest)


def _check_rows(model: Model, q0: Any, qd0: Any) -> None:
    lead = q0.shape[:-1]
    shapes = (*lead, model.nq), (*lead, model.nv)
    if len(lead) > 1 or (q0.shape, qd0.shape) != shapes:
        raise ValueError(
            f"q0 and qd0 have the shapes {q0.shape} and {qd0.shape}, expected "
            f"{(model.nq,)} and {(model.nv,)} for model {model.name!r}, or a row for "
            "each start in both."
        )
    arguments(model, q0=q0.reshape(-1, model.nq)[0])
