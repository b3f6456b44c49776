"""Serial robots from tables of Denavit-Hartenberg parameters."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from jaxdyn.io._pose import rotation_about
from jaxdyn.model import Inertial, Model, ModelBuilder, SlenderRods, check_finite


@dataclass(frozen=True)
class DHLink:
    """One row of a Denavit-Hartenberg table.

    Attributes:
        a, alpha: length and twist; `alpha` in radians.
        d: offset along the joint axis; added to q for a prismatic joint.
        theta: angle about the joint axis; added to q for a revolute joint.
        joint: "R" or "P".
        inertial: mass, centre of mass and inertia in the link's Denavit-Hartenberg
            frame, or `SlenderRods` along the lengths of the table.
        name: of the body; by default link1, link2, ...
        effects: armature, friction, limits, ... as in `ModelBuilder.add_body`.
    """

    a: float = 0.0
    alpha: float = 0.0
    d: float = 0.0
    theta: float = 0.0
    joint: str = "R"
    inertial: Inertial | SlenderRods = Inertial()
    name: str | None = None
    effects: dict[str, Any] = field(default_factory=dict)


def from_dh(
    rows: Sequence[DHLink],
    *,
    convention: str = "distal",
    name: str = "robot",
    gravity: Any = (0.0, 0.0, -9.81),
    tool: str | None = None,
    check_inertia: bool = True,
    dtype: Any = None,
) -> Model:
    """The serial robot of a Denavit-Hartenberg table.

    The frame of body i has its origin on joint axis i, z along it, and turns with the
    link. In the "distal" (standard) convention T_i = Rz(theta) Tz(d) Tx(a) Rx(alpha),
    so the Denavit-Hartenberg frame i stands at the far end of the link and is
    Tz(d) Tx(a) Rx(alpha) in the body frame. In the "proximal" (modified) convention
    T_i = Rx(alpha) Tx(a) Rz(theta) Tz(d), with a and alpha of the link before, and is
    the body frame. There a link's rod along x, of `SlenderRods`, has the length `a` of
    the next row, so that the last link has none.

    Args:
        rows: one per link, base to tip.
        tool: name for a frame at the last Denavit-Hartenberg frame, if one is wanted.
        check_inertia: False accepts inertias that violate the triangle inequality,
            and joints that no inertia resists (see `singular_joints`).
        dtype: type of the leaves, by default JAX's default floating type.
    """
    if not isinstance(convention, str) or convention not in ("distal", "proximal"):
        raise ValueError(
            f"convention is {convention!r}, expected 'distal' (standard) or 'proximal' "
            "(modified)."
        )
    distal = convention == "distal"
    builder = ModelBuilder(name, gravity=gravity)
    rows = _checked(rows)
    R, p = np.eye(3), np.zeros(3)  # the frame before the row, in the body before it
    for i, row in enumerate(rows):
        body = _name(row, i)
        far = _far_end(row)
        if not distal:
            # Rx Tx of this row belong to the link before; slide up to frame i
            turn = _about_x(row.alpha)
            R, p = R @ turn, p + R @ np.array([row.a, 0, 0])
            p = p + R @ np.array([0, 0, row.d])
        builder.add_body(
            body,
            i - 1 if i else None,
            _joint(body, row.joint),
            R=R @ rotation_about(np.array([0.0, 0.0, 1.0]), row.theta),
            p=p,
            inertial=_inertial(body, rows, i, distal),
            check_inertia=check_inertia and not _has_hub(row),
            **row.effects,
        )
        R, p = far if distal else (np.eye(3), np.zeros(3))
    if tool is not None:
        builder.add_frame(tool, len(rows) - 1, R=R, p=p)
    return builder.build(dtype, check_inertia=check_inertia)


def _checked(rows: Sequence[DHLink]) -> list[DHLink]:
    """The rows with their numbers as such, or a `ValueError` that names the row."""
    if not isinstance(rows, Sequence):
        raise ValueError(f"rows is {rows!r}, expected a list of DHLink.")
    result = []
    for i, row in enumerate(rows):
        if not isinstance(row, DHLink):
            raise ValueError(f"row {i} is {row!r}, expected a DHLink.")
        body = _name(row, i)
        if not isinstance(row.inertial, Inertial | SlenderRods):
            raise ValueError(
                f"body {body!r}: inertial is {row.inertial!r}, expected Inertial or "
                "SlenderRods."
            )
        if isinstance(row.inertial, Inertial):
            row.inertial.check(body, triangle=False)  # what is moved must be numbers
        keys = row.effects if isinstance(row.effects, dict) else [None]
        if not all(isinstance(key, str) for key in keys):
            raise ValueError(
                f"body {body!r}: effects is {row.effects!r}, expected a dictionary "
                "such as {'damping': 0.1}."
            )
        lengths = {
            key: float(check_finite(body, key, getattr(row, key), ()))
            for key in ("a", "alpha", "d", "theta")
        }
        result.append(replace(row, **lengths))
    return result


def _name(row: DHLink, i: int) -> str:
    return f"link{i + 1}" if row.name is None else row.name


def _far_end(row: DHLink) -> tuple[np.ndarray, np.ndarray]:
    """Tz(d) Tx(a) Rx(alpha)."""
    return _about_x(row.alpha), np.array([row.a, 0.0, row.d])


def _about_x(alpha: float) -> np.ndarray:
    return rotation_about(np.array([1.0, 0.0, 0.0]), alpha)


def _joint(body: str, letter: str) -> str:
    if not isinstance(letter, str) or letter not in ("R", "P"):
        raise ValueError(
            f"body {body!r}: joint is {letter!r}, expected 'R' or 'P': other joints "
            "need ModelBuilder."
        )
    return {"R": "revolute", "P": "prismatic"}[letter]


def _has_hub(row: DHLink) -> bool:
    """A hub turns about one axis only, which no rigid body does: not to be checked."""
    return isinstance(row.inertial, SlenderRods) and row.inertial.hub > 0


def _inertial(body: str, rows: Sequence[DHLink], i: int, distal: bool) -> Inertial:
    """The inertial data of link i in its body frame."""
    row = rows[i]
    if isinstance(row.inertial, Inertial):
        return row.inertial.moved(*_far_end(row)) if distal else row.inertial
    a = row.a if distal else rows[i + 1].a if i + 1 < len(rows) else 0.0
    try:
        rods = row.inertial.inertial(a, row.d)
    except ValueError as error:
        raise ValueError(f"body {body!r}: {error}") from error
    # proximal: the rod along the axis ends at the body origin, not starts there
    return rods if distal else rods.moved(np.eye(3), np.array([0, 0, -row.d]))
