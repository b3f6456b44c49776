"""How errors grow along a motion that is driven open loop, and when it is left."""

import time
from collections.abc import Callable
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd

EXPLICIT_STAGES = 6  # evaluations of a step of Dormand and Prince; the last is reused
FIRST_EVALUATIONS = 2  # at the start, and to choose the first step


def step_control(tolerance: float, largest_step: float) -> Any:
    """Adaptive steps; as arrays the numbers can change without compiling anew."""
    return diffrax.PIDController(
        rtol=jnp.asarray(tolerance),
        atol=jnp.asarray(tolerance),
        dtmax=jnp.asarray(largest_step),
    )


def evaluations(trajectory: jd.Trajectory) -> int:
    """How often the accelerations were computed, rejected steps included."""
    steps = int(trajectory.stats["num_steps"])
    return EXPLICIT_STAGES * steps + FIRST_EVALUATIONS


def departures(ts: Any, error: Any, threshold: float) -> np.ndarray:
    """The first time at which the error of each joint exceeds a threshold, or NaN."""
    is_off = ~(np.abs(np.asarray(error)) <= threshold)  # a NaN is off as well
    first = np.asarray(ts)[is_off.argmax(axis=0)]
    return np.where(is_off.any(axis=0), first, np.nan)


@jax.jit
def state_matrices(model: jd.Model, q: Any, qd: Any, tau: Any) -> Any:
    """The matrices A of the deviations from a motion, at each of its times."""
    each = jax.vmap(jd.linearize, (None, 0, 0, 0))
    return each(model, q, qd, tau)[0]


@jax.jit
def transitions(A: Any, h: Any) -> Any:
    """What becomes of deviations at the first time, at every second time after it.

    Runge and Kutta's method of fourth order for the transition matrix, with steps h;
    A is given at the ends and in the middle of the steps.
    """

    def advance(phi: Any, at: Any) -> Any:
        start, middle, end = at
        k1 = start @ phi
        k2 = middle @ (phi + h / 2 * k1)
        k3 = middle @ (phi + h / 2 * k2)
        k4 = end @ (phi + h * k3)
        phi = phi + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return phi, phi

    one = jnp.eye(A.shape[-1], dtype=A.dtype)
    later = jax.lax.scan(advance, one, (A[:-2:2], A[1::2], A[2::2]))[1]
    return jnp.concatenate([one[None], later])


def growth(phi: Any) -> np.ndarray:
    """The largest factor by which a small deviation has grown, at each time."""
    return np.linalg.norm(np.asarray(phi), ord=2, axis=(-2, -1))


def carried(phi: Any, k: int, deviation: Any) -> np.ndarray:
    """The deviations from row k on, by linear growth of the deviation in row k."""
    phi = np.asarray(phi)
    return phi[k:] @ np.linalg.solve(phi[k], np.asarray(deviation))


def median_times(runs: dict[Any, Callable[[], Any]], repeats: int) -> dict[Any, float]:
    """The median time of each run, taken in turns so that all see the same machine."""
    spent: dict[Any, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.perf_counter()
            jax.block_until_ready(run())
            spent[name].append(time.perf_counter() - start)
    return {name: float(np.median(times)) for name, times in spent.items()}
