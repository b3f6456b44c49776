"""Inertias as MuJoCo's compiler accepts them."""

from typing import Any

import numpy as np

from jaxdyn.io._pose import matrix_to_quaternion
from jaxdyn.model import Inertial, Note

LEAST = 1e-14  # mass and inertia of a moving body: MuJoCo refuses less than 1e-15


def principal(I: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
    """Principal inertias, no less than `least`, and their axes as a rotation."""
    values, axes = np.linalg.eigh(I)
    if (I == np.diag(I.diagonal())).all():
        values, axes = I.diagonal(), np.eye(3)
    values = np.maximum(values, least)
    # the triangle inequality, which MuJoCo checks without room for rounding
    excess = (2 + 4 * np.finfo(float).eps) * values.max() - values.sum()
    values[values.argmin()] += max(excess, 0.0)
    return values, axes * np.linalg.det(axes)


def make_possible(spec: Any) -> list[Note]:
    """Replace inertias of a spec that no body has by the nearest possible ones.

    Where the compiler balances inertias itself, they stay as they are.
    """
    notes = []
    for body in [] if spec.compiler.balanceinertia else spec.bodies:
        xx, yy, zz, xy, xz, yz = body.fullinertia
        I = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        is_full = not np.isnan(xx)
        given = Inertial(
            body.mass, np.zeros(3), I if is_full else np.diag(body.inertia)
        )
        if not body.explicitinertial or not np.isfinite(given.inertia).all():
            continue
        doubt = given.doubt()
        if doubt:
            values, axes = principal(given.nearest().inertia, LEAST)
            body.inertia = values
            if is_full:
                x, y, z, w = matrix_to_quaternion(axes)
                body.fullinertia, body.iquat = [np.nan] * 6, [w, x, y, z]
            place = body.name or "of a body without name"
            notes.append(Note("inertia", place, f"nearest possible one: {doubt}", True))
    return notes
