"""Whether a kernel computes on its device what the program it was made of computes."""

from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np

from jaxdyn.program._jax import ShapedArray

COUNT = 3  # states that are compared
ROUNDING = 100  # errors up to so many times the effect of rounding are rounding


def difference(
    kernel: Callable,
    plain: Callable,
    types: Sequence[ShapedArray],
    batched: Sequence[bool],
    size: int | None,
) -> str:
    """What is wrong with the results of a kernel; empty if nothing is.

    Both functions get the same positive numbers. What rounding may change follows from
    a second call of `plain` at arguments that differ from the first in their last bits.
    """
    rng = np.random.default_rng(0)
    rows = () if size is None else (size,)
    pairs = zip(types, batched, strict=True)
    specs = [((*rows, *a.shape) if b else a.shape, _numpy(a)) for a, b in pairs]
    args = [_drawn(shape, dtype, rng) for shape, dtype in specs]
    near = [_beside(x, rng) for x in args]
    found, expected, moved = (
        [np.asarray(x) for x in f(*given)]
        for f, given in ((kernel, args), (plain, args), (plain, near))
    )
    for k, (x, y, z) in enumerate(zip(found, expected, moved, strict=True)):
        if reason := _error(x, y, z):
            return f"result {k} of a kernel {reason}"
    return ""


def _numpy(a: ShapedArray) -> np.dtype:
    return np.dtype(str(a.dtype))


def _drawn(shape: tuple, dtype: np.dtype, rng: np.random.Generator) -> np.ndarray:
    """Numbers that may be masses, lengths, angles and time steps; whole ones are 0."""
    if jnp.issubdtype(dtype, jnp.floating):
        return rng.uniform(0.2, 0.8, shape).astype(dtype)
    return np.zeros(shape, dtype)


def _beside(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return x
    ulp = np.spacing(np.abs(x))
    return x + ulp * rng.choice(np.array([-2, 2], x.dtype), x.shape)


def _error(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> str:
    """What is wrong with `x`, which is `y` but for rounding, as is `z`."""
    if not jnp.issubdtype(y.dtype, jnp.floating):
        sure = y == z
        return "differs in whole numbers" if (x != y)[sure].any() else ""
    sure = np.isfinite(y) & np.isfinite(z)
    if not np.isfinite(x[sure]).all():
        return "is not finite where it should be"
    error, rounding = (np.abs(b - y)[sure].max(initial=0) for b in (x, z))
    scale = np.abs(y[sure]).max(initial=0)
    allowed = ROUNDING * (rounding + np.finfo(y.dtype).eps * scale)
    if error <= allowed:
        return ""
    return (
        f"is wrong by {error:.1e} of {scale:.1e}, where rounding may be {allowed:.1e}"
    )
