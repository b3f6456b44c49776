"""Programs for the CPU that XLA compiles into one function.

XLA compiles a call with `TAG` into one function, loops included. The tag is internal to
XLA, so the first program of a process tries it on a small one (`fast_path`).
"""

import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial
from math import prod

import jax
import jax.numpy as jnp
import jaxlib.version
import numpy as np
from jax import lax
from jax.typing import ArrayLike
from jaxtyping import Array

from jaxdyn.program._jax import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    jaxpr_as_fun,
    set_xla_metadata,
)
from jaxdyn.program._linear_map import apply
from jaxdyn.program._states import CALLS, LIMIT, States, count, programs

UNROLLED = 3000  # operations of a loop that is written out where kernels are launched
PRODUCT = 512  # multiplications of a product that is written out
LONG = 10_000  # operations of a program in which none is
TAG = {"xla_cpu_small_call": "true", "inlineable": "false"}
_inside: ContextVar[bool] = ContextVar("inside", default=False)


def in_kernel() -> bool:
    """Whether the program of a kernel is traced."""
    return _inside.get()


@contextmanager
def plain_inside() -> Iterator[None]:
    """Trace kernels as plain functions."""
    token = _inside.set(True)
    try:
        yield
    finally:
        _inside.reset(token)


def as_written(
    *args: ArrayLike, jaxpr: ClosedJaxpr, size: int | None, batched: Sequence[bool]
) -> Sequence[ArrayLike]:
    """The function in operations of JAX, for all states."""
    function = jaxpr_as_fun(jaxpr)
    if size is None:
        return function(*args)
    axes = [0 if b else None for b in batched]
    return jax.vmap(lambda args: function(*args), (axes,), axis_size=size)(list(args))


