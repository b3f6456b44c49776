"""The linear view of a fit: where it starts well, and what its log tells."""

import re

import jax
import numpy as np

from jaxdyn.algorithms.recursions import dynamic_parameters, parameter_names
from jaxdyn.identify import linear
from jaxdyn.identify._choice import Parameters
from jaxdyn.identify._estimates import Estimates, confidence_interval
from jaxdyn.identify._fit import Fit
from jaxdyn.identify._residuals import Torque
from jaxdyn.identify._rows import log_arrays
from jaxdyn.io import Log
from jaxdyn.model import Model

_EFFECTS = (("armature",), ("damping",), ("friction",), ("stiffness",))
_OF_BODIES = (("mass",), ("com",), ("inertia",))
_SIGNED = re.compile(r"\.(h_.|I_xy|I_xz|I_yz)$")  # others are positive in any model
_USUAL = 0.1  # where the search for an effect starts that is nominally zero
_FAR = 100.0  # times that or a nominal value: starts are not farther away


def dynamic_values(model: Model) -> dict[str, float]:
    """The numbers of `dynamic_parameters` by their names."""
    values = np.asarray(dynamic_parameters(model), float).tolist()
    return dict(zip(parameter_names(model), values, strict=True))


def linear_starts(parameters: Parameters, log: Log) -> dict[str, float]:
    """Where the search for effects of joints starts well: at those of a linear fit.

    Armature, damping, friction and stiffness are searched for by their logarithms, so a
    start that is much too small is far away. They are estimated by `least_squares` and
    `consistent`, with all that is linear in a body that is chosen, whole or in part.
    They are for `start=` of `choose`:

        start = linear_starts(choose(model, names), log)
        chosen = choose(model, names, start=start)

    Returns:
        the starts by name; none if no such effects are chosen, for models with loops or
        force elements, and where the log tells too little for a linear fit.

    Raises:
        ValueError: the log lacks rates, accelerations or forces, or is of another
            robot.
    """
    model = parameters.nominal
    effects = [x.name for x in parameters.chosen if x.leaf[-1:] in _EFFECTS]
    parts = [x for x in parameters.chosen if x.kind == "body" or x.leaf in _OF_BODIES]
    bodies = {x.name.rpartition(".")[0] for x in parts}
    if model.loops or not effects:
        return {}
    log_arrays(model, log, ("q", "qd", "qdd", "tau"))
    free = [*effects, *(f"{body}.inertial" for body in sorted(bodies))]
    try:
        found = linear.least_squares(model, log, parameters=free, validation=0.0)
        values = dynamic_values(linear.consistent(found).model)
    except ValueError:  # the motion tells too little: there is no better start
        return {}
    nominal = dynamic_values(model)
    usual = {name: nominal[name] or _USUAL for name in effects}
    return {k: float(np.clip(values[k], x / _FAR, x * _FAR)) for k, x in usual.items()}


def fitted_combinations(fit: Fit, log: Log, *, level: float = 0.95) -> Estimates:
    """The combinations of parameters that a log tells, with the values of a fit.

    Joint forces are linear in bodies and effects of joints, and depend on combinations
    of these alone, the base parameters of the log. Standard deviations and intervals
    are those of the data, without priors, at the noise that the fit has found.

    Args:
        fit: of whole bodies (`BODY.inertial`), armature, damping, friction and
            stiffness to joint forces (`Torque`), without ties.
        log: the one that was fitted, with the rows that were held out.
        level: the share of intervals that contain the true value.

    Raises:
        ValueError: forces are not linear in what was fitted, or it was not fitted to
            joint forces.
    """
    model, chosen = fit.parameters.nominal, fit.parameters.chosen
    others = [
        x.name for x in chosen if x.kind != "body" and x.leaf[-1:] not in _EFFECTS
    ]
    if not isinstance(fit.residual, Torque) or fit.parameters.ties or others:
        raise ValueError(
            f"fitted_combinations: the fit is of {type(fit.residual).__name__} with "
            f"{len(fit.parameters.ties)} ties and {', '.join(others) or 'no parts'}, "
            "expected Torque without ties, of whole bodies, armature, damping, "
            "friction and stiffness: joint forces are linear in these."
        )
    rows = len(fit.residuals)
    fitted = jax.tree.map(lambda x: np.asarray(x[:rows]), log)
    base = linear.base_parameters(model, fitted, parameters=[x.name for x in chosen])
    Y = linear.regressor_rows(model, fitted.q, fitted.qd, fitted.qdd)
    noise = np.broadcast_to(fit.residual.std, (model.nv,))[:, None]
    A = Y[..., base.columns[base.independent]] / noise
    R = np.linalg.qr(A.reshape(-1, base.rank), mode="r")
    std = np.linalg.norm(np.linalg.inv(R), axis=1) * fit.uncertainty.scale
    values, freedom = base.of(fit.model), fit.uncertainty.freedom
    signed = np.array([_SIGNED.search(name) is not None for name in base.names])
    positive = (base.B >= 0).all(axis=1) & ~base.B[:, signed].any(axis=1)
    return Estimates(
        names=base.combinations,
        nominal=base.of(model),
        fitted=values,
        std=std,
        interval=confidence_interval(values, std, freedom, level, positive=positive),
        determined=~positive | (std <= values),
        level=level,
    )
