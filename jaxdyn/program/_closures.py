"""Functions that close over values which JAX traces."""

from collections.abc import Callable
from typing import Any

import jax
from jax.core import Tracer, eval_jaxpr
from jax.tree_util import Partial

from jaxdyn.program._cpu import filled


def lifted(function: Callable, *args: Any) -> Callable:
    """The function with the traced values that it closes over as leaves.

    It is as given where there are none; else it is for arguments of these types alone.
    """
    program, shape = jax.make_jaxpr(function, return_shape=True)(*args)
    places = [k for k, x in enumerate(program.consts) if isinstance(x, Tracer)]
    if not places:
        return function
    tree = jax.tree.structure(shape)

    def evaluated(outer, *args):
        consts = filled(program.consts, places, outer)
        out = eval_jaxpr(program.jaxpr, consts, *jax.tree.leaves(args))
        return jax.tree.unflatten(tree, out)

    evaluated.__name__ = getattr(function, "__name__", type(function).__name__)
    return Partial(evaluated, [program.consts[k] for k in places])
