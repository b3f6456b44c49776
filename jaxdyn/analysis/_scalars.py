"""A program as a graph of scalars: equal expressions are one node, zeros vanish."""

from collections import Counter
from collections.abc import Iterable

import numpy as np

from jaxdyn.analysis._arrays import rounded_sum

FUNCTIONS = {  # the kind of operation of each function of scalars
    **dict.fromkeys(("sin", "cos", "tan", "asin", "acos", "atan"), "trigonometric"),
    **dict.fromkeys(("atan2", "sinh", "cosh", "tanh"), "trigonometric"),
    **dict.fromkeys(("exp", "exp2", "log", "log1p", "expm1", "pow"), "functions"),
    **dict.fromkeys(("sqrt", "rsqrt", "cbrt", "logistic", "erf"), "functions"),
    **dict.fromkeys(("abs", "sign", "max", "min", "clamp", "select"), "choices"),
    **dict.fromkeys(("floor", "ceil", "round", "rem", "is_finite"), "choices"),
    **dict.fromkeys(("lt", "le", "gt", "ge", "eq", "ne"), "choices"),
    **dict.fromkeys(("and", "or", "not"), "choices"),
}

_VALUES = {  # of functions of constants
    **{name: getattr(np, name) for name in ("sin", "cos", "tan", "sinh", "cosh")},
    **{name: getattr(np, name) for name in ("tanh", "exp", "exp2", "log", "sqrt")},
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "abs": abs,
    "max": max,
    "min": min,
}


class Scalars:
    """Scalars known by number: 0 is zero, and -k is the scalar k with its sign changed.

    So the movement of data is the movement of integers, a change of sign is free, and
    an expression that occurs twice has one number.
    """

    def __init__(self):
        self._nodes: list[tuple] = [("constant", 0.0)]
        self._numbers: dict[tuple, int] = {}

    def variable(self) -> int:
        """A new scalar about which nothing is known."""
        return self._number("variable", len(self._nodes))

    def constant(self, value: float | int) -> int:
        """A number known before the program runs."""
        value = float(value)
        if value == 0:
            return 0
        number = self._number("constant", abs(value))
        return number if value > 0 else -number

    def add(self, a: int, b: int) -> int:
        """The sum a + b."""
        if a == 0 or b == 0 or a == -b:
            return 0 if a == -b else a + b
        x, y = self._value(a), self._value(b)
        if x is not None and y is not None:
            return self.constant(float(rounded_sum(x, y)))
        a, b = sorted((a, b), key=abs)
        return self._number("add", a, b) if a > 0 else -self._number("add", -a, -b)

    def sub(self, a: int, b: int) -> int:
        """The difference a - b."""
        return self.add(a, -b)

    def mul(self, a: int, b: int) -> int:
        """The product a b."""
        if a == 0 or b == 0:
            return 0
        x, y = self._value(a), self._value(b)
        if x is not None and y is not None:
            return self.constant(x * y)
        if x in (1, -1):
            return b if x == 1 else -b
        if y in (1, -1):
            return a if y == 1 else -a
        first, second = sorted((abs(a), abs(b)))
        product = self._number("mul", first, second)
        return product if (a > 0) == (b > 0) else -product

    def div(self, a: int, b: int) -> int:
        """The quotient a / b; by a constant it is a product."""
        y = self._value(b)
        if y is not None and b != 0:
            return self.mul(a, self.constant(1 / y))
        if a == 0 or abs(a) == abs(b):
            return 0 if a == 0 else self.constant(1.0 if a == b else -1.0)
        quotient = self._number("div", abs(a), abs(b))
        return quotient if (a > 0) == (b > 0) else -quotient

    def power(self, a: int, exponent: int) -> int:
        """The integer power of a, by repeated squaring."""
        if exponent < 0:
            return self.div(self.constant(1.0), self.power(a, -exponent))
        if exponent == 0:
            return self.constant(1.0)
        half = self.power(a, exponent // 2)
        square = self.mul(half, half)
        return self.mul(square, a) if exponent % 2 else square

    def function(self, name: str, *args: int) -> int:
        """The value of a function of `FUNCTIONS`."""
        values = [self._value(a) for a in args]
        if name in _VALUES and None not in values:
            return self.constant(_VALUES[name](*values))
        if name == "select" and len(set(args[1:])) == 1:
            return args[1]
        return self._number(name, *args)

    def tally(self, results: Iterable[int]) -> Counter:
        """How often each operation occurs in what the results need."""
        needed, waiting = set(), [abs(k) for k in results]
        while waiting:
            k = waiting.pop()
            if k not in needed:
                needed.add(k)
                waiting.extend(abs(a) for a in self._arguments(k))
        return Counter(self._nodes[k][0] for k in needed)

    def _number(self, *node) -> int:
        if node not in self._numbers:
            self._numbers[node] = len(self._nodes)
            self._nodes.append(node)
        return self._numbers[node]

    def _arguments(self, k: int) -> tuple[int, ...]:
        kind, *args = self._nodes[k]
        return () if kind in ("constant", "variable") else tuple(args)

    def _value(self, k: int) -> float | None:
        kind, value = self._nodes[abs(k)][:2]
        return np.sign(k) * value if kind == "constant" else None
