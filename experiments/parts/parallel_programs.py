"""Programs of the parallel method and of denoc: compiled, counted, and their errors."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from experiments.parts.fifty_digits import chain_accelerations
from experiments.parts.hard_chains import Chain
from experiments.parts.timed_programs import QUICK, Program
from jaxdyn.analysis import Polynomial, count_operations, operation_polynomials

METHODS = {
    "denoc": {"method": "denoc"},
    "parallel": {"method": "parallel"},
    "denoc, refine=1": {"method": "denoc", "refine": 1},
    "parallel, refine=1": {"method": "parallel", "refine": 1},
    "parallel, chunk=1": {"method": "parallel", "chunk": 1},
}
PLAIN = tuple(METHODS)[:4]
GRADIENT = "gradient, "  # before the name of a method
Errors = dict[tuple[Any, str], dict[str, float]]  # by chain and precision, then method


class Compiled(NamedTuple):
    """A program, and the seconds that tracing and compiling it took."""

    program: Program
    seconds: float


def function_of(name: str) -> Callable:
    """Accelerations by a method, or the gradient of their sum by q, qd and tau."""
    options: dict[str, Any] = METHODS[name.removeprefix(GRADIENT)]
    dynamics = partial(jd.forward_dynamics, **options)
    if not name.startswith(GRADIENT):
        return dynamics

    def total(model: jd.Model, q: Any, qd: Any, tau: Any) -> Any:
        return dynamics(model, q, qd, tau).sum()

    return jax.grad(total, (1, 2, 3))


def compiled(name: str, chain: Chain, options: dict | None = None) -> Compiled:
    """The program of a method for one state, in the precision of the model."""
    model, *state = chain
    arrays = [jnp.asarray(x, model.dtype) for x in state]
    start = time.perf_counter()
    traced = jax.jit(function_of(name), compiler_options=options)
    call = traced.lower(model, *arrays).compile()
    return Compiled(Program(name, call, model, arrays), time.perf_counter() - start)


def errors(
    names: Sequence[str], chains: Sequence[Chain], exact: Sequence[Any] | None = None
) -> dict[str, list[float]]:
    """Relative errors of the methods on chains that differ in numbers only.

    One program of each method serves all. The exact values are computed, if not given,
    from the numbers of the chains as they are.
    """
    if exact is None:
        exact = [chain_accelerations(*chain) for chain in chains]
    found = {}
    for name in names:
        call = compiled(name, chains[0], QUICK).program.call
        results = [call(model, *map(jnp.asarray, x)) for model, *x in chains]
        found[name] = [relative(*pair) for pair in zip(results, exact, strict=True)]
    return found


def relative(found: Any, exact: Any) -> float:
    """The largest deviation, relative to the largest entry."""
    exact = np.array(exact)
    return float(np.abs(np.asarray(found, float) - exact).max() / np.abs(exact).max())


def rounded(chain: Chain, dtype: str) -> Chain:
    """The chain and its state with numbers of another precision."""
    model, *state = chain
    q, qd, tau = (np.asarray(x, dtype) for x in state)
    return model.astype(dtype), q, qd, tau


def alike(chains: dict[str, Chain]) -> list[dict[str, Chain]]:
    """The chains in groups with the same joints, which share the names of the first."""
    groups: dict[tuple[str, ...], dict[str, Chain]] = {}
    for name, (model, q, qd, tau) in chains.items():
        group = groups.setdefault(model.joints, {})
        first = next(iter(group.values()))[0] if group else model
        leaves = jax.tree.leaves(model)
        renamed = jax.tree.unflatten(jax.tree.structure(first), leaves)
        group[name] = renamed, q, qd, tau
    return list(groups.values())


def sequential_work() -> Polynomial:
    """Multiplications and additions of denoc on phi/psi chains, exactly."""
    found = operation_polynomials(function_of("denoc"), _unknown, range(6, 14, 2))
    return found.M + found.A


def work(name: str, n: int) -> int:
    """Multiplications and additions of a method on a phi/psi chain of n joints."""
    found = count_operations(function_of(name), *_unknown(n))
    return found.M + found.A


def _unknown(n: int) -> tuple:
    return jd.robots.protein_chain("A" * (n // 2)), *np.ones((3, n))
