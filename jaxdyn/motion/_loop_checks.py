"""Whether the loops of a mechanism make sense, checked on the host."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array

from jaxdyn.algorithms.loops import loop_jacobian, loop_residual
from jaxdyn.dynamics import project_configuration, project_velocity
from jaxdyn.model import Model, Nq, Nv
from jaxdyn.motion._assembly import loop_errors
from jaxdyn.motion._inputs import inputs


def check_loops(model: Model, q: Nq, *, tolerance: float | None = None) -> None:
    """Raise a `ValueError` for a loop that is open at `q`, or that stops all motion.

    Args:
        tolerance: by how much a loop may be open, in metres and radians; 1e-6 (float32:
            1e-4) by default, as at the start of `simulate`.

    Raises:
        ValueError: a loop is open by more than the tolerance, a held axis points the
            opposite way, or the loops have as many independent rows as the model has
            freedoms.
    """
    model, q = _concrete("check_loops", model, q)
    if tolerance is None:
        tolerance = 1e-6 if q.dtype == np.float64 else 1e-4
    names = row_names(model)
    residual = np.asarray(loop_residual(model, q)) if model.loops else np.zeros(0)
    errors = np.asarray(jax.jit(loop_errors)(model, q))
    for loop, (distance, angle) in zip(model.loops, errors, strict=True):
        if distance <= tolerance and angle <= tolerance:
            continue
        rows = ", ".join(
            f"{row} {value:.3g}"
            for (name, row), value in zip(names, residual, strict=True)
            if name == loop.name and not abs(value) <= tolerance
        )
        rows = rows or "no row, but an axis points the opposite way"
        raise ValueError(
            f"{loop.name} is open at this q by {distance:.3g} m and {angle:.3g} rad "
            f"(rows: {rows}), expected at most {tolerance:g}: correct its placements, "
            "or find a q that closes it by close_loops."
        )
    _check_freedom(model, q)


def closed_state(model: Model, q: Nq, qd: Nv) -> tuple[Nq, Nv]:
    """The state near a given one that closes all loops, and keeps them closed.

    For states that are closed but for rounding, as those that were typed: joints move
    as little as they can. `close_loops` finds configurations that are farther away.

    Raises:
        ValueError: the loops cannot be closed nearby, or the nearest rates that keep
            them closed differ from qd by more than a hundredth. The message begins
            with "q: " or "qd: " and has the loop that is most open.
    """
    model, q = _concrete("closed_state", model, q)
    (qd,) = inputs(model, qd=(jnp.asarray(qd, q.dtype), (model.nv,)))[1:]
    if not model.loops:
        return q, qd
    closed_q = project_configuration(model, q)
    if not _worst(model, loop_residual(model, closed_q))[1] < (
        1e-8 if model.dtype == np.float64 else 1e-4
    ):
        name, size = _worst(model, loop_residual(model, q))
        raise ValueError(
            f"q: {name} is open by {size:.3g}, and no closed pose was found nearby: "
            "expected one that closes all loops, or nearly so."
        )
    closed_qd = project_velocity(model, closed_q, qd)
    if not np.allclose(closed_qd, qd, rtol=1e-2, atol=1e-2):
        name, size = _worst(model, loop_jacobian(model, closed_q) @ qd)
        rates = ", ".join(f"{x:.6g}" for x in np.asarray(closed_qd).tolist())
        raise ValueError(
            f"qd: {name} opens with {size:.3g} a second, expected rates that keep it "
            f"closed: the nearest are [{rates}] in SI units and radians."
        )
    return closed_q, closed_qd


def dependent_rows(model: Model, q: Nq) -> tuple[str, ...]:
    """The rows of the loops that follow from earlier ones at `q`, as "loop 0: Z".

    Their loop forces are not unique. A planar mechanism that is closed by a revolute
    joint has three of them.
    """
    model, q = _concrete("dependent_rows", model, q)
    rows = zip(row_names(model), _independent(model, q), strict=True)
    return tuple(f"{name}: {row}" for (name, row), is_new in rows if not is_new)


def row_names(model: Model) -> list[tuple[str, str]]:
    """Of each row of `loop_residual` its loop and what it holds."""
    return [(loop.name, row) for loop in model.loops for row in loop.rows]


def _worst(model: Model, rows: Array) -> tuple[str, float]:
    """The loop of the largest row, and the size of that."""
    sizes = np.abs(np.asarray(rows))
    worst = int(sizes.argmax())
    return row_names(model)[worst][0], float(sizes[worst])


def _check_freedom(model: Model, q: Array) -> None:
    """Raise a `ValueError` if the loops leave no freedom."""
    taken = np.cumsum(_independent(model, q))
    if not taken.size or taken[-1] < model.nv:
        return
    last, _ = row_names(model)[int(np.argmax(taken == model.nv))]
    raise ValueError(
        f"{last} takes the last of the {model.nv} freedoms of model {model.name!r}: "
        "there are more independent constraints than freedoms that could move, "
        "expected some motion to be left. Remove a loop, or give its cut joint more "
        "freedom."
    )


def _independent(model: Model, q: Array) -> np.ndarray:
    """Which rows of Psi do not follow from earlier ones, by Gram and Schmidt."""
    if not model.loops:
        return np.zeros(0, bool)
    Psi = np.asarray(loop_jacobian(model, q))
    limit = np.sqrt(np.finfo(Psi.dtype).eps) * np.linalg.norm(Psi, axis=1).max()
    basis = np.zeros((0, model.nv), Psi.dtype)
    is_new = []
    for row in Psi:
        for _ in range(2):  # the second time for what rounding left
            row = row - basis.T @ (basis @ row)
        length = np.linalg.norm(row)
        is_new.append(bool(length > limit))
        if is_new[-1]:
            basis = np.concatenate([basis, row[None] / length])
    return np.array(is_new)


def _concrete(what: str, model: Model, q: Array) -> tuple[Model, Array]:
    """The arguments, which must have values."""
    if any(isinstance(x, Tracer) for x in jax.tree.leaves((model, q))):
        raise ValueError(
            f"{what} got traced values, expected numbers: call it outside of jit, vmap "
            "and grad."
        )
    return inputs(model, q=(jnp.asarray(q), (model.nq,)))
