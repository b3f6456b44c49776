"""What a fit found, in one form for all methods."""

import re
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import numpy as np

from jaxdyn.algorithms.recursions import dynamic_parameters, parameter_names
from jaxdyn.dynamics import inverse_dynamics
from jaxdyn.identify import (
    Fit,
    LinearFit,
    Parameters,
    base_parameters,
    confidence_interval,
    consistent,
    least_squares,
)
from jaxdyn.identify.linear import regressor_rows
from jaxdyn.io import Log
from jaxdyn.model import Model

LEVEL = 0.95  # of intervals
_STRONG = 0.95  # correlations from which on two parameters are hardly told apart
_EFFECTS = (("armature",), ("damping",), ("friction",), ("stiffness",))
_OF_BODIES = (("mass",), ("com",), ("inertia",))
_SIGNED = re.compile(r"\.(h_.|I_xy|I_xz|I_yz)$")  # others are positive in any model
_USUAL = 0.1  # where the search for an effect starts that is nominally zero
_FAR = 100.0  # times that or a nominal value: starts are not farther away


@dataclass(frozen=True, eq=False)
class Numbers:
    """Named numbers with intervals; `known` are those that the data determine."""

    names: tuple[str, ...]
    nominal: np.ndarray
    fitted: np.ndarray
    std: np.ndarray
    interval: np.ndarray
    known: np.ndarray

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
        known=fit.determined,
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
    held = len(linear.validation_residuals)
    return Estimate(
        what="combinations",
        parameters=Numbers(
            names=linear.combinations,
            nominal=linear.base.of(linear.model),
            fitted=linear.beta,
            std=linear.std,
            interval=linear.interval(LEVEL),
            known=np.isfinite(linear.std),
        ),
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


def linear_starts(model: Model, log: Log, chosen: Parameters) -> dict[str, float]:
    """Where the search for effects of joints starts: at those of a linear fit.

    Their logarithms are searched for, so a start that is much too small is far away.
    All that is linear in a body that is chosen, whole or in part, is free there.
    """
    effects = [x.name for x in chosen.chosen if x.leaf[-1:] in _EFFECTS]
    parts = [x for x in chosen.chosen if x.kind == "body" or x.leaf in _OF_BODIES]
    bodies = {x.name.rpartition(".")[0] for x in parts}
    if model.loops or not effects:
        return {}
    free = [*effects, *(f"{body}.inertial" for body in sorted(bodies))]
    try:
        found = least_squares(model, log, parameters=free, validation=0.0)
        values = dynamic_values(consistent(found).model)
    except ValueError:  # the motion tells too little: there is no better start
        return {}
    nominal = dynamic_values(model)
    usual = {name: nominal[name] or _USUAL for name in effects}
    return {k: float(np.clip(values[k], x / _FAR, x * _FAR)) for k, x in usual.items()}


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

    None where forces are not linear in what was fitted: parts of bodies, parameters
    that others follow, other leaves than those of the regressor; or loops share them.
    """
    model, chosen = fit.parameters.nominal, fit.parameters.chosen
    is_linear = all(x.kind == "body" or x.leaf[-1:] in _EFFECTS for x in chosen)
    if model.loops or fit.parameters.ties or not is_linear:
        return None
    rows = len(fit.residuals)
    fitted = jax.tree.map(lambda x: np.asarray(x[:rows]), log)
    base = base_parameters(model, fitted, parameters=[x.name for x in chosen])
    Y = regressor_rows(model, fitted.q, fitted.qd, fitted.qdd)
    noise = np.broadcast_to(std, (model.nv,))[:, None]
    A = Y[..., base.columns[base.independent]] / noise
    R = np.linalg.qr(A.reshape(-1, base.rank), mode="r")
    size = np.linalg.norm(np.linalg.inv(R), axis=1) * fit.uncertainty.scale
    values, freedom = base.of(fit.model), fit.uncertainty.freedom
    signed = np.array([_SIGNED.search(name) is not None for name in base.names])
    positive = (base.B >= 0).all(axis=1) & ~base.B[:, signed].any(axis=1)
    return Numbers(
        names=base.combinations,
        nominal=base.of(model),
        fitted=values,
        std=size,
        interval=confidence_interval(values, size, freedom, LEVEL, positive=positive),
        known=~positive | (size <= values),
    )


def _correlation(covariance: np.ndarray, std: np.ndarray) -> np.ndarray:
    """Correlations; zero for what is not known, one with itself."""
    is_known = np.isfinite(std) & (std > 0)
    both = np.outer(is_known, is_known)
    size = np.where(is_known, std, 1.0)
    r = np.where(both, covariance, 0.0) / np.outer(size, size)
    np.fill_diagonal(r, 1.0)
    return r
