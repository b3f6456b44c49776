"""The text of a kernel: what NVRTC compiles, and a C compiler too with other macros."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxdyn.program._jax import ClosedJaxpr
from jaxdyn.program.cuda._arrays import write
from jaxdyn.program.cuda._program import LINES, Printer
from jaxdyn.program.cuda._scalars import Line, Text
from jaxdyn.program.cuda._types import c_type, literal

NAME, BLOCK = "jaxdyn", 128
STATES = "JAXDYN_STATES"  # stands in PTX for the number of states
CONSTANT = 60_000  # bytes of constant memory; more tables are in global memory
MACROS = f"""\
#define KERNEL extern "C" __global__ void __launch_bounds__({BLOCK})
#define THREAD (blockIdx.x * {BLOCK}ll + threadIdx.x)
#define THREADS (gridDim.x * {BLOCK}ll)
#define COUNT(n) asm("mov.s64 %0, {STATES};" : "=l"(n))
#define FUNCTION static __device__ __forceinline__
#define SEPARATE static __device__ __noinline__
#define FAST_TABLE __constant__ const
#define TABLE __device__ const
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
"""
# x / y with the bits of a division, from r = 1 / y: one correction of x * r where that
# is a number (P. Markstein, IBM J. Res. Dev. 34, 1990)
FUNCTIONS = "".join(
    f"""\
