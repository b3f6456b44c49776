"""Estimated numbers: their intervals, their correlations, and tables of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.stats
from jaxtyping import Bool, Float

from jaxdyn.io import aligned


@dataclass(frozen=True, eq=False)
class Estimates:
    """Named numbers with standard deviations and intervals.

    Attributes:
        nominal, fitted: the values in the nominal model, and those that were found.
        interval: lower and upper ends of intervals of the confidence `level`.
        determined: which of them the data determine by themselves.
    """

    names: tuple[str, ...]
    nominal: Float[np.ndarray, " values"]
    fitted: Float[np.ndarray, " values"]
    std: Float[np.ndarray, " values"]
    interval: Float[np.ndarray, "values 2"]
    determined: Bool[np.ndarray, " values"]
    level: float

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A dictionary for each: name, nominal, fitted, std, low, high."""
        columns = self.nominal, self.fitted, self.std, *self.interval.T
        keys = ("name", "nominal", "fitted", "std", "low", "high")
        return [
            dict(zip(keys, (name, *map(float, x)), strict=True))
            for name, *x in zip(self.names, *columns, strict=True)
        ]

    def table(self) -> str:
        """All of them as lines of text.

        What is not determined has no digits that mean anything, and none are given.
        """
        rows = [["", "nominal", "fitted", "std", f"{self.level:.0%} interval", ""]]
        for row, is_known in zip(self.rows, self.determined, strict=True):
            name, *numbers = row.values()
            cells = [f"{x:.5g}" for x in numbers]
            told = cells[2:] if is_known else ["not determined", "", ""]
            rows.append([name, *cells[:2], *told])
        return aligned(rows)


def confidence_interval(
    values: Any, std: Any, freedom: int, level: float = 0.95, *, positive: Any = False
) -> Float[np.ndarray, "values 2"]:
    r"""Lower and upper ends of intervals that contain the true values so often.

    By Student's t, $v \pm t\,\sigma$. Of what is positive it is the interval of the
    logarithm, whose standard deviation is $\sigma / v$ to first order, mapped back:

    $$v\,e^{\pm t\,\sigma / v}$$

    It is positive however wide it is, and where $\sigma$ is small beside v it differs
    from the other one by $(t\,\sigma)^2 / 2v$.

    Args:
        freedom: the degrees of freedom of the estimate of the noise.
        level: the share of intervals that contain the true value.
        positive: which of the values are positive in every physical model.
    """
    if not 0 < level < 1:
        raise ValueError(f"level is {level}, expected between 0 and 1, as 0.95.")
    values, std = np.asarray(values, float), np.asarray(std, float)
    positive = np.broadcast_to(positive, values.shape)[:, None]
    half = scipy.stats.t.ppf((1 + level) / 2, freedom) * std[:, None] * [-1.0, 1.0]
    v = values[:, None]
    with np.errstate(over="ignore"):  # an infinite upper end is right
        mapped = v * np.exp(np.divide(half, v, out=np.zeros_like(half), where=positive))
    return np.where(positive, mapped, v + half)


def correlations(covariance: np.ndarray) -> Float[np.ndarray, "values values"]:
    """Correlations; zero for what is not known, one with itself."""
    std = np.sqrt(np.diagonal(covariance))
    is_known = np.isfinite(std) & (std > 0)
    size = np.where(is_known, std, 1.0)
    both = np.outer(is_known, is_known)
    r = np.where(both, covariance, 0.0) / np.outer(size, size)
    np.fill_diagonal(r, 1.0)
    return r


def correlated_pairs(
    names: tuple[str, ...], correlation: np.ndarray, least: float
) -> list[tuple[str, str, float]]:
    """Pairs with correlations of at least that size, the worst first."""
    found = np.argwhere(np.triu(np.abs(correlation) >= least, 1)).tolist()
    pairs = [(names[i], names[j], float(correlation[i, j])) for i, j in found]
    return sorted(pairs, key=lambda pair: -abs(pair[2]))
