"""The joins of a contraction: rows of segments, round by round."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxdyn.algorithms.log_depth._segments import Coupling, Segment, join
from jaxdyn.model import Contraction


def joined_pieces(x: Contraction, pieces: Segment) -> tuple[Segment, Coupling]:
    """All rows of the contraction, and the couplings of its joins."""

    def step(rows: Segment, now: Any) -> Any:
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
    return rounds(x, step, rows)


def rounds(
    x: Contraction, step: Any, rows: Any, *terms: Any, reverse: bool = False
) -> tuple[Any, Any]:
    """All rounds; a step gets the number of its round, its joins, and its terms."""
    if not x.rounds:
        return rows, None
    joined = x.left, x.right, x.load, x.is_sum
    now = np.arange(x.rounds), joined, *terms
    return lax.scan(step, rows, now, reverse=reverse)


def with_room(rows: Any, x: Contraction) -> Any:
    """The rows of the pieces, an empty one, and room for the results of all joins."""

    def wider(v: Any) -> Any:
        room = jnp.zeros((*v.shape[:-1], 1 + x.left.size), v.dtype)
        return jnp.concatenate([v, room], axis=-1)

    return jax.tree.map(wider, rows)


def written(rows: Any, new: Any, x: Contraction, k: Any) -> Any:
    """The rows with the results of round k."""
    start = x.pieces + 1 + k * x.left.shape[1]

    def write(v: Any, w: Any) -> Any:
        return lax.dynamic_update_slice_in_dim(v, w, start, axis=v.ndim - 1)

    return jax.tree.map(write, rows, new)


def rows_of(rows: Any, joined: Any) -> tuple[Any, Any, Any]:
    """The left and right parts and the loads of joins."""
    left, right, load, _ = joined
    return tuple(
        jax.tree.map(lambda x, i=i: at(x, i), rows) for i in (left, right, load)
    )


def side_by_side(A: Any, is_sum: Any) -> Any:
    """A of the left part of joins: 1 where the right one hangs beside it."""
    return jnp.where(is_sum, jnp.eye(6, dtype=A.dtype)[:, :, None], A)


def at(x: Any, index: Any) -> Any:
    """The lanes of an array at some places."""
    return x.at[..., index].get(mode="promise_in_bounds")
