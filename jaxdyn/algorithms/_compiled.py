"""How public functions are compiled."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import jax

from jaxdyn.algorithms._kernel import kernel

F = TypeVar("F", bound=Callable[..., Any])


def compiled(*static: str) -> Callable[[F], F]:
    """Compile a function once for each topology, shape and choice of `static` names.

    Called by itself it then answers from the cache instead of compiling its walks
    anew. Inside other traced code it dissolves into that, as one `kernel`.
    """

    def decorate(function: F) -> F:
        signature = inspect.signature(function)

        @wraps(function)
        def run(*args: Any, **options: Any) -> Any:
            given = signature.bind(*args, **options).arguments
            chosen = {k: v for k, v in given.items() if k in static}
            arrays = {k: v for k, v in given.items() if k not in static}
            return kernel(lambda arrays: function(**arrays, **chosen))(arrays)

        return jax.jit(run, static_argnames=static, inline=True)  # type: ignore

    return decorate
