"""Rows of arrays at places that are known before the program runs.

All of `take`, `put` and `exchange` are one linear map: row i of the result is the sum
of some rows of the argument. Its transpose is a map of the same kind, so that neither
a program nor its derivatives ever scatter, which a `kernel` cannot.
"""

from collections.abc import Iterable
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir


def take(tree: Any, index: np.ndarray, stored: bool = False) -> Any:
    """Rows of all leaves at `index`; zero where that is beyond the end.

    If `stored`, the CPU copies them row by row. Without that XLA computes each entry of
    a result in the order in which that is laid out, for a batch one state at a time.
    """
    index = np.asarray(index)

    def rows(x: Any) -> Any:
        sources = Sources.one_each(index.ravel(), x.shape[0])
        taken = _sum_rows(x, sources, stored)
        return taken.reshape((*index.shape, *x.shape[1:]))

    return jax.tree.map(rows, tree)


def put(tree: Any, index: np.ndarray, size: int) -> Any:
    """Arrays of `size` rows: rows of all leaves added at `index`, zero elsewhere."""
    index = np.asarray(index)

    def rows(x: Any) -> Any:
        flat = x.reshape((index.size, *x.shape[index.ndim :]))
        return _sum_rows(flat, Sources.one_each(index.ravel(), size).transpose)

    return jax.tree.map(rows, tree)


def exchange(x: Any, index: np.ndarray, rows: Any) -> Any:
    """The same array with other rows at `index`."""
    index = np.asarray(index)
    source = np.arange(len(x))
    source[index.ravel()] = len(x) + np.arange(index.size)
    new = rows.reshape((index.size, *x.shape[1:]))
    return take(jnp.concatenate([x, new]), source)


class Sources:
    """For each row of the result the rows of the argument that it sums."""

    def __init__(self, rows: Iterable[tuple[int, ...]], size: int):
        self.rows = tuple(rows)
        self.size = size

    @staticmethod
    def one_each(index: np.ndarray, size: int) -> "Sources":
        """One row each, or none where the place is beyond the end."""
        return Sources((((i,) if 0 <= i < size else ()) for i in index.tolist()), size)

    @cached_property
    def _hash(self) -> int:
        return hash((self.rows, self.size))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, Sources):
            return False
        return self.size == other.size and self.rows == other.rows

    def __repr__(self) -> str:
        return f"Sources({len(self.rows)} of {self.size})"

    @cached_property
    def is_identity(self) -> bool:
        """Whether all rows stay where they are."""
        return self.rows == tuple((i,) for i in range(self.size))

    @cached_property
    def transpose(self) -> "Sources":
        """The sources of the transposed map."""
        rows: list[list[int]] = [[] for _ in range(self.size)]
        for i, sources in enumerate(self.rows):
            for j in sources:
                rows[j].append(i)
        return Sources(map(tuple, rows), len(self.rows))

    @cached_property
    def tables(self) -> tuple[list[np.ndarray], np.ndarray]:
        """Index tables of like width, and where each result is in their sums.

        Widths are powers of two, so that padding at most doubles the work.
        """
        widths = np.array([_power_of_two(len(sources)) for sources in self.rows], int)
        tables, order, start = [], np.full(len(self.rows), len(self.rows)), 0
        for width in sorted(set(widths.tolist()) - {0}):
            members = np.flatnonzero(widths == width)
            table = np.full((len(members), width), self.size)
            for row, i in zip(table, members, strict=True):
                row[: len(self.rows[i])] = self.rows[i]
            tables.append(table)
            order[members] = start + np.arange(len(members))
            start += len(members)
        return tables, order


def _power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length() if n else 0


def _sum_rows(x: Any, sources: Sources, stored: bool = False) -> Any:
    if sources.is_identity and not stored:
        return x
    return sum_rows_p.bind(x, sources=sources, stored=stored)


def _rows(x: Any, index: np.ndarray) -> Any:
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


def _copy(x: Any, *, sources: Sources, stored: bool) -> Any:
    if not stored or not sources.rows:
        return sum_rows(x, sources=sources, stored=stored)
    index = np.array([row[0] if row else sources.size for row in sources.rows])
    padded = jnp.concatenate([x, jnp.zeros((1, *x.shape[1:]), x.dtype)])
    pick = partial(lax.dynamic_index_in_dim, padded, axis=0, keepdims=False)
    return lax.map(pick, jnp.asarray(index))


def sum_rows(x: Any, *, sources: Sources, stored: bool) -> Any:
    """The map in primitives of JAX."""
    x = jnp.asarray(x)
    tables, order = sources.tables
    sums = []
    for table in tables:
        rows = _rows(x, table.ravel()).reshape((*table.shape, *x.shape[1:]))
        sums.append(rows.sum(axis=1) if table.shape[1] > 1 else rows[:, 0])
    if not sums:
        return jnp.zeros((len(order), *x.shape[1:]), x.dtype)
    return _rows(jnp.concatenate(sums) if len(sums) > 1 else sums[0], order)


def _transpose(ct: Any, x: Any, *, sources: Sources, stored: bool) -> Any:
    if isinstance(ct, ad.Zero):
        return (ad.Zero(x.aval),)
    return (_sum_rows(ct, sources.transpose),)


def _batch(args: Any, dims: Any, *, sources: Sources, stored: bool) -> Any:
    return _sum_rows(jnp.moveaxis(args[0], dims[0], 1), sources, stored), 1


sum_rows_p = Primitive("sum_rows")
sum_rows_p.def_impl(sum_rows)
sum_rows_p.def_abstract_eval(
    lambda x, *, sources, stored: x.update(shape=(len(sources.rows), *x.shape[1:]))
)
ad.deflinear2(sum_rows_p, _transpose)
batching.primitive_batchers[sum_rows_p] = _batch
mlir.register_lowering(sum_rows_p, mlir.lower_fun(sum_rows, multiple_results=False))
mlir.register_lowering(
    sum_rows_p, mlir.lower_fun(_copy, multiple_results=False), platform="cpu"
)
