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
    """The covariance of fitted values, to first order."""

    residuals: Float[np.ndarray, "rows m"]  # of rows that were fitted, in deviations
    covariance: Float[np.ndarray, "values values"]  # infinite where nothing is told
    known: Bool[np.ndarray, " values"]  # which values the data, or priors, tell
    reach: Float[np.ndarray, " values"]  # how far coordinates of length 1 change each
    scale: float = eqx.field(static=True)  # of the noise; 1 if deviations were right
    freedom: int = eqx.field(static=True)  # residuals less directions that they tell
    rank: int = eqx.field(static=True)  # directions that residuals and priors tell
    count: int = eqx.field(static=True)  # residuals not zero for any parameters


def uncertainty(problem: Problem, x: Unknowns, lags: int) -> Uncertainty:
    r"""The covariance of the values at the solution of a least-squares problem.

    With J and P the Jacobians of the residuals and of the priors, in standard
    deviations, the least squares have the covariance

    $$H^{-1} (s^2 J^T J + P^T P) H^{-1}, \quad H = J^T J + P^T P,$$

    where $s^2$ is the variance of the noise in the residuals, and that of what priors
    say is 1; without priors that is $s^2 H^{-1}$. Noise is what no step along J takes
    from the residuals, wherever priors have drawn the solution: $s^2$ is its sum of
    squares over the degrees of freedom, or 1 where there are none. With `lags`
    $s^2 J^T J$ is the sum of products of the scores of rows up to so many rows apart,
    [Newey]: right also where the noise of neighbouring rows is correlated, or differs
    from row to row.

    Nothing is known where a residual or a derivative is not finite.
    """
    arrays = [np.asarray(a, float) for a in _jacobians(problem, x)]
    residuals, J, prior, V = arrays
    # what is zero for any parameters, such as the start of a motion, is no data
    count = int(((residuals != 0) | J.any(axis=-1)).sum())
    reach = np.linalg.norm(V, axis=1)
    if not all(np.isfinite(a).all() for a in arrays):
        nothing = np.diag(np.full(len(V), np.inf)), np.zeros(len(V), bool), reach
        return Uncertainty(residuals, *nothing, np.inf, max(count, 1), 0, count)
    least = max(_RANK, _ROUNDING * float(jnp.finfo(x.theta.dtype).eps))
    flat = J.reshape(-1, J.shape[-1])
    root, hidden = _directions(np.concatenate([flat, prior]), least)
    U = flat @ (_directions(flat, least)[0] if len(prior) else root)
    noise = residuals - (U @ (U.T @ residuals.ravel())).reshape(residuals.shape)
    free = count - U.shape[1]
    scale = np.sqrt((noise**2).sum() / free) if free > 0 else 1.0
    believed = root.T @ prior.T @ prior @ root
    measured = scale**2 * (np.eye(root.shape[1]) - believed)
    if lags and free > 0:
        measured = count / free * root.T @ _long_run(noise, J, lags) @ root
    covariance = V @ root @ (measured + believed) @ root.T @ V.T
    # a value is known unless it changes along directions of which nothing is told
    known = np.linalg.norm(V @ hidden, axis=1) <= _LEAK * reach
    covariance[~known, :] = covariance[:, ~known] = 0.0
    covariance[~known, ~known] = np.inf
    return Uncertainty(
        residuals=residuals,
        covariance=covariance,
        known=known,
        reach=reach,
        scale=float(scale),
        freedom=max(free, 1),
        rank=root.shape[1],
        count=count,
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
    # orthonormal: what a value has along them depends on no choice of directions
    hidden, _ = np.linalg.qr(Wt[~told].T / unit[:, None])
    return (Wt[told].T / s[told]) / unit[:, None], hidden


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


def _long_run(noise: np.ndarray, J: np.ndarray, lags: int) -> np.ndarray:
    """The covariance of the sum of scores, with weights that fall to zero, [Newey]."""
    scores = np.einsum("rm,rmk->rk", noise, J)
    total = scores.T @ scores
    for lag in range(1, min(lags, len(scores) - 1) + 1):
        product = scores[lag:].T @ scores[:-lag]
        total += (1 - lag / (lags + 1)) * (product + product.T)
    return total
