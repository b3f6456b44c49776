"""The border of this folder: shapes, types and values are checked."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxdyn.model import Model, arguments

Shape = tuple[int, ...]


def inputs(model: Model, **given: tuple[Any, Shape]) -> tuple[Any, ...]:
    """The model and the arrays, given with their shapes, in their common type.

    What is None stays None.

    Raises:
        ValueError: an array or a leaf of the model has the wrong shape.
    """
    (model,) = arguments(model)
    values = {
        name: None if value is None else real(name, value, shape, model)
        for name, (value, shape) in given.items()
    }
    types = {x.dtype for x in values.values() if x is not None}
    floats = (t for t in types if jnp.issubdtype(t, jnp.floating))
    dtype = np.result_type(model.dtype, *floats)
    return jax.tree.map(lambda x: x.astype(dtype), (model, *values.values()))


def real(name: str, value: Any, shape: Shape, model: Model | None = None) -> Any:
    """An array of real numbers of the given shape."""
    value = jnp.asarray(value)
    if value.shape != shape:
        where = "" if model is None else f" for model {model.name!r}"
        raise ValueError(
            f"{name} has shape {value.shape}, expected {shape}{where}: one motion or "
            "state at a time; use jax.vmap for many."
        )
    if jnp.issubdtype(value.dtype, jnp.complexfloating):
        raise ValueError(f"{name} is complex, expected real numbers.")
    return value


def expect(name: str, value: Any, is_right: Any, expected: str) -> Any:
    """The value, if it is right.

    Raises:
        ValueError: it is not.
        RuntimeError: it is not, which in traced code is known only when that runs.
    """
    if isinstance(is_right, Tracer):
        wrong = ~is_right.all()
        return eqx.error_if(value, wrong, f"{name} is wrong, expected {expected}.")
    if not np.all(is_right):
        raise ValueError(f"{name} is {np.asarray(value)}, expected {expected}.")
    return value


def positive(name: str, value: Any, dtype: Any) -> Any:
    """A positive finite number in the given type."""
    value = real(name, value, ()).astype(dtype)
    is_right = (value > 0) & jnp.isfinite(value)
    return expect(name, value, is_right, "a positive number")


def search_bounds(tolerance: float | None, max_steps: int, dtype: Any) -> Any:
    """The tolerance of a search, by default that of the type, as an array.

    Raises:
        ValueError: it is not positive, or there are no steps.
    """
    if max_steps < 1:
        raise ValueError(f"max_steps is {max_steps}, expected a positive number.")
    given = tolerance_of(dtype) if tolerance is None else tolerance
    return positive("tolerance", given, dtype)


def tolerance_of(dtype: Any) -> float:
    """The error of a solution in metres and radians that counts as none."""
    return 1e-9 if dtype == jnp.float64 else 1e-5


def check_rotation(name: str, value: Any) -> None:
    """Raise a `ValueError` for a matrix [..., 3, 3] that is no rotation.

    In traced code nothing is known; no frame ever gets there.
    """
    if isinstance(value, Tracer):
        return
    R = np.asarray(value)
    apart = np.abs(R @ np.swapaxes(R, -1, -2) - np.eye(3)).max()
    if not (apart < 1e-4 and (np.linalg.det(R) > 0).all()):
        raise ValueError(f"{name} is {R}, expected a rotation: R Rᵀ = 1, det R = 1.")


def reach(value: Any, is_reached: Any, failure: str, *numbers: Any) -> Any:
    """The value, if what was looked for is reached.

    Raises:
        RuntimeError: it is not; the numbers fill the braces of the sentence where they
            are known, outside of traced code.
    """
    if isinstance(is_reached, Tracer):
        return eqx.error_if(value, ~is_reached, failure.replace("{:.3g}", "..."))
    if not is_reached:
        raise RuntimeError(failure.format(*(float(x) for x in numbers)))
    return value
