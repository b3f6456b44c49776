"""Arrays in the memory of a thread: what loops read and write."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from jaxdyn.program.cuda._scalars import NUMBER, VARIABLE, Place, Text
from jaxdyn.program.cuda._types import c_type

SHORT = 8  # entries up to which a sum is written out
FEW = 16  # entries, and loops over entries, that are written one by one


def strides(text: Text, ids: np.ndarray) -> list[int] | None:
    """How far the entries are apart in memory along each axis; None if not regular.

    All zero if they are one scalar.
    """
    first = ids[(0,) * ids.ndim]
    if (ids == first).all():
        return [0] * ids.ndim
    kinds = text.kinds(ids)
    if kinds.flat[0] < 0 or (kinds != kinds.flat[0]).any():
        return None
    offsets, found = text.offsets(ids), []
    expected = offsets[(0,) * ids.ndim]
    for axis, size in enumerate(ids.shape):
        at = [0] * ids.ndim
        at[axis] = min(1, size - 1)
        step = int(offsets[tuple(at)] - offsets[(0,) * ids.ndim])
        steps = step * np.arange(size)
        expected = expected + steps.reshape(
            [-1 if k == axis else 1 for k in range(ids.ndim)]
        )
        found.append(step)
    return found if (offsets == expected).all() else None


def in_memory(text: Text, dtype: np.dtype, ids: np.ndarray) -> np.ndarray:
    """The same values as entries that are regular along all axes."""
    if strides(text, ids) is not None:
        return ids
    values = text.numbers(ids, dtype)
    if values is not None:
        name = text.table(values)
    else:
        name = text.array(dtype, ids.size)
        write(text, dtype, name, ids.ravel())
    places = np.arange(ids.size).reshape(ids.shape)
    return text.entries(Place(name), places)


def moved(
    text: Text, ids: np.ndarray, names: Sequence[str], steps: Sequence[int]
) -> np.ndarray:
    """Entries of one place, seen from where some variables are."""
    place = text.place(int(text.kinds(ids).flat[0]))
    terms = [(n, s) for n, s in zip(names, steps, strict=True) if s]
    return text.entries(Place(place.array, (*place.terms, *terms)), text.offsets(ids))


def at(text: Text, ids: np.ndarray, names: Sequence[str]) -> int:
    """The scalar at some place of a regular array."""
    first = ids[(0,) * ids.ndim]
    steps = strides(text, ids)
    if steps is None or not any(steps):
        return int(first)
    return int(moved(text, np.array(first), names, steps))


def write(
    text: Text, dtype: np.dtype, array: str, ids: np.ndarray, start: int = 0
) -> None:
    """Sets entries of an array, from a first one on, with few lines."""
    runs, single = _runs(text, ids), []
    short = 3 if len(runs) <= FEW else 64
    has_loops = sum(end - k > short for k, end in runs) <= FEW
    for k, end in runs:
        if end - k > short and has_loops:
            part = in_memory(text, dtype, ids[k:end])
            with text.loop(end - k) as i:
                text.store(array, ((i, 1),), start + k, at(text, part, [i]))
        else:
            single += range(k, end)
    kinds = text.kinds(ids[single])
    for kind in np.unique(kinds).tolist():
        some = [k for k, own in zip(single, kinds.tolist(), strict=True) if own == kind]
        targets = start + np.array(some)
        if kind == VARIABLE or len(some) <= FEW:
            for k in some:
                text.store(array, (), start + k, int(ids[k]))
        elif kind == NUMBER:
            values = text.numbers(ids[some], dtype)
            assert values is not None
            place = Place(text.table(values))
            _exchange(text, array, place, np.arange(len(some)), targets)
        else:
            place = text.place(kind)
            _exchange(text, array, place, text.offsets(ids[some]), targets)


def set_entries(
    text: Text, dtype: np.dtype, targets: np.ndarray, values: np.ndarray
) -> None:
    """Sets regular entries of an array, in a loop if there are many."""
    if not text.is_large(targets.shape):
        for target, value in zip(targets.ravel(), values.ravel(), strict=True):
            place = text.place(int(text.kinds(target)))
            offset = int(text.offsets(target))
            text.store(place.array, place.terms, offset, int(value))
        return
    values = in_memory(text, dtype, values)
    with ExitStack() as stack:
        names = loops(text, values.shape, stack)
        target = at(text, targets, names)
        place = text.place(int(text.kinds(np.array(target))))
        offset = int(text.offsets(np.array(target)))
        text.store(place.array, place.terms, offset, at(text, values, names))


def _exchange(
    text: Text, array: str, place: Place, sources: np.ndarray, targets: np.ndarray
) -> None:
    """Sets entries at given places to those at others, by tables."""
    terms = []
    with text.loop(len(sources)) as i:
        for x in (sources, targets):
            if (x == np.arange(len(x))).all():
                terms.append((i, 1))
                continue
            table = Place(text.table(x.astype(np.int32)), ((i, 1),))
            k = text.loaded(int(text.entries(table, np.array(0))))
            terms.append((text.operand(k)[0], 1))
        source = Place(place.array, (*place.terms, terms[0]))
        value = int(text.entries(source, np.array(0)))
        text.store(array, (terms[1],), 0, value)


def _runs(text: Text, ids: np.ndarray) -> list[tuple[int, int]]:
    """Where the pieces of a row begin and end that are regular, or all numbers."""
    kinds, offsets = text.kinds(ids), text.offsets(ids)
    same = ids[1:] == ids[:-1]
    is_number = (kinds[1:] == NUMBER) & (kinds[:-1] == NUMBER)
    step = np.where(same | is_number, 0, offsets[1:] - offsets[:-1]).tolist()
    joins = same | is_number | ((kinds[1:] == kinds[:-1]) & (kinds[1:] >= 0))
    pieces, start = [], 0
    for k, joined in enumerate(joins.tolist(), 1):
        if not joined or (k - 1 > start and step[k - 1] != step[start]):
            pieces.append((start, k))
            start = k
    return [*pieces, (start, len(ids))] if len(ids) else []


def loops(text: Text, shape: Sequence[int], stack: ExitStack) -> list[str]:
    """Counters of loops over the axes of an array, "0" for those of length one."""
    return [stack.enter_context(text.loop(n)) if n > 1 else "0" for n in shape]


def large_operation(
    text: Text,
    dtype: np.dtype,
    types: Sequence[np.dtype],
    operands: Sequence[np.ndarray],
    function: Callable[[list[int]], int],
) -> np.ndarray:
    """A scalar function for all entries of arrays of one shape, as a loop.

    The loop waits until its results are needed: operations on arrays of one shape are
    one loop, and what only they need of each other is never stored.
    """
    shape, size = operands[0].shape, operands[0].size
    pairs = list(zip(types, operands, strict=True))
    if all(strides(text, x.ravel()) is not None for x in operands):
        pairs = [(t, x.ravel()) for t, x in pairs]
    given = [in_memory(text, t, x) for t, x in pairs]
    own = given[0].shape
    for x in given:
        kind = int(text.kinds(x).flat[0])
        if kind < 0:
            continue
        array, row = text.place(kind).array, np.arange(size).reshape(own)
        waits = text.waiting.get(array)
        is_same = np.array_equal(text.offsets(x), row)
        if waits and not (is_same and waits.shape == own):  # type: ignore
            waits()
    group = next((g for g in text.waiting.values() if g.shape == own), None)  # type: ignore
    group = group or Group(text, own)
    name = text.array(dtype, size)
    group.parts.append((name, given, function))  # type: ignore
    text.waiting[name] = group
    return text.entries(Place(name), np.arange(size).reshape(shape))


@dataclass
class Group:
    """Operations on arrays of one shape, which will be one loop."""

    text: Text
    shape: tuple[int, ...]
    parts: list = field(default_factory=list)

    def __call__(self) -> None:
        """Print the loop."""
        text = self.text
        for name, *_ in self.parts:
            text.waiting.pop(name, None)
        with ExitStack() as stack:
            names = loops(text, self.shape, stack)
            for name, operands, function in self.parts:
                value = function([at(text, x, names) for x in operands])
                steps = zip(names, _row_major(self.shape), strict=True)
                terms = tuple((n, s) for n, s in steps if n != "0")
                text.store(name, terms, 0, value, known=True)


def _row_major(shape: Sequence[int]) -> list[int]:
    return [int(np.prod(shape[k + 1 :])) for k in range(len(shape))]


def reduction(
    text: Text,
    dtype: np.dtype,
    types: Sequence[np.dtype],
    operands: Sequence[np.ndarray],
    term: Callable[[list[int]], int],
    pair: Callable[[int, int], int],
) -> np.ndarray:
    """For each entry of the first axes the terms of all entries of the last, paired."""
    *outer, length = operands[0].shape
    if not text.is_large(operands[0].shape):
        flat = [x.reshape(-1, length).tolist() for x in operands]
        results = []
        for rows in zip(*flat, strict=True):
            terms = [term(list(ids)) for ids in zip(*rows, strict=True)]
            results.append(reduce(pair, terms))
        return np.array(results, np.int64).reshape(outer)
    if length <= SHORT:
        count = len(operands)

        def total_of(ids: list[int]) -> int:
            rows = [ids[k : k + count] for k in range(0, len(ids), count)]
            return reduce(pair, map(term, rows))

        columns = [x[..., k] for k in range(length) for x in operands]
        kinds = [*types] * length
        return large_operation(text, dtype, kinds, columns, total_of)
    given = [in_memory(text, t, x) for t, x in zip(types, operands, strict=True)]
    name = text.array(dtype, int(np.prod(outer)))
    with ExitStack() as stack:
        names = loops(text, outer, stack)
        first = term([at(text, x[..., 0], names) for x in given])
        total = mutable(text, dtype, first)
        with text.loop(length - 1) as i:
            more = term([at(text, x[..., 1:], [*names, i]) for x in given])
            assign(text, total, pair(total, more))
        steps = _row_major(outer)
        terms = [(n, s) for n, s in zip(names, steps, strict=True) if n != "0"]
        text.store(name, tuple(terms), 0, total)
    return text.entries(Place(name), np.arange(int(np.prod(outer))).reshape(outer))


def mutable(text: Text, dtype: np.dtype, value: int | None) -> int:
    """A variable that loops and branches set anew."""
    name = text.fresh("c")
    if value is None:
        text.line(f"{c_type(dtype)} {name};", sets=name)
    else:
        text.line(f"{c_type(dtype)} {name} = {{0}};", [value], sets=name)
    return text.variable(name)


def assign(text: Text, variable: int, value: int) -> None:
    """Set such a variable."""
    name = text.operand(variable)[0]
    text.line(f"{name} = {{0}};", [value], sets=name)
