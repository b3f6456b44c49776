"""Operations on scalars: one line for each.

Expressions have operands {0}, {1}, ... and {f} for the suffix of C's float functions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import jax
import numpy as np

from jaxdyn.program.cuda._scalars import Text
from jaxdyn.program.cuda._types import UnknownError, c_type

Rule: TypeAlias = tuple[str, Callable | None]


@dataclass(frozen=True)
class Operation:
    """An operation of a program: its name, its parameters, the types of its arrays."""

    name: str
    params: dict
    inputs: list[jax.ShapeDtypeStruct]
    results: list[jax.ShapeDtypeStruct]


# name: C, and the same on NumPy arrays where constants are worth folding
OPERATIONS: dict[str, Rule] = {
    "add": ("{0} + {1}", np.add),
    "add_any": ("{0} + {1}", np.add),
    "sub": ("{0} - {1}", np.subtract),
    "mul": ("{0} * {1}", np.multiply),
    "neg": ("-{0}", np.negative),
    "square": ("{0} * {0}", np.square),
    "sqrt": ("sqrt{f}({0})", np.sqrt),
    "rsqrt": ("1 / sqrt{f}({0})", lambda x: 1 / np.sqrt(x)),
    "sin": ("sin{f}({0})", np.sin),
    "cos": ("cos{f}({0})", np.cos),
    "tan": ("tan{f}({0})", np.tan),
    "asin": ("asin{f}({0})", None),
    "acos": ("acos{f}({0})", None),
    "atan": ("atan{f}({0})", None),
    "atan2": ("atan2{f}({0}, {1})", None),
    "sinh": ("sinh{f}({0})", None),
    "cosh": ("cosh{f}({0})", None),
    "tanh": ("tanh{f}({0})", np.tanh),
    "asinh": ("asinh{f}({0})", None),
    "acosh": ("acosh{f}({0})", None),
    "atanh": ("atanh{f}({0})", None),
    "exp": ("exp{f}({0})", np.exp),
    "exp2": ("exp2{f}({0})", None),
    "expm1": ("expm1{f}({0})", None),
    "log": ("log{f}({0})", np.log),
    "log1p": ("log1p{f}({0})", None),
    "logistic": ("1 / (1 + exp{f}(-{0}))", None),
    "erf": ("erf{f}({0})", None),
    "cbrt": ("cbrt{f}({0})", None),
    "pow": ("pow{f}({0}, {1})", None),
    "floor": ("floor{f}({0})", np.floor),
    "ceil": ("ceil{f}({0})", np.ceil),
    "is_finite": ("{0} - {0} == 0", np.isfinite),
    "eq": ("{0} == {1}", np.equal),
    "ne": ("{0} != {1}", np.not_equal),
    "lt": ("{0} < {1}", np.less),
    "le": ("{0} <= {1}", np.less_equal),
    "gt": ("{0} > {1}", np.greater),
    "ge": ("{0} >= {1}", np.greater_equal),
    "and": ("{0} & {1}", np.bitwise_and),
    "or": ("{0} | {1}", np.bitwise_or),
    "xor": ("{0} ^ {1}", np.bitwise_xor),
    # NaN wins, as in XLA
    "max": ("{0} > {1} || {0} != {0} ? {0} : {1}", np.maximum),
    "min": ("{0} < {1} || {0} != {0} ? {0} : {1}", np.minimum),
    "clamp": (
        "{1} < {0} ? {0} : {1} > {2} ? {2} : {1}",
        lambda low, x, high: np.clip(x, low, high),
    ),
}


def _abs(kind: str) -> str:
    return "fabs{f}({0})" if kind == "f" else "{0} < 0 ? -{0} : {0}"


def _sign(kind: str) -> str:
    return "{0} > 0 ? 1 : {0} < 0 ? -1 : {0}"  # zero and NaN stay


def _rem(kind: str) -> str:
    return "fmod{f}({0}, {1})" if kind == "f" else "{0} % {1}"


def _not(kind: str) -> str:
    return "!{0}" if kind == "b" else "~{0}"


# x / y by the reciprocal of y, which other quotients share
QUOTIENT = "QUOTIENT{f}({0}, {1}, {2})"

BY_KIND: dict[str, tuple[Callable, Callable | None]] = {
    "abs": (_abs, np.abs),
    "sign": (_sign, np.sign),
    "rem": (_rem, None),
    "not": (_not, np.invert),
}


def rule(name: str, params: dict, dtype: np.dtype, out: np.dtype) -> Rule:
    """The expression for operands of a type, and its NumPy function if it has one."""
    found = OPERATIONS.get(name) or _special(name, params, dtype, out)
    if found is None:
        raise UnknownError(f"the operation {name}")
    expression, function = found
    suffix = "f" if dtype == np.float32 else ""
    return expression.replace("{f}", suffix), function


def _special(name: str, params: dict, dtype: np.dtype, out: np.dtype) -> Rule | None:
    if name == "div":
        if dtype.kind == "f":
            return QUOTIENT, np.divide
        return "{0} / {1}", None  # C truncates, NumPy rounds down
    if name in BY_KIND:
        make, function = BY_KIND[name]
        return make(dtype.kind), function
    if name == "round":
        is_even = int(params["rounding_method"]) == 1
        return ("rint{f}({0})", np.rint) if is_even else ("round{f}({0})", None)
    if name == "convert_element_type":
        if str(out) == str(dtype):
            return "{0}", lambda x: x
        if out.kind == "b":
            return "{0} != 0", lambda x: x != 0
        return f"({c_type(out)}){{0}}", lambda x: x.astype(out)
    if name == "integer_pow":
        return _power(params["y"]), lambda x: np.power(x, x.dtype.type(params["y"]))
    if name == "select_n":
        return "{0} ? {2} : {1}", lambda which, a, b: np.where(which, b, a)
    return None


def _power(y: int) -> str:
    """A product, or its reciprocal, in the order of XLA: by squares."""
    if y == 0:
        return "1"
    factors, square, rest = [], "{0}", abs(y)
    while rest:
        if rest % 2:
            factors.append(square)
        square, rest = f"({square} * {square})", rest // 2
    product = " * ".join(factors)
    return f"1 / ({product})" if y < 0 else product


def scalar(
    text: Text,
    name: str,
    made: Rule,
    dtype: np.dtype,
    ids: Sequence[int],
) -> int:
    """The id of an operation of scalars of a type, folded where it can be."""
    numbers = [text.number(i) for i in ids]
    expression, function = made
    if function is not None and all(x is not None for x in numbers):
        value = _quiet(function, *numbers)
        return int(text.constants(np.asarray(value, dtype)))
    same = _identity(text, name, dtype, ids, numbers)
    if same is not None:
        return same
    if name in ("add", "add_any", "mul"):
        ids = sorted(ids)
    if expression.startswith("QUOTIENT"):
        inverse = _inverse(text, dtype, ids[1], numbers[1])
        if numbers[0] == 1:
            return inverse
        if numbers[1] is not None and abs(np.frexp(numbers[1])[0]) == 0.5:  # exact
            return text.defined(dtype, "{0} * {1}", [ids[0], inverse])
        ids = [*ids, inverse]
    return text.defined(dtype, expression, ids)


def _inverse(text: Text, dtype: np.dtype, i: int, number: np.generic | None) -> int:
    if number is None:
        return text.defined(dtype, "1 / {0}", [i])
    return int(text.constants(np.asarray(_quiet(np.divide, 1, number), dtype)))


def array(
    text: Text,
    name: str,
    made: Rule,
    dtype: np.dtype,
    operands: Sequence[np.ndarray],
    types: Sequence[np.dtype],
) -> np.ndarray:
    """The same for arrays of one shape, entry by entry."""
    function, shape = made[1], operands[0].shape
    if function is not None:
        pairs = zip(operands, types, strict=True)
        numbers = [text.numbers(x, t) for x, t in pairs]
        if all(x is not None for x in numbers):
            value = np.broadcast_to(_quiet(function, *numbers), shape)
            return text.constants(value.astype(dtype, copy=False))
    rows = zip(*(x.ravel().tolist() for x in operands), strict=True)
    ids = [scalar(text, name, made, dtype, row) for row in rows]
    return np.array(ids, np.int64).reshape(shape)


def _quiet(function: Callable, *args) -> np.ndarray:
    with np.errstate(all="ignore"):
        return function(*args)


def _identity(
    text: Text, name: str, dtype: np.dtype, ids: Sequence[int], numbers: Sequence
) -> int | None:
    """An id that is there already, for x + 0, 1 * x, 0 * x and the like."""
    if name in ("add", "add_any", "mul"):
        (number, i), (_, j) = sorted(
            zip(numbers, ids, strict=True), key=lambda pair: pair[0] is None
        )
        return _with_number(text, name, dtype, number, i, j)
    if name == "sub" and numbers[1] == 0:
        return ids[0]
    if name == "sub" and numbers[0] == 0:
        return text.defined(dtype, "-{0}", [ids[1]])
    if name == "div" and dtype.kind == "f" and (numbers[0] == 0 or numbers[1] == 1):
        return ids[0]
    if name == "select_n" and numbers[0] is not None:
        return ids[1 + int(numbers[0])]
    return ids[1] if name == "select_n" and ids[1] == ids[2] else None


def _with_number(
    text: Text, name: str, dtype: np.dtype, number: np.generic | None, i: int, j: int
) -> int | None:
    """A sum or product of a number, whose id is i, and what has the id j."""
    if name != "mul":
        return j if number == 0 else None
    if number == 0:
        return i
    if number == -1:
        return text.defined(dtype, "-{0}", [j])
    return j if number == 1 else None


def select(count: int) -> str:
    """The expression that chooses among some cases by a number."""
    if count > 8:
        raise UnknownError(f"a selection among {count} values")
    tests = [f"{{0}} == {k} ? {{{k + 1}}} : " for k in range(count - 1)]
    return "".join(tests) + f"{{{count}}}"
