"""Checks of measured arrays, with words for what is wrong and where."""

from collections.abc import Mapping

import numpy as np

from jaxdyn.io._table import Place
from jaxdyn.model import Model

_UNIT = 1e-3  # how far the length of a measured quaternion may be from 1


def column_names(model: Model, array: str) -> tuple[str, ...]:
    """The names of the columns of ts, q, qd, qdd or tau, such as "j1.q".

    A joint with several coordinates has "j1.q[0]", "j1.q[1]", ...
    """
    if array == "ts":
        return ("t",)
    starts = model.topology.q_start if array == "q" else model.topology.v_start
    names = []
    for i, joint in enumerate(model.joint_names):
        width = starts[i + 1] - starts[i]
        ends = [""] if width == 1 else [f"[{k}]" for k in range(width)]
        names += [f"{joint}.{array}{end}" for end in ends[:width]]
    return tuple(names)


def check_arrays(model: Model, arrays: Mapping[str, np.ndarray], place: Place) -> None:
    """Raise a `ValueError` unless these arrays are those of a log; see `Log.of`."""
    ts = arrays["ts"]
    rows = len(ts) if ts.ndim else 0
    for name, values in arrays.items():
        width = {"ts": (), "q": (model.nq,)}.get(name, (model.nv,))
        if values.shape != (rows, *width):
            raise ValueError(
                f"{place.name}: {name} has shape {values.shape}, expected "
                f"{(rows, *width)} for robot {model.name!r}: a row for each time."
            )
        _check_finite(model, name, values, place)
    if rows < 2:
        raise ValueError(f"{place.name} has {rows} rows, expected two or more.")
    backward = np.flatnonzero(np.diff(ts) <= 0) + 1
    if backward.size:
        row = int(backward[0])
        raise ValueError(
            f"{place.row(row)}: the time is {ts[row]} after {ts[row - 1]}, expected "
            "times that increase."
        )
    _check_quaternions(model, arrays["q"], place)


def _check_finite(model: Model, name: str, values: np.ndarray, place: Place) -> None:
    bad = np.argwhere(~np.isfinite(values))
    if bad.size:
        row, *column = bad[0].tolist()
        names = column_names(model, name)
        raise ValueError(
            f"{place.row(row)}: {names[column[0] if column else 0]} is "
            f"{values[tuple(bad[0])]}, expected a finite number: leave the row out, or "
            "interpolate."
        )


def _check_quaternions(model: Model, q: np.ndarray, place: Place) -> None:
    names = column_names(model, "q")
    for places in model.topology.quaternion_q.tolist():
        lengths = np.linalg.norm(q[:, places], axis=1)
        wrong = np.flatnonzero(np.abs(lengths - 1) > _UNIT)
        if wrong.size:
            row = int(wrong[0])
            raise ValueError(
                f"{place.row(row)}: the quaternion {names[places[0]]} to "
                f"{names[places[-1]]} has length {lengths[row]:.6g}, expected 1."
            )
