"""Options that torques and policies share: their checks and their failures."""

from typing import Any, TypeVar

import numpy as np

R = TypeVar("R")


def check_numbers(**given: Any) -> None:
    """Raise a `ValueError` for a number that is not positive."""
    for name, value in given.items():
        if np.shape(value) != () or not 0 < float(value) < np.inf:
            raise ValueError(f"{name} is {value}, expected a positive number.")


def check_steps(**given: Any) -> None:
    """Raise a `ValueError` for a count that is no positive integer."""
    for name, value in given.items():
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} is {value!r}, expected a positive integer.")


def reported(result: R, is_finite: bool, throw: bool) -> R:
    """The result, if it is one or failures are not to be raised.

    Raises:
        RuntimeError: the cost is not finite.
    """
    if throw and not is_finite:
        message = getattr(result, "message", "")
        raise RuntimeError(f"{message} throw=False returns what was found.")
    return result
