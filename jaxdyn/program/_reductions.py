"""Reductions that XLA leaves in the function in which they stand.

From jaxlib 0.11 on XLA hands reductions of more than some thousand numbers to a library
of kernels, which a program that is one function cannot call. Here such a reduction adds
halves of its argument until it is small.
"""

from collections.abc import Callable, Sequence
from functools import partial, reduce

from jax import lax
from jaxtyping import Array

LIMIT = 2048  # XLA's own is 4096
PAIRS: dict[str, Callable] = {
    "reduce_sum": lax.add,
    "reduce_max": lax.max,
    "reduce_min": lax.min,
    "reduce_prod": lax.mul,
    "reduce_and": lax.bitwise_and,
    "reduce_or": lax.bitwise_or,
}


def halved(pair: Callable, x: Array, axes: Sequence[int], limit: int) -> Array:
    """An array with the same reduction, below the limit if axes are long enough."""
    for axis in sorted(axes, key=lambda axis: -x.shape[axis]):
        part, rest = partial(lax.slice_in_dim, axis=axis), []
        while x.size > limit and x.shape[axis] > 1:
            half, odd = divmod(x.shape[axis], 2)
            if odd:
                rest.append(part(x, 2 * half, None))
            x = pair(part(x, 0, half), part(x, half, 2 * half))
        if x.shape[axis] == 1:
            x = reduce(pair, [x, *rest])
        elif rest:
            x = lax.concatenate([x, *rest], axis)
    return x
