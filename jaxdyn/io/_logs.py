"""Measured motions: joint positions, rates, accelerations and forces over time."""

import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.io._drafts import new_file
from jaxdyn.io._log_checks import check_arrays, column_names
from jaxdyn.io._npz import read_npz
from jaxdyn.io._table import Place, floats, read_csv, write_csv
from jaxdyn.model import Model

_ARRAYS = ("ts", "q", "qd", "qdd", "tau")
# what `save_trajectory` writes beside them, and a log has no use for
_QUIET = {
    *("model", "dtype", "kinetic_energy", "potential_energy"),
    *("q_wanted", "loop_forces"),
}


class Log(eqx.Module):
    """What was measured at the times `ts`, one row for each; None where nothing was.

    A pytree: `jax.vmap` and `jax.tree.map` work on it. `Log.of` looks at its numbers,
    the constructor at its shapes alone.

    Attributes:
        ts: the times.
        q, qd, qdd, tau: positions, rates, accelerations, joint forces.
    """

    ts: Float[Array | np.ndarray, "*batch times"]
    q: Float[Array | np.ndarray, "*batch times nq"]
    qd: Float[Array | np.ndarray, "*batch times nv"] | None = None
    qdd: Float[Array | np.ndarray, "*batch times nv"] | None = None
    tau: Float[Array | np.ndarray, "*batch times nv"] | None = None

    def __check_init__(self) -> None:
        times = np.shape(self.ts)
        for name in _ARRAYS[1:]:
            array = getattr(self, name)
            if array is not None and np.shape(array)[:-1] != times:
                raise ValueError(
                    f"log: {name} has shape {np.shape(array)}, expected one row for "
                    f"each of ts, whose shape is {times}."
                )

    @staticmethod
    def of(
        model: Model, ts: Any, q: Any, qd: Any = None, qdd: Any = None, tau: Any = None
    ) -> "Log":
        """The log with these arrays, after a look at every number in them.

        Arrays become those of NumPy, integers floating-point numbers.

        Raises:
            ValueError: a shape does not fit the model, a number is not finite, the
                times do not increase, or a quaternion is not of unit length.
        """
        place = Place("log")
        given = dict(ts=ts, q=q, qd=qd, qdd=qdd, tau=tau)
        arrays = {k: floats(place, k, x) for k, x in given.items() if x is not None}
        check_arrays(model, arrays, place)
        return Log(**arrays)


def load_log(
    path: str | os.PathLike[str],
    model: Model,
    *,
    columns: Mapping[str, str] | None = None,
    ignore: Iterable[str] = (),
    degrees: bool = False,
) -> Log:
    """The log in a CSV or NPZ file.

    The first line of a CSV file has the names of its columns: `t` for the time, then
    `JOINT.q`, `JOINT.qd`, `JOINT.qdd` and `JOINT.tau`, with `[0]`, `[1]`, ... for a
    joint with several coordinates; in any order, parted by commas, semicolons or tabs.
    Time and all positions are needed; rates, accelerations and forces may each be left
    out as a whole. Empty lines and those that start with # are skipped; without other
    names, the last one with # before the numbers has them.

    An NPZ file has one array for each of these names, or the arrays ts, q and, where
    known, qd, qdd and tau, as the `trajectory.npz` of `jaxdyn simulate` does. They may
    fill 256 MB, or 100 times the size of the file if that is more.

    Args:
        columns: from names in the file to these names, as {"time": "t", "pos_1":
            "j1.q"}.
        ignore: names in the file that are not read; "*" for all that are not known.
        degrees: whether angles, their rates and accelerations are in degrees.

    Raises:
        ValueError: the file cannot be read or is damaged; a column is missing, unknown
            or twice there; a line is too short or too long; something is not a finite
            number; the times do not increase; there are fewer than two rows; an array
            has the wrong shape; a quaternion is not of unit length. The message says
            where.
    """
    file = Path(path)
    place = Place(f"log {str(file)!r}")
    if _is_table(file, place):
        found, place = read_csv(file, place)
    else:
        found = read_npz(file, place.name)
    ignored = {ignore} if isinstance(ignore, str) else set(ignore)
    named = _renamed(place, found, dict(columns or {}), ignored)
    if {"ts", "q"} <= set(named):
        _check_known(place, named, list(_ARRAYS), ignored | _QUIET)
        arrays = {k: floats(place, k, named[k]) for k in _ARRAYS if k in named}
    else:
        arrays = _stacked(place, model, named, ignored)
    check_arrays(model, arrays, place)
    if degrees:
        arrays = {name: radians(model, name, x) for name, x in arrays.items()}
    return Log(**arrays)


def save_log(path: str | os.PathLike[str], model: Model, log: Log) -> Path:
    """Writes the log as `load_log` reads it, CSV or NPZ by the ending of the name.

    The file appears complete or not at all, and keeps every digit.
    """
    file = Path(path)
    is_table = _is_table(file, Place(f"log {str(file)!r}"))
    given = {name: getattr(log, name) for name in _ARRAYS}
    arrays = {name: np.asarray(x) for name, x in given.items() if x is not None}
    check_arrays(model, arrays, Place("log"))
    with new_file(file) as draft:
        if is_table:
            names = [name for array in arrays for name in column_names(model, array)]
            table = np.column_stack([x.astype(float) for x in arrays.values()])
            write_csv(draft, names, table.tolist())
        else:
            np.savez_compressed(draft, allow_pickle=False, **arrays)
    return file


