"""Sequential or parallel: what `method="auto"` stands for."""

from typing import Any

import jax

from jaxdyn.model import Model
from jaxdyn.program import batch_size

# Estimates: no GPU was at hand. On a CPU see docs/parallel.md and benchmarks/depth.py.
GPU_DEPTH = 64  # elementary steps from base to tip
GPU_LANES = 65536  # bodies times states that keep a device busy


def automatic(method: str, sequential: str, model: Model, *arrays: Any) -> str:
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
    has_room = model.n * _states(*arrays) <= GPU_LANES
    is_parallel = jax.default_backend() != "cpu" and is_deep and has_room
    return "parallel" if is_parallel else sequential


def _states(*arrays: Any) -> int:
    """How many states are batched in the arguments."""
    return max(map(batch_size, jax.tree.leaves(arrays)), default=1)
