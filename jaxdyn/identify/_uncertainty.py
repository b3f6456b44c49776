"""How sure a fit is: covariance from exact Jacobians."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Bool, Float

from jaxdyn.identify._problem import Problem, Unknowns

_RANK = 1e-9  # singular values below this share of the largest tell nothing
_ROUNDING = 50  # units of it, where this is more
_LEAK = 1e-4  # share of a value along directions that data say nothing of


class Uncertainty(eqx.Module):
    """The covariance of fitted values, to first order.

    Attributes:
        residuals: of the rows that were fitted, in standard deviations.
        covariance: of the values; infinite variances where data tell nothing.
        known: which values the data tell.
        scale: the size of the residuals, 1 if standard deviations were right.
        freedom: the number of residuals less that of directions that were fitted.
        rank: the number of these directions.
        count: the number of residuals that are not zero for any parameters.
    """

    residuals: Float[np.ndarray, "rows m"]
    covariance: Float[np.ndarray, "values values"]
    known: Bool[np.ndarray, " values"]
    scale: float = eqx.field(static=True)
    freedom: int = eqx.field(static=True)
    rank: int = eqx.field(static=True)
    count: int = eqx.field(static=True)


def uncertainty(problem: Problem, x: Unknowns, lags: int) -> Uncertainty:
    r"""The covariance of the values at the solution of a least-squares problem.

    With J the Jacobian of all residuals, in standard deviations, the Fisher information
    is $F = J^T J$ and the covariance $s^2 F^{-1}$, where $s^2$ is the sum of squares
    over the degrees of freedom. With `lags` it is $F^{-1} S F^{-1}$ with the sum S of
    products of the scores of rows up to so many rows apart, [Newey]: right also where
    the noise of neighbouring rows is correlated, or differs from row to row.
    """
    arrays = [np.asarray(a, float) for a in _jacobians(problem, x)]
    residuals, J, prior, V = arrays
    least = max(_RANK, _ROUNDING * float(jnp.finfo(x.theta.dtype).eps))
    rows = np.concatenate([J.reshape(-1, J.shape[-1]), prior])
    root, hidden = _directions(rows, least)
    rank = root.shape[1]
    # what is zero for any parameters, such as the start of a motion, is no data
    count = int(((residuals != 0) | J.any(axis=-1)).sum())
    freedom = max(count + len(prior) - rank, 1)
    squares = (residuals**2).sum() + (np.asarray(problem.prior(x), float) ** 2).sum()
    scale = np.sqrt(squares / freedom)
    middle = scale**2 * np.eye(rank)
    if lags:
        share = count / freedom
        middle = share * root.T @ _long_run(residuals, J, prior, lags) @ root
    covariance = V @ root @ middle @ root.T @ V.T
    # a value is known unless it changes along directions of which data tell nothing
    leak = np.linalg.norm(V @ hidden, axis=1)
    known = leak <= _LEAK * np.linalg.norm(V, axis=1)
    covariance[~known, :] = covariance[:, ~known] = 0.0
    covariance[~known, ~known] = np.inf
    return Uncertainty(
        residuals, covariance, known, float(scale), int(freedom), rank, count
    )


def _directions(J: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
    """A root of the inverse of JᵀJ on what J tells, and what it does not tell.

    Columns are scaled to one length before the rank is decided.
    """
    size = np.linalg.norm(J, axis=0)
    unit = np.where(size > least * size.max(), size, 1.0)
    short = max(J.shape[1] - len(J), 0)  # rows of zeros, so that Wt is square
    _, s, Wt = np.linalg.svd(np.pad(J / unit, ((0, short), (0, 0))), False)
    told = s > least * s[0]
    hidden = Wt[~told].T / unit[:, None]
    return (Wt[told].T / s[told]) / unit[:, None], hidden / np.linalg.norm(
        hidden, axis=0
    )


@eqx.filter_jit
def _jacobians(problem: Problem, x: Unknowns) -> tuple[Any, ...]:
    """Residuals, their Jacobian, that of the priors, and that of the values."""
    flat, unflatten = ravel_pytree(x)

    def residuals(y: Any) -> Any:
        rows = problem.residuals(unflatten(y))
        return rows, rows

    J, rows = jax.jacfwd(residuals, has_aux=True)(flat)
    prior = jax.jacfwd(lambda y: problem.prior(unflatten(y)))(flat)
    values = lambda y: problem.parameters.values(unflatten(y).theta)  # noqa: E731
    return rows, J, prior, jax.jacfwd(values)(flat)


def _long_run(residuals: Any, J: Any, prior: Any, lags: int) -> np.ndarray:
    """The covariance of the sum of scores, with weights that fall to zero, [Newey]."""
    scores = np.einsum("rm,rmk->rk", residuals, J)
    total = scores.T @ scores + prior.T @ prior
    for lag in range(1, min(lags, len(scores) - 1) + 1):
        product = scores[lag:].T @ scores[:-lag]
        total += (1 - lag / (lags + 1)) * (product + product.T)
    return total
