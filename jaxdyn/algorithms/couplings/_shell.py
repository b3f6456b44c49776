"""Functions of the tree of all joints as functions of models with couplings."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from jaxtyping import Array, PyTree

from jaxdyn.model import CoupledRates, arguments, coupled_rates, whole

F = TypeVar("F", bound=Callable)


def along_rows(at: CoupledRates, x: Array) -> Array:
    """Joint forces, or a matrix with a row for each joint: Gᵀ x."""
    return at.forces(x)


def along_columns(at: CoupledRates, x: Array) -> Array:
    """A matrix with a column for each joint: x G."""
    return at.forces(x.T).T


def along_both(at: CoupledRates, x: Array) -> Array:
    """A matrix with a row and a column for each joint: Gᵀ x G."""
    return along_columns(at, along_rows(at, x))


def of_tree(result: Callable[[CoupledRates, PyTree], PyTree] | None = None):
    """Make a function that is written for the tree of all joints one of any model.

    For a model with couplings it gets the tree and the motion of all its joints in the
    place of q, qd, qdd and tau, and `result` turns what it returns into what belongs to
    the coordinates: None if it depends on the motion alone.
    """

    def decorate(function: F) -> F:
        names = tuple(inspect.signature(function).parameters)

        @wraps(function)
        def call(*args, **options):
            model = args[0] if args else options["model"]
            if not model.couplings:
                return function(*args, **options)
            given = dict(zip(names, args, strict=False)) | options
            motion = {x: given[x] for x in ("q", "qd", "qdd", "tau") if x in given}
            model, *arrays = arguments(model, **motion)
            found = dict(zip(motion, arrays, strict=True))
            q, tau = found["q"], found.pop("tau", None)
            at, joints = coupled_rates(model, q), whole(model, **found)
            named = zip(("model", "q", "qd", "qdd"), joints, strict=True)
            given |= {x: value for x, value in named if x in given}
            if tau is not None:
                given["tau"] = at.lifted(tau)
            value = function(**given)
            return value if result is None else result(at, value)

        return call  # type: ignore

    return decorate
