"""All methods by name: one table for each quantity."""

from typing import TypeVar

import jax
from jaxtyping import PyTree

from jaxdyn.algorithms import log_depth, loops, recursions
from jaxdyn.dynamics._tree import BY_PIECES, by_matrix, by_recursion
from jaxdyn.model import Model
from jaxdyn.program import batch_size

INVERSE = {
    "newton_euler": recursions.newton_euler,
    "gibbs_appell": recursions.gibbs_appell,
    "denoc": recursions.denoc,
    "parallel": log_depth.parallel_newton_euler,
}
INERTIA = {
    "composite": recursions.composite,
    "gibbs_appell": recursions.gibbs_appell_inertia,
    "noc": recursions.noc,
    "denoc": recursions.denoc_inertia,
    "parallel": log_depth.parallel_composite,
}
FORWARD = {
    "denoc": by_recursion(recursions.denoc_forward),
    "articulated": by_recursion(recursions.articulated),
    "composite": by_matrix(recursions.composite, recursions.newton_euler),
    "gibbs_appell": by_matrix(recursions.gibbs_appell_inertia, recursions.gibbs_appell),
    "noc": by_matrix(recursions.noc, recursions.newton_euler),
    "parallel": BY_PIECES,
}
SOLVERS = {
    "kkt": loops.kkt,
    "range_space": loops.range_space,
    "recursive": loops.recursive,
    "sequential_regularization": loops.sequential_regularization,
}

# Estimates: no GPU was at hand. On a CPU see docs/parallel.md and benchmarks/depth.py.
GPU_DEPTH = 64  # elementary steps from base to tip
GPU_LANES = 65536  # bodies times states that keep a device busy

T = TypeVar("T")


def choose(quantity: str, method: str, methods: dict[str, T]) -> T:
    """The method with this name, or a `ValueError` that lists all of them."""
    if method not in methods:
        raise ValueError(
            f"{quantity}: method is {method!r}, expected one of: {', '.join(methods)}."
        )
    return methods[method]


def automatic(method: str, sequential: str, model: Model, *arrays: PyTree) -> str:
    """The method, or for "auto" the one that should take less time.

    On a CPU that is the sequential one: the parallel one takes no less time for one
    state, and more in a batch.
    On other devices it is "parallel" for trees at least `GPU_DEPTH` elementary steps
    deep while bodies times states are at most `GPU_LANES`. States are counted as far
    as they can be seen: those of a `jax.vmap` around the call, not around a `jax.jit`
    around it.
    """
    if method != "auto":
        return method
    is_deep = model.topology.depth >= GPU_DEPTH
    states = max(map(batch_size, jax.tree.leaves(arrays)), default=1)
    has_room = model.n * states <= GPU_LANES
    is_parallel = jax.default_backend() != "cpu" and is_deep and has_room
    return "parallel" if is_parallel else sequential
