"""The rows of a log that a fit can use."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxdyn.io import Log
from jaxdyn.model import Model


def log_arrays(model: Model, log: Any, needed: Sequence[str]) -> dict[str, np.ndarray]:
    """The named arrays of a log, in double precision, checked."""
    if not isinstance(log, Log):
        raise ValueError(
            f"data is a {type(log).__name__}, expected a Log: use load_log or Log.of."
        )
    arrays = {}
    for name in needed:
        value = getattr(log, name)
        if value is None:
            advice = "call filtered(log, model, cutoff=...) first"
            advice = "joint forces must be measured" if name == "tau" else advice
            raise ValueError(f"the log has no {name}: {advice}.")
        value = np.asarray(value, float)
        width = model.nq if name == "q" else model.nv
        if value.ndim != 2 or value.shape[1] != width:
            raise ValueError(
                f"{name} of the log has shape {value.shape}, expected (times, {width}) "
                f"for model {model.name!r}: one log at a time."
            )
        arrays[name] = value
    return arrays


def check_tree(model: Model) -> None:
    """Raise a `ValueError` for a model with loops."""
    if model.loops:
        raise ValueError(
            f"model {model.name!r} has loops ({', '.join(x.name for x in model.loops)})"
            ", whose forces are in tau but not in inverse dynamics: expected a tree. "
            "Fit accelerations or motions of the closed mechanism instead, or log the "
            "tree without them, model.without_loops()."
        )


def check_positive(what: str, value: Any, width: int) -> None:
    """Raise a `ValueError` unless a value is one number above 0, or `width` of them."""
    array = np.asarray(value)
    if array.shape not in ((), (width,)):
        raise ValueError(
            f"{what} has shape {array.shape}, expected one number or {(width,)}, one "
            "for each number that was measured."
        )
    if not ((array > 0) & np.isfinite(array)).all():
        raise ValueError(f"{what} is {array.tolist()}, expected numbers above 0.")


def check_counts(**counts: int | None) -> None:
    """Raise a `ValueError` for a number below one; None is left out."""
    for name, count in counts.items():
        if count is not None and count < 1:
            raise ValueError(f"{name} is {count}, expected one or more.")


def held_out(count: int, validation: float | int) -> int:
    """How many of some rows, the last ones, are held out: a share, rounded down."""
    if not 0 <= validation < 1:
        raise ValueError(
            f"validation is {validation}, expected a share of the rows, 0 to below 1."
        )
    return int(validation * count * (1 + 1e-12))  # 0.29 of 100 rows are 29
