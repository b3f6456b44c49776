"""How public functions are compiled."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import jax
from jax._src.core import trace_state_clean
from jax.core import Tracer

from jaxdyn.algorithms._kernel import kernel

F = TypeVar("F", bound=Callable[..., Any])


def compiled(*static: str) -> Callable[[F], F]:
    """Compile a function once for each topology, shape and choice of `static` names.

    As `alone`; inside other traced code it is one `kernel`.
    """

    def decorate(function: F) -> F:
        signature = inspect.signature(function)

        @wraps(function)
        def run(*args: Any, **options: Any) -> Any:
            given = signature.bind(*args, **options).arguments
            chosen = {k: v for k, v in given.items() if k in static}
            arrays = {k: v for k, v in given.items() if k not in static}
            return kernel(lambda arrays: function(**arrays, **chosen))(arrays)

        return alone(*static)(run)  # type: ignore

    return decorate


def alone(*static: str) -> Callable[[F], F]:
    """Compile a function that is called by itself; inside others it dissolves.

    Called by itself, also under derivatives and `jax.vmap`, it answers from the cache
    instead of compiling its loops anew. In the program of a caller it stands as if it
    were written there, so that XLA sees which of its arguments are constants.
    """

    def decorate(function: F) -> F:
        whole = jax.jit(function, static_argnames=static)
        dissolving = jax.jit(function, static_argnames=static, inline=True)

        @wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            if trace_state_clean() or not _is_in_a_program((args, options)):
                return whole(*args, **options)
            return dissolving(*args, **options)

        return call  # type: ignore

    return decorate


def _is_in_a_program(given: Any) -> bool:
    """Whether arguments stand for numbers that are known only when a program runs."""
    return any(map(_is_staged, jax.tree.leaves(given)))


def _is_staged(x: Any) -> bool:
    # tracers of derivatives and of batches hold numbers; their classes are private
    while isinstance(x, Tracer):
        if hasattr(x, "primal"):
            x = x.primal
        elif hasattr(x, "batch_dim"):
            x = x.val
        else:
            return True
    return False
