"""A traced program, run on scalars: one rule for each primitive of JAX."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np

from jaxdyn.analysis._arrays import INDEXED, MOVES, evaluate
from jaxdyn.analysis._matrices import RULES
from jaxdyn.analysis._scalars import FUNCTIONS, Scalars
from jaxdyn.program import CALLS, WRITTEN_OUT, ClosedJaxpr, Jaxpr, Literal, traced_name


@dataclass(frozen=True, eq=False)
class Symbols:
    """An array of scalars, by number; an array without unknowns is an `np.ndarray`."""

    ids: np.ndarray


Value = np.ndarray | Symbols

_SAME = (  # primitives that change nothing that is counted
    "copy_p stop_gradient optimization_barrier reduce_precision"
).split()


def _written_out(eqn: Any) -> ClosedJaxpr:
    """The program of one of our own primitives in those of JAX."""
    function = partial(WRITTEN_OUT[eqn.primitive.name], **eqn.params)
    specs = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in eqn.invars]
    return jax.make_jaxpr(function)(*specs)


class Interpreter:
    """Runs programs on scalars; arrays without unknowns are computed as usual."""

    def __init__(self):
        self.scalars = s = Scalars()
        self._control = {"scan": self._scan, "cond": self._cond}
        self._elementwise: dict[str, Callable] = {
            "add": s.add,
            "add_any": s.add,
            "sub": s.sub,
            "mul": s.mul,
            "div": s.div,
            "neg": lambda a: -a,
            "square": lambda a: s.mul(a, a),
        }

    def run(self, program: ClosedJaxpr | Jaxpr, args: Sequence[Value]) -> list[Value]:
        """The results of a program, equation by equation."""
        env: dict[Any, Value] = {}
        jaxpr, consts = program, []
        if isinstance(program, ClosedJaxpr):
            jaxpr, consts = program.jaxpr, [np.asarray(c) for c in program.consts]
        env.update(zip(jaxpr.constvars, consts, strict=True))
        env.update(zip(jaxpr.invars, args, strict=True))

        def read(atom: Any) -> Value:
            return np.asarray(atom.val) if isinstance(atom, Literal) else env[atom]

        for eqn in jaxpr.eqns:
            results = self._equation(eqn, [read(v) for v in eqn.invars])
            env.update(zip(eqn.outvars, results, strict=True))
        return [read(v) for v in jaxpr.outvars]

    def ids(self, value: Value) -> np.ndarray:
        """The scalars of a value, by number."""
        if isinstance(value, Symbols):
            return value.ids
        numbers = [self.scalars.constant(x) for x in np.ravel(value).tolist()]
        return np.array(numbers, np.int64).reshape(np.shape(value))

    def _equation(self, eqn: Any, args: list[Value]) -> list[Value]:
        name, params = eqn.primitive.name, eqn.params
        if name == "custom_jvp_call" and traced_name(params["call_jaxpr"]) == "cos_sin":
            cos, sin = (partial(self.scalars.function, f) for f in ("cos", "sin"))
            return [self._each(cos, args), self._each(sin, args)]
        if name in CALLS:
            called = "jaxpr" if "jaxpr" in params else "call_jaxpr"
            return self.run(params[called], args)
        if name in WRITTEN_OUT:
            return self.run(_written_out(eqn), args)
        if name in self._control:
            return self._control[name](args, **params)
        known = [a for a in args if isinstance(a, np.ndarray)]
        if len(known) == len(args):
            return [*evaluate(eqn, known)]
        if name in _SAME:
            return args
        if name in MOVES:
            moved = evaluate(eqn, self._operands(eqn, args))
            return [Symbols(x.astype(np.int64)) for x in moved]
        return [self._computed(eqn, args)]

    def _computed(self, eqn: Any, args: list[Value]) -> Symbols:
        name, params = eqn.primitive.name, eqn.params
        if name in self._elementwise:
            return self._each(self._elementwise[name], args)
        if name in FUNCTIONS:
            return self._each(lambda *a: self.scalars.function(name, *a), args)
        if name == "convert_element_type":
            return self._converted(eqn, *args)
        if name == "integer_pow":
            return self._each(lambda a: self.scalars.power(a, params["y"]), args)
        if name == "select_n":
            return self._select(*args)
        if name in RULES:
            operands = self._operands(eqn, args)
            return Symbols(RULES[name](self.scalars, *operands, **params))
        raise ValueError(
            f"the primitive {name!r} has no rule, so its operations cannot be counted: "
            "known are arithmetic, elementary functions, movement of data, sums, "
            "products of matrices, Cholesky factors, scan, cond and calls."
        )

    def _each(self, function: Callable, args: Sequence[Value]) -> Symbols:
        ids = [self.ids(a) for a in args]
        result = np.frompyfunc(function, len(ids), 1)(*ids)
        return Symbols(np.asarray(result, np.int64))

    def _converted(self, eqn: Any, arg: Value) -> Symbols:
        """Another type changes the value only if it is cut to a whole number."""
        old, new = eqn.invars[0].aval.dtype, eqn.params["new_dtype"]
        is_cut = np.issubdtype(old, np.inexact) and not np.issubdtype(new, np.inexact)
        function = (lambda a: self.scalars.function("round", a)) if is_cut else int
        return self._each(function, [arg])

    def _operands(self, eqn: Any, args: list[Value]) -> list[np.ndarray]:
        """The scalars of the operands; places in an array stay what they are."""
        operands = []
        for k, (arg, var) in enumerate(zip(args, eqn.invars, strict=True)):
            is_place = k > 0 and np.issubdtype(var.aval.dtype, np.integer)
            if not (is_place and eqn.primitive.name in INDEXED):
                operands.append(self.ids(arg).astype(np.int32))
            elif isinstance(arg, np.ndarray):
                operands.append(arg)
            else:
                raise ValueError(
                    "a place in an array depends on a value that is not known before "
                    "the program runs, so its operations cannot be counted."
                )
        return operands

    def _select(self, which: Value, *cases: Value) -> Symbols:
        if isinstance(which, Symbols):
            select = partial(self.scalars.function, "select")
            return self._each(select, (which, *cases))
        chosen = np.choose(which.astype(int), [self.ids(c) for c in cases])
        return Symbols(np.asarray(chosen, np.int64))

    def _cond(self, args: list[Value], *, branches: Any, **_) -> list[Value]:
        index, *operands = args
        if isinstance(index, Symbols):
            raise ValueError(
                "a branch is chosen by a value that is not known before the program "
                "runs, so its operations cannot be counted."
            )
        return self.run(branches[int(np.clip(index, 0, len(branches) - 1))], operands)

    def _scan(self, args: list[Value], **params) -> list[Value]:
        first, count = params["num_consts"], params["num_carry"]
        last = first + count
        consts, carry, xs = args[:first], args[first:last], args[last:]
        order, rows = range(params["length"]), []
        for i in reversed(order) if params["reverse"] else order:
            row = [_row(x, i) for x in xs]
            results = self.run(params["jaxpr"], [*consts, *carry, *row])
            carry = results[:count]
            rows.append(results[count:])
        rows = rows[::-1] if params["reverse"] else rows
        return [*carry, *map(self._stacked, zip(*rows, strict=True))]

    def _stacked(self, column: Sequence[Value]) -> Value:
        known = [x for x in column if isinstance(x, np.ndarray)]
        if len(known) == len(column):
            return np.stack(known)
        return Symbols(np.stack([self.ids(x) for x in column]))


def _row(x: Value, i: int) -> Value:
    return Symbols(np.asarray(x.ids[i])) if isinstance(x, Symbols) else np.asarray(x[i])
