"""The physical model that explains estimated base parameters best."""

from dataclasses import dataclass

import numpy as np

from jaxdyn.identify.linear import _cones as physical
from jaxdyn.identify.linear._least_squares import LinearFit
from jaxdyn.model import Model

_SURE = 1e-7  # standard deviations below this part of a number count as this part
_RELATED = 1e-10  # the least variance of a combination of errors, of the largest
_IMPOSSIBLE = 1e-6  # the least weight, of a misfit that stays
_STEPS = 100


@dataclass(frozen=True, eq=False)
class Consistent:
    """A model that can exist, near to estimated base parameters.

    Attributes:
        model: the model; what was not free is that of the fit.
        beta: its base parameters.
        misfit: the square of their distance from the estimated ones in standard
            deviations; much above their number if the estimate is not possible.
        divergence: how far the free parameters are from the nominal model.
    """

    model: Model
    beta: np.ndarray
    misfit: float
    divergence: float


def consistent(fit: LinearFit, *, weight: float = 0.01) -> Consistent:
    r"""The physically possible model that explains a linear fit best.

    $$\min_\pi\; \tfrac12 |\Sigma^{-1/2} (B \pi - \hat\beta)|^2 + w \sum_i
    (\operatorname{tr} J_{0i}^{-1} J_i - \log\det J_{0i}^{-1} J_i - 4)$$

    J is the pseudo-inertia of a body, J_0 that of the nominal model, and the second
    term the entropic divergence of [Lee], which decides what the data do not tell; free
    effects of joints have x/x_0 - log(x/x_0) - 1. The problem is convex and its
    logarithms keep all J positive definite, so Newton's method from the nominal model
    finds the one minimum, for any data. Where the data ask for what cannot exist, the
    model is near to the border of what can.

    A nominal body that is not physical itself, and an effect that is zero, are replaced
    by near values that are; in a body of which only some parameters are free the others
    stay, so it must be physical.

    Args:
        weight: w, of the distance from the nominal model.

    Raises:
        ValueError: the weight is not positive; a body is not physical and not free in
            all its parameters.
    """
    if not weight > 0:
        raise ValueError(f"weight is {weight}, expected above 0, as 0.01.")
    problem = _problem(fit)
    x, nominal = problem.nominal, problem.nominal
    level = max(problem.misfit(x) / len(fit.beta), weight)
    while level > weight:  # along the minima, as the nominal model loses its weight
        x = _minimum(problem, x, level, 1e-2)
        level = max(level / 10, weight, _IMPOSSIBLE * problem.misfit(x))
        if level == _IMPOSSIBLE * problem.misfit(x):
            break
    x = _minimum(problem, x, level, 1e-12)
    columns = fit.base.columns
    model = physical.with_parameters(fit.model, columns, x)
    for share in 10.0 ** np.arange(-12, 1):  # the nominal model has a margin
        if physical.is_physical(model, columns):
            break
        x = x + share * (nominal - x)
        model = physical.with_parameters(fit.model, columns, x)
    beta, misfit = fit.base.of(model), 2 * problem.misfit(x)
    return Consistent(model, beta, misfit, problem.divergence(x))


@dataclass(frozen=True, eq=False)
class _Problem:
    """Free parameters x with |whitened x - target|² / 2 to be small, inside cones."""

    whitened: np.ndarray
    target: np.ndarray
    cones: tuple[physical.Cones, physical.Cones]
    nominal: np.ndarray

    def misfit(self, x: np.ndarray) -> float:
        return float(np.sum((self.whitened @ x - self.target) ** 2) / 2)

    def divergence(self, x: np.ndarray) -> float:
        """The distance from the nominal model, infinite outside of a cone."""
        total = 0.0
        for cone in self.cones:
            L = cone.factor(x)
            if L is None:
                return np.inf
            total += cone.divergence(L)
        return total

    def step(self, x: np.ndarray, weight: float) -> tuple[np.ndarray, float]:
        """Newton's step and the decrease that it promises."""
        rows, right = [self.whitened], [self.target - self.whitened @ x]
        for cone in self.cones:
            L = cone.factor(x)
            assert L is not None  # steps never leave the cones
            G, r = cone.rows(L)
            rows.append(np.sqrt(weight) * G)
            right.append(np.sqrt(weight) * r)
        M, r = np.concatenate(rows), np.concatenate(right)
        size = np.linalg.norm(M, axis=0)
        Q, R = np.linalg.qr(M / size)
        along = Q.T @ r
        return np.linalg.solve(R, along) / size, float(along @ along / 2)


def _minimum(
    problem: _Problem, x: np.ndarray, weight: float, tolerance: float
) -> np.ndarray:
    """Newton's method with shorter steps where the full one does not hold."""

    def value(x: np.ndarray) -> float:
        return problem.misfit(x) + weight * problem.divergence(x)

    now = value(x)
    for _ in range(_STEPS):
        step, decrease = problem.step(x, weight)
        if decrease < tolerance * weight:
            break
        share = 1.0
        while share > 1e-12 and not value(x + share * step) < now:
            share /= 2
        new = value(x + share * step)
        if not new < now:  # nothing left but rounding
            break
        x, now = x + share * step, new
    return x


def _problem(fit: LinearFit) -> _Problem:
    base = fit.base
    bodies, x = physical.mass_cones(fit.model, base.columns)
    effects = np.flatnonzero(base.columns >= 10 * fit.model.n)
    for k in effects.tolist():
        if not x[k] > 0:
            x[k] = _typical(fit, k, x)
    cones = bodies, physical.effect_cones(len(x), effects, x[effects])
    # a number near zero is as sure as the parts of which it is the sum
    scale = np.maximum(np.abs(fit.beta), np.abs(base.B) @ np.abs(x))
    known = np.maximum(fit.std, _SURE * scale)
    values, vectors = np.linalg.eigh(fit.covariance / np.outer(known, known))
    values = np.maximum(values, _RELATED * values[-1])
    half = vectors.T / np.sqrt(values)[:, None] / known
    return _Problem(half @ base.B, half @ fit.beta, cones, x)


def _typical(fit: LinearFit, k: int, x: np.ndarray) -> float:
    """What an effect that is nominally zero may be: its estimate, or its error."""
    row = np.flatnonzero(fit.base.independent == k)
    if len(row):
        return float(max(fit.beta[row[0]], fit.std[row[0]], 1e-12))
    kind = fit.base.names[k].rpartition(".")[2].partition("[")[0]
    same = [v for v, name in zip(x, fit.base.names, strict=True) if f".{kind}" in name]
    return float(max(*same, 1e-3))
