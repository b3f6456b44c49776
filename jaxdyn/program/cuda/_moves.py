"""Operations that only move data, on arrays of anything."""

from collections.abc import Callable, Sequence

import numpy as np


def _broadcast(x: np.ndarray, p: dict) -> np.ndarray:
    sizes = np.ones(len(p["shape"]), int)
    sizes[list(p["broadcast_dimensions"])] = x.shape
    return np.broadcast_to(x.reshape(sizes), p["shape"])


def _slice(x: np.ndarray, p: dict) -> np.ndarray:
    strides = p["strides"] or [1] * x.ndim
    triples = zip(p["start_indices"], p["limit_indices"], strides, strict=True)
    return x[tuple(slice(*t) for t in triples)]


def _pad(x: np.ndarray, value: np.ndarray, p: dict) -> np.ndarray:
    pairs = list(zip(x.shape, p["padding_config"], strict=True))
    between = [(n - 1) * (c[2] + 1) + 1 if n else 0 for n, c in pairs]
    wide = np.full(between, value)
    wide[tuple(slice(None, None, c[2] + 1) for _, c in pairs)] = x
    result = np.pad(
        wide, [(max(c[0], 0), max(c[1], 0)) for _, c in pairs], constant_values=value
    )
    cut = [(max(-c[0], 0), max(-c[1], 0)) for _, c in pairs]
    ends = zip(result.shape, cut, strict=True)
    return result[tuple(slice(low, n - high) for n, (low, high) in ends)]


def _split(x: np.ndarray, p: dict) -> list[np.ndarray]:
    return np.split(x, np.cumsum(p["sizes"])[:-1], p["axis"])


def _unstack(x: np.ndarray, p: dict) -> list[np.ndarray]:
    return list(np.moveaxis(x, p["axis"], 0))


def _same(x: np.ndarray, p: dict) -> np.ndarray:
    return x


MOVES: dict[str, Callable] = {
    "broadcast_in_dim": _broadcast,
    "reshape": lambda x, p: x.reshape(p["new_sizes"]),
    "transpose": lambda x, p: x.transpose(p["permutation"]),
    "squeeze": lambda x, p: np.squeeze(x, p["dimensions"]),
    "expand_dims": lambda x, p: np.expand_dims(x, p["dimensions"]),
    "slice": _slice,
    "tile": lambda x, p: np.tile(x, p["reps"]),
    "rev": lambda x, p: np.flip(x, p["dimensions"]),
    "pad": _pad,
    "split": _split,
    "unstack": _unstack,
    "concatenate": lambda *args: np.concatenate(args[:-1], args[-1]["dimension"]),
    "stack": lambda *args: np.stack(args[:-1], args[-1]["axis"]),
    **dict.fromkeys("copy copy_p stop_gradient optimization_barrier".split(), _same),
    **dict.fromkeys("pvary pcast reshard sharding_constraint".split(), _same),
}


def windows(
    shape: Sequence[int], indices: Sequence[int], params: dict
) -> tuple[np.ndarray, list[tuple[int, int, np.ndarray]]]:
    """Which entries of a flat operand a gather takes, without its traced starts.

    Also for each of its starts the axis of the operand, how far they may go there, and
    for each entry of the result which of the `indices`, counted flat, is its start.
    """
    d, sizes = params["dimension_numbers"], params["slice_sizes"]
    batch = tuple(indices[:-1])
    gone = (*d.collapsed_slice_dims, *d.operand_batching_dims)
    whole = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    inner = np.squeeze(whole[tuple(slice(0, s) for s in sizes)], gone)
    rank = len(batch) + len(d.offset_dims)
    outer = [k for k in range(rank) if k not in d.offset_dims]

    def spread(x, axes):
        sizes = np.ones(rank, int)
        sizes[list(axes)] = x.shape
        return x.reshape(sizes)

    full = np.zeros(rank, int)
    full[outer], full[list(d.offset_dims)] = batch, inner.shape
    strides = [int(np.prod(shape[k + 1 :])) for k in range(len(shape))]
    place = np.zeros(full, int) + spread(inner, d.offset_dims)
    for axis, own in zip(
        d.operand_batching_dims, d.start_indices_batching_dims, strict=True
    ):
        steps = np.arange(batch[own])
        place = place + strides[axis] * spread(steps, [outer[own]])
    count = indices[-1]
    first = np.arange(np.prod(batch, dtype=int)).reshape(batch) * count
    starts = [
        (
            axis,
            shape[axis] - sizes[axis],
            np.zeros(full, int) + spread(first + k, outer),
        )
        for k, axis in enumerate(d.start_index_map)
    ]
    return place, starts
