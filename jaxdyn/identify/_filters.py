"""Measured positions to smooth positions, rates and accelerations, without delay."""

import math

import numpy as np
from scipy import interpolate, signal
from scipy.spatial.transform import Rotation

from jaxdyn.io import Log
from jaxdyn.model import Model

# central differences of the eighth order, of four neighbours on each side
_FIRST = np.array(
    [1 / 280, -4 / 105, 1 / 5, -4 / 5, 0, 4 / 5, -1 / 5, 4 / 105, -1 / 280]
)
_SECOND = np.array(
    [-1 / 560, 8 / 315, -1 / 5, 8 / 5, -205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560]
)
_SIDE = 4
_SMALLEST_RATE = 5.0  # samples per period of the cutoff; differences are then 1 % true
_UNEVEN = 0.01  # how much a step of time may differ from the mean of all
_SETTLED = 0.001  # what is left at the trimmed ends of a disturbance at their outside


def filtered(
    log: Log,
    model: Model,
    *,
    cutoff: float,
    order: int = 4,
    decimate: int = 1,
    trim: float | None = None,
    rate: float | None = None,
    forces: bool = True,
) -> Log:
    r"""The log with smooth positions, their derivatives qd and qdd, and smooth forces.

    Positions and forces pass the same Butterworth low-pass forward and backward, so
    neither is delayed, both sides of the equation of motion see one filter, and a
    frequency f keeps the part

    $$\frac{1}{1 + (\tan(\pi f / r) / \tan(\pi\,\mathrm{cutoff} / r))^{2\,
    \mathrm{order}}}$$

    at r samples a second: half at the cutoff, all but $(f/\mathrm{cutoff})^{2\,
    \mathrm{order}}$ far below. Rates and accelerations are central differences of the
    eighth order of the smooth positions; those of the log are not used. Angles that
    jump by a turn from one row to the next are continued. Quaternions are filtered as
    numbers, made of unit length, and give qd in body axes and its rate.

    The cutoff is to stand well above what the motion is made of: five times its highest
    frequency keeps that to $5^{-2\,\mathrm{order}}$, 2.6e-6 for the fourth order. Look
    at the spectrum of the positions: below the cutoff stands the motion, above it noise
    alone. Lower is smoother; so take the lowest that leaves the motion.

    Noise that was filtered is no longer independent from row to row, which intervals of
    a fit suppose: `decimate` = r / (2 cutoff) keeps as many rows as there are
    independent ones. Forces that jump, such as dry friction, are rounded by the filter,
    while those of a model at smooth positions jump. With `forces=False` forces stay as
    measured, which avoids both, if the cutoff leaves all of the motion.

    Args:
        cutoff: in Hz, at most a fifth of the samples per second.
        order: of the filter, in each direction.
        decimate: every how many rows one is kept.
        trim: seconds left out at each end, where the filter has not settled; by default
            the time in which a disturbance at the end decays to a thousandth.
        rate: samples a second to interpolate at by cubic splines, before filtering,
            for a log whose times are not evenly spaced.
        forces: whether forces are filtered too.

    Raises:
        ValueError: the times are not evenly spaced, the cutoff is too high, or the log
            is too short.
    """
    checked = Log.of(model, log.ts, log.q, tau=log.tau)
    x = {"q": _continued(model, np.asarray(checked.q, np.float64))}
    if checked.tau is not None:
        x["tau"] = np.asarray(checked.tau, np.float64)
    ts, x = _evenly(np.asarray(checked.ts, np.float64), x, rate)
    step = (ts[-1] - ts[0]) / (len(ts) - 1)
    _check(cutoff, order, decimate, trim, 1 / step)
    ends = _rows_at_ends(ts, step, _settling(cutoff, order) if trim is None else trim)
    sections = signal.butter(order, cutoff, fs=1 / step, output="sos")
    more = min(3 * ends, len(ts) - 1)  # rows continued beyond the ends
    for name in ("q", "tau") if forces and "tau" in x else ("q",):
        x[name] = signal.sosfiltfilt(sections, x[name], axis=0, padlen=more)
    for places in model.topology.quaternion_q:  # of unit length
        x["q"][:, places] /= np.linalg.norm(x["q"][:, places], axis=1, keepdims=True)
    x["qd"], x["qdd"] = _rates(model, x["q"], step)
    kept = slice(ends, len(ts) - ends, decimate)
    kind = checked.q.dtype
    return Log(ts[kept].astype(kind), **{k: y[kept].astype(kind) for k, y in x.items()})


def _continued(model: Model, q: np.ndarray) -> np.ndarray:
    """Positions without jumps: of angles by a turn, of quaternions to their negative.

    Nothing else jumps: a joint turns by less than half a turn from row to row.
    """
    t, q = model.topology, q.copy()
    steps = t.steps
    turns = (steps.turn == 1) & (steps.slide == 0) & ~steps.pitched & (steps.q < t.nq)
    angles = steps.q[turns]
    q[:, angles] = np.unwrap(q[:, angles], axis=0)
    for places in t.quaternion_q:
        same = np.sum(q[1:, places] * q[:-1, places], axis=1) >= 0
        signs = np.cumprod(np.where(same, 1.0, -1.0))
        q[1:, places] *= signs[:, None]
    return q


