"""Which dynamic parameters are free, and the rows of a log: regressor and forces."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import jax
import numpy as np

from jaxdyn.algorithms.recursions import dynamic_parameters, parameter_names, regressor
from jaxdyn.identify._rows import check_tree, held_out, log_arrays
from jaxdyn.io import Log
from jaxdyn.model import Model

FREE = ("*.inertial", "*.damping", "*.friction")  # what is free unless told otherwise
_GROUPS = ("m", "h_", "I_")
_CHUNK = 256  # states for which the regressor is computed at once


def chosen_columns(model: Model, parameters: str | Sequence[str]) -> np.ndarray:
    """Indices into `dynamic_parameters`, in ascending order.

    Patterns are names as `parameter_names` gives them, in which `*`, `?` and `[abc]`
    stand for others; "BODY.inertial" means all ten parameters of a body, and the name
    of an effect of a joint with several coordinates all of them.
    """
    if model.forces:
        raise ValueError(
            f"model {model.name!r} has force elements, which the regressor does not "
            "hold, expected none: fit it by identify.fit."
        )
    names = parameter_names(model)
    chosen: set[int] = set()
    for pattern in (parameters,) if isinstance(parameters, str) else parameters:
        found = {k for k, name in enumerate(names) if _fits(name, pattern)}
        if not found:
            raise ValueError(
                f"parameters has {pattern!r}, which fits no parameter of model "
                f"{model.name!r}, expected names or patterns such as "
                f'{names[0]!r}, "{model.names[0]}.inertial", "*.h_?" or "*.friction": '
                "see parameter_names."
            )
        chosen |= found
    if not chosen:
        raise ValueError("parameters is empty, expected at least one name or pattern.")
    return np.array(sorted(chosen))


def _fits(name: str, pattern: str) -> bool:
    owner, _, kind = name.rpartition(".")
    known = {name, name.partition("[")[0]}
    if kind.startswith(_GROUPS):
        known.add(f"{owner}.inertial")
    return pattern in known or any(fnmatchcase(x, pattern) for x in known)


def regressor_rows(
    model: Model, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray
) -> np.ndarray:
    """The regressor at every state, [times, nv, parameters], in double precision.

    States are taken in pieces of one size, so that one program serves all logs.
    """
    times, pieces = len(q), []
    with jax.enable_x64(True):
        model = model.astype(np.float64)
        for k in range(0, times, _CHUNK):
            # the last piece is filled up with its last state
            rows = np.minimum(np.arange(k, k + _CHUNK), times - 1)
            pieces.append(np.asarray(_rows(model, q[rows], qd[rows], qdd[rows])))
    return np.concatenate(pieces)[:times]


def parameters_of(model: Model) -> np.ndarray:
    """A copy of the dynamic parameters of a model, in double precision."""
    return np.array(_parameters(model), float)


@jax.jit
def _parameters(model: Model) -> Any:
    return dynamic_parameters(model)


@jax.jit
def _rows(model: Model, q: Any, qd: Any, qdd: Any) -> Any:
    return jax.vmap(lambda *state: regressor(model, *state))(q, qd, qdd)


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