FUNCTION {t} QUOTIENT{f}({t} x, {t} y, {t} r) {{
  const {t} q = x * r, error = fma{f}(-q, y, x);
  return error == error ? fma{f}(error, r, q) : q;
}}
"""
    for t, f in (("float", "f"), ("double", ""))
)


@dataclass(frozen=True)
class Source:
    """The text of a kernel, with the macros to be defined.

    Its arguments are those of the program and then its results, one row for each
    state where they are batched. The last one are bytes that threads share out, `room`
    for each, if that is not zero. The text is the same for any number of states, which
    the macro `COUNT` reads.
    """

    text: str
    room: int


@dataclass(frozen=True)
class Kernel:
    """A program as lines of C for one state.

    Attributes:
        program, batched: what is printed, and which arguments have a row for each
            state.
        tables: arrays of constants.
        arrays: (type, entries) of those that a thread needs, by name.
        results: where arrays are that are in the results.
        lines: the rest.
    """

    program: ClosedJaxpr
    batched: Sequence[bool]
    tables: dict[str, np.ndarray]
    arrays: dict[str, tuple[np.dtype, int]]
    results: dict[str, tuple[np.dtype, str]]
    lines: list[Line]

    def source(self, outside: int = 0) -> Source:
        """The text, with at least so many bytes of arrays outside a thread's memory.

        These are the largest, or all.
        """
        far = self._largest(outside)
        body = "\n".join("  " * x.depth + x.text for x in self.lines)
        own = [
            f"  {c_type(dtype)} {name}[{size}];"
            for name, (dtype, size) in self.arrays.items()
            if name not in far
        ]
        own += [
            f"  {c_type(t)} *const {k} = {at};" for k, (t, at) in self.results.items()
        ]
        pointers, places, room = [], [], 0
        for name in far:  # entries of the threads of a block are side by side
            body = re.sub(rf"\b{name}\[([^]]*)\]", rf"{name}[(\1) * {BLOCK}]", body)
            dtype, size = self.arrays[name]
            pointers.append(f"{c_type(dtype)} *__restrict__ {name}")
            places.append(f"({c_type(dtype)} *)(own + {room * BLOCK}) + lane")
            room += dtype.itemsize * size
        functions = FUNCTIONS if "QUOTIENT" in body else ""
        head, foot = self._frame(pointers, places, room)
        parts = [functions, *_tables(self.tables), head, *own, body, foot]
        return Source("\n".join(filter(None, parts)), room)

    def _largest(self, room: int) -> list[str]:
        """Arrays of so many bytes, largest entries first so that all are aligned."""
        sizes = {k: dtype.itemsize * size for k, (dtype, size) in self.arrays.items()}
        found = []
        for name in sorted(sizes, key=lambda k: -sizes[k]):
            if room <= 0:
                break
            room -= sizes[name]
            found.append(name)
        return sorted(found, key=lambda k: -self.arrays[k][0].itemsize)

    def _frame(
        self, pointers: Sequence[str], places: Sequence[str], room: int
    ) -> tuple[str, str]:
        """What stands before the arrays and lines of one state, and what after them.

        Lines of one state in a loop over states are a function that is called, with a
        pointer for each array outside: compilers make little of a loop with everything
        in it, and need long where arrays might overlap.
        """
        given, rows = [], []
        groups = (
            ("a", self.program.in_avals, self.batched, "const "),
            ("r", self.program.out_avals, [True] * len(self.program.out_avals), ""),
        )
        for letter, types, flags, const in groups:
            for k, (a, b) in enumerate(zip(types, flags, strict=True)):
                given.append(f"{const}{c_type(a.dtype)} *__restrict__ {letter}{k}")
                rows.append(f"{letter}{k} + state * {a.size}" if b else f"{letter}{k}")
        kind = "SEPARATE" if room else "FUNCTION"
        head = f"{kind} void one_state({', '.join([*given, *pointers])}) {{"
        lines = ["const long long thread = THREAD;", "long long state = thread, count;"]
        lines += ["COUNT(count);"]
        if room:
            given.append("char *__restrict__ own")
            lines += [f"own += thread / {BLOCK} * {room * BLOCK};"]
            lines += [f"const int lane = thread % {BLOCK};"]
            lines += ["for (; state < count; state += THREADS)"]
        else:
            lines += ["if (state < count)"]
        lines += [f"  one_state({', '.join([*rows, *places])});"]
        inside = "\n  ".join(lines)
        return head, f"}}\nKERNEL {NAME}({', '.join(given)}) {{\n  {inside}\n}}\n"


def print_kernel(
    program: ClosedJaxpr, batched: Sequence[bool], limit: int = LINES
) -> Kernel:
    """The kernel that runs a program for all states."""
    text = Text(limit)
    inputs = program.in_avals
    args = [text.argument(f"a{k}", a.dtype, a.shape) for k, a in enumerate(inputs)]
    out = Printer(text).run(program, args)
    text.set_waiting()
    direct: dict[str, str] = {}
    for k, (x, a) in enumerate(zip(out, program.out_avals, strict=True)):
        text.argument(f"r{k}", a.dtype, a.shape)
        _result(text, f"r{k}", a.dtype, x.ravel(), direct)
    lines = text.needed(set(direct))
    used = {name for line in lines for name in line.uses} | {
        line.sets for line in lines if line.sets
    }
    return Kernel(
        program,
        batched,
        {k: x for k, x in text.tables.items() if k in used},
        {k: x for k, x in text.arrays.items() if k in used - direct.keys()},
        {k: (text.arrays[k][0], place) for k, place in direct.items()},
        lines,
    )


def _result(
    text: Text, name: str, dtype: np.dtype, ids: np.ndarray, direct: dict[str, str]
) -> None:
    """Writes a result; an array of the thread that is all in it, at once."""
    kinds, offsets = text.kinds(ids), text.offsets(ids)
    rest = np.ones(len(ids), bool)
    for kind in np.unique(kinds[kinds >= 0]).tolist():
        place, where = text.place(kind), np.flatnonzero(kinds == kind)
        if place.terms or place.array not in text.arrays or place.array in direct:
            continue
        shift = where[0] - offsets[where[0]]
        is_whole = len(where) == text.arrays[place.array][1]
        if is_whole and (where == offsets[where] + shift).all():
            direct[place.array] = f"{name} + {shift}"
            rest[where] = False
    for part in np.split(np.arange(len(ids)), np.flatnonzero(np.diff(rest)) + 1):
        if len(part) and rest[part[0]]:
            write(text, dtype, name, ids[part], int(part[0]))


def _tables(tables: dict[str, np.ndarray]) -> list[str]:
    lines, room = [], CONSTANT
    for name, x in tables.items():
        room -= x.nbytes
        kind = "FAST_TABLE" if room >= 0 else "TABLE"
        numbers = ", ".join(literal(v) for v in x)
        lines.append(f"{kind} {c_type(x.dtype)} {name}[{x.size}] = {{{numbers}}};")
    return lines