def join_logs(logs: Sequence[Log]) -> Log:
    """The rows of several logs, one log after the other, as one.

    The first time is 0. Each log begins one mean time step of the log before it after
    the end of that log. What one of them has not measured, the result has not either.
    A filter must not reach from one log to the next: use `filtered` before. Residuals
    of single rows (`Torque`, `Acceleration`) and `least_squares` do not care where logs
    meet, windows of `Simulated` do.

    Raises:
        ValueError: there is no log, a log has fewer than two rows, or they have joints
            in different numbers.
    """
    if not logs:
        raise ValueError("join_logs: there is no log, expected one or more.")
    ts, end = [], 0.0
    for k, log in enumerate(logs):
        t = np.asarray(log.ts)
        if t.ndim != 1 or len(t) < 2 or log.q.shape[1] != logs[0].q.shape[1]:
            raise ValueError(
                f"join_logs: log {k} has ts of shape {t.shape} and q of shape "
                f"{np.shape(log.q)}, expected two rows or more, and "
                f"{logs[0].q.shape[-1]} columns of q as in the first log."
            )
        ts.append(t - t[0] + end)
        end = ts[-1][-1] + (t[-1] - t[0]) / (len(t) - 1)
    parts = {}
    for name in _ARRAYS[1:]:
        arrays = [getattr(log, name) for log in logs]
        if all(x is not None for x in arrays):
            parts[name] = np.concatenate(arrays)
    return Log(np.concatenate(ts), **parts)


def radians(model: Model, array: str, values: Any) -> np.ndarray:
    """Values of q, qd, qdd or tau with angles turned from degrees; others stay.

    Args:
        array: which of them, "q", "qd", "qdd" or "tau".
        values: one row [width], or a row for each time [times, width].
    """
    values, steps = np.asarray(values), model.topology.steps
    if array in ("ts", "tau"):
        return values
    places = (steps.q if array == "q" else steps.v)[steps.turn == 1]
    places = places[places < values.shape[-1]]  # those of quaternions are beyond
    factors = np.ones(values.shape[-1], np.result_type(values.dtype, np.float32))
    factors[places] = np.pi / 180
    return values * factors


def _is_table(file: Path, place: Place) -> bool:
    """Whether a file is CSV and not NPZ."""
    ending = file.suffix.lower()
    if ending not in (".csv", ".npz"):
        raise ValueError(f"{place.name} ends in {ending!r}, expected .csv or .npz.")
    return ending == ".csv"


def _renamed(
    place: Place,
    found: dict[str, np.ndarray],
    columns: dict[str, str],
    ignored: set[str],
) -> dict[str, np.ndarray]:
    """What is not ignored, by the names that it has here."""
    for name in (*columns, *sorted(ignored - {"*"})):
        if name not in found:
            raise ValueError(
                f"{place.name} has no {name!r}, which is to be renamed or ignored"
                f"{_near(name, found)}; expected some of: {', '.join(found)}."
            )
    kept = [name for name in found if name not in ignored]
    named: dict[str, np.ndarray] = {}
    for name in kept:
        new = columns.get(name, name)
        if new in named:
            raise ValueError(
                f"{place.name} has {new!r} twice, after columns are renamed: ignore "
                "one of them."
            )
        named[new] = found[name]
    return named


def _check_known(
    place: Place, named: Iterable[str], known: list[str], ignored: set[str]
) -> None:
    others = [name for name in named if name not in known and name not in ignored]
    if others and "*" not in ignored:
        raise ValueError(
            f"{place.name} has {', '.join(map(repr, others))}, not known"
            f"{_near(others[0], known)}: rename with columns={{...}}, or leave out "
            'with ignore=[...] or ignore="*".'
        )


def _stacked(
    place: Place, model: Model, named: dict[str, np.ndarray], ignored: set[str]
) -> dict[str, np.ndarray]:
    """The arrays that the columns make."""
    if not model.nq:
        raise ValueError(
            f"{place.name}: robot {model.name!r} has no joint that moves, expected one "
            "at least."
        )
    wanted = {array: column_names(model, array) for array in _ARRAYS}
    known = [name for names in wanted.values() for name in names]
    others = [name for name in named if name not in known]
    arrays = {}
    for array, names in wanted.items():
        missing = [name for name in names if name not in named]
        if not missing:
            arrays[array] = _beside(place, {name: named[name] for name in names})
        elif array in ("ts", "q") or len(missing) < len(names):
            raise ValueError(
                f"{place.name} has no {', '.join(map(repr, missing))}, needed for "
                f"robot {model.name!r}{_near(missing[0], others)}: rename columns with "
                f"columns={{...}}; not known are: {', '.join(others) or 'none'}."
            )
    _check_known(place, named, known, ignored)
    return arrays | {"ts": arrays["ts"][:, 0]}


def _beside(place: Place, columns: dict[str, np.ndarray]) -> np.ndarray:
    """The columns as one array."""
    first = next(iter(columns))
    for name, column in columns.items():
        if column.ndim != 1 or column.shape != columns[first].shape:
            raise ValueError(
                f"{place.name}: {name} has shape {column.shape}, expected one number "
                f"for each time, as {first} with {columns[first].shape}."
            )
    return np.stack([floats(place, k, x) for k, x in columns.items()], axis=-1)


def _near(name: str, others: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(others), n=1, cutoff=0.5)
    return f" (did you mean {near[0]!r}?)" if near else ""
