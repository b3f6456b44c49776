"""How public functions are compiled."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import jax

from jaxdyn.program._cpu import in_kernel
from jaxdyn.program._jax import INLINE, is_eager, is_staged
from jaxdyn.program._kernel import kernel

F = TypeVar("F", bound=Callable[..., Any])


def compiled(*static: str, flat: bool = True) -> Callable[[F], F]:
    """Compile a function once for each topology, shape and choice of `static` names.

    As `alone`; inside other traced code it is one `kernel`, which may be `flat`.
    """

    def decorate(function: F) -> F:
        signature = inspect.signature(function)

        @wraps(function)
        def run(*args: Any, **options: Any) -> Any:
            given = signature.bind(*args, **options).arguments
            chosen = {k: v for k, v in given.items() if k in static}
            arrays = {k: v for k, v in given.items() if k not in static}
            return kernel(lambda arrays: function(**arrays, **chosen), flat)(arrays)

        return alone(*static)(run)  # type: ignore

    return decorate


def alone(*static: str) -> Callable[[F], F]:
    """Jit the function when it is called eagerly; inline it inside traced code.

    Called by itself, also under derivatives and `jax.vmap`, it answers from the cache
    instead of compiling its loops anew, however its arguments are given: by position,
    by keyword or by default. In the program of a caller it stands as if it were written
    there, so that XLA sees which of its arguments are constants.
    """

    def decorate(function: F) -> F:
        bind, ordered = _in_order(function)
        whole = jax.jit(ordered, static_argnames=static)
        dissolving = jax.jit(ordered, static_argnames=static, inline=INLINE)

        @wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            if in_kernel():
                return function(*args, **options)
            values = bind(args, options)
            if is_eager() or not any(map(is_staged, jax.tree.leaves(values))):
                return whole(*values)
            return dissolving(*values)

        return call  # type: ignore

    return decorate


def _in_order(function: Callable) -> tuple[Callable, Callable]:
    """How to bind arguments to all parameters in order, and the function of these.

    As `inspect.Signature.bind` with defaults, in a fraction of its time.
    """
    signature = inspect.signature(function)
    parameters = tuple(signature.parameters.values())
    names = tuple(signature.parameters)
    first = sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters)
    rests: dict[tuple, tuple] = {}

    def bind(args: tuple, options: dict[str, Any]) -> tuple:
        form = len(args), *options
        if form not in rests:
            signature.bind(*args, **options)  # raises for wrong arguments
            rests[form] = tuple((p.name, p.default) for p in parameters[len(args) :])
        return *args, *[options.get(name, default) for name, default in rests[form]]

    def ordered(*values: Any) -> Any:
        options = zip(names[first:], values[first:], strict=True)
        return function(*values[:first], **dict(options))

    by_place = [
        p.replace(kind=p.POSITIONAL_OR_KEYWORD, default=p.empty) for p in parameters
    ]
    ordered.__name__ = getattr(function, "__name__", "partial")
    ordered.__signature__ = inspect.Signature(by_place)  # type: ignore
    return bind, ordered
