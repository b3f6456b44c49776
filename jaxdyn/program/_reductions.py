"""Reductions that XLA leaves in the function in which they stand.

From jaxlib 0.11 on XLA hands reductions of more than some thousand numbers to a library
of kernels, which a program that is one function cannot call. Here such a reduction adds
halves of its argument until it is small.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import jax
from jax import lax

from jaxdyn.program._jax import ClosedJaxpr, Jaxpr

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


@dataclass(frozen=True)
class Halves:
    """Runs programs with their large reductions in halves.

    Attributes:
        limit: the numbers that a reduction may have.
        written_out: for our own primitives, by name, functions in primitives of JAX.
    """

    limit: int
    written_out: dict[str, Callable]

    def run(self, program: ClosedJaxpr, *args: Any) -> list:
        """The results of a program."""
        jaxpr = program.jaxpr
        known = dict(zip(jaxpr.constvars, program.consts, strict=True))
        known |= zip(jaxpr.invars, args, strict=True)

        def value(x: Any) -> Any:
            return x.val if hasattr(x, "val") else known[x]

        for eqn in jaxpr.eqns:
            out = self._apply(eqn, [value(x) for x in eqn.invars])
            known |= zip(eqn.outvars, out, strict=True)
        return [value(x) for x in jaxpr.outvars]

    def _apply(self, eqn: Any, args: list) -> Any:
        name, params = eqn.primitive.name, eqn.params
        if name in self.written_out:
            function = partial(self.written_out[name], **params)
            return self.run(jax.make_jaxpr(function)(*args), *args)
        if name in CALLS:
            inner = params["jaxpr" if "jaxpr" in params else "call_jaxpr"]
            return self.run(_closed(inner), *args)
        if name in PAIRS:
            axes = [int(axis) for axis in params["axes"]]  # some are of NumPy
            args = [self._halved(PAIRS[name], args[0], axes)]
        new = partial(jax.tree.map, self._rewritten, is_leaf=_is_program)
        out = eqn.primitive.bind(*args, **new(params))
        return out if eqn.primitive.multiple_results else [out]

    def _halved(self, pair: Callable, x: Any, axes: Sequence[int]) -> Any:
        """An array with the same reduction, below the limit if axes are long enough."""
        for axis in sorted(axes, key=lambda axis: -x.shape[axis]):
            part, rest = partial(lax.slice_in_dim, axis=axis), []
            while x.size > self.limit and x.shape[axis] > 1:
                half, odd = divmod(x.shape[axis], 2)
                if odd:
                    rest.append(part(x, 2 * half, None))
                x = pair(part(x, 0, half), part(x, half, 2 * half))
            if x.shape[axis] == 1:
                x = reduce(pair, [x, *rest])
            elif rest:
                x = lax.concatenate([x, *rest], axis)
        return x

    def _rewritten(self, program: Any) -> Any:
        """A program of the same kind, or what is none as it is."""
        if not _is_program(program) or self._is_plain(_closed(program).jaxpr):
            return program
        inner: Any = _closed(program)
        specs = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in inner.in_avals]
        made = jax.make_jaxpr(partial(self.run, inner))(*specs)
        return made if isinstance(program, ClosedJaxpr) else made.jaxpr

    def _is_plain(self, jaxpr: Jaxpr) -> bool:
        """Whether there is nothing to rewrite."""
        for eqn in jaxpr.eqns:
            name, args = eqn.primitive.name, [x.aval for x in eqn.invars]
            is_large = name in PAIRS and args[0].size > self.limit  # type: ignore
            if is_large or name in self.written_out:
                return False
            if not all(map(self._is_plain, programs(eqn.params))):
                return False
        return True


def programs(params: dict) -> Iterator[Jaxpr]:
    """The programs that an operation holds."""
    for x in jax.tree.leaves(list(params.values()), is_leaf=_is_program):
        if _is_program(x):
            yield _closed(x).jaxpr


def _is_program(x: Any) -> bool:
    return isinstance(x, Jaxpr | ClosedJaxpr)


def _closed(program: Any) -> ClosedJaxpr:
    return program if isinstance(program, ClosedJaxpr) else ClosedJaxpr(program, [])
