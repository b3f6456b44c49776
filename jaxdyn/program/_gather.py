"""Rows of arrays at places that are known before the program runs.

All of `take`, `put` and `exchange` are one linear map: row i of the result is the sum
of some rows of the argument. Its transpose is a map of the same kind, so that neither
a program nor its derivatives ever scatter, which a kernel cannot.
"""

from collections.abc import Sequence
from functools import cache, cached_property, partial
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike
from jaxtyping import Array

from jaxdyn.program._jax import (
    Argument,
    ShapedArray,
    Tangent,
    Value,
    Zero,
    lower_on_cpu,
    primitive,
    zero_like,
)

T = TypeVar("T")  # a pytree


def take(tree: T, index: np.ndarray, stored: bool = False) -> T:
    """Rows of all leaves at `index`; zero where that is beyond the end.

    If `stored`, the CPU copies them row by row. Without that XLA computes each entry of
    a result in the order in which that is laid out, for a batch one state at a time.
    """
    index = np.asarray(index)
    sources = cache(lambda size: Sources.one_each(index.ravel(), size))

    def rows(x):
        taken = _sum_rows(x, sources(x.shape[0]), stored)
        return taken.reshape((*index.shape, *x.shape[1:]))

    return jax.tree.map(rows, tree)


def put(tree: T, index: np.ndarray, size: int) -> T:
    """Arrays of `size` rows: rows of all leaves added at `index`, zero elsewhere."""
    index = np.asarray(index)
    sources = Sources.one_each(index.ravel(), size).transpose

    def rows(x):
        flat = x.reshape((index.size, *x.shape[index.ndim :]))
        return _sum_rows(flat, sources)

    return jax.tree.map(rows, tree)


def exchange(x: Array, index: np.ndarray, rows: Array) -> Array:
    """The same array with other rows at `index`."""
    index = np.asarray(index)
    source = np.arange(len(x))
    source[index.ravel()] = len(x) + np.arange(index.size)
    new = rows.reshape((index.size, *x.shape[1:]))
    return take(jnp.concatenate([x, new]), source)


class Sources:
    """For each row of the result the rows of the argument that it sums.

    Attributes:
        rows: the rows of the argument, those for the first result first.
        counts: how many of them each result has.
        size: how many rows the argument has.
    """

    def __init__(self, rows: np.ndarray, counts: np.ndarray, size: int):
        self.rows, self.counts, self.size = rows, counts, size

    @staticmethod
    def one_each(index: np.ndarray, size: int) -> "Sources":
        """One row each, or none where the place is beyond the end."""
        index = index.astype(int)
        is_there = (index >= 0) & (index < size)
        return Sources(index[is_there], is_there.astype(int), size)

    @cached_property
    def _key(self) -> tuple[bytes, bytes, int]:
        return self.rows.tobytes(), self.counts.tobytes(), self.size

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sources) and self._key == other._key

    def __repr__(self) -> str:
        return f"Sources({len(self.counts)} of {self.size})"

    @cached_property
    def is_identity(self) -> bool:
        """Whether all rows stay where they are."""
        is_single = bool((self.counts == 1).all())
        return is_single and np.array_equal(self.rows, np.arange(self.size))

    @cached_property
    def transpose(self) -> "Sources":
        """The sources of the transposed map."""
        results = np.repeat(np.arange(len(self.counts)), self.counts)
        order = np.argsort(self.rows, kind="stable")
        counts = np.bincount(self.rows, minlength=self.size)
        return Sources(results[order], counts, len(self.counts))

    @cached_property
    def tables(self) -> tuple[list[np.ndarray], np.ndarray]:
        """Index tables of like width, and where each result is in their sums.

        Widths are powers of two, so that padding at most doubles the work.
        """
        width = np.ceil(np.log2(np.maximum(self.counts, 1))).astype(int)
        widths = np.where(self.counts > 0, 1 << width, 0)
        own = np.repeat(widths, self.counts)  # the width for each entry of rows
        tables, order, start = [], np.full(len(self.counts), len(self.counts)), 0
        for width in np.unique(widths[widths > 0]).tolist():
            members = np.flatnonzero(widths == width)
            table = np.full((len(members), width), self.size)
            is_used = np.arange(width) < self.counts[members, None]
            table[is_used] = self.rows[own == width]
            tables.append(table)
            order[members] = start + np.arange(len(members))
            start += len(members)
        return tables, order


def _sum_rows(x: Value, sources: Sources, stored: bool = False) -> Value:
    if sources.is_identity and not stored:
        return x
    return sum_rows_p.bind(x, sources=sources, stored=stored)


def _rows(x: Array, index: np.ndarray) -> Array:
    """Rows at `index`, zero beyond the end."""
    n = x.shape[0]
    if np.array_equal(index, np.arange(n)):
        return x
    if not n or not (index < n).all():  # a gather that fills in is twice as slow
        x = jnp.concatenate([x, jnp.zeros((1, *x.shape[1:]), x.dtype)])
        index = np.minimum(index, n)
    if index.size and (np.diff(index) == 1).all():
        return x[index[0] : index[0] + index.size]
    return x.at[index].get(mode="promise_in_bounds")


def _copy(x: Array, *, sources: Sources, stored: bool) -> Array:
    if not stored or not sources.counts.size:
        return sum_rows(x, sources=sources, stored=stored)
    index = np.full(len(sources.counts), sources.size)
    index[sources.counts > 0] = sources.rows  # one each
    padded = jnp.concatenate([x, jnp.zeros((1, *x.shape[1:]), x.dtype)])
    pick = partial(lax.dynamic_index_in_dim, padded, axis=0, keepdims=False)
    return lax.map(pick, jnp.asarray(index))


def sum_rows(x: ArrayLike, *, sources: Sources, stored: bool) -> Array:
    """The map in primitives of JAX."""
    x = jnp.asarray(x)
    tables, order = sources.tables
    sums = []
    for table in tables:
        rows = _rows(x, table.ravel()).reshape((*table.shape, *x.shape[1:]))
        while (width := rows.shape[1]) > 1:  # halves: a reduction is left to no library
            rows = rows[:, : width // 2] + rows[:, width // 2 :]
        sums.append(rows[:, 0])
    if not sums:
        return jnp.zeros((len(order), *x.shape[1:]), x.dtype)
    return _rows(jnp.concatenate(sums) if len(sums) > 1 else sums[0], order)


def _transpose(
    ct: Tangent, x: Argument, *, sources: Sources, stored: bool
) -> tuple[Tangent]:
    if isinstance(ct, Zero):
        return (zero_like(x),)
    return (_sum_rows(ct, sources.transpose),)


def _batch(
    args: Sequence[Value], dims: Sequence[int], *, sources: Sources, stored: bool
) -> tuple[Value, int]:
    return _sum_rows(jnp.moveaxis(args[0], dims[0], 1), sources, stored), 1


def _type(x: ShapedArray, *, sources: Sources, stored: bool) -> ShapedArray:
    return x.update(shape=(len(sources.counts), *x.shape[1:]))


sum_rows_p = primitive(
    "sum_rows", sum_rows, _type, batch=_batch, transpose=_transpose, several=False
)
lower_on_cpu(sum_rows_p, _copy, several=False)
