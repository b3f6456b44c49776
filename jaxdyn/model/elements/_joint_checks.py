"""Checks on the data of a joint: each names the body and what to do."""

import numpy as np

from jaxdyn.model._check import Numbers, as_numbers, check_finite, unit_vectors
from jaxdyn.model.elements._joints import JOINT_TYPES, JointType

DOF_EFFECTS = ("armature", "damping", "friction", "stiffness")
DOF_LIMITS = ("effort", "velocity")
FRICTION_SPEED = 1e-3  # rad/s or m/s, where none is given


def check_joint(name: str, joint: str) -> JointType:
    """The joint type with this name."""
    if not isinstance(joint, str) or joint not in JOINT_TYPES:
        raise ValueError(
            f"body {name!r}: joint type {joint!r} is not known, expected one of: "
            f"{', '.join(JOINT_TYPES)}."
        )
    return JOINT_TYPES[joint]


def check_axes(
    name: str, joint: str, kind: JointType, axis: Numbers | None, axis2: Numbers | None
) -> tuple[np.ndarray, np.ndarray]:
    """The two directions of a joint, of unit length; z and x where it has none."""
    for given, what, needed in ((axis, "axis", 1), (axis2, "axis2", 2)):
        if given is not None and kind.axes < needed:
            raise ValueError(
                f"body {name!r}: a {joint} joint has no {what}, but {given} was given: "
                "leave it out."
            )
    first = _direction(name, "axis", (0.0, 0.0, 1.0) if axis is None else axis)
    if kind.axes < 2:
        return first, np.array([1.0, 0.0, 0.0])
    if axis2 is None:
        raise ValueError(
            f"body {name!r}: a {joint} joint needs axis2, a second direction."
        )
    second = _direction(name, "axis2", axis2)
    if joint == "universal" and np.linalg.norm(np.cross(first, second)) < 1e-9:
        raise ValueError(
            f"body {name!r}: axis and axis2 of a universal joint are parallel "
            f"({first.tolist()}): the joint would turn about one line only."
        )
    if joint == "planar" and abs(first @ second) > 1e-6:
        raise ValueError(
            f"body {name!r}: axis2 {second.tolist()} of a planar joint is not "
            f"perpendicular to the normal {first.tolist()}: axis2 is the first "
            "direction in the plane."
        )
    return first, second


def _direction(name: str, what: str, value: Numbers) -> np.ndarray:
    v = check_finite(name, what, value, (3,))
    if not v.any():
        raise ValueError(
            f"body {name!r}: {what} is {v.tolist()}, expected a direction, not zero."
        )
    unit = unit_vectors(v)
    return v if np.abs(v - unit).max() < 4e-16 else unit


def check_pitch(name: str, joint: str, pitch: float | int | None) -> float:
    """The pitch of a helical joint, zero for others."""
    if joint == "helical":
        if pitch is None:
            raise ValueError(
                f"body {name!r}: a helical joint needs a pitch, in metres per radian."
            )
        return float(check_finite(name, "pitch", pitch, ()))
    if pitch is not None:
        raise ValueError(
            f"body {name!r}: a {joint} joint has no pitch, but {pitch} was given: "
            "leave it out."
        )
    return 0.0


def check_effects(
    name: str, kind: JointType, given: dict[str, Numbers]
) -> dict[str, np.ndarray]:
    """Joint effects and limits, one entry per coordinate."""
    result = {key: np.zeros(kind.nv) for key in DOF_EFFECTS}
    result |= {key: np.full(kind.nv, np.inf) for key in DOF_LIMITS}
    result |= {
        "friction_speed": np.full(kind.nv, FRICTION_SPEED),
        "rest": kind.neutral,
        "lower": np.full(kind.nq, -np.inf),
        "upper": np.full(kind.nq, np.inf),
    }
    for key, value in given.items():
        if key not in result:
            raise ValueError(
                f"body {name!r}: {key!r} is not known, expected one of: "
                f"{', '.join(result)}."
            )
        size, array = result[key].size, as_numbers(value)
        if array is None or array.shape not in ((), (size,)):
            raise ValueError(
                f"body {name!r}: {key} is {value!r}, expected one number or {size}."
            )
        result[key] = np.broadcast_to(array, (size,)).copy()
        may_be_infinite = key in (*DOF_LIMITS, "lower", "upper")
        bad = np.isnan(result[key]) if may_be_infinite else ~np.isfinite(result[key])
        if bad.any():
            wanted = "numbers, not NaN" if may_be_infinite else "finite numbers"
            raise ValueError(f"body {name!r}: {key} is {value}, expected {wanted}.")
        if key in (*DOF_EFFECTS, *DOF_LIMITS) and (result[key] < 0).any():
            raise ValueError(f"body {name!r}: {key} is {value}, expected zero or more.")
        if key == "rest":
            _check_quaternion(name, kind, array)
        if key == "friction_speed" and (result[key] <= 0).any():
            raise ValueError(
                f"body {name!r}: {key} is {value}, expected more than zero: leave it "
                f"out for {FRICTION_SPEED} rad/s or m/s."
            )
    if (result["lower"] > result["upper"]).any():
        raise ValueError(
            f"body {name!r}: lower limit {result['lower'].tolist()} exceeds the upper "
            f"limit {result['upper'].tolist()}: exchange them."
        )
    return result


def _check_quaternion(name: str, kind: JointType, rest: np.ndarray) -> None:
    """Raise a `ValueError` for a rest position that needs a quaternion and has none."""
    if kind.quaternion is None:
        return
    if not rest.shape or not rest[kind.quaternion :][:4].any():
        raise ValueError(
            f"body {name!r}: rest is {rest.tolist()}, expected {kind.nq} numbers with "
            f"a quaternion that is not zero: leave it out for {kind.neutral.tolist()}."
        )
