"""Batches on all cores and devices."""

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial, wraps
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from jaxdyn.model import Model, is_index
from jaxdyn.program import is_eager

Axes = Sequence[int | None] | None
Names = tuple[str, ...]  # of axes of a mesh
SMALL = 256  # states per core or device below which a batch is not worth splitting


def batched(
    function: Callable,
    in_axes: Axes = None,
    *,
    cores: int | None = None,
    mesh: Mesh | None = None,
    axes: str | Sequence[str] | None = None,
) -> Callable:
    """The function for many states at once, on all cores of the CPU or all devices.

    It is compiled, like `jax.jit(jax.vmap(function, in_axes))`, and has the same
    values. Called with arrays it gives each local device, or each core of the only CPU,
    an equal part of the batch, if that has some hundred states; inside `jit` and under
    derivatives it is that `vmap` and no more. With a `mesh` it gives each device of
    that a part, always: of all processes, inside `jit` and under derivatives too. The
    results of each state, and its gradients, have the same bits on any number of
    devices; they are split over the devices as the batch is.

    Args:
        in_axes: for each positional argument 0 if its arrays have a leading axis of
            states, None if it is the same for all. By default models are shared and all
            else is not. Keyword arguments have the leading axis: choose a `method` with
            `functools.partial`.
        cores: how many to use; by default all that this process may.
        mesh: the devices to use, of one process or of several. Arrays of several
            processes are global ones.
        axes: the names of the axes of the mesh that split the batch; by default all.

    Raises:
        ValueError: `in_axes`, `cores` or `axes` cannot be, or batches have different
            lengths.
    """
    names = _names(mesh, axes, cores)
    count = _count(cores)

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

    over = _over_devices(vectorized)
    known = set()

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        shared, split = _parted(args, _axes(args, in_axes))
        size = _length((split, options))
        devices = mesh or _local(cores, size, (shared, split, options))
        if devices is not None and size:
            chosen = names or devices.axis_names
            return over(shared, split, options, devices, chosen)
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


def _count(cores: Any) -> int:
    """How many cores to use."""
    count = _available() if cores is None else cores
    if not is_index(count) or not 1 <= count <= _available():
        raise ValueError(
            f"batched: cores is {cores!r}, expected a whole number from 1 to "
            f"{_available()}, as many as this process may use."
        )
    return int(count)


def _over_devices(vectorized: Callable) -> Callable:
    """`vectorized` with an equal part of the batch for each device of a mesh."""

    @partial(jax.jit, static_argnums=(3, 4))
    def over(shared: list, split: dict, options: dict, mesh: Mesh, names: Names) -> Any:
        size = _length((split, options))
        missing = -size % math.prod(mesh.shape[name] for name in names)

        def filled(x: Any) -> Any:
            first = jnp.broadcast_to(x[:1], (missing, *x.shape[1:]))
            return jnp.concatenate([x, first])

        if missing:
            split, options = jax.tree.map(filled, (split, options))
        rows = PartitionSpec(names)
        specs = PartitionSpec(), rows, rows
        # unchecked, as loops of the function need not know how their states differ
        parts: Callable = jax.shard_map(
            vectorized, mesh=mesh, in_specs=specs, out_specs=rows, check_vma=False
        )
        found = parts(shared, split, options)
        return jax.tree.map(lambda x: x[:size], found) if missing else found

    return over


def _names(mesh: Mesh | None, axes: str | Sequence[str] | None, cores: Any) -> Names:
    """The axes of a mesh that split the batch."""
    if mesh is None or cores is not None:
        if axes is not None or mesh is not None:
            raise ValueError(
                f"batched: mesh is {mesh}, axes are {axes} and cores is {cores}, "
                "expected a mesh, perhaps with axes, or cores."
            )
        return ()
    chosen = mesh.axis_names if axes is None else axes
    names = (chosen,) if isinstance(chosen, str) else tuple(chosen)
    if not names or not set(names) <= set(mesh.axis_names):
        raise ValueError(
            f"batched: axes are {axes!r}, expected some of the mesh: {mesh.axis_names}."
        )
    return names


def _local(cores: Any, size: int, given: Any) -> Mesh | None:
    """All local devices, where a batch of arrays is worth it and free to move there."""
    devices = jax.local_devices()
    if (
        cores is not None
        or len(devices) < 2
        or size < SMALL * len(devices)
        or not is_eager()
    ):
        return None
    arrays = [x for x in jax.tree.leaves(given) if isinstance(x, jax.Array)]
    fixed = [x.sharding.device_set for x in arrays if x.committed]
    is_chosen = dict(_settings())["default_device"] is not None
    if is_chosen or any(there != set(devices) for there in fixed):
        return None
    return Mesh(np.array(devices), ("states",))


def _may_split(count: int) -> bool:
    """Whether threads would do the same: no tracing, and the same settings of JAX."""
    if jax.default_backend() != "cpu" or not is_eager():
        return False
    return _settings() == _threads(count).submit(_settings).result()


def _settings() -> tuple:
    names = ("enable_x64", "default_device", "default_matmul_precision", "debug_nans")
    return tuple((name, getattr(jax.config, f"jax_{name}")) for name in names)


def _axes(args: tuple, in_axes: Axes) -> list[int | None]:
    if in_axes is None:
        return [None if isinstance(x, Model) else 0 for x in args]
    if len(in_axes) != len(args) or not set(in_axes) <= {0, None}:
        raise ValueError(
            f"batched: in_axes is {in_axes}, expected 0 or None for each of the "
            f"{len(args)} arguments."
        )
    return list(in_axes)


def _parted(args: tuple, axes: list[int | None]) -> tuple[list, dict]:
    """The arguments that are the same for all states, and those that are not."""
    shared = [None if axis == 0 else x for x, axis in zip(args, axes, strict=True)]
    return shared, {k: x for k, x in enumerate(args) if axes[k] == 0}


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
