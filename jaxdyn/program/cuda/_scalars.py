"""The C text of a kernel as it grows, scalar by scalar.

Values are NumPy arrays of ids. An id stands for a number, for a C variable, or for an
entry of an array in memory, which is read when it is first used. So what only moves
data is done on the arrays of ids and leaves no trace in the text.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxdyn.program.cuda._types import c_type, literal

NUMBER, VARIABLE = -1, -2
ROLLED = "#pragma unroll 1"  # stands before each loop over a counter
LONG, LARGE = 48, 256  # rows, and entries, from which on an array is in memory


@dataclass(frozen=True)
class Place:
    """An array, seen from where some variables are: array[sum of stride * variable]."""

    array: str
    terms: tuple[tuple[str, int], ...] = ()


@dataclass
class Line:
    """A line of C; it can go if nothing needs the name that it sets."""

    sets: str | None
    text: str
    uses: Sequence[str]
    depth: int


class Text:
    """The lines of a kernel, and what the ids in them stand for.

    Attributes:
        limit: the lines up to which loops are written out.
        lines: the body of the kernel.
        arrays: (type, entries) of the arrays of one thread, by name.
        tables: arrays of constants, by name.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.lines: list[Line] = []
        self.arrays: dict[str, tuple[np.dtype, int]] = {}
        self.tables: dict[str, np.ndarray] = {}
        self._table_names: dict[tuple, str] = {}
        self._kinds = np.zeros(1024, np.int32)  # NUMBER, VARIABLE or a place
        self._offsets = np.zeros(1024, np.int64)  # of entries of arrays
        self._whats: list = []  # the number, or the name of the variable
        self._ids: dict = {}  # of numbers and of entries
        self._places: list[Place] = []
        self._place_ids: dict[Place, int] = {}
        self._types: dict[str, np.dtype] = {}  # of arrays
        self._known: list[dict] = [{}]  # expressions that have a variable, by block
        self._count = 0
        self.waiting: dict[str, Callable] = {}  # of arrays that are yet to be set

    def is_large(self, shape: Sequence[int]) -> bool:
        """Whether an array is in memory, and not in variables of its own."""
        return max(shape, default=1) >= LONG or math.prod(shape) >= LARGE

    # --- ids

    def __len__(self) -> int:
        """How many ids there are."""
        return len(self._whats)

    def kinds(self, ids: np.ndarray) -> np.ndarray:
        """NUMBER, VARIABLE, or the index of the place of an entry."""
        return self._kinds[ids]

    def offsets(self, ids: np.ndarray) -> np.ndarray:
        """Where in its place each entry is."""
        return self._offsets[ids]

    def place(self, kind: int) -> Place:
        """The place with this index."""
        return self._places[kind]

    def number(self, i: int) -> np.generic | None:
        """The number, if it is one."""
        return self._whats[i] if self._kinds[i] == NUMBER else None

    def numbers(self, ids: np.ndarray, dtype: np.dtype) -> np.ndarray | None:
        """The numbers, if all are."""
        if (self._kinds[ids] != NUMBER).any():
            return None
        different, where = np.unique(ids, return_inverse=True)
        values = np.array([self._whats[i] for i in different.tolist()], dtype)
        return values[where].reshape(ids.shape)

    def constants(self, x: np.ndarray) -> np.ndarray:
        """The ids of an array of numbers."""
        x = np.asarray(x)
        c_type(x.dtype)
        if x.dtype == bool or not x.size:
            bits = x.astype(np.uint8)
        else:
            bits = np.ascontiguousarray(x).view(f"u{x.itemsize}")  # -0 is not 0
        _, first, where = np.unique(
            bits.reshape(-1), return_index=True, return_inverse=True
        )
        flat = x.reshape(-1)
        ids = [self._constant(flat[k]) for k in first.tolist()]
        return np.array(ids, np.int64)[where].reshape(x.shape)

    def _constant(self, x: Any) -> int:
        return self._interned((x.dtype.str, x.tobytes()), NUMBER, 0, x)

    def variable(self, name: str) -> int:
        """The id of a C variable."""
        return self._new(VARIABLE, 0, name)

    def entries(self, place: Place, offsets: np.ndarray) -> np.ndarray:
        """The ids of entries of an array."""
        kind = self._place_ids.setdefault(place, len(self._places))
        if kind == len(self._places):
            self._places.append(place)
        flat = [
            self._interned((kind, k), kind, k, None) for k in offsets.ravel().tolist()
        ]
        return np.array(flat, np.int64).reshape(offsets.shape)

    def _interned(self, key: tuple, kind: int, offset: int, what: object) -> int:
        if key not in self._ids:
            self._ids[key] = self._new(kind, offset, what)
        return self._ids[key]

    def _new(self, kind: int, offset: int, what: object) -> int:
        i = len(self._whats)
        if i == len(self._kinds):
            self._kinds = np.concatenate([self._kinds, np.zeros_like(self._kinds)])
            self._offsets = np.concatenate(
                [self._offsets, np.zeros_like(self._offsets)]
            )
        self._kinds[i], self._offsets[i] = kind, offset
        self._whats.append(what)
        return i

    # --- names

    def fresh(self, letter: str) -> str:
        """A name that is not taken."""
        self._count += 1
        return f"{letter}{self._count}"

    def argument(self, name: str, dtype: np.dtype, shape: Sequence[int]) -> np.ndarray:
        """The ids of an array that is there from the start."""
        c_type(dtype)
        self._types[name] = dtype
        return self.entries(
            Place(name), np.arange(np.prod(shape, dtype=int)).reshape(shape)
        )

    def array(self, dtype: np.dtype, size: int) -> str:
        """A new array of this thread."""
        c_type(dtype)
        name = self.fresh("m")
        self.arrays[name], self._types[name] = (dtype, size), dtype
        return name

    def table(self, x: np.ndarray) -> str:
        """The name of an array of constants."""
        key = x.dtype.str, x.tobytes()
        if key not in self._table_names:
            name = self._table_names[key] = self.fresh("k")
            self.tables[name], self._types[name] = x.ravel(), x.dtype
        return self._table_names[key]

    # --- lines

    def line(self, text: str, ids: Sequence[int] = (), sets: str | None = None) -> None:
        """A line with operands {0}, {1}, ...; `sets` is what it is good for."""
        self.set_waiting()
        found = [self.operand(i) for i in ids]
        text = text.format(*(name for name, _ in found))
        uses = [name for _, names in found for name in names]
        self.lines.append(Line(sets, text, uses, len(self._known)))

    def operand(self, i: int) -> tuple[str, Sequence[str]]:
        """An id as C writes it, and the names in that."""
        kind = self._kinds[i]
        if kind == NUMBER:
            return literal(self._whats[i]), ()
        if kind == VARIABLE:
            return self._whats[i], (self._whats[i],)
        return self.operand(self.loaded(i))

    def loaded(self, i: int) -> int:
        """An entry as a variable."""
        if self._kinds[i] < 0:
            return i
        key, place = ("entry", i), self._places[self._kinds[i]]
        return self._defined(key, self._types[place.array], *self.entry(i))

    def entry(self, i: int) -> tuple[str, Sequence[str]]:
        """An entry as C writes it, and the names in that."""
        place, offset = self._places[self._kinds[i]], int(self._offsets[i])
        index = [v if s == 1 else f"{s} * {v}" for v, s in place.terms]
        index += [str(offset)] if offset or not index else []
        names = [place.array, *(v for v, _ in place.terms)]
        return f"{place.array}[{' + '.join(index)}]", names

    def defined(self, dtype: np.dtype, expression: str, ids: Sequence[int]) -> int:
        """The variable with the value of an expression of operands {0}, {1}, ..."""
        key = expression, str(dtype), *ids
        known = self._find(key)
        if known is not None:
            return known
        found = [self.operand(i) for i in ids]
        text = expression.format(*(name for name, _ in found))
        return self._defined(key, dtype, text, [n for _, names in found for n in names])

    def _defined(
        self, key: tuple, dtype: np.dtype, text: str, uses: Sequence[str]
    ) -> int:
        known = self._find(key)
        if known is not None:
            return known
        for array in uses:
            if array in self.waiting:
                self.waiting[array]()
        name = self.fresh("v")
        text = f"const {c_type(dtype)} {name} = {text};"
        self.lines.append(Line(name, text, uses, len(self._known)))
        self._known[-1][key] = i = self.variable(name)
        return i

    def _find(self, key: tuple) -> int | None:
        found = (block[key] for block in reversed(self._known) if key in block)
        return next(found, None)

    def store(
        self, array: str, terms: tuple, offset: int, i: int, known: bool = False
    ) -> None:
        """Sets an entry of an array; if `known`, the block reads the value instead."""
        self.set_waiting()
        target = int(self.entries(Place(array, terms), np.array(offset)))
        value, used = self.operand(i)
        if known:
            self._known[-1]["entry", target] = self.loaded(i)
        text, names = self.entry(target)
        sets = array if array in self.arrays else None
        line = Line(sets, f"{text} = {value};", [*names[1:], *used], len(self._known))
        self.lines.append(line)

    @contextmanager
    def block(self, head: str, ids: Sequence[int] = ()) -> Iterator[None]:
        """Lines in braces, whose variables nobody else sees."""
        self.line(head + " {{", ids)
        self._known.append({})
        yield
        self.set_waiting()
        self._known.pop()
        self.line("}}")

    def set_waiting(self) -> None:
        """Print what sets the arrays that are yet to be set."""
        while self.waiting:
            next(iter(self.waiting.values()))()

    @contextmanager
    def loop(self, length: int, reverse: bool = False) -> Iterator[str]:
        """A loop; the name of its counter."""
        i = self.fresh("i")
        upward = f"for (int {i} = 0; {i} < {length}; ++{i})"
        downward = f"for (int {i} = {length - 1}; {i} >= 0; --{i})"
        self.line(ROLLED)
        with self.block(downward if reverse else upward):
            yield i

    def mark(self) -> tuple:
        """What `back` needs to take away all lines from here on."""
        self.set_waiting()
        return len(self.lines), [dict(block) for block in self._known]

    def back(self, mark: tuple) -> None:
        """Take away the lines since a mark; ids and arrays stay."""
        del self.lines[mark[0] :]
        self._known = [dict(block) for block in mark[1]]

    def needed(self, wanted: set[str]) -> list[Line]:
        """The lines without those that nothing needs."""
        wanted, count = set(wanted), -1
        while len(wanted) != count:  # what a loop carries is read before it is set
            count = len(wanted)
            for line in reversed(self.lines):
                if line.sets is None or line.sets in wanted:
                    wanted.update(line.uses)
        found: list[Line] = []
        for line in self.lines:
            if line.sets is None or line.sets in wanted:
                found.append(line)
                if [x.text for x in found[-3::2]] == [ROLLED, "}"]:
                    del found[-3:]  # a loop over nothing
        return found
