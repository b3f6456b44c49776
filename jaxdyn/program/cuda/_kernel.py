"""The text of a kernel: what NVRTC compiles, and a C compiler too with other macros."""

from collections.abc import Sequence

import numpy as np

from jaxdyn.program._jax import ClosedJaxpr
from jaxdyn.program.cuda._arrays import write
from jaxdyn.program.cuda._program import LINES, Printer
from jaxdyn.program.cuda._scalars import Text
from jaxdyn.program.cuda._types import UnknownError, c_type, literal

NAME, BLOCK = "jaxdyn", 128
STATES = "JAXDYN_STATES"  # stands in PTX for the number of states
LOCAL = 131_072  # bytes of a thread's own memory, which a GPU sets aside for all
CONSTANT = 60_000  # bytes of constant memory; more tables are in global memory
MACROS = f"""\
#define KERNEL extern "C" __global__ void __launch_bounds__({BLOCK})
#define STATE (blockIdx.x * {BLOCK} + threadIdx.x)
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


def print_kernel(
    program: ClosedJaxpr, batched: Sequence[bool], limit: int = LINES
) -> str:
    """The kernel that runs a program for all states, with the macros to be defined.

    Its arguments are those of the program and then its results, one row for each
    state where `batched`. The text is the same for any number of states, which the
    macro `COUNT` reads.
    """
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
    has_quotients = any("QUOTIENT" in line.text for line in lines)
    return "\n".join(
        [
            *([FUNCTIONS] if has_quotients else []),
            *_tables(text, used),
            _head(program, batched),
            *_arrays(text, used, direct),
            *("  " * x.depth + x.text for x in lines),
            "}",
            "",
        ]
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


def _head(program: ClosedJaxpr, batched: Sequence[bool]) -> str:
    """The opening lines, after which all arguments are those of one state."""
    given = [
        (f"a{k}", a, b, "const ")
        for k, (a, b) in enumerate(zip(program.in_avals, batched, strict=True))
    ]
    given += [(f"r{k}", a, True, "") for k, a in enumerate(program.out_avals)]
    own = [
        f"{const}{c_type(a.dtype)} *__restrict__ {name}" for name, a, _, const in given
    ]
    lines = [f"KERNEL {NAME}({', '.join(own)}) {{", "  const long long state = STATE;"]
    lines += ["  long long count;", "  COUNT(count);"]
    lines.append("  if (state >= count) return;")
    lines += [
        f"  {name} += state * {a.size};"
        for name, a, is_batched, _ in given
        if is_batched
    ]
    return "\n".join(lines)


def _arrays(text: Text, used: set, direct: dict[str, str]) -> list[str]:
    own = [text.arrays[name] for name in text.arrays if name in used - direct.keys()]
    memory = sum(dtype.itemsize * size for dtype, size in own)
    if memory > LOCAL:
        raise UnknownError(
            f"it needs {memory} bytes of memory for each thread, more than {LOCAL}; "
            "the gradient of a long rollout needs less with `every`"
        )
    lines = []
    for name, (dtype, size) in text.arrays.items():
        if name in direct:
            lines.append(f"  {c_type(dtype)} *const {name} = {direct[name]};")
        elif name in used:
            lines.append(f"  {c_type(dtype)} {name}[{size}];")
    return lines


def _tables(text: Text, used: set) -> list[str]:
    lines, room = [], CONSTANT
    for name, x in text.tables.items():
        if name in used:
            room -= x.nbytes
            kind = "FAST_TABLE" if room >= 0 else "TABLE"
            numbers = ", ".join(literal(v) for v in x)
            lines.append(f"{kind} {c_type(x.dtype)} {name}[{x.size}] = {{{numbers}}};")
    return lines
