"""Base parameters from logs by linear least squares."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from jaxdyn.identify import _estimates as statistics
from jaxdyn.identify.linear import _columns as free
from jaxdyn.identify.linear._base import BaseParameters, base_of
from jaxdyn.identify.linear._columns import chosen_columns, log_rows, split_rows
from jaxdyn.identify.linear._covariance import Kind
from jaxdyn.identify.linear._estimate import Errors, ordinary, products, total, weighted
from jaxdyn.io import Log
from jaxdyn.model import Model

Method = Literal["weighted", "ordinary", "total"]


@dataclass(frozen=True, eq=False)
class LinearFit:
    """Base parameters with what is known about their errors.

    Attributes:
        model: the model that was given, with nominal values of all parameters.
        base: which combinations of parameters the numbers stand for.
        beta: the values of the combinations.
        covariance: of `beta`.
        noise: standard deviation of the residuals of each joint.
        residuals: measured less fitted forces, at the rows that were fitted.
        validation_residuals: the same at those held out.
        condition: of the weighted regressor with columns of length 1.
        degrees: rows times joints less parameters.
        lags: over how many rows correlations of residuals were summed.
    """

    model: Model
    base: BaseParameters
    beta: np.ndarray
    covariance: np.ndarray
    noise: np.ndarray
    residuals: np.ndarray
    validation_residuals: np.ndarray
    condition: float
    degrees: int
    lags: int

    @property
    def rank(self) -> int:
        """The number of combinations."""
        return self.base.rank

    @property
    def combinations(self) -> tuple[str, ...]:
        """The combinations in words."""
        return self.base.combinations

    @property
    def std(self) -> np.ndarray:
        """The standard deviation of each of `beta`."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def correlation(self) -> np.ndarray:
        """The correlations of the errors."""
        return statistics.correlations(self.covariance)

    @property
    def rms(self) -> np.ndarray:
        """Root mean square of the residuals of each joint."""
        return np.sqrt(np.mean(self.residuals**2, axis=0))

    @property
    def validation_rms(self) -> np.ndarray | None:
        """The same at the rows that were held out, None if there are none."""
        held = self.validation_residuals
        return np.sqrt(np.mean(held**2, axis=0)) if len(held) else None

    def interval(self, level: float = 0.95) -> np.ndarray:
        """Lower and upper ends of intervals, [rank, 2], by Student's t."""
        return statistics.confidence_interval(self.beta, self.std, self.degrees, level)

    def correlated(self, above: float = 0.9) -> list[tuple[str, str, float]]:
        """Pairs of combinations whose errors are correlated, the worst first."""
        return statistics.correlated_pairs(self.combinations, self.correlation, above)

    def estimates(self, level: float = 0.95) -> statistics.Estimates:
        """Combinations, nominal and fitted values, standard deviations, intervals."""
        return statistics.Estimates(
            names=self.combinations,
            nominal=self.base.of(self.model),
            fitted=self.beta,
            std=self.std,
            interval=self.interval(level),
            determined=np.isfinite(self.std),
            level=level,
        )


