"""Fitting a model to data."""

import dataclasses
import os
import sys
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Bool, Float
from tqdm import tqdm

from jaxdyn.identify import _estimates as statistics
from jaxdyn.identify._checkpoints import Checkpoints, Found, digest, search
from jaxdyn.identify._choice import Parameters
from jaxdyn.identify._priors import Prior
from jaxdyn.identify._problem import Problem, Residual, held_out_size, split
from jaxdyn.identify._solvers import LevenbergMarquardt, Optax
from jaxdyn.identify._uncertainty import Uncertainty, uncertainty
from jaxdyn.model import Model


class Fit(eqx.Module):
    """A fitted model, and how sure it is.

    Attributes:
        parameters: what was fitted; `residual`: what it was fitted to.
        theta: their coordinates; `more` is what else the residual left open.
        model: the model with them.
        values: the physical numbers, named by `names`.
        rms, validation_rms: the size of the residuals that were fitted, and of those of
            held-out rows (NaN if none were held out), in standard deviations.
        losses, validations: the course of the search.
        uncertainty: covariance, degrees of freedom, and which values the data tell.
        message: how the search ended; `converged`: whether it did well.
    """

    parameters: Parameters
    residual: Residual
    theta: Float[Array, " k"]
    more: Any
    model: Model
    values: Float[Array, " values"]
    rms: float = eqx.field(static=True)
    validation_rms: float = eqx.field(static=True)
    losses: Float[np.ndarray, " steps"]
    validations: Float[np.ndarray, " looks"]
    uncertainty: Uncertainty
    message: str = eqx.field(static=True)
    converged: bool = eqx.field(static=True)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the values."""
        return self.parameters.names

    @property
    def residuals(self) -> Float[np.ndarray, "rows m"]:
        """The residuals of the rows that were fitted, in standard deviations."""
        return self.uncertainty.residuals

    @property
    def covariance(self) -> Float[np.ndarray, "values values"]:
        """The covariance of the values."""
        return self.uncertainty.covariance

    @property
    def std(self) -> Float[np.ndarray, " values"]:
        """The standard deviations of the values, infinite where data tell nothing."""
        return np.sqrt(np.diagonal(self.covariance))

    @property
    def correlation(self) -> Float[np.ndarray, "values values"]:
        """The correlations of the errors; zero where data tell nothing."""
        return statistics.correlations(self.covariance)

    @property
    def unknown(self) -> tuple[str, ...]:
        """The names of the values that the data do not tell."""
        pairs = zip(self.names, self.uncertainty.known, strict=True)
        return tuple(name for name, known in pairs if not known)

    def interval(self, level: float = 0.95) -> Float[np.ndarray, "values 2"]:
        """Lower and upper ends of intervals that contain the true values so often.

        All of it is physically possible. What is positive in every model (masses,
        moments of inertia, damping, ...) has the interval of its logarithm, mapped
        back (`confidence_interval`); components of unit vectors end at -1 and 1. Other
        values (mass centres, products of inertia, ...) have value ± t std.
        """
        low, high = self.parameters.bounds.T
        given = self.values, self.std, self.uncertainty.freedom, level
        ends = statistics.confidence_interval(*given, positive=low == 0)
        return np.clip(ends, low[:, None], high[:, None])

    @property
    def determined(self) -> Bool[np.ndarray, " values"]:
        """Which values are known better than their own size, by standard deviation.

        The size is that of the value itself. For a value that may be zero or negative
        it is, if that is more, half of the change by coordinates of length 1, such as
        half of the radius of gyration for a mass centre.
        """
        size = np.abs(np.asarray(self.values, float))
        signed = self.parameters.bounds[:, 0] < 0
        size[signed] = np.maximum(size, self.uncertainty.reach / 2)[signed]
        return self.std <= size

    def correlated(self, least: float = 0.95) -> list[tuple[str, str, float]]:
        """Pairs of values that the data hardly tell apart, and their correlation."""
        return statistics.correlated_pairs(self.names, self.correlation, least)

    def estimates(self, level: float = 0.95) -> statistics.Estimates:
        """Names, nominal and fitted values, standard deviations and intervals."""
        return statistics.Estimates(
            names=self.names,
            nominal=np.asarray(self.parameters.nominal_values, float),
            fitted=np.asarray(self.values, float),
            std=np.asarray(self.std, float),
            interval=self.interval(level),
            determined=self.determined,
            level=level,
        )

    def table(self, level: float = 0.95) -> str:
        """The `estimates` as text; what is not `determined` has no digits there."""
        return self.estimates(level).table()

    def __repr__(self) -> str:
        apart = self.validation_rms
        held = "" if np.isnan(apart) else f", held out {apart:.4g}"
        return (
            f"Fit of {len(self.names)} values of model {self.model.name!r}: "
            f"{self.message} Residuals {self.rms:.4g}{held} standard deviations.\n"
            f"{self.table()}"
        )


def fit(
    parameters: Parameters,
    residual: Residual,
    data: Any,
    *,
    solver: LevenbergMarquardt | Optax | None = None,
    priors: Prior | Sequence[Prior] = (),
    validation: float | int = 0.2,
    lags: int = 0,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = False,
    throw: bool = True,
) -> Fit:
    r"""The parameters with which a model fits data, physically possible at every step.

    $$\min_\theta \sum_i \|r_i(\theta)\|^2 + \sum_j \|p_j(\theta)\|^2$$

    with the residuals r of the rows of the data and those of the priors, all in
    standard deviations.

    Args:
        parameters: of `choose`.
        residual: `Torque`, `Acceleration` or `Simulated`.
        data: a `Log`.
        solver: `LevenbergMarquardt()` by default, or `Optax(optimizer)`.
        priors: `Gaussian`, `Geodesic`.
        validation: the share of the rows, the last ones, that is held out, rounded
            down: of fewer than five windows of `Simulated` none is by default.
        lags: rows over which noise may be correlated; intervals then allow for it.
        checkpoint: a folder for states of the search: a fit that was killed goes on
            from the last one and ends as if it had not been. It is removed at the end.
            The states of another fit (other data, parameters, residuals, solvers,
            numbers or functions of these), or of another release of JAX, are an error.
        progress: whether a bar is shown.
        throw: whether a loss that is not finite raises.

    Raises:
        ValueError: data do not fit the model or the residual, or the folder has the
            states of another fit.
        RuntimeError: the loss is not finite.
    """
    solver = LevenbergMarquardt() if solver is None else solver
    priors = (priors,) if not isinstance(priors, Sequence) else tuple(priors)
    for prior in priors:
        prior.check(parameters)
    rows, held = split(residual.rows(parameters.nominal, data), validation)
    residual = _in_mode(residual, solver.forward)
    problem = Problem(parameters, residual, priors, rows)
    saved = None
    if checkpoint is not None:
        saved = Checkpoints(checkpoint, digest(solver, problem, held))
    steps = tqdm(total=solver.steps, disable=not progress, unit="step", file=sys.stderr)

    def tell(count: int, loss: float) -> None:
        steps.update(count)
        steps.set_postfix_str(f"loss {loss:.4g}")

    try:
        found = search(solver, problem, held, saved, tell)
    finally:
        steps.close()
        if saved is not None:
            saved.close()
    if found.failed and throw:
        raise RuntimeError(f"fit: {found.message} throw=False returns what was found.")
    result = _result(problem, held, found, lags)
    if saved is not None:
        saved.remove()
    return result


def _result(problem: Problem, held: Any, found: Found, lags: int) -> Fit:
    x, parameters = found.x, problem.parameters
    ahead = eqx.tree_at(lambda p: p.residual, problem, _in_mode(problem.residual, True))
    sure = uncertainty(ahead, x, lags)
    apart = np.nan if held is None else float(held_out_size(ahead, x, held))
    return Fit(
        parameters=parameters,
        residual=problem.residual,
        theta=x.theta,
        more=x.more,
        model=parameters.model(x.theta),
        values=parameters.values(x.theta),
        rms=float(np.sqrt((sure.residuals**2).sum() / max(sure.count, 1))),
        validation_rms=apart,
        losses=found.losses,
        validations=found.validations,
        uncertainty=sure,
        message=found.message,
        converged=found.converged,
    )


def _in_mode(residual: Residual, forward: bool) -> Residual:
    """The residual with derivatives in forward or reverse mode, if it must choose."""
    if not hasattr(residual, "forward"):
        return residual
    return dataclasses.replace(residual, forward=forward)
