"""Derivatives of forward dynamics by the implicit function theorem.

The accelerations solve ID(x, qdd) = tau, where x is everything else. So M dqdd = dtau -
dID at fixed qdd: a derivative costs one differentiated inverse dynamics and one solve
with the factor, and no derivative ever goes through the elimination.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero
from jaxtyping import Array, Float

from jaxdyn.algorithms._denoc import denoc_factor
from jaxdyn.algorithms._newton_euler import newton_euler
from jaxdyn.model import Model


@jax.custom_jvp
def solve_inertia(
    model: Model, q: Float[Array, " nq"], b: Float[Array, " nv"]
) -> Float[Array, " nv"]:
    """The solution x of M(q) x = b by the factor U D Uᵀ."""
    return denoc_factor(model, q).solve(b)


def _solve_rule(primals: Any, tangents: Any) -> Any:
    model, q, b = primals
    x = solve_inertia(model, q, b)

    def residual(model: Model, q: Any, b: Any) -> Any:  # M x - b
        at_rest = jnp.zeros_like(x)
        moved = newton_euler(model, q, at_rest, x)
        held = newton_euler(model, q, at_rest, at_rest)
        return moved - held + model.armature * x - b

    return x, -solve_inertia(model, q, _along(residual, primals, tangents))


solve_inertia.defjvp(_solve_rule, symbolic_zeros=True)


def implicit(forward: Callable, inverse: Callable, *inputs: Any) -> Any:
    """The accelerations forward(*inputs), with the derivatives of `inverse`.

    `inputs` start with the model and q; inverse(qdd, *inputs) is zero at the result.
    """

    @jax.custom_jvp
    def accelerations(*inputs: Any) -> Any:
        return forward(*inputs)

    def rule(primals: Any, tangents: Any) -> Any:
        qdd = accelerations(*primals)
        slope = _along(lambda *inputs: inverse(qdd, *inputs), primals, tangents)
        return qdd, -solve_inertia(primals[0], primals[1], slope)

    accelerations.defjvp(rule, symbolic_zeros=True)
    return accelerations(*inputs)


def _along(function: Callable, primals: Any, tangents: Any) -> Any:
    """The derivative of a function along those tangents that are not zero."""
    leaves, tree = jax.tree.flatten(primals)
    slopes = jax.tree.leaves(tangents, is_leaf=lambda t: isinstance(t, SymbolicZero))
    moving = [k for k, t in enumerate(slopes) if not isinstance(t, SymbolicZero)]

    def of_moving(*values: Any) -> Any:
        replaced = list(leaves)
        for k, value in zip(moving, values, strict=True):
            replaced[k] = value
        return function(*jax.tree.unflatten(tree, replaced))

    primal = tuple(leaves[k] for k in moving)
    return jax.jvp(of_moving, primal, tuple(slopes[k] for k in moving))[1]