def least_squares(
    model: Model,
    log: Log,
    *,
    parameters: str | Sequence[str] | None = None,
    method: Method = "weighted",
    noise: Sequence[float] | np.ndarray | None = None,
    covariance: Kind = "robust",
    disturbed: Log | Sequence[Log] = (),
    validation: float = 0.2,
    base: BaseParameters | None = None,
    prefer: str | Sequence[str] = (),
    tolerance: float = 1.5e-8,
) -> LinearFit:
    r"""The base parameters that explain the joint forces of a log best.

    $$\tau - Y_f\,\pi_f = Y_b(q, \dot q, \ddot q)\,\beta + \varepsilon$$

    Parameters that are not free keep the values of the model; what they contribute is
    taken from tau. Coulomb friction has the smooth sign of the model, with its
    `friction_speed`.

    Filter positions as much as their motion allows and leave the forces as they were
    measured, `filtered(raw, model, cutoff=..., forces=False)`. Then the noise of forces
    stays independent from row to row, and what jumps, such as friction, jumps on both
    sides of the equation. Filtered forces no longer jump where the regressor does:
    friction is then biased by several times its standard deviation.

    Args:
        parameters: names or patterns of the free parameters, as in `base_parameters`,
            by default inertials, damping and friction.
        method: "weighted" divides the rows of each joint by the noise of that joint,
            which is estimated in turn with the parameters; "ordinary" weighs all rows
            alike; "total" is weighted and allows for errors in the regressor: of the
            size that it learns from `disturbed`, or, without it, of one size relative
            to each column and to the forces, by singular values. The first knows more:
            positions disturb some columns much, gravity's hardly.
        noise: standard deviations of tau of each joint, if they are known.
        covariance: "robust" allows residuals that are correlated in time and between
            joints; "classical" takes them as independent. Times are evenly spaced.
        disturbed: for "total", one or more logs that differ from the log by errors
            such as it has itself: raw positions with the noise of the encoders added
            once more, filtered in the same way, with the same forces.
        validation: the share of the rows, the last ones, that is held out.
        base: the combinations to estimate; by default those that the log can tell.
        prefer, tolerance: see `base_parameters`; for combinations that are not given.

    Raises:
        ValueError: the log lacks something, has too few rows, or tells less than `base`
            asks; the model has loops; an argument is out of its range.
    """
    disturbed = (disturbed,) if isinstance(disturbed, Log) else tuple(disturbed)
    _check(model, method, covariance, noise, len(disturbed))
    if base is not None and (parameters is not None or len(prefer)):
        raise ValueError(
            f"base is given with parameters={parameters!r} and prefer={prefer!r}, "
            "expected base alone: it says which parameters are free."
        )
    parameters = free.FREE if parameters is None else parameters
    columns = chosen_columns(model, parameters) if base is None else base.columns
    rows, held = split_rows(log_rows(model, log, columns), validation)
    if base is None:
        first = chosen_columns(model, prefer) if len(prefer) else np.array([], int)
        Y = rows.Y.reshape(-1, len(columns))
        base = base_of(model, Y, columns, first, tolerance)
    A, b = rows.Y[..., base.independent], rows.b
    if b.size <= base.rank:
        raise ValueError(
            f"log has {len(b)} rows to fit, {b.size} forces for {base.rank} "
            "combinations: expected more rows."
        )
    if method == "ordinary":
        found = ordinary(A, b, covariance)
    else:
        found = weighted(A, b, noise, covariance)
    if method == "total":
        others = [log_rows(model, x, base.columns) for x in disturbed]
        others = [split_rows(x, validation)[0] for x in others]
        errors = _errors(rows, others, base) if others else None
        found = total(A, b, found, errors, covariance)
    return LinearFit(
        *(model, base, found.beta, found.covariance, found.noise),
        residuals=b - A @ found.beta,
        validation_residuals=held.b - held.Y[..., base.independent] @ found.beta,
        condition=found.condition,
        degrees=b.size - base.rank,
        lags=found.lags,
    )


def _errors(rows: free.Rows, others: list[free.Rows], base: BaseParameters) -> Errors:
    """Mean products of how the rows of disturbed logs differ from those fitted."""
    parts = []
    for other in others:
        if other.b.shape != rows.b.shape:
            raise ValueError(
                f"a disturbed log has {len(other.b)} rows to fit, expected "
                f"{len(rows.b)} as the log: filter both in the same way."
            )
        dA = (other.Y - rows.Y)[..., base.independent]
        parts.append(products(dA, other.b - rows.b))
    return Errors(*(np.mean(x, axis=0) for x in zip(*parts, strict=True)))


def _check(
    model: Model, method: str, covariance: str, noise: Any, disturbed: int
) -> None:
    if method not in ("weighted", "ordinary", "total"):
        raise ValueError(
            f'method is {method!r}, expected "weighted", "ordinary" or "total".'
        )
    if covariance not in ("robust", "classical"):
        raise ValueError(
            f'covariance is {covariance!r}, expected "robust" or "classical".'
        )
    if method != "total" and disturbed:
        raise ValueError(
            f"method is {method!r} with {disturbed} disturbed logs, expected none: "
            'only "total" asks for errors of the regressor.'
        )
    if noise is None:
        return
    if method == "ordinary":
        raise ValueError(
            'noise is given with method "ordinary", which weighs all rows alike: '
            'expected "weighted" or "total".'
        )
    values = np.asarray(noise, float)
    if values.shape != (model.nv,) or not (np.isfinite(values) & (values > 0)).all():
        raise ValueError(
            f"noise is {values}, expected {model.nv} numbers above 0: the standard "
            "deviation of tau of each coordinate."
        )
