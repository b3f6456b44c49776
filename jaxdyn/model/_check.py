"""Checks on numbers: each error names the element and what to do."""

from collections.abc import Sequence
from typing import Any, TypeGuard

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

Numbers = float | int | Sequence[Any] | np.ndarray
Body = str | int | np.integer  # its name or its index


def check_finite(
    name: str, what: str, value: object, shape: tuple[int, ...], kind: str = "body"
) -> np.ndarray:
    """The value as an array, or a `ValueError` naming the body and what is wrong."""
    array = as_numbers(value)
    if array is None or array.shape != shape:
        wanted = f"{' x '.join(map(str, shape))} numbers" if shape else "one number"
        raise ValueError(f"{kind} {name!r}: {what} is {value!r}, expected {wanted}.")
    if not np.isfinite(array).all():
        raise ValueError(
            f"{kind} {name!r}: {what} is {array.tolist()}, expected finite numbers: "
            "replace NaN and infinite entries."
        )
    return array


def as_numbers(value: object) -> np.ndarray | None:
    """The value as an array of floating-point numbers; None for texts and the like."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        return None
    return array.astype(float) if array.dtype.kind in "iuf" else None


def is_index(value: object) -> TypeGuard[int | np.integer]:
    """Whether a value is a whole number; True and False are none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_world(body: object, base: str) -> bool:
    """Whether a body is the base: its name, or -1."""
    return isinstance(body, str | int | np.integer) and body in (base, -1)


def is_floating(dtype: DTypeLike) -> bool:
    """Whether this is a floating-point type."""
    try:
        return jnp.issubdtype(dtype, jnp.floating)
    except TypeError:  # it is no type at all
        return False


def unit_vectors(v: np.ndarray) -> np.ndarray:
    """The vectors along the last axis divided by their lengths, but for zeros.

    Powers of two, which leave every digit, bring them to sizes whose squares are in the
    range of a double.
    """
    v = np.ldexp(v, -np.frexp(np.abs(v).max(axis=-1, keepdims=True))[1])
    length = np.linalg.norm(v, axis=-1, keepdims=True)
    return v / np.where(length > 0, length, 1.0)


def check_rotation(name: str, value: Numbers | None, kind: str = "body") -> np.ndarray:
    """The placement R as a rotation matrix; the identity where none is given."""
    given = np.eye(3) if value is None else value
    R = check_finite(name, "placement R", given, (3, 3), kind)
    error = np.abs(R.T @ R - np.eye(3)).max()
    if error > 1e-6 or np.linalg.det(R) < 0:
        raise ValueError(
            f"{kind} {name!r}: placement R {R.tolist()} is not a rotation (RᵀR differs "
            f"from 1 by {error:.2g}, determinant {np.linalg.det(R):.3g}): give "
            "orthonormal, right-handed axes."
        )
    if error < 1e-14:
        return R
    u, _, vt = np.linalg.svd(R)  # remove the rounding of printed digits
    return u @ vt
