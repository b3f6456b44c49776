"""Methods by name."""

from collections.abc import Callable


def choose(quantity: str, method: str, methods: dict[str, Callable]) -> Callable:
    """The method with this name, or a `ValueError` that lists all of them."""
    if method not in methods:
        raise ValueError(
            f"{quantity}: method is {method!r}, expected one of: {', '.join(methods)}."
        )
    return methods[method]
