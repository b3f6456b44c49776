"""What a fit found, in one form for all methods."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import numpy as np
import scipy.stats

from jaxdyn.algorithms import dynamic_parameters, parameter_names, regressor
from jaxdyn.dynamics import inverse_dynamics
from jaxdyn.identify import (
    BaseParameters,
    Fit,
    LinearFit,
    base_parameters,
    consistent,
    least_squares,
)
from jaxdyn.io import Log
from jaxdyn.model import Model

LEVEL = 0.95  # of intervals
_STRONG = 0.95  # correlations from which on two parameters are hardly told apart
EFFECTS = ("armature", "damping", "friction", "stiffness")
_CHUNK = 2048  # rows whose regressors are made at once


@dataclass(frozen=True, eq=False)
class Numbers:
    """Named numbers with intervals; an infinite std: the data do not tell it."""

    names: tuple[str, ...]
    nominal: np.ndarray
    fitted: np.ndarray
    std: np.ndarray
    interval: np.ndarray

    @property
    def known(self) -> np.ndarray:
        """Which of them the data tell."""
        return np.isfinite(self.std)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A dictionary for each."""
        columns = self.nominal, self.fitted, self.std, *self.interval.T
        keys = ("name", "nominal", "fitted", "std", "low", "high")
        return [
            dict(zip(keys, (name, *map(float, x)), strict=True))
            for name, *x in zip(self.names, *columns, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class Estimate:
    """Parameters with intervals, the model they make, and the course of the search.

    Attributes:
        what: what the parameters are, in words.
        correlation: of the errors of parameters.
        combinations: of parameters, which the motion tells; None if that is unknown.
        robot: its name.
        model: with these parameters; None where there is none that could exist.
        losses, validations: the course of the search, None for a direct solution.
        held: how many of the last rows were held out.
        rms, held_rms: sizes of residuals that the method itself gives.
        strong: pairs of parameters with strongly correlated errors.
    """

    what: str
    parameters: Numbers
    correlation: np.ndarray
    combinations: Numbers | None
    robot: str
    model: Model | None
    losses: np.ndarray | None
    validations: np.ndarray | None
    message: str
    held: int
    rms: Any
    held_rms: Any
    strong: list[tuple[str, str, float]]


def of_fit(fit: Fit, log: Log, held: int, std: Any) -> Estimate:
    """What a search for physical parameters found.

    Args:
        held: how many of the last rows were held out.
        std: the noise of joint forces, if these were compared, or None.
    """
    covariance = np.asarray(fit.covariance, float)
    numbers = Numbers(
        names=fit.names,
        nominal=np.asarray(fit.parameters.nominal_values, float),
        fitted=np.asarray(fit.values, float),
        std=np.sqrt(np.diag(covariance)),
        interval=fit.interval(LEVEL),
    )
    return Estimate(
        what="parameters",
        parameters=numbers,
        correlation=_correlation(covariance, numbers.std),
        combinations=None if std is None else _combinations(fit, log, std),
        robot=fit.model.name,
        model=fit.model,
        losses=fit.losses,
        validations=fit.validations,
        message=fit.message,
        held=held,
        rms=fit.rms,
        held_rms=None if np.isnan(fit.validation_rms) else fit.validation_rms,
        strong=fit.correlated(_STRONG),
    )


def of_linear(linear: LinearFit) -> Estimate:
    """What least squares found: combinations, and a possible model near to them."""
    model, words = _consistent(linear)
    others = linear.validation_residuals
    held = 0 if others is None else len(others)
    nominal, interval = linear.base.of(linear.model), linear.interval(LEVEL)
    parts = nominal, linear.beta, linear.std, interval
    return Estimate(
        what="combinations",
        parameters=Numbers(linear.combinations, *parts),
        correlation=_correlation(linear.covariance, linear.std),
        combinations=None,
        robot=linear.model.name,
        model=model,
        losses=None,
        validations=None,
        message=f"Condition of the regressor {linear.condition:.3g}. {words}",
        held=held,
        rms=linear.rms,
        held_rms=linear.validation_rms if held else None,
        strong=linear.correlated(_STRONG),
    )


def dynamic_values(model: Model) -> dict[str, float]:
    """The dynamic parameters by name."""
    values = np.asarray(dynamic_parameters(model), float).tolist()
    return dict(zip(parameter_names(model), values, strict=True))


def linear_names(names: tuple[str, ...]) -> list[str]:
    """The dynamic parameters of those names of which forces are linear functions."""
    found = []
    for name in names:
        owner, _, leaf = name.rpartition(".")
        kind, _, end = leaf.partition("_")
        letter = {"mass": "m", "com": "h", "inertia": "I"}.get(kind)
        if letter is not None:
            found.append(f"{owner}.{letter}" + (f"_{end}" if end else ""))
        elif leaf.partition("[")[0] in EFFECTS:
            found.append(name)
    return found


def linear_starts(model: Model, log: Log, names: tuple[str, ...]) -> dict[str, float]:
    """Where the search for effects of joints starts: at those of a linear fit.

    Their logarithms are searched for, so a start that is much too small is far away.
    """
    effects = [x for x in names if x.rpartition(".")[2].partition("[")[0] in EFFECTS]
    if model.loops or not effects:
        return {}
    try:
        found = least_squares(
            model, log, parameters=linear_names(names), validation=0.0
        )
        values = dynamic_values(consistent(found).model)
    except ValueError:  # the motion tells too little: there is no better start
        return {}
    return {name: values[name] for name in effects if values[name] > 0}


def forces(model: Model, log: Log) -> np.ndarray | None:
    """The joint forces of a model at the rows of a log.

    None where these cannot be compared: loops share them, or the log has none.
    """
    if model.loops or log.qd is None or log.qdd is None or log.tau is None:
        return None
    return np.asarray(_forces(model, log.q, log.qd, log.qdd))


@eqx.filter_jit
def _forces(model: Model, q: Any, qd: Any, qdd: Any) -> Any:
    return jax.vmap(inverse_dynamics, (None, 0, 0, 0))(model, q, qd, qdd)


@eqx.filter_jit
def _regressors(model: Model, q: Any, qd: Any, qdd: Any) -> Any:
    return jax.vmap(lambda *x: regressor(model, *x))(q, qd, qdd)


def _consistent(linear: LinearFit) -> tuple[Model | None, str]:
    """The possible model that explains the combinations best, and words about it."""
    try:
        found = consistent(linear)
    except ValueError as error:
        return None, f"There is no model: {error}"
    return found.model, (
        f"The nearest possible model is {np.sqrt(found.misfit / linear.rank):.3g} "
        "standard deviations from them, in the mean."
    )


def _combinations(fit: Fit, log: Log, std: Any) -> Numbers | None:
    """The combinations in which forces are linear, with what the data alone tell.

    None where other parameters were fitted too, or loops share the forces.
    """
    model, patterns = fit.parameters.nominal, linear_names(fit.names)
    if model.loops or len(patterns) < len(fit.names):
        return None
    rows = len(fit.residuals)
    fitted = jax.tree.map(lambda x: np.asarray(x[:rows]), log)
    base = base_parameters(model, fitted, parameters=patterns)
    R = _root(model, base, fitted, np.broadcast_to(std, (model.nv,)))
    size = np.linalg.norm(np.linalg.inv(R), axis=1) * fit.uncertainty.scale
    half = scipy.stats.t.ppf((1 + LEVEL) / 2, fit.uncertainty.freedom) * size
    values = base.of(fit.model)
    interval = np.stack([values - half, values + half], axis=1)
    return Numbers(base.combinations, base.of(model), values, size, interval)


def _root(model: Model, base: BaseParameters, log: Any, std: np.ndarray) -> np.ndarray:
    """The triangular factor of the regressor of all rows, in standard deviations."""
    columns = base.columns[base.independent]
    R = np.zeros((0, len(columns)))
    for k in range(0, len(log.ts), _CHUNK):
        part = slice(k, k + _CHUNK)
        Y = np.asarray(_regressors(model, log.q[part], log.qd[part], log.qdd[part]))
        A = (Y[..., columns] / std[:, None]).reshape(-1, len(columns))
        R = np.asarray(np.linalg.qr(np.concatenate([R, A]), mode="r"))
    return R


def _correlation(covariance: np.ndarray, std: np.ndarray) -> np.ndarray:
    """Correlations; zero for what is not known, one with itself."""
    is_known = np.isfinite(std) & (std > 0)
    both = np.outer(is_known, is_known)
    size = np.where(is_known, std, 1.0)
    r = np.where(both, covariance, 0.0) / np.outer(size, size)
    np.fill_diagonal(r, 1.0)
    return r
