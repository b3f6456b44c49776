"""Loops and branches of a program as loops and branches of C."""

from collections.abc import Callable, Sequence

import numpy as np

from jaxdyn.program.cuda._arrays import (
    assign,
    in_memory,
    moved,
    mutable,
    strides,
    write,
)
from jaxdyn.program.cuda._scalars import NUMBER, Place, Text

Run = Callable[[list[np.ndarray]], list[np.ndarray]]


class Carry:
    """Values that a loop sets anew in each step.

    Small ones are variables, large ones arrays of the thread.
    """

    def __init__(
        self, text: Text, types: Sequence[np.dtype], start: Sequence[np.ndarray]
    ):
        self.text, self.types, self.ids = text, list(types), []
        self.arrays: list[str | None] = []
        for dtype, x in zip(types, start, strict=True):
            name = None
            if not text.is_large(x.shape):
                flat = [mutable(text, dtype, i) for i in x.ravel().tolist()]
                ids = np.array(flat, np.int64).reshape(x.shape)
            else:
                name = text.array(dtype, x.size)
                write(text, dtype, name, x.ravel())
                ids = text.entries(Place(name), np.arange(x.size).reshape(x.shape))
            self.ids.append(ids)
            self.arrays.append(name)

    def update(self, values: Sequence[np.ndarray]) -> None:
        """Set all; values may be of old ones."""
        text, own, later = self.text, set(), []
        for x in self.ids:
            own.update(x.ravel().tolist())
        for dtype, x, new, name in zip(
            self.types, self.ids, values, self.arrays, strict=True
        ):
            if name is None:
                for i, value in zip(
                    x.ravel().tolist(), new.ravel().tolist(), strict=True
                ):
                    if value != i:
                        later.append(
                            (dtype, i, self._apart(dtype, text.loaded(value), own))
                        )
            elif not np.array_equal(x, new):
                copy = text.array(dtype, new.size)
                write(text, dtype, copy, new.ravel())
                entries = text.entries(Place(copy), np.arange(new.size))
                later.append((dtype, name, entries))
        for dtype, target, value in later:
            if isinstance(target, str):
                write(text, dtype, target, value)
            else:
                assign(text, target, value)

    def _apart(self, dtype: np.dtype, value: int, own: set[int]) -> int:
        """A value that setting another one does not change."""
        return mutable(self.text, dtype, value) if value in own else value


def columns(
    text: Text, dtype: np.dtype, x: np.ndarray, i: str, stored: dict
) -> np.ndarray:
    """The row of an array at the counter of a loop.

    `stored` has what `prepared` has written for it before the loop.
    """
    flat = x.reshape(len(x), -1)
    row = flat[0].copy()
    for k in range(flat.shape[1]):
        column = stored.get(k, flat[:, k])
        steps = strides(text, column) or []
        row[k] = column[0]
        if any(steps):
            row[k] = moved(text, column[:1], [i], steps)[0]
    return row.reshape(x.shape[1:])


def prepared(text: Text, dtype: np.dtype, x: np.ndarray) -> dict[int, np.ndarray]:
    """The columns of an array that a loop cannot read as they are, in memory."""
    flat = x.reshape(len(x), -1)
    missing = [k for k in range(flat.shape[1]) if strides(text, flat[:, k]) is None]
    if not missing:
        return {}
    numbers = [k for k in missing if (text.kinds(flat[:, k]) == NUMBER).all()]
    others = [k for k in missing if k not in numbers]
    found = {}
    for some in (numbers, others):
        if some:
            entries = in_memory(text, dtype, np.ascontiguousarray(flat[:, some]))
            found |= {k: entries[:, j] for j, k in enumerate(some)}
    return found


def scan(
    text: Text,
    body: Run,
    fixed: list[np.ndarray],
    start: list[np.ndarray],
    rows: list[np.ndarray],
    types: Sequence[np.dtype],
    length: int,
    reverse: bool,
) -> list[np.ndarray]:
    """A loop of C; `types` are those of the carry, the rows and the kept results."""
    count = len(start)
    ready = [
        prepared(text, t, x)
        for t, x in zip(types[count : count + len(rows)], rows, strict=True)
    ]
    first = len(text)
    carry = Carry(text, types[:count], start)
    with text.loop(length, reverse) as i:
        row = [
            columns(text, t, x, i, done)
            for t, x, done in zip(types[count:], rows, ready, strict=False)
        ]
        found = body([*fixed, *carry.ids, *row])
        kept = [
            _keep(text, t, x, i, length, first)
            for t, x in zip(types[count + len(rows) :], found[count:], strict=True)
        ]
        carry.update(found[:count])
    return [*carry.ids, *kept]


def _keep(
    text: Text, dtype: np.dtype, x: np.ndarray, i: str, length: int, first: int
) -> np.ndarray:
    """The rows of one result; those of which memory has all are not stored."""
    flat = x.ravel()
    result = np.empty((length, flat.size), np.int64)
    kinds = text.kinds(flat)
    stored = []
    for k, value in enumerate(flat.tolist()):
        if value < first or kinds[k] == NUMBER:  # the same in each step
            result[:, k] = value
        else:
            stored.append(k)
    if stored:
        name, width = text.array(dtype, length * len(stored)), len(stored)
        for j, k in enumerate(stored):
            text.store(name, ((i, width),), j, int(flat[k]))
        entries = np.arange(length * width).reshape(length, width)
        result[:, stored] = text.entries(Place(name), entries)
    return result.reshape(length, *x.shape)


def while_loop(
    text: Text,
    goes_on: Run,
    body: Run,
    start: list[np.ndarray],
    types: Sequence[np.dtype],
) -> list[np.ndarray]:
    """A loop until a condition fails."""
    carry = Carry(text, types, start)
    with text.block("for (;;)"):
        (flag,) = goes_on(carry.ids)
        text.line("if (!{0}) break;", [int(flag)])
        carry.update(body(carry.ids))
    return carry.ids


def switch(
    text: Text,
    index: int,
    branches: Sequence[Run],
    args: list[np.ndarray],
    types: Sequence[np.dtype],
    shapes: Sequence[tuple[int, ...]],
) -> list[np.ndarray]:
    """The program with a number, or the nearest one."""
    number = text.number(index)
    if number is not None:
        return branches[min(max(int(number), 0), len(branches) - 1)](args)
    index = text.loaded(index)
    results, names = [], []
    for dtype, shape in zip(types, shapes, strict=True):
        size, name = int(np.prod(shape)), None
        if not text.is_large(shape):
            ids = np.array([mutable(text, dtype, None) for _ in range(size)], np.int64)
        else:
            name = text.array(dtype, size)
            ids = text.entries(Place(name), np.arange(size))
        results.append(ids)
        names.append(name)
    for k, branch in enumerate(branches):
        is_last = k == len(branches) - 1
        head = "else" if is_last else f"{'else ' * (k > 0)}if ({{0}} <= {k})"
        with text.block(head, [] if is_last else [index]):
            found = zip(types, results, names, branch(args), strict=True)
            for dtype, ids, name, value in found:
                if name is not None:
                    write(text, dtype, name, value.ravel())
                    continue
                for i, x in zip(ids.tolist(), value.ravel().tolist(), strict=True):
                    assign(text, i, x)
    return [x.reshape(s) for x, s in zip(results, shapes, strict=True)]
