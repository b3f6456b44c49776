"""Primitives of JAX that move data, on NumPy arrays of any content."""

from typing import Any

import jax.numpy as jnp
import numpy as np


def _broadcast(x: np.ndarray, *, shape: Any, broadcast_dimensions: Any, **_) -> Any:
    places = dict(zip(broadcast_dimensions, x.shape, strict=True))
    x = x.reshape([places.get(k, 1) for k in range(len(shape))])
    return np.broadcast_to(x, shape)


def _slice(x: np.ndarray, *, start_indices: Any, limit_indices: Any, strides: Any):
    strides = strides or [1] * x.ndim
    return x[tuple(map(slice, start_indices, limit_indices, strides))]


_NUMPY = {  # faster than a call of JAX, which compiles for every new shape
    "broadcast_in_dim": _broadcast,
    "concatenate": lambda *xs, dimension: np.concatenate(xs, dimension),
    "reshape": lambda x, *, new_sizes, **_: x.reshape(new_sizes),
    "rev": lambda x, *, dimensions: np.flip(x, dimensions),
    "slice": _slice,
    "squeeze": lambda x, *, dimensions: np.squeeze(x, dimensions),
    "stack": lambda *xs, axis: np.stack(xs, axis),
    "transpose": lambda x, *, permutation: np.transpose(x, permutation),
}
_JAX = "copy dynamic_slice dynamic_update_slice gather pad scatter split tile".split()
INDEXED = "dynamic_slice dynamic_update_slice gather scatter scatter-add".split()
MOVES = frozenset((*_NUMPY, *_JAX))


def rounded_sum(a: Any, b: Any) -> Any:
    """The sum of known numbers; zero where they cancel but for rounding."""
    total = np.asarray(a + b)
    if total.dtype.kind != "f":
        return total
    noise = 4 * np.finfo(total.dtype).eps * np.maximum(np.abs(a), np.abs(b))
    return np.where(np.abs(total) <= noise, total.dtype.type(0), total)


_ARITHMETIC = {
    "add": rounded_sum,
    "sub": lambda a, b: rounded_sum(a, -b) if b.dtype.kind == "f" else a - b,
    "mul": np.multiply,
}


def evaluate(eqn: Any, args: list[np.ndarray]) -> list[np.ndarray]:
    """The results of one equation of a program on known arrays."""
    name = eqn.primitive.name
    if name in _NUMPY:
        return [np.asarray(_NUMPY[name](*args, **eqn.params))]
    if name in _ARITHMETIC:
        return [np.asarray(_ARITHMETIC[name](*args))]
    outs = eqn.primitive.bind(*map(jnp.asarray, args), **eqn.params)
    return [np.asarray(x) for x in (outs if eqn.primitive.multiple_results else [outs])]
