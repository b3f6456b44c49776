"""Settings of mechanisms with closed loops."""

from typing import Any

import numpy as np

from jaxdyn.algorithms.loops import loop_jacobian, loop_residual
from jaxdyn.cli import _settings as settings
from jaxdyn.dynamics import project_configuration, project_velocity
from jaxdyn.model import Model

FOR_LOOPS = (settings.NoControl, settings.Constant, settings.Samples)


def check_control(control: Any, model: Model) -> None:
    """Raise a `ValueError` for a control that is not for mechanisms with loops."""
    if model.loops and not isinstance(control, FOR_LOOPS):
        raise ValueError(
            f"control.kind is {control.kind!r}, which drives all joints of a tree, but "
            f"robot {model.name!r} has loops: expected one of: 'none', 'constant', "
            "'samples'."
        )


def check_method(method: str, model: Model) -> None:
    """Raise a `ValueError` for a method that is not for mechanisms with loops."""
    if model.loops and method != "denoc":
        raise ValueError(
            f"solver.method is {method!r}, but robot {model.name!r} has loops: "
            "expected 'denoc'."
        )


def closed_start(model: Model, q: Any, qd: Any) -> tuple[Any, Any]:
    """The state near the settings that closes all loops.

    Raises:
        ValueError: it is not near.
    """
    tolerance = 1e-8 if model.dtype == np.float64 else 1e-4
    closed_q = project_configuration(model, q)
    name, size = _worst(model, loop_residual(model, closed_q))
    if not size < tolerance:
        given, opening = _worst(model, loop_residual(model, q))
        raise ValueError(
            f"start.q: {given} is open by {opening:.3g}, and no closed pose was found "
            "nearby: expected one that closes all loops, or nearly so."
        )
    closed_qd = project_velocity(model, closed_q, qd)
    if not np.allclose(closed_qd, qd, rtol=1e-2, atol=1e-2):
        name, size = _worst(model, loop_jacobian(model, closed_q) @ qd)
        rates = ", ".join(f"{x:.6g}" for x in np.asarray(closed_qd).tolist())
        raise ValueError(
            f"start.qd: {name} opens with {size:.3g} a second, expected rates that "
            f"keep it closed: the nearest are [{rates}] in SI units and radians."
        )
    return closed_q, closed_qd


def _worst(model: Model, rows: Any) -> tuple[str, float]:
    """The loop that is most open, and by how much."""
    rows = np.abs(np.asarray(rows))
    names = [loop.name for loop in model.loops for _ in loop.rows]
    return names[int(rows.argmax())], float(rows.max())
