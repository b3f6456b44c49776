"""One kernel for a whole algorithm, and batches in pieces that stay in cache.

XLA runs a program on the CPU as a sequence of small kernels, some hundred for a walk
over a robot. For one state their dispatch takes most of the time; for a large batch
each of them streams its arrays through memory. A `compiled` function is on the CPU

- one compiled function, its loops included, and
- under `jax.vmap` applied to 16 to 64 states at a time, all of whose numbers stay in
  the first levels of cache.

On other devices, and where it holds an operation that such a function cannot, it is
compiled as written. Its values are the same but for rounding. `jit`, `vmap` and
derivatives of both modes and any order compose with it; its derivatives are kernels
again.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer, eval_jaxpr
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P
from jax.typing import ArrayLike
from jaxtyping import Array, PyTree

from jaxdyn.program._cpu import (
    as_written,
    filled,
    fits,
    in_chunks,
    in_few_kernels,
    operations,
    plain_inside,
    warn_lowering,
)
from jaxdyn.program._gather import sum_rows
from jaxdyn.program._jax import (
    INLINE,
    Argument,
    Axes,
    ClosedJaxpr,
    ShapedArray,
    Tangent,
    UndefinedPrimal,
    Value,
    Zero,
    alike,
    differing_as,
    full,
    jaxpr_as_fun,
    lower_kernel,
    needed,
    primitive,
    type_of,
    zero_tangent,
)
from jaxdyn.program._linear_map import apply
from jaxdyn.program.cuda import one_launch, warn_plain


def traced(
    function: Callable, args: Sequence[ArrayLike], batched: Sequence[bool], flat: bool
) -> tuple[ClosedJaxpr, PyTree[jax.ShapeDtypeStruct]]:
    """The program of one state, and the structure of its results.

    `batched` says which arguments have one row for each state. If `flat`, there are no
    kernels inside where the program can be one itself; otherwise derivatives of those
    inside compute their values anew, and a loop keeps their arguments alone.
    """
    specs = [
        jax.ShapeDtypeStruct(jnp.shape(x)[int(b) :], jnp.result_type(x))
        for x, b in zip(args, batched, strict=True)
    ]
    if flat:
        with plain_inside():
            program = jax.make_jaxpr(function, return_shape=True)(*specs)
        if fits(program[0]):
            return program
    anew = jax.make_jaxpr(lambda *args: function(*args), return_shape=True)
    return anew(*specs)  # JAX has the first program of `function` in its cache


def bind(
    program: tuple[ClosedJaxpr, PyTree[jax.ShapeDtypeStruct]],
    args: Sequence[ArrayLike],
    size: int | None,
    batched: Sequence[bool],
) -> PyTree[Array]:
    """The results of a program for all states; arguments it needs not are left out.

    `size` is the number of states, None for one without a batch.
    """
    closed, types = program
    closed, outer = _outer_values(closed)
    args, batched = [*outer, *args], [False] * len(outer) + list(batched)
    pruned, kept = needed(closed)
    arrays = alike([jnp.asarray(x) for x in args])
    given, flags = [arrays[k] for k in kept], tuple(batched[k] for k in kept)
    states = size if any(flags) else None
    out = kernel_p.bind(*given, jaxpr=pruned, size=states, batched=flags)
    if size is not None and states is None:  # the same for all states
        out = [jnp.broadcast_to(x, (size, *x.shape)) for x in out]
    return jax.tree.unflatten(jax.tree.structure(types), out)


def _outer_values(program: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Tracer]]:
    """The program with the traced values that it closes over as first arguments."""
    places = [k for k, c in enumerate(program.consts) if isinstance(c, Tracer)]
    if not places:
        return program, []
    outer, count = [program.consts[k] for k in places], len(places)

    def function(*args):
        consts = filled(program.consts, places, args[:count])
        return eval_jaxpr(program.jaxpr, consts, *args[count:])

    specs = [
        jax.ShapeDtypeStruct(x.shape, x.dtype) for x in (*outer, *program.in_avals)
    ]
    return jax.make_jaxpr(function)(*specs), outer


def _is_flat(program: ClosedJaxpr) -> bool:
    return fits(program) and "jaxdyn_kernel" not in operations(program.jaxpr)


def _types(
    *args: ShapedArray, jaxpr: ClosedJaxpr, size: int | None, batched: Sequence[bool]
) -> Sequence[ShapedArray]:
    rows = () if size is None else (size,)
    results = [a.update(shape=(*rows, *a.shape)) for a in jaxpr.out_avals]
    return differing_as(results, args)


def _batch(
    args: Sequence[Value],
    dims: Axes,
    *,
    jaxpr: ClosedJaxpr,
    size: int | None,
    batched: Sequence[bool],
) -> tuple[list[Value], list[int]]:
    """A batch of batches is one batch of all their states.

    Each device runs its own part of a batch that is split over explicit axes.
    """
    if explicit := _explicit_axes(args, dims):
        mesh, names = explicit
        own = [P() if d is None else P(*[None] * d, names) for d in dims]

        def part(*args):
            return _batch(args, dims, jaxpr=jaxpr, size=size, batched=batched)[0]

        # unchecked, as the results are made of arguments that differ and that do not
        split: Any = jax.shard_map(
            part, mesh=mesh, in_specs=tuple(own), out_specs=P(names), check_vma=False
        )
        try:
            out = split(*args)
        except ValueError as error:  # before JAX 0.12: no shard_map under such a vmap
            raise ValueError(
                f"a batch is split over the explicit axes {names} of a mesh, which "
                "this release of JAX cannot: use jaxdyn.batched(..., mesh=mesh), JAX "
                "0.12, or a mesh with axis_types=(AxisType.Auto, ...)."
            ) from error
        return list(out), [0] * len(out)
    pairs = list(zip(args, dims, strict=True))
    outer = next(x.shape[d] for x, d in pairs if d is not None)

    def merged(x, d, b):
        x = x if d is None else jnp.moveaxis(x, d, 0)
        if size is None or not (b or d is not None):
            return x
        if d is None:
            x = jnp.broadcast_to(x, (outer, *x.shape))
        elif not b:
            x = jnp.broadcast_to(x[:, None], (outer, size, *x.shape[1:]))
        return x.reshape(outer * size, *x.shape[2:])

    rows = [merged(x, d, b) for (x, d), b in zip(pairs, batched, strict=True)]
    flags = tuple(b or d is not None for d, b in zip(dims, batched, strict=True))
    total = outer * (1 if size is None else size)
    out = kernel_p.bind(*rows, jaxpr=jaxpr, size=total, batched=flags)
    if size is not None:
        out = [x.reshape(outer, size, *x.shape[1:]) for x in out]
    return out, [0] * len(out)


def _explicit_axes(
    args: Sequence[Value], dims: Axes
) -> tuple[AbstractMesh, Any] | None:
    """The mesh and the axes of it that explicitly split a batch.

    Raises a `ValueError` for arrays that are split along another axis: how results are
    split would have to follow from that for every operation.
    """
    found = None
    for x, d in zip(args, dims, strict=True):
        sharding = jax.typeof(x).sharding
        split = [k for k, name in enumerate(sharding.spec) if name is not None]
        if not sharding.mesh.explicit_axes or not split:
            continue
        if split != [d]:
            raise ValueError(
                f"an array of a batch is split as {sharding.spec} over the explicit "
                f"axes {sharding.mesh.explicit_axes} of a mesh, expected along the "
                f"states alone, its axis {d}: use jax.sharding.reshard, or make the "
                "mesh with axis_types=(AxisType.Auto, ...)."
            )
        found = sharding.mesh, sharding.spec[d]
    return found


def _jvp(
    primals: Sequence[Value],
    tangents: Sequence[Tangent],
    *,
    jaxpr: ClosedJaxpr,
    size: int | None,
    batched: Sequence[bool],
) -> tuple[list[Value], list[Tangent]]:
    """The values, and a second kernel for the tangents.

    That kernel computes anew what it needs of the values: in cache this costs less than
    to store it and read it back, and a long simulation stores nothing but its states.
    Where the program cannot be one function, nor can its derivatives: those of all
    states together then share its values, and sums over states are sums in each step.
    """
    moving = tuple(k for k, t in enumerate(tangents) if not isinstance(t, Zero))
    moved = [tangents[k] for k in moving]
    options: Any = dict(jaxpr=jaxpr, size=size, batched=tuple(batched))
    smooth = [jnp.issubdtype(a.dtype, jnp.inexact) for a in jaxpr.out_avals]
    if fits(jaxpr):
        out = kernel_p.bind(*primals, **options)
        slopes = iter(_slopes([*primals, *moved], **options, places=moving))
    else:

        def of_moving(*some):
            return _plain(*filled(primals, moving, some), **options)

        out, found = jax.jvp(of_moving, [primals[k] for k in moving], moved)
        slopes = iter([t for t, s in zip(found, smooth, strict=True) if s])
    none = [zero_tangent(x) for x in out]
    return out, [next(slopes) if s else z for z, s in zip(none, smooth, strict=True)]


# solvers trace the derivatives of one step many times: JAX keeps these programs
OPTIONS = "jaxpr", "size", "batched"
_derivative = partial(jax.jit, static_argnames=(*OPTIONS, "places"), inline=INLINE)
_plain = jax.jit(as_written, static_argnames=OPTIONS, inline=INLINE)


@_derivative
def _slopes(
    args: Sequence[Value],
    *,
    jaxpr: ClosedJaxpr,
    size: int | None,
    batched: tuple[bool, ...],
    places: tuple[int, ...],
) -> Sequence[Value]:
    """The tangents of the smooth results, by all arguments and the tangents of some."""
    smooth = [jnp.issubdtype(a.dtype, jnp.inexact) for a in jaxpr.out_avals]
    function, count = jaxpr_as_fun(jaxpr), len(batched)

    def slope(*args):
        primals, moved = args[:count], args[count:]

        def of_moving(*some):
            out = function(*filled(primals, places, some))
            return [x for x, s in zip(out, smooth, strict=True) if s]

        return jax.jvp(of_moving, tuple(primals[k] for k in places), moved)[1]

    flags = [*batched, *(batched[k] for k in places)]
    return bind(traced(slope, args, flags, _is_flat(jaxpr)), args, size, flags)


def _transpose(
    cts: Sequence[Tangent],
    *args: Argument,
    jaxpr: ClosedJaxpr,
    size: int | None,
    batched: Sequence[bool],
) -> list[Value | None]:
    """The transpose of the map of the undefined arguments, as a kernel.

    Where the program cannot be one function the map of all states is transposed, so
    that sums over states are sums in each step.
    """
    linear = [k for k, x in enumerate(args) if isinstance(x, UndefinedPrimal)]
    given = tuple(k for k, ct in enumerate(cts) if not isinstance(ct, Zero))
    values = [x for x in args if not isinstance(x, UndefinedPrimal)]
    values += [ct for ct in cts if not isinstance(ct, Zero)]
    options: Any = dict(jaxpr=jaxpr, size=size, batched=tuple(batched))
    if not fits(jaxpr):
        known = [k for k in range(len(args)) if k not in linear]
        own = filled([None] * len(args), known, values[: len(known)])

        def of_linear(*x):
            return _plain(*filled(own, linear, x), **options)

        pull = jax.linear_transpose(of_linear, *(type_of(args[k]) for k in linear))
        return filled([None] * len(args), linear, pull(list(map(full, cts))))
    pulled = _pulled(values, **options, places=given, linear=tuple(linear))
    summed = [
        x.sum(axis=0) if size is not None and not batched[k] else x
        for k, x in zip(linear, pulled, strict=True)
    ]
    return filled([None] * len(args), linear, summed)


@partial(_derivative, static_argnames=(*OPTIONS, "places", "linear"))
def _pulled(
    values: Sequence[Value],
    *,
    jaxpr: ClosedJaxpr,
    size: int | None,
    batched: tuple[bool, ...],
    places: tuple[int, ...],
    linear: tuple[int, ...],
) -> Sequence[Value]:
    """The cotangents of `linear` arguments, by the others and those of some results."""
    function = jaxpr_as_fun(jaxpr)
    known = [k for k in range(len(batched)) if k not in linear]
    specs = [jaxpr.in_avals[k] for k in linear]
    specs = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in specs]

    def transposed(*values):
        coefficients, cotangents = values[: len(known)], values[len(known) :]

        def of_linear(*x):
            some = filled([None] * len(batched), known, coefficients)
            return function(*filled(some, linear, x))

        zeros = [jnp.zeros(a.shape, a.dtype) for a in jaxpr.out_avals]
        pull = jax.linear_transpose(of_linear, *specs)
        return pull(filled(zeros, places, cotangents))

    flags = [batched[k] for k in known] + [size is not None] * len(places)
    return bind(traced(transposed, values, flags, _is_flat(jaxpr)), values, size, flags)


# our primitives as functions of arrays in primitives of JAX
WRITTEN_OUT: dict[str, Callable] = {
    "jaxdyn_kernel": as_written,
    "linear_map": apply,
    "sum_rows": sum_rows,
}

kernel_p = primitive(
    "jaxdyn_kernel", as_written, _types, batch=_batch, transpose=_transpose, jvp=_jvp
)
lower_kernel(
    kernel_p,
    as_written,
    in_few_kernels,
    {"cpu": (in_chunks, warn_lowering), "cuda": (one_launch, warn_plain)},
)
