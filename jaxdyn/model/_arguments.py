"""The border of the traced code: shapes are checked, types made equal."""

from typing import Any

import jax.numpy as jnp

from jaxdyn.model._model import Model

_POSITIONS = ("q", "q0", "q1", "qpos")
_RATES = ("qd", "qdd", "d", "qvel")


def arguments(model: Model, **arrays: Any) -> tuple[Any, ...]:
    """The model and the arrays in their common floating-point type.

    Arrays called q have nq entries, velocities and the like nv, and `point` three.

    Raises:
        ValueError: an array has the wrong shape.
    """
    values = {name: jnp.asarray(array) for name, array in arrays.items()}
    for name, value in values.items():
        length = "nq" if name in _POSITIONS else "nv" if name in _RATES else None
        shape = (getattr(model, length),) if length else (3,)
        if value.shape != shape:
            meaning = f" ({length} = {shape[0]})" if length else ""
            raise ValueError(
                f"{name} has shape {value.shape}, expected {shape} for model "
                f"{model.name!r}{meaning}: functions take one state; use jax.vmap for "
                "many."
            )
    dtype = model.dtype
    for value in values.values():
        if jnp.issubdtype(value.dtype, jnp.floating):
            dtype = jnp.promote_types(dtype, value.dtype)
    cast = model if dtype == model.dtype else model.astype(dtype)
    return (cast, *(value.astype(dtype) for value in values.values()))
