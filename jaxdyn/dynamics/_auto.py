"""Sequential or parallel: what `method="auto"` stands for."""

from typing import Any

import jax

from jaxdyn.model import Model

# the number of dependent steps from which the parallel method is chosen, for one state
CPU_DEPTH = 4096  # measured, see docs/parallel.md
GPU_DEPTH = 64  # an estimate: no GPU was at hand
GPU_LANES = 65536  # bodies times states that fill a device, an estimate too


def automatic(method: str, sequential: str, model: Model, *arrays: Any) -> str:
    """The method, or for "auto" the one that should take less time.

    On a CPU "parallel" for one state of a tree that is at least `CPU_DEPTH` elementary
    steps deep. On other devices for trees at least `GPU_DEPTH` steps deep, while bodies
    times states are at most `GPU_LANES`. States are counted as far as they can be seen:
    those of a `jax.vmap` around the call, not around a `jax.jit` around it.
    """
    if method != "auto":
        return method
    states, depth = _states(*arrays), model.topology.depth
    if jax.default_backend() == "cpu":
        is_parallel = depth >= CPU_DEPTH and states == 1
    else:
        is_parallel = depth >= GPU_DEPTH and model.n * states <= GPU_LANES
    return "parallel" if is_parallel else sequential


def _states(*arrays: Any) -> int:
    """How many states are batched in the arguments."""
    states = 1
    for x in jax.tree.leaves(arrays):
        own = 1
        while hasattr(x, "batch_dim"):  # a tracer of `vmap`, whose class is private
            if isinstance(x.batch_dim, int):
                own *= x.val.shape[x.batch_dim]
            x = x.val
        states = max(states, own)
    return states
