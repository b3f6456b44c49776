"""Derivatives of forward dynamics by the implicit function theorem.

The accelerations solve ID(x, qdd) = tau, where x is everything else. So M dqdd = dtau -
dID at fixed qdd: a derivative costs one differentiated inverse dynamics and one solve
with the factor in hand, and no derivative ever goes through the elimination.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero
from jaxtyping import Array, Float

from jaxdyn.algorithms._factor import Factor, denoc_factor
from jaxdyn.algorithms._newton_euler import newton_euler
from jaxdyn.model import Model


def solve_inertia(
    model: Model, q: Float[Array, " nq"], b: Float[Array, " nv"]
) -> Float[Array, " nv"]:
    """The solution x of M(q) x = b by the factor U D Uᵀ."""
    return _solve(model, q, denoc_factor(*jax.lax.stop_gradient((model, q))), b)


@jax.custom_jvp
def _solve(model: Model, q: Any, factor: Factor, b: Any) -> Any:
    """The solution x of M(q) x = b, with the factor of M(q) in hand."""
    return factor.solve(b)


def _solve_rule(primals: Any, tangents: Any) -> Any:
    model, q, factor, b = primals
    x = _solve(*primals)

    def residual(model: Model, q: Any, b: Any) -> Any:  # M x - b
        still = eqx.tree_at(lambda m: m.gravity, model, jnp.zeros_like(model.gravity))
        return newton_euler(still, q, jnp.zeros_like(x), x) + model.armature * x - b

    varied = (model, q, b), (tangents[0], tangents[1], tangents[3])
    return x, -_solve(model, q, factor, _along(residual, *varied))


_solve.defjvp(_solve_rule, symbolic_zeros=True)


def implicit(forward: Callable, inverse: Callable, *inputs: Any) -> Any:
    """The accelerations that forward(*inputs) returns, with derivatives of `inverse`.

    `forward` returns them with the factor of the inertia matrix; `inputs` start with
    the model and q; inverse(qdd, *inputs) is zero at the result.
    """

    @jax.custom_jvp
    def accelerations(*inputs: Any) -> Any:
        return forward(*inputs)

    def rule(primals: Any, tangents: Any) -> Any:
        qdd, factor = accelerations(*primals)
        slope = _along(lambda *inputs: inverse(qdd, *inputs), primals, tangents)
        dqdd = -_solve(primals[0], primals[1], factor, slope)
        # the factor is only ever used by `_solve`, which knows how M varies
        return (qdd, factor), (dqdd, jax.tree.map(jnp.zeros_like, factor))

    accelerations.defjvp(rule, symbolic_zeros=True)
    return accelerations(*inputs)[0]


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
