"""How public functions are compiled."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

import jax

from jaxdyn.program._cpu import in_kernel
from jaxdyn.program._jax import INLINE, is_eager, is_staged
from jaxdyn.program._kernel import bind, traced

F = TypeVar("F", bound=Callable)


def compiled(
    *static: str, flat: bool = True, settle: Callable | None = None
) -> Callable[[F], F]:
    """Compile a function once for each topology, shape and choice of `static` names.

    As `alone`; inside other traced code it is one kernel, which may be `flat`.

    Args:
        settle: settle(*arguments), which are all in order, may check the static ones
            and returns those that are not as given, by name.
    """

    def decorate(function: F) -> F:
        names = tuple(inspect.signature(function).parameters)

        def program(*values):
            given = dict(zip(names, values, strict=True))
            chosen = {name: given.pop(name) for name in static}
            leaves, tree = jax.tree.flatten(given)

            def of_leaves(*leaves):
                return function(**jax.tree.unflatten(tree, leaves), **chosen)

            one = [False] * len(leaves)
            return bind(traced(of_leaves, leaves, one, flat), leaves, None, one)

        return _shell(function, program, static, settle)

    return decorate


def alone(*static: str) -> Callable[[F], F]:
    """Jit the function when it is called eagerly; inline it inside traced code.

    Called by itself, also under derivatives and `jax.vmap`, it answers from the cache
    instead of compiling its loops anew, however its arguments are given: by position,
    by keyword or by default. In the program of a caller it stands as if it were written
    there, so that XLA sees which of its arguments are constants.
    """

    def decorate(function: F) -> F:
        parameters = inspect.signature(function).parameters.values()
        first = sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters)
        names = [p.name for p in parameters][first:]

        def program(*values):
            options = zip(names, values[first:], strict=True)
            return function(*values[:first], **dict(options))

        return _shell(function, program, static, None)

    return decorate


def _shell(
    function: F, program: Callable, static: tuple[str, ...], settle: Callable | None
) -> F:
    """The function as users call it; `program` is it as a function of all arguments."""
    signature = inspect.signature(function)
    by_place = [
        p.replace(kind=p.POSITIONAL_OR_KEYWORD, default=p.empty)
        for p in signature.parameters.values()
    ]
    program.__name__ = getattr(function, "__name__", "partial")
    program.__signature__ = inspect.Signature(by_place)  # type: ignore
    whole = jax.jit(program, static_argnames=static)
    dissolving = jax.jit(program, static_argnames=static, inline=INLINE)
    in_order = _in_order(signature)
    names = tuple(signature.parameters)

    @wraps(function)
    def call(*args, **options):
        if in_kernel() and settle is None:
            return function(*args, **options)
        values = in_order(args, options)
        if settle is not None:
            settled = settle(*values)
            values = [settled.get(k, v) for k, v in zip(names, values, strict=True)]
        if in_kernel():
            return function(**dict(zip(names, values, strict=True)))
        if is_eager() or not any(map(is_staged, jax.tree.leaves(values))):
            return whole(*values)
        return dissolving(*values)

    return call  # type: ignore


def _in_order(signature: inspect.Signature) -> Callable:
    """A function that binds arguments to all parameters in order.

    As `inspect.Signature.bind` with defaults, in a fraction of its time.
    """
    parameters = tuple(signature.parameters.values())
    rests: dict[tuple, tuple] = {}

    def in_order(args, options):
        form = len(args), *options
        if form not in rests:
            signature.bind(*args, **options)  # raises for wrong arguments
            rests[form] = tuple((p.name, p.default) for p in parameters[len(args) :])
        return *args, *[options.get(name, default) for name, default in rests[form]]

    return in_order
