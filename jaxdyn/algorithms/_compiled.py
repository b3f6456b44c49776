"""How public functions are compiled."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax

F = TypeVar("F", bound=Callable[..., Any])


def compiled(*static: str) -> Callable[[F], F]:
    """Compile a function once for each topology, shape and choice of `static` names.

    Called by itself it then answers from the cache instead of compiling its walks
    anew. Inside other traced code it dissolves into that.
    """

    def decorate(function: F) -> F:
        return jax.jit(function, static_argnames=static, inline=True)  # type: ignore

    return decorate
