"""The rows of a linear fit: regressor and forces over time."""

from dataclasses import dataclass

import numpy as np

from jaxdyn.identify._rows import check_tree, held_out, log_arrays
from jaxdyn.identify.linear._columns import parameters_of, regressor_rows
from jaxdyn.io import Log
from jaxdyn.model import Model


@dataclass(frozen=True, eq=False)
class Rows:
    """Columns Y of free parameters, [times, nv, free], and forces b, [times, nv]."""

    Y: np.ndarray
    b: np.ndarray


def log_rows(model: Model, log: Log, columns: np.ndarray) -> Rows:
    """The rows of a log: forces are what parameters that are not free leave of them."""
    check_tree(model)
    data = log_arrays(model, log, ("q", "qd", "qdd", "tau"))
    Y = regressor_rows(model, data["q"], data["qd"], data["qdd"])
    pi = parameters_of(model)
    pi[columns] = 0.0
    return Rows(Y[..., columns], data["tau"] - Y @ pi)


def split_rows(rows: Rows, validation: float) -> tuple[Rows, Rows]:
    """The rows to fit, and the last ones, held out."""
    count = len(rows.b) - held_out(len(rows.b), validation)
    first, last = slice(count), slice(count, None)
    return Rows(rows.Y[first], rows.b[first]), Rows(rows.Y[last], rows.b[last])
