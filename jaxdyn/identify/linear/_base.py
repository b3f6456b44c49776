"""Base parameters: the combinations of parameters that joint forces depend on."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import numpy as np
import scipy.linalg

from jaxdyn.algorithms.kinematics import random_configuration
from jaxdyn.algorithms.recursions import parameter_names
from jaxdyn.identify._rows import check_tree, log_arrays
from jaxdyn.identify.linear._columns import (
    FREE,
    chosen_columns,
    parameters_of,
    regressor_rows,
)
from jaxdyn.io import Log
from jaxdyn.model import Model

_TOLERANCE = 1.5e-8  # of singular values: the root of the rounding, half of the digits
_LITTLE = 1e-3  # of a row that depends on others; squares of 1e5 of them are below 1
_ZERO = 1e-11  # what rounding leaves of a coefficient that is zero
# the first become dependent first: masses, first moments, joints, then inertias
_KINDS = ("m", "h_", "armature", "damping", "friction", "stiffness", "I_")
_INERTIAS = ("I_yy", "I_xx", "I_zz", "I_xy", "I_xz", "I_yz")


@dataclass(frozen=True, eq=False)
class BaseParameters:
    r"""The combinations beta = B pi of free parameters that forces depend on.

    $$Y\,\pi = Y_b\,\beta, \qquad \beta = \pi_b + K\,\pi_d$$

    Attributes:
        columns: the free parameters, as indices into `dynamic_parameters`.
        names: their names.
        independent: which of the free parameters represent a combination (b).
        B: the combinations, [rank, free]: 1 at the representative, K at the others.
        singular_values: of the regressor with columns of length 1, descending.
        tolerance: singular values above it, relative to the first, count to the rank.
    """

    columns: np.ndarray
    names: tuple[str, ...]
    independent: np.ndarray
    B: np.ndarray
    singular_values: np.ndarray
    tolerance: float

    @property
    def rank(self) -> int:
        """The number of combinations."""
        return len(self.independent)

    @property
    def gap(self) -> float:
        """The last singular value that counts over the first that does not.

        Near 1 the rank is a matter of taste; infinite if all count or the next is 0.
        """
        s, r = self.singular_values, self.rank
        return float(s[r - 1] / s[r]) if 0 < r < len(s) and s[r] > 0 else float("inf")

    @property
    def no_effect(self) -> tuple[str, ...]:
        """The free parameters that no force depends on."""
        unused = np.flatnonzero(~self.B.any(axis=0))
        return tuple(self.names[k] for k in unused)

    @property
    def combinations(self) -> tuple[str, ...]:
        """Each combination in words, such as "link2.I_zz + 0.187 link3.m"."""
        return tuple(
            _words(self.names, row, first)
            for row, first in zip(self.B, self.independent.tolist(), strict=True)
        )

    def of(self, model: Model) -> np.ndarray:
        """The values beta of the combinations in a model."""
        return self.B @ parameters_of(model)[self.columns]


def base_parameters(
    model: Model,
    log: Log | None = None,
    *,
    parameters: str | Sequence[str] = FREE,
    prefer: str | Sequence[str] = (),
    samples: int | None = None,
    seed: int = 0,
    tolerance: float = _TOLERANCE,
) -> BaseParameters:
    """The combinations of parameters that can be told from joint forces.

    Without a log these are all that any motion can tell, found at random states; with
    one, those that its motion can tell. The null space of the stacked regressor, by a
    singular value decomposition with columns scaled to length 1, says which columns are
    combinations of others. Of each such set the dependent ones are chosen so that what
    represents a combination is near to the literature: masses are left out first,
    then first moments, then effects of joints, then inertias; of equals those of outer
    bodies.

    Args:
        parameters: names or patterns of the free parameters, such as "link3.m",
            "link2.inertial" for all ten of a body, "*.armature".
        prefer: names or patterns of those that shall represent combinations, where
            that is possible.
        samples: number of random states, by default twice what the columns need.
        seed: of the random states; they lie within the limits of the joints.
        tolerance: of singular values, relative to the first; also of the length of a
            column beside those of its kind, to have an effect at all.

    Raises:
        ValueError: a pattern fits no parameter; the model has loops; the log has no
            rates or accelerations; no parameter has an effect.
    """
    check_tree(model)
    columns = chosen_columns(model, parameters)
    first = chosen_columns(model, prefer) if len(prefer) else np.array([], int)
    if log is None:
        count = samples or 2 * len(columns) // max(model.nv, 1) + 10
        states = _random_states(model, count, seed)
    else:
        states = log_arrays(model, log, ("q", "qd", "qdd")).values()
    Y = regressor_rows(model, *states)[..., columns].reshape(-1, len(columns))
    return base_of(model, Y, columns, first, tolerance)


def base_of(
    model: Model,
    Y: np.ndarray,
    columns: np.ndarray,
    prefer: np.ndarray,
    tolerance: float = _TOLERANCE,
) -> BaseParameters:
    """The combinations that a stacked regressor of the free columns can tell."""
    every = parameter_names(model)
    names = tuple(every[k] for k in columns)
    size, has_effect = _sizes(names, Y, tolerance)
    if not has_effect.any():
        raise ValueError(
            f"model {model.name!r}: none of the free parameters has an effect on the "
            f"joint forces ({', '.join(names[:5])}, ...), expected motion or gravity."
        )
    R = np.linalg.qr(np.where(has_effect, Y / size, 0.0), mode="r")
    _, s, Vt = np.linalg.svd(R)
    s = np.pad(s, (0, len(columns) - len(s)))
    rank = int((s > tolerance * s[0]).sum())
    N = Vt[rank:].T
    order = _order(names, columns, np.isin(columns, prefer))
    dependent = _dependent(N, order)
    independent = np.setdiff1d(np.arange(len(columns)), dependent)
    B = np.zeros((rank, len(columns)))
    B[np.arange(rank), independent] = 1.0
    if len(dependent):
        K = -scipy.linalg.solve(N[dependent].T, N[independent].T).T
        K[np.abs(K) < _ZERO] = 0.0
        B[:, dependent] = K * size[dependent] / size[independent][:, None]
    return BaseParameters(columns, names, independent, B, s, tolerance)


def _random_states(
    model: Model, count: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions, rates and accelerations, each of some size."""
    keys = jax.random.split(jax.random.key(seed), count)
    q = jax.vmap(lambda key: random_configuration(model, key))(keys)
    qd, qdd = np.random.default_rng(seed).normal(size=(2, count, model.nv))
    return np.asarray(q, float), 3.0 * qd, 9.0 * qdd


