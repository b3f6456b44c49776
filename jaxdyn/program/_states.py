"""The program of one state, written out for many.

`jax.vmap` traces the body of a loop two or three times, until it knows which of its
numbers differ from state to state. Which ones do follows from the program alone, so
here every operation is bound once.

From jaxlib 0.11 on XLA hands reductions of more than some thousand numbers to a library
of kernels, which a program that is one function cannot call. Here such a reduction adds
halves of its argument until it is small.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike
from jaxtyping import Array, PyTree

from jaxdyn.program._jax import (
    Axes,
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    ShapedArray,
    loop_counts,
    operation_for,
)

LIMIT = 2048  # XLA's own is 4096
PAIRS: dict[str, Callable] = {
    "reduce_sum": lax.add,
    "reduce_max": lax.max,
    "reduce_min": lax.min,
    "reduce_prod": lax.mul,
    "reduce_and": lax.bitwise_and,
    "reduce_or": lax.bitwise_or,
}
CALLS = {"jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call"}
CALLS |= {"checkpoint", "remat2"}  # `jax.checkpoint`, by the name of the release


@dataclass(frozen=True)
class States:
    """Runs the program of one state for many, its large reductions in halves.

    Attributes:
        size: the number of states, None for one without a batch.
        limit: the numbers that a reduction of one state may have.
        written_out: for our own primitives, by name, functions in primitives of JAX.
        unrolled: the operations that the steps of a loop may have to be written out one
            after the other, in blocks where all of them have more; 0 for none.
    """

    size: int | None
    limit: int
    written_out: dict[str, Callable]
    unrolled: int = 0

    def run(self, program: ClosedJaxpr, args: Sequence, axes: Axes) -> list:
        """The results of a program, which have their states along the first axis."""
        return list(map(self._along, *self._run(program, args, axes)))

    def _run(
        self, program: ClosedJaxpr, args: Sequence, axes: Axes
    ) -> tuple[list, Axes]:
        """The results of a program and their axes."""
        jaxpr = program.jaxpr
        none = [None] * len(program.consts)
        values = zip([*program.consts, *args], [*none, *axes], strict=True)
        known = dict(zip([*jaxpr.constvars, *jaxpr.invars], values, strict=True))

        def split(atoms: Sequence) -> tuple[list, Axes]:
            pairs = [
                (x.val, None) if isinstance(x, Literal) else known[x] for x in atoms
            ]
            return [value for value, _ in pairs], [axis for _, axis in pairs]

        for eqn in jaxpr.eqns:
            out = self._apply(eqn, *split(eqn.invars))
            known |= zip(eqn.outvars, zip(*out, strict=True), strict=True)
        return split(jaxpr.outvars)

    def _apply(self, eqn: JaxprEqn, args: list, axes: Axes) -> tuple[list, Axes]:
        name, params = eqn.primitive.name, eqn.params
        specs = [_spec(x.aval) for x in eqn.invars]  # type: ignore
        if name in self.written_out:
            function = partial(self.written_out[name], **params)
            return self._run(jax.make_jaxpr(function)(*specs), args, axes)
        if name in CALLS:
            inner = params["jaxpr" if "jaxpr" in params else "call_jaxpr"]
            return self._run(_closed(inner), args, axes)
        is_batch = any(axis is not None for axis in axes)
        if name == "scan" and (is_batch or not self._is_plain(params["jaxpr"].jaxpr)):
            return self._scan(params, args, axes)
        if name in PAIRS and specs[0].size > self.limit:
            along = [int(axis) for axis in params["axes"]]  # some are of NumPy
            reduced = partial(_halved, PAIRS[name], axes=along)
            program = jax.make_jaxpr(partial(reduced, limit=self.limit))(*specs)
            args, axes = self._run(program, args, axes)
        new = partial(jax.tree.map, self._rewritten, is_leaf=_is_program)
        return self._operation(eqn.primitive, args, axes, new(params))

    @cached_property
    def _operation(self) -> Callable:
        return operation_for(self.size)

    def _scan(self, params: dict, args: list, axes: Axes) -> tuple[list, Axes]:
        """A loop, with states along the first axis of what one step needs."""
        body, (first, count) = params["jaxpr"], loop_counts(params)
        last = first + count
        varies = _loop_varies(params, [axis is not None for axis in axes])
        out_varies = _varies(body.jaxpr, varies)
        inner = [0 if v else None for v in varies]
        pairs = list(zip(args, axes, varies, strict=True))
        fixed = [self._along(x, axis, 0, v) for x, axis, v in pairs[:first]]
        start = [self._along(x, axis, 0, v) for x, axis, v in pairs[first:last]]
        rows = [self._along(x, axis, 1, v) for x, axis, v in pairs[last:]]

        def step(carry: list, row: list) -> tuple[list, list]:
            found = self._run(body, [*fixed, *carry, *row], inner)
            out = [
                self._along(x, axis, 0, v)
                for x, axis, v in zip(*found, out_varies, strict=True)
            ]
            return out[:count], out[count:]

        options = {k: params[k] for k in ("length", "reverse", "unroll")}
        if self.unrolled:
            options["unroll"] = self._block(body.jaxpr, params["length"])
        end, kept = lax.scan(step, start, rows, **options)
        along = [0] * len(end) + [1] * len(kept)
        found = [k if v else None for k, v in zip(along, out_varies, strict=True)]
        return [*end, *kept], found

    def _block(self, step: Jaxpr, length: int) -> int:
        """How many steps of a loop are written out, for blocks of like length."""
        blocks = -(-length * count(step) // self.unrolled)
        return max(1, -(-length // max(1, blocks)))

    def _along(
        self, x: ArrayLike, axis: int | None, to: int = 0, varies: bool = True
    ) -> ArrayLike:
        """A value with its states along another axis; the same for all if it has none.

        Values that do not vary stay as they are.
        """
        if self.size is None or not varies or axis == to:
            return x
        if axis is None:
            x = jnp.asarray(x)
            shape = (*x.shape[:to], self.size, *x.shape[to:])
            kept = [k for k in range(len(shape)) if k != to]
            return lax.broadcast_in_dim(x, shape, kept)
        return jnp.moveaxis(x, axis, to)

    def _rewritten(self, program: PyTree) -> PyTree:
        """A program of the same kind for one state, or what is none as it is."""
        if not _is_program(program) or self._is_plain(_closed(program).jaxpr):
            return program
        inner = _closed(program)
        alone = replace(self, size=None)
        made = jax.make_jaxpr(lambda *args: alone.run(inner, args, [None] * len(args)))(
            *map(_spec, inner.in_avals)
        )
        return made if isinstance(program, ClosedJaxpr) else made.jaxpr

    def _is_plain(self, jaxpr: Jaxpr) -> bool:
        """Whether there is nothing to rewrite."""
        for eqn in jaxpr.eqns:
            name, args = eqn.primitive.name, [x.aval for x in eqn.invars]
            is_large = name in PAIRS and args[0].size > self.limit  # type: ignore
            is_loop = self.unrolled and name == "scan"
            if is_large or is_loop or name in self.written_out:
                return False
            if not all(map(self._is_plain, programs(eqn.params))):
                return False
        return True


def _halved(pair: Callable, x: Array, axes: Sequence[int], limit: int) -> Array:
    """An array with the same reduction, below the limit if axes are long enough."""
    for axis in sorted(axes, key=lambda axis: -x.shape[axis]):
        part, rest = partial(lax.slice_in_dim, axis=axis), []
        while x.size > limit and x.shape[axis] > 1:
            half, odd = divmod(x.shape[axis], 2)
            if odd:
                rest.append(part(x, 2 * half, None))
            x = pair(part(x, 0, half), part(x, half, 2 * half))
        if x.shape[axis] == 1:
            x = reduce(pair, [x, *rest])
        elif rest:
            x = lax.concatenate([x, *rest], axis)
    return x


def _varies(jaxpr: Jaxpr, arguments: Sequence[bool]) -> list[bool]:
    """Which results differ from state to state if some arguments do."""
    known = dict(zip(jaxpr.invars, arguments, strict=True))

    def among(atoms: Sequence) -> list[bool]:
        return [not isinstance(x, Literal) and known.get(x, False) for x in atoms]

    for eqn in jaxpr.eqns:
        flags, params = among(eqn.invars), eqn.params
        if eqn.primitive.name == "scan":
            out = _varies(params["jaxpr"].jaxpr, _loop_varies(params, flags))
        elif eqn.primitive.name in CALLS:
            inner = params["jaxpr" if "jaxpr" in params else "call_jaxpr"]
            out = _varies(_closed(inner).jaxpr, flags)
        else:
            out = [any(flags)] * len(eqn.outvars)
        known |= zip(eqn.outvars, out, strict=True)
    return among(jaxpr.outvars)


def _loop_varies(params: dict, arguments: Sequence[bool]) -> list[bool]:
    """Which arguments of a loop's body differ, after any number of steps."""
    first, count = loop_counts(params)
    varies = list(arguments)
    while True:
        carried = varies[first : first + count]
        out = _varies(params["jaxpr"].jaxpr, varies)[:count]
        if all(old or not new for old, new in zip(carried, out, strict=True)):
            return varies
        both = [a or b for a, b in zip(carried, out, strict=True)]
        varies[first : first + count] = both


def count(jaxpr: Jaxpr, each_step: bool = True) -> int:
    """How many operations a program has, those of a loop in each of its steps."""
    total = 0
    for eqn in jaxpr.eqns:
        inner = sum(count(program, each_step) for program in programs(eqn.params))
        total += max(1, inner * (eqn.params.get("length", 1) if each_step else 1))
    return total


def programs(params: dict) -> Iterator[Jaxpr]:
    """The programs that an operation holds."""
    for x in jax.tree.leaves(list(params.values()), is_leaf=_is_program):
        if _is_program(x):
            yield _closed(x).jaxpr


def _spec(a: ShapedArray) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type)


def _is_program(x: object) -> bool:
    return isinstance(x, Jaxpr | ClosedJaxpr)


def _closed(program: Jaxpr | ClosedJaxpr) -> ClosedJaxpr:
    return program if isinstance(program, ClosedJaxpr) else ClosedJaxpr(program, [])
