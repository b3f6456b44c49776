"""Least squares with rows [times, nv]: ordinary, weighted, total."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxdyn.identify.linear._covariance import Kind, score_covariance

_ROUNDING = 1e-13  # of the forces of a joint: less noise than this is not believed
_ITERATIONS = 50
_MOST = 1e10  # of a condition number


@dataclass(frozen=True, eq=False)
class Estimate:
    """What least squares gives: see `LinearFit`."""

    beta: np.ndarray
    covariance: np.ndarray
    noise: np.ndarray
    condition: float
    lags: int


@dataclass(frozen=True, eq=False)
class Errors:
    """Mean products of errors in the rows of each joint."""

    columns: np.ndarray  # of the columns with each other, [nv, rank, rank]
    forces: np.ndarray  # of the columns with the forces, [nv, rank]


def products(dA: np.ndarray, db: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The parts of `Errors` from errors of all rows."""
    dA, db = dA.swapaxes(0, 1), db.T[..., None]
    return dA.mT @ dA / dA.shape[1], (dA.mT @ db)[..., 0] / dA.shape[1]


def ordinary(A: np.ndarray, b: np.ndarray, kind: Kind) -> Estimate:
    """All rows alike."""
    triangles = _triangles(A, b)
    alike = np.full(A.shape[1], _level(b).max())
    beta, R, d = _solved(triangles, alike)
    e = b - A @ beta
    noise = np.sqrt(np.mean(e**2, axis=0) / (1 - len(beta) / b.size))
    return _estimate(A, e, (alike, noise), (beta, R, d), R.T @ R, kind)


def weighted(A: np.ndarray, b: np.ndarray, noise: Any, kind: Kind) -> Estimate:
    """Rows divided by the noise of their joint, estimated in turn if it is not given.

    The noise is the root of the residuals' squares over the rows less the parameters
    they have determined, the share of the joint in the trace of the hat matrix.
    """
    triangles, sigma = _triangles(A, b), _level(b)
    if noise is not None:
        sigma = np.asarray(noise, float)
    beta, R, d = _solved(triangles, sigma)
    for _ in range(_ITERATIONS if noise is None else 0):
        columns, right = triangles[..., :-1] / d, triangles[..., -1]
        part = np.linalg.solve(R.T, columns.mT) / sigma[:, None, None]
        left = np.maximum(len(b) - np.sum(part**2, axis=(1, 2)), 1.0)
        e = right - columns @ (beta * d)
        new = np.sqrt(np.sum(e**2, axis=1) / left)
        new = np.maximum(new, _ROUNDING * _level(b))
        is_settled = np.abs(new / sigma - 1).max() < 1e-6
        sigma = new
        beta, R, d = _solved(triangles, sigma)
        if is_settled:
            break
    return _estimate(A, b - A @ beta, (sigma, sigma), (beta, R, d), R.T @ R, kind)


def total(
    A: np.ndarray, b: np.ndarray, start: Estimate, errors: Errors | None, kind: Kind
) -> Estimate:
    r"""The estimate that allows for errors in A, of known mean products Sigma.

    $$(A^T A - N \Sigma_{AA})\,\beta = A^T b - N \Sigma_{Ab}$$

    With Sigma as it is known this is free of the bias of least squares for many rows.
    Columns without errors are exact. Where errors are not known, those of all columns
    and of b are in proportion to the lengths of these, and independent: then the
    smallest singular value s of (A, b), with all columns of length 1, says how large
    they are, N Sigma_AA = s² 1, and beta is the one of Golub and Van Loan [Golub].

    Raises:
        ValueError: the errors are larger than the columns.
    """
    sigma = start.noise
    triangles = _triangles(A, b)
    _, R, d = _solved(triangles, sigma)
    if errors is None:
        S, s = _smallest(triangles, sigma) ** 2 * np.eye(len(d)), np.zeros(len(d))
    else:
        S = len(b) * _summed(errors.columns, sigma) / np.outer(d, d)
        s = len(b) * _summed(errors.forces, sigma) / d
    H = R.T @ R - S
    if not np.linalg.eigvalsh(H)[0] > 0:
        raise ValueError(
            "the errors of the regressor are larger than what the log has of some "
            "combination, expected less: excite more, or filter with a lower cutoff."
        )
    W = (A / sigma[:, None] / d).reshape(-1, len(d))
    beta = np.linalg.solve(H, W.T @ (b / sigma).ravel() - s) / d
    return _estimate(A, b - A @ beta, (sigma, sigma), (beta, R, d), H, kind)


def _smallest(triangles: np.ndarray, sigma: np.ndarray) -> float:
    """The smallest singular value of weighted rows (A, b), columns of length 1."""
    rows = (triangles / sigma[:, None, None]).reshape(-1, triangles.shape[-1])
    rows = rows / np.maximum(np.linalg.norm(rows, axis=0), np.finfo(float).tiny)
    return float(np.linalg.svd(rows, compute_uv=False)[-1])


def _triangles(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """For each joint the triangle of (A, b), which has all that its rows have to say.

    What is left to do is small, whatever the weights.
    """
    rows = np.concatenate([A, b[..., None]], axis=-1).swapaxes(0, 1)
    return np.asarray(np.linalg.qr(rows, mode="r"))


def _solved(
    triangles: np.ndarray, sigma: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The parameters, the triangle R of columns scaled to length 1, the lengths d."""
    rows = (triangles / sigma[:, None, None]).reshape(-1, triangles.shape[-1])
    d = np.linalg.norm(rows[:, :-1], axis=0)
    if not (d > 0).all():
        raise ValueError(
            f"combination {int(np.argmin(d))} of base has no effect in the log, "
            "expected a motion that tells all: leave base out."
        )
    Q, R = np.linalg.qr(rows[:, :-1] / d)
    if not np.linalg.cond(R) < _MOST:
        raise ValueError(
            "the log does not tell all combinations of base apart, expected a motion "
            "that does: leave base out, or raise tolerance."
        )
    return np.linalg.solve(R, Q.T @ rows[:, -1]) / d, R, d


def _estimate(
    A: np.ndarray, residuals: np.ndarray, noises: Any, solved: Any, H: Any, kind: Kind
) -> Estimate:
    """The estimate with its covariance, H⁻¹ S H⁻¹ in scaled columns."""
    (weights, noise), (beta, R, d) = noises, solved
    S, lags = score_covariance(A / weights[:, None] / d, residuals / weights, kind)
    half = np.linalg.solve(H, S)
    covariance = np.linalg.solve(H, half.T) / np.outer(d, d)
    covariance = (covariance + covariance.T) / 2
    return Estimate(beta, covariance, noise, float(np.linalg.cond(R)), lags)


def _summed(x: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    """The sum over the joints, each divided by the square of its noise."""
    return np.tensordot(1 / sigma**2, x, 1)


def _level(b: np.ndarray) -> np.ndarray:
    """The size of the forces of each joint, that of all for one without force."""
    size = np.sqrt(np.mean(b**2, axis=0))
    largest = size.max() if size.max() > 0 else 1.0
    return np.where(size > 0, size, largest)
