"""Forces over time: functions, samples and constants behind one call."""

from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

Law = Callable[..., Any]  # (t, q, qd) -> array


class Constant(eqx.Module):
    """The same value at all times."""

    value: Float[Array, "..."]

    def __call__(self, t: Any, q: Any, qd: Any) -> Any:
        """The value."""
        return self.value


class Samples(eqx.Module):
    """Values at some times, linear in between."""

    path: diffrax.LinearInterpolation

    def __call__(self, t: Any, q: Any, qd: Any) -> Any:
        """The value at a time."""
        return self.path.evaluate(t)


class Checked(eqx.Module):
    """A law whose results must have one shape."""

    law: Law
    name: str = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)

    def __call__(self, t: Any, q: Any, qd: Any) -> Any:
        """The value of the law, in the type of the state."""
        value = jnp.asarray(self.law(t, q, qd))
        if value.shape != self.shape:
            raise ValueError(
                f"{self.name} returned shape {value.shape}, expected {self.shape}: it "
                "is called as (t, q, qd) for one state."
            )
        return value.astype(q.dtype)


class Frozen(eqx.Module):
    """A function whose arrays are leaves, and all else static.

    So programs of it are shared by values of its parameters, as those of a model are.
    """

    arrays: list[Any]
    others: tuple[Any, ...] = eqx.field(static=True)
    tree: Any = eqx.field(static=True)

    def __call__(self, *args: Any) -> Any:
        """The value of the function."""
        return self.law(*args)

    @property
    def law(self) -> Law:
        """The function."""
        arrays = iter(self.arrays)
        leaves = [next(arrays) if x is _ARRAY else x for x in self.others]
        return jax.tree.unflatten(self.tree, leaves)

    @property
    def name(self) -> str:
        """What its errors call it."""
        law = getattr(self.law, "func", self.law)  # of a partial
        return getattr(law, "__name__", type(law).__name__)


_ARRAY = object()


def frozen(law: Law) -> Frozen:
    """A function as a pytree of its arrays alone."""
    leaves, tree = jax.tree.flatten(law)
    is_array = [isinstance(x, jax.Array | np.ndarray | np.generic) for x in leaves]
    pairs = list(zip(leaves, is_array, strict=True))
    arrays = [jnp.asarray(x) for x, a in pairs if a]
    return Frozen(arrays, tuple(_ARRAY if a else x for x, a in pairs), tree)


def signal(name: str, given: Any, ts: Float[Array, " times"], shape: tuple) -> Law:
    """What was given for a force, as a law (t, q, qd) -> array of the shape.

    Raises:
        ValueError: it is an array of another shape, or neither an array nor callable.
    """
    if given is None:
        return Constant(jnp.zeros(shape, ts.dtype))
    if callable(given):
        return Checked(given, name, shape)
    if not all(eqx.is_array_like(x) for x in jax.tree.leaves(given)):
        raise ValueError(
            f"{name} is a {type(given).__name__}, expected a function (t, q, qd), an "
            f"array of shape {shape} or {('times', *shape)}, or None."
        )
    values = jnp.asarray(given, ts.dtype)
    if values.shape == shape:
        return Constant(values)
    if values.shape == (len(ts), *shape):
        return Samples(diffrax.LinearInterpolation(ts, values))
    raise ValueError(
        f"{name} has shape {values.shape}, expected {shape} (always the same), "
        f"{(len(ts), *shape)} (a row for each time in ts), or a function (t, q, qd)."
    )
