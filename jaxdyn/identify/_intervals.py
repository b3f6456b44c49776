"""Confidence intervals of estimates."""

from typing import Any

import numpy as np
import scipy.stats
from jaxtyping import Float


def confidence_interval(
    values: Any, std: Any, freedom: int, level: float = 0.95, *, positive: Any = False
) -> Float[np.ndarray, "values 2"]:
    r"""Lower and upper ends of intervals that contain the true values so often.

    By Student's t, $v \pm t\,\sigma$. Of what is positive it is the interval of the
    logarithm, whose standard deviation is $\sigma / v$ to first order, mapped back:

    $$v\,e^{\pm t\,\sigma / v}$$

    It is positive however wide it is, and where $\sigma$ is small beside v it differs
    from the other one by $(t\,\sigma)^2 / 2v$.

    Args:
        freedom: the degrees of freedom of the estimate of the noise.
        level: the share of intervals that contain the true value.
        positive: which of the values are positive in every physical model.
    """
    if not 0 < level < 1:
        raise ValueError(f"level is {level}, expected between 0 and 1, as 0.95.")
    values, std = np.asarray(values, float), np.asarray(std, float)
    positive = np.broadcast_to(positive, values.shape)[:, None]
    half = scipy.stats.t.ppf((1 + level) / 2, freedom) * std[:, None] * [-1.0, 1.0]
    v = values[:, None]
    with np.errstate(over="ignore"):  # an infinite upper end is right
        mapped = v * np.exp(np.divide(half, v, out=np.zeros_like(half), where=positive))
    return np.where(positive, mapped, v + half)
