"""Linear maps that know their transpose.

JAX transposes a program operation by operation. Where the transpose of a map has a
shorter program of its own, `linear_map` lets reverse mode use that. Both programs are
traced only when they are needed.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from jaxdyn.program._jax import full, is_linear, is_zero, primitive, type_of


def linear_map(
    function: Callable, transpose: Callable, fixed: Any, x: list, like: Any
) -> Any:
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


def apply(
    *args: Any, function: Callable, transpose: Callable, count: int, results: Any
) -> Any:
    """The map in primitives of JAX."""
    return function(list(args[:count]), list(args[count:]))


def _jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    function, count = params["function"], params["count"]
    fixed, x = list(primals[:count]), list(primals[count:])
    moving = [k for k, t in enumerate(tangents[:count]) if not is_zero(t)]
    out = linear_map_p.bind(*primals, **params)
    slopes = linear_map_p.bind(*fixed, *map(full, tangents[count:]), **params)
    if moving:

        def of_moving(*values):
            replaced = dict(zip(moving, values, strict=True))
            return function([replaced.get(k, v) for k, v in enumerate(fixed)], x)

        at, along = [fixed[k] for k in moving], [tangents[k] for k in moving]
        others = jax.jvp(of_moving, at, along)[1]
        slopes = [a + b for a, b in zip(slopes, others, strict=True)]
    return out, slopes


def _transpose(
    cts: Any, *args: Any, function: Any, transpose: Any, count: int, results: Any
) -> Any:
    fixed, x = args[:count], args[count:]
    types = tuple(map(type_of, x))
    swapped = dict(function=transpose, transpose=function, results=types)
    pulled = linear_map_p.bind(*fixed, *map(full, cts), count=count, **swapped)
    found = [y if is_linear(v) else None for y, v in zip(pulled, x, strict=True)]
    return [None] * count + found


def _batch(
    args: Any, dims: Any, *, function: Any, transpose: Any, count: int, results: Any
) -> Any:
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


def _types(*_: Any, results: Sequence, **__: Any) -> Sequence:
    return results


linear_map_p = primitive(
    "linear_map", apply, _types, batch=_batch, transpose=_transpose, jvp=_jvp
)
