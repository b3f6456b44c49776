"""What MJCF can hold of a model, and what would be lost."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from jaxdyn.io._writing import Lost, is_uniform, loses_friction_speed, rates, values_of
from jaxdyn.model import Actuators, GravityCompensation, Model, singular_joints

DROPPABLE = (
    *("velocity", "friction_speed", "lower", "upper", "effort", "actuators", "forces"),
    "couplings",
    *("armature", "damping", "friction", "stiffness"),
)
_EFFECTS = ("armature", "damping", "friction", "stiffness")


def lost(model: Model) -> Iterator[Lost]:
    """What MJCF cannot hold, and which element has it.

    Raises:
        ValueError: there is no other way to write it.
    """
    for i in range(model.n):
        _check_joint(model, i)
    singular = singular_joints(model)
    if singular:
        raise ValueError(
            f"no inertia resists joint {', '.join(map(repr, singular))}, which MuJoCo "
            "refuses: give the bodies that it moves mass or inertia, give it an "
            "armature, or make it fixed."
        )
    for i in range(model.n):
        for what in lost_of_joint(model, i):
            yield what, f"joint {model.joint_names[i]!r}"
    yield from _lost_actuators(model)
    if compensation(model) is None:
        yield "forces", f"model {model.name!r}"


def lost_of_joint(model: Model, i: int) -> list[str]:
    """What MJCF cannot hold of one joint."""
    lower, upper, effort, velocity, rest = (
        values_of(model, key, i)
        for key in ("lower", "upper", "effort", "velocity", "rest")
    )
    missing = ["velocity"] if np.isfinite(velocity).any() else []
    if loses_friction_speed(model, i):
        missing.append("friction_speed")
    if model.joints[i] not in ("spherical", "free"):
        missing += ["lower", "upper"] if (lower >= upper).any() else []
        return missing + (["effort"] if _differs(model, i) else [])
    missing += [
        key
        for key, values in (("lower", lower), ("upper", upper), ("effort", effort))
        if np.isfinite(values).any()
    ]
    effects = {key: values_of(model, key, i) for key in _EFFECTS}
    missing += [key for key, values in effects.items() if not is_uniform(values)]
    if model.joints[i] == "free":
        missing += [key for key in ("armature", "friction") if effects[key].any()]
    elif effects["stiffness"].any() and rest[:3].any():
        missing.append("stiffness")
    return missing


def compensation(model: Model) -> dict[int, tuple[Any, Any]] | None:
    """The weight that gravity compensation carries, by body: its mass and centre.

    None if MJCF cannot hold the force elements: others, or other centres than those of
    the masses of the bodies.
    """
    sums: dict[int, tuple[Any, Any]] = {}
    for element in model.forces:
        if not isinstance(element, GravityCompensation):
            return None
        entries = zip(element.bodies, element.points, element.masses, strict=True)
        for i, p, m in entries:
            mass, moment = sums.get(i, (0.0, np.zeros(3)))
            sums[i] = mass + m, moment + m * p
    for i, (mass, moment) in sums.items():
        size = 1e-13 * abs(mass) * (1 + np.abs(model.com[i]).max())
        if np.abs(moment - mass * model.com[i]).max() > size or not model.mass[i]:
            return None
    return sums


def _check_joint(model: Model, i: int) -> None:
    where = f"joint {model.joint_names[i]!r}"
    if model.joints[i] == "helical":
        raise ValueError(
            f"{where} is helical, which MJCF cannot hold: keep the model with to_dict, "
            "or make the joint revolute or prismatic."
        )
    is_placed = (model.R[i] != np.eye(3)).any() or model.p[i].any()
    if model.joints[i] == "free" and (model.parents[i] >= 0 or is_placed):
        raise ValueError(
            f"{where} is free and not placed at the origin of the world, where free "
            "joints of MJCF are: place it there, or keep the model with to_dict."
        )


def _differs(model: Model, i: int) -> bool:
    """Whether the effort of a joint is not that of its actuatorfrcrange."""
    effort = values_of(model, "effort", i)
    if not isinstance(model.actuators, Actuators):
        return not effort.all()
    start = model.topology.v_start
    span = model.actuators.joint_range[start[i] : start[i + 1]]
    return bool((effort != np.abs(span).max(axis=1)).any() or not effort.all())


def _lost_actuators(model: Model) -> Iterator[Lost]:
    x = model.actuators
    if not isinstance(x, Actuators):
        return
    reasons = dict(x.refused)
    joints, single = zip(*rates(model), strict=True)
    for k, name in enumerate(x.names):
        moved = np.flatnonzero(x.arms[k])
        several = len({joints[v] for v in moved}) > 1
        if x.activations[k] >= 0:
            reasons[name] = "an activation, whose law the model does not have"
        elif several and not all(single[v] for v in moved):
            reasons[name] = "arms of a spherical or free joint and of others"
        elif x.controls[k] != k:
            reasons[name] = "a control that is not its own"
        elif any(s[k, 0] >= s[k, 1] for s in (x.control_range, x.force_range)):
            reasons[name] = "an empty range"
    for name, reason in reasons.items():
        yield "actuators", f"model {model.name!r} (actuator {name!r}: {reason})"
