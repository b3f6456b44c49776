"""Falls of the rope of [Shah], and the time they take."""

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd


@dataclass(frozen=True)
class Fallen:
    """One fall with a tight tolerance."""

    name: str
    run: jd.Trajectory
    points: np.ndarray  # [times, cylinders + 1, 3] from the fixed end to the tip
    tip_error: float  # from the reference, m
    drift: float  # of the energy, J
    angle: float  # the largest of the second angles, rad
    passing: int  # joints whose second angle passes 90 degrees
    pivot: float  # the smallest of the factor, as part of the smallest at the start


@dataclass(frozen=True)
class Times:
    """Of a whole fall, and of forward dynamics by both recursions."""

    seconds: float  # of the fall, compiled
    evaluation: dict[str, float]  # seconds for one state, by method


def simulated(model: jd.Model, q0: Any, qd0: Any, ts: Any, tolerance: float) -> Any:
    """The motion by a solver of eighth order with a tight tolerance."""
    return jd.simulate(
        model,
        jnp.asarray(q0),
        jnp.asarray(qd0),
        ts,
        solver=diffrax.Dopri8(),
        stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=tolerance),
    )


def fall(
    model: jd.Model, ts: Any, tolerance: float, name: str, given: dict[str, Any]
) -> Fallen:
    """The fall from a state of the reference file, and what is to be known of it."""
    q0, qd0 = np.array([given["q0"], given["qd0"]])
    run = simulated(model, q0, qd0, ts, tolerance)
    points, pivots = map(np.asarray, shapes(model, run.q))
    second = np.abs(np.asarray(run.q)[:, 1::2])
    return Fallen(
        name=name,
        run=run,
        points=points,
        tip_error=tip_error(np.asarray(ts), points[:, -1], given),
        drift=float(jnp.abs(run.energy - run.energy[0]).max()),
        angle=float(second.max()),
        passing=int((second.max(axis=0) > np.pi / 2).sum()),
        pivot=float(pivots.min() / pivots[0].min()),
    )


@jax.jit
def shapes(model: jd.Model, q: Any) -> tuple[Any, Any]:
    """The joints and the tip in space, and the pivots of the inertia matrix."""

    def one(q: Any) -> Any:
        poses = jd.forward_kinematics(model, q)
        tip = poses.p[-1] + 2 * poses.R[-1] @ model.com[-1]
        factor = jd.factor(model, q)
        assert isinstance(factor, jd.Factor)
        return jnp.concatenate([poses.p, tip[None]]), factor.D

    return jax.vmap(one)(q)


def tip_error(ts: np.ndarray, tip: np.ndarray, given: dict[str, Any]) -> float:
    """The largest distance from the tip of the reference, at times that both have."""
    times, there = np.array(given["t"]), np.array(given["tip"])
    same = np.abs(ts[:, None] - times) < 1e-9
    i, j = np.nonzero(same)
    if not i.size:
        raise ValueError("samples share no instant with the reference, expected some.")
    return float(np.linalg.norm(tip[i] - there[j], axis=1).max())


def timed(model: jd.Model, like: jd.Trajectory, tolerance: float) -> Times:
    """The shortest times of some calls, after the first, which compiles."""
    again = partial(simulated, model, like.q[0], like.qd[0], like.ts, tolerance)
    k = len(like.ts) // 2
    state = like.q[k], like.qd[k], jnp.zeros(model.nv)
    forward = {
        method: partial(jd.forward_dynamics, model, *state, method=method)
        for method in ("denoc", "articulated")
    }
    spent: dict[str, list[float]] = {method: [] for method in forward}
    for _ in range(500):  # in turn, so that both meet the same load of the machine
        for method, call in forward.items():
            spent[method].append(_seconds(call))
    return Times(
        seconds=min(_seconds(again) for _ in range(3)),
        evaluation={method: min(times) for method, times in spent.items()},
    )


def _seconds(call: Any) -> float:
    start = time.perf_counter()
    jax.block_until_ready(call())
    return time.perf_counter() - start
