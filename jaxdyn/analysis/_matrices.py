"""Sums, products and factors of arrays of scalars, one operation at a time."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.analysis._scalars import Scalars

Ids = np.ndarray  # of scalars, by number


def multiply(scalars: Scalars, a: Ids, b: Ids) -> Ids:
    """The products entry by entry."""
    return np.asarray(np.frompyfunc(scalars.mul, 2, 1)(a, b), np.int64)


def total(scalars: Scalars, a: Ids, axis: int) -> Ids:
    """The sums along an axis, first to last."""
    add = np.frompyfunc(scalars.add, 2, 1)
    result = np.zeros(np.delete(a.shape, axis), np.int64)
    for row in np.moveaxis(a, axis, 0):
        result = np.asarray(add(result, row), np.int64)
    return result


def reduce_sum(scalars: Scalars, a: Ids, *, axes: Any, **_) -> Ids:
    """The primitive `reduce_sum`."""
    for axis in sorted(axes, reverse=True):
        a = total(scalars, a, axis)
    return a


def cumsum(scalars: Scalars, a: Ids, *, axis: int, reverse: bool) -> Ids:
    """The primitive `cumsum`: each sum is the one before and one entry."""
    rows = np.moveaxis(a, axis, 0)
    rows = rows[::-1] if reverse else rows
    sums = np.stack([total(scalars, rows[: k + 1], 0) for k in range(len(rows))])
    return np.moveaxis(sums[::-1] if reverse else sums, 0, axis)


def dot_general(scalars: Scalars, a: Ids, b: Ids, *, dimension_numbers: Any, **_):
    """The primitive `dot_general`."""
    (sum_a, sum_b), (batch_a, batch_b) = dimension_numbers

    def arranged(x: Ids, batch: Any, summed: Any) -> tuple[Ids, list[int]]:
        free = [k for k in range(x.ndim) if k not in (*batch, *summed)]
        shape = [x.shape[k] for k in (*batch, *free)]
        return np.transpose(x, (*batch, *free, *summed)).reshape((*shape, -1)), shape

    x, shape_a = arranged(a, batch_a, sum_a)
    y, shape_b = arranged(b, batch_b, sum_b)
    batch = shape_a[: len(batch_a)]
    x = x.reshape((*batch, -1, 1, x.shape[-1]))
    y = y.reshape((*batch, 1, -1, y.shape[-1]))
    result = total(scalars, multiply(scalars, x, y), -1)
    return result.reshape((*shape_a, *shape_b[len(batch_b) :]))


def scatter_add(scalars: Scalars, a: Ids, places: Any, new: Ids, **params) -> Ids:
    """The primitive `scatter-add`; scattered units tell where each entry goes."""
    zero, units = jnp.zeros(a.shape, int), jnp.eye(new.size, dtype=int)
    units = units.reshape((-1, *new.shape))
    options = {k: v for k, v in params.items() if not k.startswith("update_")}
    numbers = options.pop("dimension_numbers")

    def scatter(unit: Any) -> Any:
        return jax.lax.scatter_add(zero, jnp.asarray(places), unit, numbers, **options)

    masks = np.asarray(jax.vmap(scatter)(units))
    terms = masks * new.reshape((-1, *(1,) * a.ndim))
    return total(scalars, np.concatenate([a[None], terms]), 0)


def cholesky(scalars: Scalars, a: Ids, **_) -> Ids:
    """The primitive `cholesky`: the lower factor of one matrix."""
    a, L = a.astype(object), np.zeros_like(a, object)
    for j in range(len(a)):
        for i in range(j, len(a)):
            x = a[i, j]
            for k in range(j):
                x = scalars.sub(x, scalars.mul(L[i, k], L[j, k]))
            L[i, j] = scalars.div(x, L[j, j]) if i > j else scalars.function("sqrt", x)
    return L.astype(np.int64)


def triangular_solve(scalars: Scalars, a: Ids, b: Ids, **params) -> Ids:
    """The primitive `triangular_solve` for one matrix, by substitution."""
    if not params["left_side"]:
        params |= {"left_side": True, "transpose_a": not params["transpose_a"]}
        return triangular_solve(scalars, a, b.T, **params).T
    is_lower = params["lower"] != params["transpose_a"]
    a, b = a.astype(object), b.astype(object)
    a = a.T if params["transpose_a"] else a
    order = range(len(a)) if is_lower else reversed(range(len(a)))
    x = np.zeros_like(b)
    for i in order:
        for column in range(b.shape[1]):
            y = b[i, column]
            for k in range(i) if is_lower else range(i + 1, len(a)):
                y = scalars.sub(y, scalars.mul(a[i, k], x[k, column]))
            unit = params["unit_diagonal"]
            x[i, column] = y if unit else scalars.div(y, a[i, i])
    return x.astype(np.int64)


RULES = {
    "cholesky": cholesky,
    "cumsum": cumsum,
    "dot_general": dot_general,
    "reduce_sum": reduce_sum,
    "scatter-add": scatter_add,
    "triangular_solve": triangular_solve,
}
