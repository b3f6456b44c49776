"""The text of a kernel: what NVRTC compiles, and a C compiler too with other macros."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxdyn.program._jax import ClosedJaxpr
from jaxdyn.program.cuda._arrays import write
from jaxdyn.program.cuda._program import LINES, Printer
from jaxdyn.program.cuda._scalars import Text
from jaxdyn.program.cuda._types import c_type, literal

NAME, BLOCK = "jaxdyn", 128
STATES = "JAXDYN_STATES"  # stands in PTX for the number of states
LOCAL = 32_768  # bytes of a thread's own memory, which a GPU sets aside for all
CONSTANT = 60_000  # bytes of constant memory; more tables are in global memory
MACROS = f"""\
#define KERNEL extern "C" __global__ void __launch_bounds__({BLOCK})
#define STATE (blockIdx.x * {BLOCK} + threadIdx.x)
#define THREADS ((long long)gridDim.x * {BLOCK})
#define COUNT(n) asm("mov.s64 %0, {STATES};" : "=l"(n))
#define FUNCTION __device__ __forceinline__
#define FAST_TABLE __constant__ const
#define TABLE __device__ const
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
"""
# x / y with the bits of a division, from r = 1 / y: one correction of x * r where that
# is a number (P. Markstein, IBM J. Res. Dev. 34, 1990)
FUNCTIONS = "".join(
    f"""\
static FUNCTION {t} QUOTIENT{f}({t} x, {t} y, {t} r) {{
  const {t} q = x * r, error = fma{f}(-q, y, x);
  return error == error ? fma{f}(error, r, q) : q;
}}
"""
    for t, f in (("float", "f"), ("double", ""))
)


@dataclass(frozen=True)
class Kernel:
    """The text of a kernel, with the macros to be defined.

    Its arguments are those of the program and then its results, one row for each
    state where they are batched. The last one are bytes that threads share out, `room`
    for each, if that is not zero. The text is the same for any number of states, which
    the macro `COUNT` reads.
    """

    text: str
    room: int


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
    own = {k: x for k, x in text.arrays.items() if k in used - direct.keys()}
    outside = _outside(own)
    room = sum(dtype.itemsize * size for dtype, size in outside.values())
    body = "\n".join("    " + "  " * x.depth + x.text for x in lines)
    for name in outside:
        body = re.sub(rf"\b{name}\[([^]]*)\]", rf"{name}[(\1) * threads]", body)
    parts = [
        FUNCTIONS if "QUOTIENT" in body else "",
        *_tables(text, used),
        _head(program, batched, bool(room)),
        *_pointers(outside),
        *(
            f"    {c_type(t)} {k}[{n}];"
            for k, (t, n) in own.items()
            if k not in outside
        ),
        *(
            f"    {c_type(text.arrays[k][0])} *const {k} = {x};"
            for k, x in direct.items()
        ),
        body,
        "  }\n}\n",
    ]
    return Kernel("\n".join(filter(None, parts)), room)


Arrays = dict[str, tuple[np.dtype, int]]  # types and sizes by name


def _outside(own: Arrays) -> Arrays:
    """The arrays that a thread has outside of its own memory: the largest.

    Those with the largest entries come first, so that all are aligned.
    """
    sizes = {k: dtype.itemsize * size for k, (dtype, size) in own.items()}
    rest, found = sum(sizes.values()), []
    for k in sorted(sizes, key=lambda k: -sizes[k]):
        if rest <= LOCAL:
            break
        rest -= sizes[k]
        found.append(k)
    return {k: own[k] for k in sorted(found, key=lambda k: -own[k][0].itemsize)}


def _pointers(outside: Arrays) -> list[str]:
    """Arrays in the last argument: entries of all threads side by side."""
    lines, start = [], 0
    for name, (dtype, size) in outside.items():
        kind = c_type(dtype)
        lines.append(
            f"    {kind} *const {name} = ({kind} *)(own + {start} * threads) + thread;"
        )
        start += dtype.itemsize * size
    return lines


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


def _head(program: ClosedJaxpr, batched: Sequence[bool], has_room: bool) -> str:
    """The opening lines, after which all arguments are those of one state."""
    pointers, lines = [], []
    groups = (
        ("a", program.in_avals, batched, "const "),
        ("r", program.out_avals, [True] * len(program.out_avals), ""),
    )
    for letter, types, flags, const in groups:
        for k, (a, b) in enumerate(zip(types, flags, strict=True)):
            kind = f"{const}{c_type(a.dtype)}"
            pointers.append(f"{kind} *__restrict__ all_{letter}{k}")
            shift = f" + state * {a.size}" if b else ""
            lines.append(f"    {kind} *const {letter}{k} = all_{letter}{k}{shift};")
    own = ["char *__restrict__ own"] if has_room else []
    step = "threads" if has_room else "count"
    return "\n".join(
        [
            f"KERNEL {NAME}({', '.join(pointers + own)}) {{",
            "  const long long thread = STATE, threads = THREADS;",
            "  long long count;",
            "  COUNT(count);",
            f"  for (long long state = thread; state < count; state += {step}) {{",
            *lines,
        ]
    )


def _tables(text: Text, used: set) -> list[str]:
    lines, room = [], CONSTANT
    for name, x in text.tables.items():
        if name in used:
            room -= x.nbytes
            kind = "FAST_TABLE" if room >= 0 else "TABLE"
            numbers = ", ".join(literal(v) for v in x)
            lines.append(f"{kind} {c_type(x.dtype)} {name}[{x.size}] = {{{numbers}}};")
    return lines
