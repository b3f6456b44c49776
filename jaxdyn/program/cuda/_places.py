"""Parts of arrays at places that are known only as the kernel runs."""

from collections.abc import Sequence

import numpy as np

from jaxdyn.program.cuda import _arrays
from jaxdyn.program.cuda._moves import windows
from jaxdyn.program.cuda._operations import Operation, array, rule
from jaxdyn.program.cuda._scalars import Place, Text
from jaxdyn.program.cuda._types import UnknownError


def _starts(
    text: Text, ids: np.ndarray, dtype: np.dtype, room: np.ndarray
) -> np.ndarray:
    """Places that a traced number may take, from zero to some room."""
    room = text.constants(np.broadcast_to(room, ids.shape).astype(dtype))
    zero = text.constants(np.zeros(ids.shape, dtype))
    made = rule("clamp", {}, dtype, dtype)
    return array(text, "clamp", made, dtype, [zero, ids, room], [dtype] * 3)


def _shifted(
    text: Text, ids: np.ndarray, starts: np.ndarray, steps: Sequence[int]
) -> np.ndarray:
    """Entries of memory, further by numbers and variables times a step."""
    known = [text.number(i) for i in starts.tolist()]
    pairs = list(zip(known, steps, strict=True))
    whole = sum(int(n) * s for n, s in pairs if n is not None)
    names = [
        text.operand(i)[0] if n is None else ""
        for i, n in zip(starts.tolist(), known, strict=True)
    ]
    steps = [s if n is None else 0 for n, s in pairs]
    kind = int(text.kinds(ids).flat[0])
    place = text.place(kind)
    offsets = text.offsets(ids) + whole
    return _arrays.moved(text, text.entries(place, offsets), names, steps)


def dynamic_slice(text: Text, op: Operation, args: list[np.ndarray]) -> np.ndarray:
    x, sizes = args[0], op.params["slice_sizes"]
    if x.shape == tuple(sizes):
        return x
    room = np.array(x.shape) - np.array(sizes)
    dtype = op.inputs[1].dtype
    starts = _starts(text, np.stack(args[1:]), dtype, room)
    known = text.numbers(starts, dtype)
    if known is not None:
        pairs = zip(known.tolist(), sizes, strict=True)
        return x[tuple(slice(k, k + n) for k, n in pairs)]
    window = tuple(slice(0, n) for n in sizes)
    x = _arrays.in_memory(text, op.results[0].dtype, x)
    steps = _arrays.strides(text, x) or []
    if not any(steps):
        return x[window]
    return _shifted(text, x[window], starts, steps)


def dynamic_update_slice(
    text: Text, op: Operation, args: list[np.ndarray]
) -> np.ndarray:
    x, new, *starts = args
    dtype = op.inputs[2].dtype
    room = np.array(x.shape) - np.array(new.shape)
    starts = _starts(text, np.stack(starts), dtype, room)
    known = text.numbers(starts, dtype)
    if known is not None:
        out = x.copy()
        pairs = zip(known.tolist(), new.shape, strict=True)
        out[tuple(slice(k, k + n) for k, n in pairs)] = new
        return out
    own, places = op.results[0].dtype, np.arange(x.size).reshape(x.shape)
    name = text.array(own, x.size)
    _arrays.write(text, own, name, x.ravel())
    out = text.entries(Place(name), places)
    window = out[tuple(slice(0, n) for n in new.shape)]
    steps = [int(s // x.itemsize) for s in np.zeros(x.shape, x.dtype).strides]
    target = _shifted(text, window, starts, steps)
    _arrays.set_entries(text, own, target, new)
    return out


def gather(text: Text, op: Operation, args: list[np.ndarray]) -> np.ndarray:
    x, index = args
    a, dtype = op.results[0], op.inputs[1].dtype
    place, starts = windows(x.shape, index.shape, op.params)
    mode = str(op.params["mode"]).lower()
    flat = index.ravel()
    strides = [int(np.prod(x.shape[k + 1 :])) for k in range(x.ndim)]
    known = text.numbers(flat, dtype)
    is_there = np.ones(place.shape, bool)
    if known is not None:
        for axis, room, which in starts:
            own = known[which].astype(int)
            is_there &= (own >= 0) & (own <= room)
            place = place + strides[axis] * np.clip(own, 0, room)
        out = x.ravel()[place]
        if "fill" in mode and not is_there.all():
            fill = op.params["fill_value"]
            if fill is None:
                fill = np.nan if np.issubdtype(a.dtype, np.inexact) else 0
            out = np.where(is_there, out, text.constants(a.dtype.type(fill)))
        return out
    if "fill" in mode:
        raise UnknownError("a gather at traced places that may be outside")
    whole = _arrays.in_memory(text, a.dtype, x.ravel())
    (step,) = _arrays.strides(text, whole) or [0]
    if not step:
        return np.broadcast_to(whole[0], place.shape)
    at = [_starts(text, flat[w], dtype, np.array(r)) for _, r, w in starts]
    steps = [step * strides[axis] for axis, *_ in starts]
    out = np.empty(place.shape, np.int64)
    for k in np.ndindex(place.shape):
        own = np.array([x[k] for x in at])
        out[k] = _shifted(text, whole[place[k]], own, steps)
    return out