def _for_one_call(
    *args: ArrayLike, jaxpr: ClosedJaxpr, size: int | None, batched: Sequence[bool]
) -> Sequence[ArrayLike]:
    """The same in operations that XLA leaves in one function."""
    own = {"jaxdyn_kernel": as_written, "linear_map": apply, "dot_general": _product}
    axes = [0 if size and b else None for b in batched]
    with plain_inside():
        return States(size, LIMIT // (size or 1), own).run(jaxpr, args, axes)


def _product(
    a: Array, b: Array, *, dimension_numbers: tuple, preferred_element_type=None, **_
) -> Array:
    """A product of small matrices, which XLA would compute in a loop of its own."""
    along, both = dimension_numbers
    own = [
        [k for k in range(x.ndim) if k not in (*s, *t)]
        for x, s, t in zip((a, b), along, both, strict=True)
    ]
    a, b = (
        lax.transpose(x, (*t, *free, *s))
        for x, s, t, free in zip((a, b), along, both, own, strict=True)
    )
    first, last = len(both[0]), len(along[0])
    a = lax.expand_dims(a, range(a.ndim - last, a.ndim - last + len(own[1])))
    b = lax.expand_dims(b, range(first, first + len(own[0])))
    found = (a * b).sum(range(-last, 0))
    return found.astype(preferred_element_type or found.dtype)


def in_few_kernels(
    *args: ArrayLike, jaxpr: ClosedJaxpr, size: int | None, batched: Sequence[bool]
) -> Sequence[ArrayLike]:
    """The function for all states with its short loops written out.

    On a GPU each step of a loop is some kernels of its own, one for each array that it
    keeps; of steps that are written out XLA makes one or two.
    """
    axes = [0 if size and b else None for b in batched]
    all_states = States(size, sys.maxsize, {"linear_map": apply}, UNROLLED)
    return all_states.run(jaxpr, args, axes)


def in_chunks(
    *args: Array, jaxpr: ClosedJaxpr, size: int | None, batched: Sequence[bool]
) -> Sequence[ArrayLike]:
    """One tagged call for one state; a loop over chunks of states for a batch."""
    if size == 0 or not fits(jaxpr) or fast_path():
        return as_written(*args, jaxpr=jaxpr, size=size, batched=batched)
    states = size or 1
    chunks = -(-states // _chunk(jaxpr))
    length = -(-states // chunks)
    shape = () if size is None else (length,)
    piece = partial(_for_one_call, jaxpr=jaxpr, size=size and length, batched=batched)
    types = [jax.ShapeDtypeStruct((*shape, *a.shape), a.dtype) for a in jaxpr.out_avals]
    if chunks == 1:
        return one_call(piece, args, types)
    rows = [k for k, b in enumerate(batched) if b]
    missing = chunks * length - states

    def split(x):
        x = jnp.concatenate([x, x[:missing]]) if missing else x
        return x.reshape(chunks, length, *x.shape[1:])

    def one(chunk):
        return one_call(piece, filled(args, rows, chunk), types)

    out = lax.map(one, [split(args[k]) for k in rows])
    return [x.reshape(-1, *x.shape[2:])[:size] for x in out]


def one_call(
    function: Callable, args: Sequence[Array], results: Sequence[jax.ShapeDtypeStruct]
) -> Sequence[ArrayLike]:
    """A call that XLA compiles into one function, whose `results` have given shapes.

    XLA cannot do so if an argument turns out not to be needed: one number of each is
    added up and comes back behind a result. Nor can it if there is only one result, as
    it may want to compute that by several threads: the sum comes back by itself too.
    """
    floats = [k for k, x in enumerate(results) if jnp.issubdtype(x.dtype, jnp.floating)]
    place = min(floats, key=lambda k: results[k].size)
    last = results[place]
    full = [k for k, x in enumerate(args) if x.size]
    specs = [(x.shape if x.size == 0 else (0,), x.dtype) for x in args]

    def inner(*given):
        empty = [jnp.zeros(*spec) for spec in specs]
        out = list(function(*filled(empty, full, given)))
        seen = [lax.slice(x.ravel(), (0,), (1,)).astype(last.dtype) for x in given]
        total = sum(seen, jnp.zeros(1, last.dtype))
        out[place] = jnp.concatenate([out[place].ravel(), total])
        return [*out, total]

    # without the barrier XLA moves constants inside, and drops the arguments
    given = lax.optimization_barrier([args[k] for k in full])
    tagged = set_xla_metadata(jax.jit(inner)(*given), **TAG)
    out = tagged[:-1]  # type: ignore
    out[place] = out[place][: last.size].reshape(last.shape)
    return out


def _chunk(jaxpr: ClosedJaxpr) -> int:
    """How many states at a time: enough for SIMD, few enough to stay in cache.

    Measured for chains of 7 to 1000 joints: 64 is best for less than some twenty
    joints, 16 for several hundred.
    """
    numbers = sum(a.size for a in (*jaxpr.in_avals, *jaxpr.out_avals))
    return 64 if numbers < 2000 else 32 if numbers < 20_000 else 16


def fits(jaxpr: ClosedJaxpr) -> bool:
    """Whether XLA can compile all operations into one function, in a minute or less.

    The rollout of a quadruped on a floor of springs has 15 000 operations: as one
    function it took 224 s to compile instead of 60, and 117 us a step instead of 280.
    """
    names = operations(jaxpr.jaxpr)
    floats = any(jnp.issubdtype(a.dtype, jnp.floating) for a in jaxpr.out_avals)
    is_long = "small product" in names and count(jaxpr.jaxpr, False) > LONG
    return floats and names <= OPERATIONS and not is_long


@cache
def fast_path() -> str:
    """Why programs are compiled as written on the CPU; empty where they need not be.

    A small program with the tag must become one function and have the right values.
    Tried once in a process; a failure is one warning.
    """
    with ThreadPoolExecutor(1) as pool:  # outside of what the caller traces or sets
        reason = pool.submit(_trial).result()
    if reason:
        warn_slow(reason)
    return reason


def warn_slow(reason: str) -> None:
    """Warn that programs are compiled as written."""
    warnings.warn(
        f"jaxdyn's programs are several times slower than they could be on this CPU, "
        f"with the same results: {reason} (jaxlib {jaxlib.version.__version__}). "
        "Another release of jax may help: `jaxdyn info --check` tests one, "
        "docs/installation.md lists those tested.",
        RuntimeWarning,
        stacklevel=2,
    )


def warn_lowering(error: Exception) -> None:
    """Warn that a program was compiled as written because of an error."""
    warn_slow(f"a program could not be lowered: {error!r}")


def trial_walk(x: ArrayLike, y: ArrayLike) -> list[ArrayLike]:
    """A small program with a loop, for trials."""

    def step(c, row):
        c = jnp.sin(c) * row + y
        return c, c - row

    return list(lax.scan(step, y, x))


TRIAL = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)  # x; its row 1 is y


def trial_error(last: ArrayLike, rows: ArrayLike) -> str:
    """What is wrong with the results of `trial_walk`; empty if nothing is."""
    c, expected = TRIAL[1], []
    for row in TRIAL:
        c = np.sin(c) * row + TRIAL[1]
        expected.append(c - row)
    error = max(np.abs(last - c).max(), np.abs(rows - np.array(expected)).max())
    return "" if error < 1e-5 else f"a trial program was wrong by {error:.1e}"


def _trial() -> str:
    """What is wrong with a small program; empty if nothing is."""
    args = (TRIAL, TRIAL[1])
    args = jax.device_put(args, jax.local_devices(backend="cpu")[0])
    try:
        results = jax.eval_shape(lambda x, y: (y, x), *args)
        program = jax.jit(lambda *args: one_call(trial_walk, args, results))
        made = program.lower(*args).compile()
        text = made.runtime_executable().serialize()  # type: ignore
        last, rows = jax.device_get(made(*args))
    except Exception as error:  # whatever a release of JAX has changed
        return f"a trial program failed with {type(error).__name__}: {error}"
    if not re.search(rb"inner[\w.]*_kernel", text):  # the name of its function
        return "XLA did not compile a trial program into one function"
    return trial_error(last, rows)


def operations(jaxpr: Jaxpr) -> set[str]:
    """The names of all operations of a program, its small products as such."""
    names = set()
    for eqn in jaxpr.eqns:
        names.add("small product" if _is_small(eqn) else eqn.primitive.name)
        for inner in programs(eqn.params):
            names |= operations(inner)
    return names


def _is_small(eqn: JaxprEqn) -> bool:
    if eqn.primitive.name != "dot_general":
        return False
    (along, _), _ = eqn.params["dimension_numbers"]
    (a, _), (result,) = ([v.aval for v in x] for x in (eqn.invars, eqn.outvars))
    return result.size * prod(a.shape[k] for k in along) <= PRODUCT  # type: ignore


OPERATIONS = (
    {"small product"}
    | CALLS
    | frozenset(
        """
    add add_any sub mul div neg sign abs max min round floor ceil square sqrt rsqrt cbrt
    pow integer_pow exp exp2 expm1 log log1p sin cos tan asin acos atan atan2 sinh cosh
    tanh eq ne lt le gt ge and or not xor is_finite select_n clamp convert_element_type
    broadcast_in_dim reshape transpose squeeze expand_dims slice pad rev concatenate
    split stack unstack iota copy copy_p empty gather sum_rows dynamic_slice
    dynamic_update_slice reduce_sum reduce_max reduce_min reduce_prod reduce_and
    reduce_or scan while cond custom_linear_solve stop_gradient jaxdyn_kernel linear_map
    """.split()
    )
)


def filled(values: Sequence, places: Sequence[int], new: Sequence) -> list:
    """The values with new ones at some places."""
    result = list(values)
    for k, x in zip(places, new, strict=True):
        result[k] = x
    return result
