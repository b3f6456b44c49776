"""How sure an estimate by least squares is when residuals are not independent.

Rows are whitened: divided by the noise of their joint. A has the shape [times, nv,
parameters], residuals e [times, nv].
"""

from typing import Literal

import numpy as np

Kind = Literal["robust", "classical"]

_QUIET = 5  # lags without correlation, in a row, after which there is none


def score_covariance(
    A: np.ndarray, e: np.ndarray, kind: Kind
) -> tuple[np.ndarray, int]:
    r"""The covariance of $A^T \varepsilon$, and over how many lags it is summed.

    "classical": rows are independent and equally noisy, so it is $A^T A \sigma^2$.

    "robust": $\sum_{t, l} w_l u_t u_{t+l}^T$ with scores $u_t = A_t^T e_t$, [Newey]:
    noise may be correlated between joints and in time, and change with the motion. The
    weights are 1 up to the lag from which on correlations of residuals cannot be told
    from zero, and fall to zero at twice that lag, [Politis]; they are those of a
    triangle where this is not positive.
    """
    times, nv, p = A.shape
    left = max(times * nv - p, 1)
    if kind == "classical":
        flat = A.reshape(-1, p)
        return flat.T @ flat * (e**2).sum() / left, 0
    lag, u = _last_lag(e), np.einsum("tjp,tj->tp", A, e)
    l = np.arange(2 * lag) if lag else np.zeros(1)
    weights = np.minimum(1.0, 2.0 - l / max(lag, 1))  # 0 at twice the lag
    S = _summed(u, weights)
    if not _is_positive(S):
        weights = 1.0 - np.arange(2 * lag + 1) / (2 * lag + 1)  # never negative
        S = _summed(u, weights)
    return S * (times * nv / left), len(weights) - 1


def _summed(u: np.ndarray, weights: np.ndarray) -> np.ndarray:
    S = u.T @ u
    for l, weight in enumerate(weights[1:], 1):
        part = weight * u[:-l].T @ u[l:]
        S += part + part.T
    return S


def _last_lag(e: np.ndarray) -> int:
    """The lag after which the autocorrelation of every joint is that of chance."""
    times = len(e)
    limit = 2 * np.sqrt(np.log10(max(times, 10)) / times)
    power = (e**2).sum(axis=0)
    power = np.where(power > 0, power, 1.0)
    last = 0
    for l in range(1, times // 4):
        if np.abs(np.sum(e[l:] * e[:-l], axis=0) / power).max() > limit:
            last = l
        elif l - last >= _QUIET:
            break
    return last


def _is_positive(S: np.ndarray) -> bool:
    d = np.sqrt(np.maximum(np.diag(S), 0.0))
    if not (d > 0).all():
        return False
    return bool(np.linalg.eigvalsh(S / np.outer(d, d))[0] > 0)