def _sizes(
    names: tuple[str, ...], Y: np.ndarray, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Lengths of the columns, 1 for those without effect, and which have one.

    Columns are compared with others of their kind, which have the same unit.
    """
    length = np.linalg.norm(Y, axis=0)
    kinds = np.array([_kind(name) for name in names])
    largest = np.array([length[kinds == kind].max() for kind in kinds])
    has_effect = length > tolerance * largest
    return np.where(has_effect, length, 1.0), has_effect


def _kind(name: str) -> int:
    end = name.rpartition(".")[2]
    return next(k for k, kind in enumerate(_KINDS) if end.startswith(kind))


def _order(
    names: tuple[str, ...], columns: np.ndarray, preferred: np.ndarray
) -> list[int]:
    """Free parameters, those first that shall depend on others."""

    def rank(k: int) -> tuple[bool, int, int, int]:
        end, place, within = names[k].rpartition(".")[2], int(columns[k]), 0
        if end in _INERTIAS:
            place, within = place // 10, _INERTIAS.index(end)
        return bool(preferred[k]), _kind(names[k]), -place, within

    return sorted(range(len(names)), key=rank)


def _dependent(N: np.ndarray, order: list[int]) -> np.ndarray:
    """As many rows of N as it has columns, independent of each other, in this order.

    A row is left out if little of it is new. The squares of what is new in all rows,
    those left out as well, add up to the number of columns yet to come: so they cannot
    all be small, and one pass is enough.
    """
    count = N.shape[1]
    basis, chosen = np.zeros((count, count)), []
    for k in order:
        if len(chosen) == count:
            break
        new = N[k] - basis.T @ (basis @ N[k])
        new = new - basis.T @ (basis @ new)
        if np.linalg.norm(new) > _LITTLE:
            basis[len(chosen)] = new / np.linalg.norm(new)
            chosen.append(k)
    return np.array(sorted(chosen), int)


def _words(names: tuple[str, ...], row: np.ndarray, first: int) -> str:
    text = names[first]
    for k in np.flatnonzero(row):
        if k != first:
            size = abs(row[k])
            factor = "" if abs(size - 1) < 1e-9 else f"{size:.3g} "
            text += f" {'-' if row[k] < 0 else '+'} {factor}{names[k]}"
    return text
