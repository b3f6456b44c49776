"""Batches on all cores."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial, wraps
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxdyn.model import Model, is_index
from jaxdyn.program import is_eager

Axes = Sequence[int | None] | None
SMALL = 256  # states per core below which a batch is not worth splitting


def batched(
    function: Callable, in_axes: Axes = None, *, cores: int | None = None
) -> Callable:
    """The function for many states at once, on all cores of the CPU.

    It is compiled, like `jax.jit(jax.vmap(function, in_axes))`, and has the same
    values. Called with arrays it gives each core an equal part of the batch, if that
    has some hundred states; inside `jit` and under derivatives, and on other devices,
    it is that `vmap` and no more.

    Args:
        in_axes: for each positional argument 0 if its arrays have a leading axis of
            states, None if it is the same for all. By default models are shared and all
            else is not. Keyword arguments have the leading axis: choose a `method` with
            `functools.partial`.
        cores: how many to use; by default all that this process may.

    Raises:
        ValueError: `in_axes` or `cores` cannot be, or batches have different lengths.
    """
    count = _available() if cores is None else cores
    if not is_index(count) or not 1 <= count <= _available():
        raise ValueError(
            f"batched: cores is {cores!r}, expected a whole number from 1 to "
            f"{_available()}, as many as this process may use."
        )
    count = int(count)

    @jax.jit
    def vectorized(shared: list, split: dict, options: dict) -> Any:
        def one(split: dict, options: dict) -> Any:
            args = [split[k] if k in split else x for k, x in enumerate(shared)]
            return function(*args, **options)

        return jax.vmap(one)(split, options)

    @partial(jax.jit, static_argnums=4)
    def part(shared: list, split: dict, options: dict, start: Any, length: int) -> Any:
        def rows(x: Any) -> Any:
            return lax.dynamic_slice_in_dim(x, start, length)

        return vectorized(shared, *jax.tree.map(rows, (split, options)))

    known = set()

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        axes = _axes(args, in_axes)
        shared = [None if axis == 0 else x for x, axis in zip(args, axes, strict=True)]
        split = {k: x for k, x in enumerate(args) if axes[k] == 0}
        size = _length((split, options))
        parts = min(count, size // SMALL)
        if parts < 2 or not _may_split(count):
            return vectorized(shared, split, options)
        length = -(-size // parts)  # parts of one length, so that one program does
        starts = [min(k * length, size - length) for k in range(parts)]

        def run(start: int) -> Any:
            return jax.block_until_ready(part(shared, split, options, start, length))

        leaves, structure = jax.tree.flatten((shared, split, options))
        program = structure, length, *map(jax.typeof, leaves), *_settings()
        if program not in known:  # compile once, here
            run(0)
            known.add(program)
        results = list(_threads(count).map(run, starts))
        again = parts * length - size  # rows that the last two parts share
        results[-1] = jax.tree.map(lambda x: x[again:], results[-1])
        return jax.tree.map(lambda *xs: jnp.concatenate(xs), *results)

    return call


def _may_split(count: int) -> bool:
    """Whether threads would do the same: no tracing, and the same settings of JAX."""
    if jax.default_backend() != "cpu" or not is_eager():
        return False
    return _settings() == _threads(count).submit(_settings).result()


def _settings() -> tuple:
    names = ("enable_x64", "default_device", "default_matmul_precision", "debug_nans")
    return tuple(getattr(jax.config, f"jax_{name}") for name in names)


def _axes(args: tuple, in_axes: Axes) -> list[int | None]:
    if in_axes is None:
        return [None if isinstance(x, Model) else 0 for x in args]
    if len(in_axes) != len(args) or not set(in_axes) <= {0, None}:
        raise ValueError(
            f"batched: in_axes is {in_axes}, expected 0 or None for each of the "
            f"{len(args)} arguments."
        )
    return list(in_axes)


def _length(tree: Any) -> int:
    lengths = {jnp.shape(x)[:1] for x in jax.tree.leaves(tree)}
    if len(lengths) != 1 or lengths == {()}:
        found = ", ".join(str(x[0]) if x else "none" for x in sorted(lengths))
        raise ValueError(
            f"batched: the arrays have leading axes of {found or 'no'} states, "
            "expected one length for all; None in in_axes marks what is the same for "
            "all states."
        )
    return lengths.pop()[0]


def _available() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def _threads(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix="jaxdyn")
