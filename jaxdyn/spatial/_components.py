"""Structures of scalars: pytrees whose sums and multiples are taken by component."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

import jax

from jaxdyn.spatial._scalars import Scalar, add, div, mul, neg, sub

T = TypeVar("T")
C = TypeVar("C", bound="Components")


@dataclass_transform(frozen_default=True)
def pytree(cls: type[T]) -> type[T]:
    """A frozen dataclass that is a pytree of its fields."""
    return jax.tree_util.register_dataclass(dataclass(frozen=True)(cls))


class Components:
    """Sums of structures of one kind, and their multiples."""

    __array_ufunc__ = None  # a NumPy array on the left leaves the product to `__rmul__`

    def __add__(self: C, other: C) -> C:
        return self._paired(add, other)

    def __sub__(self: C, other: C) -> C:
        return self._paired(sub, other)

    def __neg__(self: C) -> C:
        return self._of(map(neg, vars(self).values()))

    def __mul__(self: C, s: Scalar) -> C:
        return self._of([mul(x, s) for x in vars(self).values()])

    __rmul__ = __mul__

    def __truediv__(self: C, s: Scalar) -> C:
        return self._of([div(x, s) for x in vars(self).values()])

    def _paired(self: C, function: Callable, other: C) -> C:
        if type(other) is not type(self):
            return NotImplemented
        return self._of(map(function, vars(self).values(), vars(other).values()))

    def _of(self: C, values: Iterable) -> C:
        return type(self)(*values)  # type: ignore
