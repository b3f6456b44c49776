"""Linear maps that know their transpose.

JAX transposes a program operation by operation. Where the transpose of a map has a
shorter program of its own, `linear_map` lets reverse mode use that. Both programs are
traced only when they are needed.
"""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, PyTree

from jaxdyn.program._jax import (
    Argument,
    Axes,
    ShapedArray,
    Tangent,
    UndefinedPrimal,
    Value,
    Zero,
    full,
    primitive,
    type_of,
)


def linear_map(
    function: Callable, transpose: Callable, fixed: PyTree, x: Sequence, like: Value
) -> Array:
    """function(fixed, x), which is linear in the arrays x and returns an array `like`.

    transpose(fixed, y) are the arrays of the transposed map. Derivatives by `fixed` are
    those of the programs.
    """
    leaves, tree = jax.tree.flatten(fixed)
    params = dict(
        function=lambda fixed, x: [function(jax.tree.unflatten(tree, fixed), x)],
        transpose=lambda fixed, y: transpose(jax.tree.unflatten(tree, fixed), *y),
        count=len(leaves),
        results=(jax.typeof(like),),
    )
    return linear_map_p.bind(*leaves, *x, **params)[0]


def apply(*args: ArrayLike, function: Callable, count: int, **_: object) -> list[Value]:
    """The map in primitives of JAX."""
    return function(list(args[:count]), list(args[count:]))


def _jvp(
    primals: Sequence[Value],
    tangents: Sequence[Tangent],
    *,
    function: Callable,
    count: int,
    **others: object,
) -> tuple[list[Value], list[Value]]:
    params = dict(function=function, count=count, **others)
    fixed, x = list(primals[:count]), list(primals[count:])
    moving = [k for k, t in enumerate(tangents[:count]) if not isinstance(t, Zero)]
    out = linear_map_p.bind(*primals, **params)
    slopes = linear_map_p.bind(*fixed, *map(full, tangents[count:]), **params)
    if moving:

        def of_moving(*values):
            replaced = dict(zip(moving, values, strict=True))
            return function([replaced.get(k, v) for k, v in enumerate(fixed)], x)

        at, along = [fixed[k] for k in moving], [tangents[k] for k in moving]
        added = jax.jvp(of_moving, at, along)[1]
        slopes = [a + b for a, b in zip(slopes, added, strict=True)]
    return out, slopes


def _transpose(
    cts: Sequence[Tangent],
    *args: Argument,
    function: Callable,
    transpose: Callable,
    count: int,
    results: Sequence[ShapedArray],
) -> Sequence[Value | None]:
    fixed, x = args[:count], args[count:]
    types = tuple(map(type_of, x))
    swapped = dict(function=transpose, transpose=function, results=types)
    pulled = linear_map_p.bind(*fixed, *map(full, cts), count=count, **swapped)
    wanted = [isinstance(v, UndefinedPrimal) for v in x]
    found = [y if w else None for y, w in zip(pulled, wanted, strict=True)]
    return [None] * count + found


def _batch(
    args: Sequence[Value],
    dims: Axes,
    *,
    function: Callable,
    transpose: Callable,
    count: int,
    results: Sequence[ShapedArray],
) -> tuple[list[Value], list[int]]:
    size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)

    def row_first(x, d, is_fixed):
        if d is not None:
            return jnp.moveaxis(x, d, 0)
        return x if is_fixed else jnp.broadcast_to(x, (size, *x.shape))

    rows = [
        row_first(x, d, k < count)
        for k, (x, d) in enumerate(zip(args, dims, strict=True))
    ]
    axes = [None if d is None else 0 for d in dims[:count]]
    out = linear_map_p.bind(
        *rows,
        function=jax.vmap(function, (axes, 0)),
        transpose=jax.vmap(transpose, (axes, 0)),
        count=count,
        results=tuple(a.update(shape=(size, *a.shape)) for a in results),
    )
    return out, [0] * len(out)


def _types(
    *_: ShapedArray, results: Sequence[ShapedArray], **__: object
) -> Sequence[ShapedArray]:
    return results


linear_map_p = primitive(
    "linear_map", apply, _types, batch=_batch, transpose=_transpose, jvp=_jvp
)
