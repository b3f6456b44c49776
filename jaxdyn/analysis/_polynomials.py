"""Operation counts as exact polynomials in the number of links."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from jaxdyn.analysis._operations import count_operations

_CHECKS = 2  # sizes beyond those that a polynomial needs


@dataclass(frozen=True)
class Polynomial:
    """A polynomial in n with rational coefficients, lowest power first."""

    coefficients: tuple[Fraction, ...]

    @staticmethod
    def of(powers: Mapping[Any, Any]) -> "Polynomial":
        """The polynomial with the given coefficient of each power, {1: 94, 0: -81}."""
        given = {int(k): Fraction(c) for k, c in powers.items()}
        degrees = range(max((k for k, c in given.items() if c), default=-1) + 1)
        return Polynomial(tuple(given.get(k, Fraction(0)) for k in degrees))

    @staticmethod
    def through(points: Mapping[int, int]) -> "Polynomial":
        """The polynomial of lowest degree through all points.

        Raises:
            ValueError: if it takes more than all but two of the points to find it, so
                that the others prove nothing.
        """
        places = list(points)
        for size in range(1, len(places) - _CHECKS + 1):
            found = _interpolated({n: points[n] for n in places[:size]})
            if all(found(n) == points[n] for n in places):
                return found
        raise ValueError(
            f"the counts {dict(points)} are not a polynomial in n with two sizes to "
            "spare: give more sizes, or begin with a larger one, beyond the links that "
            "are special as first or last."
        )

    def __add__(self, other: "Polynomial") -> "Polynomial":
        size = range(max(len(self.coefficients), len(other.coefficients)))
        return Polynomial.of({k: self._at(k) + other._at(k) for k in size})

    def __mul__(self, s: Fraction | int) -> "Polynomial":
        return Polynomial.of({k: c * s for k, c in enumerate(self.coefficients)})

    def __call__(self, n: int) -> Fraction:
        """The value at n."""
        return sum((c * n**k for k, c in enumerate(self.coefficients)), Fraction(0))

    def __str__(self) -> str:
        text = ""
        for k in reversed(range(len(self.coefficients))):
            c = self.coefficients[k]
            if c:
                sign = (" - " if c < 0 else " + ") if text else ("-" if c < 0 else "")
                text += sign + _term(abs(c), k)
        return text or "0"

    def _at(self, k: int) -> Fraction:
        return self.coefficients[k] if k < len(self.coefficients) else Fraction(0)


@dataclass(frozen=True)
class OperationPolynomials:
    """Operation counts of a family of robots, as polynomials in n.

    Attributes:
        M: multiplications and divisions.
        A: additions and subtractions.
        T: trigonometric functions.
        sizes: the numbers of links at which they were counted, all of which they meet.
    """

    M: Polynomial
    A: Polynomial
    T: Polynomial
    sizes: tuple[int, ...]

    def __str__(self) -> str:
        return f"({self.M})M ({self.A})A ({self.T})T"


def operation_polynomials(
    f: Callable, family: Callable[[int], tuple], sizes: Iterable[int] = range(4, 11)
) -> OperationPolynomials:
    """The operation counts of `f` on a family of robots, as polynomials in n.

    Exact: fitted to as many sizes as the degree needs and met at all others, at least
    two.

    Args:
        f: a function of what the family returns.
        family: the model and the arrays with n links, n -> (model, *arrays).
        sizes: numbers of links; the first and the last links are often special, so
            small ones may not lie on the polynomial.

    Raises:
        ValueError: if the counts are not polynomial in n.
    """
    counts = {n: count_operations(f, *family(n)) for n in sizes}
    M = Polynomial.through({n: count.M for n, count in counts.items()})
    A = Polynomial.through({n: count.A for n, count in counts.items()})
    T = Polynomial.through({n: count.trigonometric for n, count in counts.items()})
    return OperationPolynomials(M, A, T, tuple(counts))


def _interpolated(points: Mapping[int, int]) -> Polynomial:
    """The polynomial through all points (Lagrange)."""
    result = Polynomial(())
    for i, value in points.items():
        basis = Polynomial((Fraction(1),))
        for j in points:
            if j != i:  # times (n - j) / (i - j)
                up = Polynomial((Fraction(0), *basis.coefficients))
                basis = (up + basis * -j) * Fraction(1, i - j)
        result = result + basis * value
    return result


def _term(c: Fraction, k: int) -> str:
    power = ("", "n", f"n^{k}")[min(k, 2)]
    if k and c == 1:
        return power
    return f"{c} {power}" if c.denominator > 1 and k else f"{c}{power}"
