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
from jaxdyn.program.cuda import _arrays, _loops
from jaxdyn.program.cuda._moves import MOVES, windows
from jaxdyn.program.cuda._operations import array, rule, scalar, select
from jaxdyn.program.cuda._scalars import NUMBER, Place, Text, UnknownError

LINES = 6000  # loops are written out as long as there are not more
Values = list[np.ndarray]


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
                return text.constants(np.asarray(x.val, x.aval.dtype))
            return known[x]

        for eqn in jaxpr.eqns:
            out = self._apply(eqn, [value(x) for x in eqn.invars])
            known |= zip(eqn.outvars, out, strict=True)
        return [value(x) for x in jaxpr.outvars]

    def _apply(self, eqn: JaxprEqn, args: Values) -> Values:
        name, params = eqn.primitive.name, eqn.params
        if name in MOVES:
            out = MOVES[name](*args, params)
            return out if isinstance(out, list) else [out]
        if name in CALLS:
            inner = params["jaxpr" if "jaxpr" in params else "call_jaxpr"]
            return self.run(_closed(inner), args)
        own = getattr(self, f"_{name}", None)
        if own is not None:
            return own(eqn, args)
        if name in PAIRS:
            return [self._reduce(eqn, args[0])]
        return [self._elementwise(eqn, args)]

    # --- scalars

    def _elementwise(self, eqn: JaxprEqn, args: Values) -> np.ndarray:
        name, params = eqn.primitive.name, eqn.params
        out = eqn.outvars[0].aval
        types = [x.aval.dtype for x in eqn.invars]
        made = rule(name, params, types[0], out.dtype)
        if made is None:
            raise UnknownError(f"the operation {name}")
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
        if is_number or not self.text.is_large(args[0].size):
            return array(self.text, name, made, dtype, args, types)
        one = partial(scalar, self.text, name, made, dtype)
        return _arrays.large_operation(self.text, dtype, types, args, one)

    def _select_n(self, eqn: JaxprEqn, args: Values) -> Values:
        if len(args) == 3 and eqn.invars[0].aval.dtype == bool:
            return [self._elementwise(eqn, args)]
        types = [x.aval.dtype for x in eqn.invars]
        made = select(len(args) - 1), None
        return [self._each("choose", made, types[1], types, args)]

    def _iota(self, eqn: JaxprEqn, args: Values) -> Values:
        p = eqn.params
        steps = np.arange(p["shape"][p["dimension"]], dtype=p["dtype"])
        others = [k for k in range(len(p["shape"])) if k != p["dimension"]]
        full = np.broadcast_to(np.expand_dims(steps, others), p["shape"])
        return [self.text.constants(full)]

    def _empty(self, eqn: JaxprEqn, args: Values) -> Values:
        a = eqn.outvars[0].aval
        return [self.text.constants(np.zeros(a.shape, a.dtype))]

    # --- sums

    def _pair(self, name: str, dtype: np.dtype) -> Callable:
        made = rule(name, {}, dtype, dtype)
        return lambda x, y: scalar(self.text, name, made, dtype, [x, y])

    def _reduce(self, eqn: JaxprEqn, x: np.ndarray) -> np.ndarray:
        kind, a = eqn.primitive.name.removeprefix("reduce_"), eqn.invars[0].aval
        name = {"sum": "add", "prod": "mul"}.get(kind, kind)
        axes = [int(k) for k in eqn.params["axes"]]
        kept = [k for k in range(x.ndim) if k not in axes]
        length = int(np.prod([x.shape[k] for k in axes], dtype=int))
        rows = x.transpose([*kept, *axes])
        rows = rows.reshape([*(x.shape[k] for k in kept), length])
        if not rows.size:
            return self._of_nothing(eqn)
        pair = self._pair(name, a.dtype)
        return _arrays.reduction(
            self.text, a.dtype, [a.dtype], [rows], lambda ids: ids[0], pair
        )

    def _of_nothing(self, eqn: JaxprEqn) -> np.ndarray:
        """The reduction of empty rows, or no reductions."""
        a = eqn.outvars[0].aval
        if a.size and eqn.primitive.name not in ("reduce_sum", "dot_general"):
            raise UnknownError(f"the operation {eqn.primitive.name} of nothing")
        return self.text.constants(np.zeros(a.shape, a.dtype))

    def _dot_general(self, eqn: JaxprEqn, args: Values) -> Values:
        (along, batch), out = eqn.params["dimension_numbers"], eqn.outvars[0].aval
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
            return [self._of_nothing(eqn)]
        x = x.reshape([*common, *left, *[1] * len(right), length])
        y = y.reshape([*common, *[1] * len(left), *right, length])
        both = list(np.broadcast_arrays(x, y))
        types = [v.aval.dtype for v in eqn.invars]
        product, pair = self._pair("mul", out.dtype), self._pair("add", out.dtype)
        return [
            _arrays.reduction(
                self.text, out.dtype, types, both, lambda ids: product(*ids), pair
            )
        ]

    def _sum_rows(self, eqn: JaxprEqn, args: Values) -> Values:
        sources, (x,) = eqn.params["sources"], args
        if (sources.counts > 1).any():
            return self._traced(partial(sum_rows, **eqn.params), eqn, args)
        a = eqn.invars[0].aval
        zero = self.text.constants(np.zeros((1, *x.shape[1:]), a.dtype))
        index = np.full(len(sources.counts), len(x))
        index[sources.counts > 0] = sources.rows
        return [np.concatenate([x, zero])[index]]

    def _cumsum(self, eqn: JaxprEqn, args: Values) -> Values:
        (x,), p, dtype = args, eqn.params, eqn.outvars[0].aval.dtype
        rows = list(np.moveaxis(x, p["axis"], 0))
        rows = rows[::-1] if p["reverse"] else rows
        made = rule("add", {}, dtype, dtype)
        for k in range(1, len(rows)):
            pair = [rows[k - 1], rows[k]]
            rows[k] = self._each("add", made, dtype, [dtype] * 2, pair)
        rows = rows[::-1] if p["reverse"] else rows
        return [np.moveaxis(np.stack(rows), 0, p["axis"])] if rows else [x]

    # --- places

    def _starts(self, ids: np.ndarray, dtype: np.dtype, room: np.ndarray) -> np.ndarray:
        """Places that a traced number may take, from zero to some room."""
        room = self.text.constants(np.broadcast_to(room, ids.shape).astype(dtype))
        zero = self.text.constants(np.zeros(ids.shape, dtype))
        made = rule("clamp", {}, dtype, dtype)
        return array(self.text, "clamp", made, dtype, [zero, ids, room], [dtype] * 3)

    def _shifted(
        self, ids: np.ndarray, starts: np.ndarray, steps: Sequence[int]
    ) -> np.ndarray:
        """Entries of memory, further by numbers and variables times a step."""
        known = [self.text.number(i) for i in starts.tolist()]
        pairs = list(zip(known, steps, strict=True))
        whole = sum(int(n) * s for n, s in pairs if n is not None)
        names = [
            self.text.operand(i)[0] if n is None else ""
            for i, n in zip(starts.tolist(), known, strict=True)
        ]
        steps = [s if n is None else 0 for n, s in pairs]
        kind = int(self.text.kinds(ids).flat[0])
        place = self.text.place(kind)
        offsets = self.text.offsets(ids) + whole
        return _arrays.moved(self.text, self.text.entries(place, offsets), names, steps)

    def _dynamic_slice(self, eqn: JaxprEqn, args: Values) -> Values:
        x, sizes = args[0], eqn.params["slice_sizes"]
        if x.shape == tuple(sizes):
            return [x]
        room = np.array(x.shape) - np.array(sizes)
        dtype = eqn.invars[1].aval.dtype
        starts = self._starts(np.stack(args[1:]), dtype, room)
        known = self.text.numbers(starts, dtype)
        if known is not None:
            pairs = zip(known.tolist(), sizes, strict=True)
            return [x[tuple(slice(k, k + n) for k, n in pairs)]]
        window = tuple(slice(0, n) for n in sizes)
        x = _arrays.in_memory(self.text, eqn.outvars[0].aval.dtype, x)
        steps = _arrays.strides(self.text, x)
        if not any(steps):
            return [x[window]]
        return [self._shifted(x[window], starts, steps)]

    def _dynamic_update_slice(self, eqn: JaxprEqn, args: Values) -> Values:
        x, new, *starts = args
        dtype = eqn.invars[2].aval.dtype
        room = np.array(x.shape) - np.array(new.shape)
        starts = self._starts(np.stack(starts), dtype, room)
        known = self.text.numbers(starts, dtype)
        if known is not None:
            out = x.copy()
            pairs = zip(known.tolist(), new.shape, strict=True)
            out[tuple(slice(k, k + n) for k, n in pairs)] = new
            return [out]
        own, places = eqn.outvars[0].aval.dtype, np.arange(x.size).reshape(x.shape)
        name = self.text.array(own, x.size)
        _arrays.write(self.text, own, name, x.ravel())
        out = self.text.entries(Place(name), places)
        window = out[tuple(slice(0, n) for n in new.shape)]
        steps = [int(s // x.itemsize) for s in np.zeros(x.shape, x.dtype).strides]
        target = self._shifted(window, starts, steps)
        _arrays.set_entries(self.text, own, target, new)
        return [out]

    def _gather(self, eqn: JaxprEqn, args: Values) -> Values:
        x, index = args
        a, dtype = eqn.outvars[0].aval, eqn.invars[1].aval.dtype
        place, starts = windows(x.shape, index.shape, eqn.params)
        mode = str(eqn.params["mode"]).lower()
        flat = index.ravel()
        strides = [int(np.prod(x.shape[k + 1 :])) for k in range(x.ndim)]
        known = self.text.numbers(flat, dtype)
        is_there = np.ones(place.shape, bool)
        if known is not None:
            for axis, room, which in starts:
                own = known[which].astype(int)
                is_there &= (own >= 0) & (own <= room)
                place = place + strides[axis] * np.clip(own, 0, room)
            out = x.ravel()[place]
            if "fill" in mode and not is_there.all():
                fill = eqn.params["fill_value"]
                if fill is None:
                    fill = np.nan if np.issubdtype(a.dtype, np.inexact) else 0
                out = np.where(is_there, out, self.text.constants(a.dtype.type(fill)))
            return [out]
        if "fill" in mode:
            raise UnknownError("a gather at traced places that may be outside")
        whole = _arrays.in_memory(self.text, a.dtype, x.ravel())
        if not any(_arrays.strides(self.text, whole)):
            return [np.broadcast_to(whole[0], place.shape)]
        (step,) = _arrays.strides(self.text, whole)
        at = [self._starts(flat[w], dtype, np.array(r)) for _, r, w in starts]
        steps = [step * strides[axis] for axis, *_ in starts]
        out = np.empty(place.shape, np.int64)
        for k in np.ndindex(place.shape):
            own = np.array([x[k] for x in at])
            out[k] = self._shifted(whole[place[k]], own, steps)
        return [out]

    # --- programs

    def _traced(self, function: Callable, eqn: JaxprEqn, args: Values) -> Values:
        specs = [jax.ShapeDtypeStruct(x.aval.shape, x.aval.dtype) for x in eqn.invars]
        with plain_inside():
            return self.run(jax.make_jaxpr(function)(*specs), args)

    def _jaxdyn_kernel(self, eqn: JaxprEqn, args: Values) -> Values:
        if eqn.params["size"] is None:
            return self.run(eqn.params["jaxpr"], args)
        return self._traced(partial(as_written, **eqn.params), eqn, args)

    def _linear_map(self, eqn: JaxprEqn, args: Values) -> Values:
        return self._traced(partial(apply, **eqn.params), eqn, args)

    def _custom_linear_solve(self, eqn: JaxprEqn, args: Values) -> Values:
        counts, programs = eqn.params["const_lengths"], eqn.params["jaxprs"]
        first = counts.matvec + counts.vecmat
        own = args[first : first + counts.solve]
        return self.run(programs.solve, [*own, *args[sum(counts) :]])

    def _scan(self, eqn: JaxprEqn, args: Values) -> Values:
        p = eqn.params
        body, length, (first, count) = p["jaxpr"], p["length"], loop_counts(p)
        last = first + count
        fixed, start, rows = args[:first], args[first:last], args[last:]
        shapes = [x.aval.shape for x in eqn.outvars[count:]]
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

    def _while(self, eqn: JaxprEqn, args: Values) -> Values:
        p = eqn.params
        first, second = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
        tests, fixed, start = args[:first], args[first:second], args[second:]
        return _loops.while_loop(
            self.text,
            lambda x: self.run(p["cond_jaxpr"], [*tests, *x]),
            lambda x: self.run(p["body_jaxpr"], [*fixed, *x]),
            start,
            [x.aval.dtype for x in eqn.outvars],
        )

    def _cond(self, eqn: JaxprEqn, args: Values) -> Values:
        branches = [partial(self.run, b) for b in eqn.params["branches"]]
        types = [x.aval.dtype for x in eqn.outvars]
        shapes = [x.aval.shape for x in eqn.outvars]
        return _loops.switch(self.text, int(args[0]), branches, args[1:], types, shapes)


def _closed(program) -> ClosedJaxpr:
    return program if isinstance(program, ClosedJaxpr) else ClosedJaxpr(program, [])