def _evenly(
    ts: np.ndarray, arrays: dict[str, np.ndarray], rate: float | None
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Times that are evenly spaced, and what was measured there."""
    if rate is not None:
        if not rate > 0:
            raise ValueError(f"rate is {rate}, expected samples a second, above 0.")
        even = ts[0] + np.arange(math.floor((ts[-1] - ts[0]) * rate + 1e-9) + 1) / rate
        if len(even) < 2:
            raise ValueError(
                f"rate is {rate}, expected more than one sample in the "
                f"{ts[-1] - ts[0]:.6g} s of the log."
            )
        made = {k: interpolate.CubicSpline(ts, x)(even) for k, x in arrays.items()}
        return even, made
    steps = np.diff(ts)
    worst = int(np.argmax(np.abs(steps - steps.mean())))
    if abs(steps[worst] - steps.mean()) > _UNEVEN * steps.mean():
        raise ValueError(
            f"the time step after row {worst} of the log is {steps[worst]:.6g} s, but "
            f"{steps.mean():.6g} s in the mean, expected even steps: interpolate with "
            f"rate={1 / np.median(steps):.4g}."
        )
    return ts, arrays


def _check(
    cutoff: float, order: int, decimate: int, trim: float | None, rate: float
) -> None:
    if not 0 < cutoff <= rate / _SMALLEST_RATE:
        raise ValueError(
            f"cutoff is {cutoff} Hz, expected above 0 and at most "
            f"{rate / _SMALLEST_RATE:.6g} Hz, a fifth of the {rate:.6g} samples a "
            "second: higher frequencies have no true differences."
        )
    for name, value in (("order", order), ("decimate", decimate)):
        if value < 1:
            raise ValueError(f"{name} is {value}, expected 1 or more.")
    if trim is not None and not trim >= 0:
        raise ValueError(f"trim is {trim}, expected seconds, 0 or more.")


def _settling(cutoff: float, order: int) -> float:
    """The time in which the slowest mode of the filter decays to a thousandth."""
    return -math.log(_SETTLED) / (2 * np.pi * cutoff * math.sin(np.pi / (2 * order)))


def _rows_at_ends(ts: np.ndarray, step: float, trim: float) -> int:
    """How many rows are left out at each end."""
    ends = max(math.ceil(trim / step - 1e-6), _SIDE)
    if len(ts) <= 2 * ends:
        raise ValueError(
            f"the log has {len(ts)} rows, expected more than {2 * ends}: {ends} are "
            "left out at each end, where the filter has not settled: raise cutoff, or "
            "lower trim."
        )
    return ends


def _rates(model: Model, q: np.ndarray, step: float) -> tuple[np.ndarray, np.ndarray]:
    r"""Velocities and accelerations; rows without four neighbours are NaN.

    The angular velocity in body axes is $2\,\bar\varepsilon\,\dot\varepsilon$ and its
    rate $2\,\bar\varepsilon\,\ddot\varepsilon$, without their scalar parts. A free body
    has the velocity $v = R^T \dot p$, with the rate $R^T \ddot p - \omega \times v$.
    """
    t = model.topology
    d1, d2 = _differences(q, _FIRST) / step, _differences(q, _SECOND) / step**2
    qd, qdd = np.full((2, len(q), model.nv), np.nan)
    qd[:, t.plain_v], qdd[:, t.plain_v] = d1[:, t.plain_q], d2[:, t.plain_q]
    for at, v in zip(t.quaternion_q, t.quaternion_v, strict=True):
        qd[:, v] = 2 * _turn(q[:, at], d1[:, at])
        qdd[:, v] = 2 * _turn(q[:, at], d2[:, at])
    free = zip(t.position_q, t.free_quaternion_q, t.position_v, strict=True)
    for p, at, v in free:
        to_body = Rotation.from_quat(q[:, at]).inv()
        qd[:, v] = to_body.apply(d1[:, p])
        qdd[:, v] = to_body.apply(d2[:, p]) - np.cross(qd[:, v + 3], qd[:, v])
    return qd, qdd


def _differences(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted sums of each row and its neighbours, NaN for those at the ends."""
    result, count = np.full(x.shape, np.nan), len(x) - 2 * _SIDE
    parts = (w * x[k : count + k] for k, w in enumerate(weights.tolist()))
    result[_SIDE : len(x) - _SIDE] = sum(parts)
    return result


def _turn(e: np.ndarray, d: np.ndarray) -> np.ndarray:
    """The vector part of the product of the conjugate of e with d."""
    v, w = e[:, :3], e[:, 3:]
    return w * d[:, :3] - d[:, 3:] * v - np.cross(v, d[:, :3])
