"""A motion as arrays on the host, checked."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxdyn.model import Model


@dataclass(frozen=True)
class Samples:
    """Rows of a motion: ts [times], q [times, nq], qd and tau [times, nv] or None.

    Attributes:
        index: which rows of what was given they are; count: how many were given.
    """

    ts: np.ndarray
    q: np.ndarray
    qd: np.ndarray | None
    tau: np.ndarray | None
    index: np.ndarray
    count: int

    def at(self, rows: np.ndarray) -> "Samples":
        """Some of the rows."""
        qd = None if self.qd is None else self.qd[rows]
        tau = None if self.tau is None else self.tau[rows]
        index = self.index[rows]
        return Samples(self.ts[rows], self.q[rows], qd, tau, index, self.count)


def samples(
    model: Model, ts: Any, q: Any, *, qd: Any = None, tau: Any = None
) -> Samples:
    """The motion up to its last finite row: one that ended early has others."""
    times = np.asarray(ts, float)
    if times.ndim != 1 or len(times) == 0:
        raise ValueError(f"ts has shape {times.shape}, expected at least one time.")
    widths = {"q": (q, model.nq), "qd": (qd, model.nv), "tau": (tau, model.nv)}
    rows: dict[str, Any] = {}
    for name, (given, width) in widths.items():
        rows[name] = None if given is None else np.asarray(given, float)
        if given is not None and rows[name].shape != (len(times), width):
            raise ValueError(
                f"{name} has shape {rows[name].shape}, expected "
                f"{(len(times), width)}: one row for each of the {len(times)} times "
                f"of ts, one column for each coordinate of {model.name!r}."
            )
    is_finite = np.isfinite(times) & np.isfinite(rows["q"]).all(axis=1)
    end = len(times) if is_finite.all() else int(np.argmin(is_finite))
    if end == 0 or is_finite[end:].any():
        raise ValueError(
            f"q is not finite at row {end} (t = {times[end]}), expected numbers from "
            "the first row to the end of the motion: simulate again, or cut the rows."
        )
    for row in np.flatnonzero(np.diff(times[:end]) <= 0.0) + 1:
        raise ValueError(
            f"ts[{row}] = {times[row]} follows {times[row - 1]}, expected times that "
            "grow."
        )
    index, count = np.arange(len(times)), len(times)
    found = Samples(times, rows["q"], rows["qd"], rows["tau"], index, count)
    return found.at(index[:end])
