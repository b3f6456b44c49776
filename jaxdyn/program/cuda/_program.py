"""The program of one state as a kernel in CUDA C: one thread for each state."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import jax
import numpy as np

from jaxdyn.program._cpu import as_written, plain_inside
from jaxdyn.program._gather import sum_rows
from jaxdyn.program._jax import ClosedJaxpr, JaxprEqn, Literal, loop_counts
from jaxdyn.program._linear_map import apply
from jaxdyn.program._states import CALLS, PAIRS
from jaxdyn.program.cuda import _arrays, _loops, _places
from jaxdyn.program.cuda._moves import MOVES
from jaxdyn.program.cuda._operations import Operation, array, rule, scalar, select
from jaxdyn.program.cuda._scalars import NUMBER, Text
from jaxdyn.program.cuda._types import UnknownError

LINES = 6000  # loops are written out as long as there are not more
Values = list[np.ndarray]


def _operation(eqn: JaxprEqn) -> Operation:
    types = [
        [jax.ShapeDtypeStruct(x.aval.shape, x.aval.dtype) for x in some]  # type: ignore
        for some in (eqn.invars, eqn.outvars)
    ]
    return Operation(eqn.primitive.name, eqn.params, *types)


@dataclass
class Printer:
    """Prints the operations of a program for one state.

    Attributes:
        text: what is printed.
    """

    text: Text

    def run(self, program: ClosedJaxpr, args: Values) -> Values:
        """The results of a program as ids."""
        jaxpr, text = program.jaxpr, self.text
        consts = [text.constants(np.asarray(x)) for x in program.consts]
        known = dict(
            zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True)
        )

        def value(x):
            if isinstance(x, Literal):
                return text.constants(np.asarray(x.val, x.aval.dtype))  # type: ignore
            return known[x]

        for eqn in jaxpr.eqns:
            out = self._apply(_operation(eqn), [value(x) for x in eqn.invars])
            known |= zip(eqn.outvars, out, strict=True)
        return [value(x) for x in jaxpr.outvars]

    def _apply(self, op: Operation, args: Values) -> Values:
        name, params = op.name, op.params
        if name in MOVES:
            out = MOVES[name](*args, params)
            return out if isinstance(out, list) else [out]
        if name in CALLS:
            inner = params["jaxpr" if "jaxpr" in params else "call_jaxpr"]
            return self.run(_closed(inner), args)
        own = getattr(self, f"do_{name}", None)
        if own is not None:
            return own(op, args)
        if name in PAIRS:
            return [self._reduce(op, args[0])]
        return [self._elementwise(op, args)]

    # --- scalars

    def _elementwise(self, op: Operation, args: Values) -> np.ndarray:
        name, params = op.name, op.params
        out = op.results[0]
        types = [x.dtype for x in op.inputs]
        made = rule(name, params, types[0], out.dtype)
        return self._each(name, made, out.dtype, types, args)

    def _each(
        self,
        name: str,
        made: tuple[str, Callable | None],
        dtype: np.dtype,
        types: Sequence[np.dtype],
        args: Values,
    ) -> np.ndarray:
        args = list(np.broadcast_arrays(*args))
        is_number = all((self.text.kinds(x) == NUMBER).all() for x in args)
        if is_number or not self.text.is_large(args[0].shape):
            return array(self.text, name, made, dtype, args, types)
        one = partial(scalar, self.text, name, made, dtype)
        return _arrays.large_operation(self.text, dtype, types, args, one)

    def do_select_n(self, op: Operation, args: Values) -> Values:
        if len(args) == 3 and op.inputs[0].dtype == bool:
            return [self._elementwise(op, args)]
        types = [x.dtype for x in op.inputs]
        made = select(len(args) - 1), None
        return [self._each("choose", made, types[1], types, args)]

    def do_iota(self, op: Operation, args: Values) -> Values:
        p = op.params
        steps = np.arange(p["shape"][p["dimension"]], dtype=p["dtype"])
        others = [k for k in range(len(p["shape"])) if k != p["dimension"]]
        full = np.broadcast_to(np.expand_dims(steps, others), p["shape"])
        return [self.text.constants(full)]

    def do_empty(self, op: Operation, args: Values) -> Values:
        a = op.results[0]
        return [self.text.constants(np.zeros(a.shape, a.dtype))]

    # --- sums

    def _pair(self, name: str, dtype: np.dtype) -> Callable:
        made = rule(name, {}, dtype, dtype)
        return lambda x, y: scalar(self.text, name, made, dtype, [x, y])

    def _reduce(self, op: Operation, x: np.ndarray) -> np.ndarray:
        kind, a = op.name.removeprefix("reduce_"), op.inputs[0]
        name = {"sum": "add", "prod": "mul"}.get(kind, kind)
        axes = [int(k) for k in op.params["axes"]]
        kept = [k for k in range(x.ndim) if k not in axes]
        length = int(np.prod([x.shape[k] for k in axes], dtype=int))
        rows = x.transpose([*kept, *axes])
        rows = rows.reshape([*(x.shape[k] for k in kept), length])
        if not rows.size:
            return self._of_nothing(op)
        pair = self._pair(name, a.dtype)
        return _arrays.reduction(
            self.text, a.dtype, [a.dtype], [rows], lambda ids: ids[0], pair
        )

    def _of_nothing(self, op: Operation) -> np.ndarray:
        """The reduction of empty rows, or no reductions."""
        a = op.results[0]
        if a.size and op.name not in ("reduce_sum", "dot_general"):
            raise UnknownError(f"the operation {op.name} of nothing")
        return self.text.constants(np.zeros(a.shape, a.dtype))

    def do_dot_general(self, op: Operation, args: Values) -> Values:
        (along, batch), out = op.params["dimension_numbers"], op.results[0]
        rows = []
        for x, own, common in zip(args, along, batch, strict=True):
            free = [k for k in range(x.ndim) if k not in (*own, *common)]
            sizes = [[x.shape[k] for k in axes] for axes in (common, free)]
            length = int(np.prod([x.shape[k] for k in own], dtype=int))
            ordered = x.transpose([*common, *free, *own])
            rows.append((ordered.reshape([*sizes[0], *sizes[1], length]), sizes))
        (x, (common, left)), (y, (_, right)) = rows
        length = x.shape[-1]
        if not x.size or not y.size:
            return [self._of_nothing(op)]
        x = x.reshape([*common, *left, *[1] * len(right), length])
        y = y.reshape([*common, *[1] * len(left), *right, length])
        both = list(np.broadcast_arrays(x, y))
        types = [v.dtype for v in op.inputs]
        product, pair = self._pair("mul", out.dtype), self._pair("add", out.dtype)
        return [
            _arrays.reduction(
                self.text, out.dtype, types, both, lambda ids: product(*ids), pair
            )
        ]

    def do_sum_rows(self, op: Operation, args: Values) -> Values:
        sources, (x,) = op.params["sources"], args
        if (sources.counts > 1).any():
            return self._traced(partial(sum_rows, **op.params), op, args)
        a = op.inputs[0]
        zero = self.text.constants(np.zeros((1, *x.shape[1:]), a.dtype))
        index = np.full(len(sources.counts), len(x))
        index[sources.counts > 0] = sources.rows
        return [np.concatenate([x, zero])[index]]

    def do_cumsum(self, op: Operation, args: Values) -> Values:
        (x,), p, dtype = args, op.params, op.results[0].dtype
        rows = list(np.moveaxis(x, p["axis"], 0))
        rows = rows[::-1] if p["reverse"] else rows
        made = rule("add", {}, dtype, dtype)
        for k in range(1, len(rows)):
            pair = [rows[k - 1], rows[k]]
            rows[k] = self._each("add", made, dtype, [dtype] * 2, pair)
        rows = rows[::-1] if p["reverse"] else rows
        return [np.moveaxis(np.stack(rows), 0, p["axis"])] if rows else [x]

    # --- places

    def do_dynamic_slice(self, op: Operation, args: Values) -> Values:
        return [_places.dynamic_slice(self.text, op, args)]

    def do_dynamic_update_slice(self, op: Operation, args: Values) -> Values:
        return [_places.dynamic_update_slice(self.text, op, args)]

    def do_gather(self, op: Operation, args: Values) -> Values:
        return [_places.gather(self.text, op, args)]

    # --- programs

    def _traced(self, function: Callable, op: Operation, args: Values) -> Values:
        specs = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in op.inputs]
        with plain_inside():
            return self.run(jax.make_jaxpr(function)(*specs), args)

    def do_jaxdyn_kernel(self, op: Operation, args: Values) -> Values:
        if op.params["size"] is None:
            return self.run(op.params["jaxpr"], args)
        return self._traced(partial(as_written, **op.params), op, args)

    def do_linear_map(self, op: Operation, args: Values) -> Values:
        return self._traced(partial(apply, **op.params), op, args)

    def do_custom_linear_solve(self, op: Operation, args: Values) -> Values:
        counts, programs = op.params["const_lengths"], op.params["jaxprs"]
        first = counts.matvec + counts.vecmat
        own = args[first : first + counts.solve]
        return self.run(programs.solve, [*own, *args[sum(counts) :]])

    def do_scan(self, op: Operation, args: Values) -> Values:
        p = op.params
        body, length, (first, count) = p["jaxpr"], p["length"], loop_counts(p)
        last = first + count
        fixed, start, rows = args[:first], args[first:last], args[last:]
        shapes = [x.shape for x in op.results[count:]]
        if not length:
            none = [np.zeros(s, np.int64) for s in shapes]
            return [*start, *none]
        types = [a.dtype for a in (*body.in_avals[first:], *body.out_avals[count:])]

        def step(args):
            return self.run(body, args)

        mark = self.text.mark()
        if length > 1:
            before = len(self.text.lines)
            out = _loops.scan(
                self.text, step, fixed, start, rows, types, length, p["reverse"]
            )
            lines = len(self.text.lines) - before
            if before + lines * length > self.text.limit:
                return out
            self.text.back(mark)
        carry, kept = start, []
        for k in range(length):
            k = length - 1 - k if p["reverse"] else k
            found = step([*fixed, *carry, *(x[k] for x in rows)])
            carry = found[:count]
            kept.append(found[count:])
        kept = kept[::-1] if p["reverse"] else kept
        return [*carry, *(np.stack(x) for x in zip(*kept, strict=True))]

    def do_while(self, op: Operation, args: Values) -> Values:
        p = op.params
        first, second = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
        tests, fixed, start = args[:first], args[first:second], args[second:]
        return _loops.while_loop(
            self.text,
            lambda x: self.run(p["cond_jaxpr"], [*tests, *x]),
            lambda x: self.run(p["body_jaxpr"], [*fixed, *x]),
            start,
            [x.dtype for x in op.results],
        )

    def do_cond(self, op: Operation, args: Values) -> Values:
        branches = [partial(self.run, b) for b in op.params["branches"]]
        types = [x.dtype for x in op.results]
        shapes = [x.shape for x in op.results]
        return _loops.switch(self.text, int(args[0]), branches, args[1:], types, shapes)


def _closed(program) -> ClosedJaxpr:
    return program if isinstance(program, ClosedJaxpr) else ClosedJaxpr(program, [])
