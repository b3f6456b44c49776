"""The joins of a contraction: rows of segments, round by round."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array

from jaxdyn.algorithms.log_depth._segments import Coupling, Segment, join
from jaxdyn.model import Contraction

T = TypeVar("T")  # a pytree of rows
Y = TypeVar("Y")
Joined = tuple[Array, Array, Array, Array]  # left, right, load, is_sum of one round


def joined_pieces(x: Contraction, pieces: Segment) -> tuple[Segment, Coupling]:
    """All rows of the contraction, and the couplings of its joins."""

    def join_all(rows: Segment, now: tuple[Array, Joined]):
        k, joined = now
        left, right, load = rows_of(rows, joined)
        is_sum = joined[3]
        A, C = side_by_side(left.A, is_sum), jnp.where(is_sum, 0, left.C)
        right = replace(right, P=right.P + load.P, eta=right.eta + load.eta)
        new, met = join(replace(left, A=A, C=C), right)
        return written(rows, new, x, k), met

    rows = with_room(pieces, x)
    if not x.rounds:
        none = jnp.zeros((0, 6, 6, x.left.shape[1]), rows.A.dtype)
        return rows, Coupling(none, none, none)
    return rounds(x, join_all, rows)


def rounds(
    x: Contraction,
    join_all: Callable[..., tuple[T, Y]],
    rows: T,
    *terms: Coupling | np.ndarray,
    reverse: bool = False,
) -> tuple[T, Y]:
    """All rounds, at least one: join_all(rows, (number, joins, *terms)) for each."""
    joined = x.left, x.right, x.load, x.is_sum
    now = np.arange(x.rounds), joined, *terms
    return lax.scan(join_all, rows, now, reverse=reverse)


def with_room(rows: T, x: Contraction) -> T:
    """The rows of the pieces, an empty one, and room for the results of all joins."""

    def wider(v: Array) -> Array:
        room = jnp.zeros((*v.shape[:-1], 1 + x.left.size), v.dtype)
        return jnp.concatenate([v, room], axis=-1)

    return jax.tree.map(wider, rows)


def written(rows: T, new: T, x: Contraction, k: Array) -> T:
    """The rows with the results of round k."""
    start = x.pieces + 1 + k * x.left.shape[1]

    def write(v: Array, w: Array) -> Array:
        return lax.dynamic_update_slice_in_dim(v, w, start, axis=v.ndim - 1)

    return jax.tree.map(write, rows, new)


def rows_of(rows: T, joined: Joined) -> tuple[T, T, T]:
    """The left and right parts and the loads of joins."""

    def part(index: Array) -> T:
        return jax.tree.map(lambda x: at(x, index), rows)

    left, right, load, _ = joined
    return part(left), part(right), part(load)


def side_by_side(A: Array, is_sum: Array) -> Array:
    """A of the left part of joins: 1 where the right one hangs beside it."""
    return jnp.where(is_sum, jnp.eye(6, dtype=A.dtype)[:, :, None], A)


def at(x: Array, index: Array | np.ndarray) -> Array:
    """The lanes of an array at some places."""
    return x.at[..., index].get(mode="promise_in_bounds")
