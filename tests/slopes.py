"""Jacobians by one small program that runs once for each row and column."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np


def both_modes(f: Callable) -> Callable:
    """From x, dx and dy to f(x), the slope along dx and the gradient of dy @ f."""

    @jax.jit
    def run(x, dx, dy):
        y, slope = jax.jvp(f, (x,), (dx,))
        return y, slope, jax.vjp(f, x)[1](dy)[0]

    return run


def jacobians(run: Callable, x: jax.Array, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Those of `both_modes(f)` in forward and in reverse mode; f has `size` numbers."""
    dx, dy = jnp.eye(len(x), dtype=x.dtype), jnp.eye(size, dtype=x.dtype)
    columns = [run(x, d, dy[0])[1] for d in dx]
    rows = [run(x, dx[0], d)[2] for d in dy]
    return np.stack(columns, axis=1), np.stack(rows)
