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

from jaxdyn.algorithms._factor import Factor
from jaxdyn.algorithms._newton_euler import newton_euler
from jaxdyn.model import Model


def implicit(forward: Callable, inverse: Callable, *inputs: Any) -> Any:
    """What forward(*inputs) returns, with derivatives of `inverse`.

    That are the accelerations and the factor of the inertia matrix, which counts as a
    constant: use it by `solve_inertia`, which knows how M varies. `inputs` start with
    the model and q; inverse(qdd, *inputs) is zero at the result.
    """

    @jax.custom_jvp
    def accelerations(*inputs: Any) -> Any:
        return forward(*inputs)

    def rule(primals: Any, tangents: Any) -> Any:
        qdd, factor = accelerations(*primals)
        slope = _along(lambda *inputs: inverse(qdd, *inputs), primals, tangents)
        dqdd = -solve_inertia(primals[0], primals[1], factor, slope)
        return (qdd, factor), (dqdd, jax.tree.map(jnp.zeros_like, factor))

    accelerations.defjvp(rule, symbolic_zeros=True)
    return accelerations(*inputs)


def solve_inertia(
    model: Model,
    q: Float[Array, " nq"],
    factor: Factor,
    b: Float[Array, " nv *columns"],
) -> Float[Array, " nv *columns"]:
    """The solution x of M(q) x = b with the factor of M(q) in hand.

    Its derivatives are those of M(q) x = b, by the recursion for M x; the factor counts
    as a constant.
    """
    still = eqx.tree_at(lambda m: m.gravity, model, jnp.zeros_like(model.gravity))

    def inertia_times(x: Float[Array, " nv *columns"]) -> Float[Array, " nv *columns"]:
        if x.ndim == 2:
            return jax.vmap(inertia_times, in_axes=1, out_axes=1)(x)
        return newton_euler(still, q, jnp.zeros_like(x), x) + model.armature * x

    def solve(_: Callable, b: Float[Array, " nv *columns"]) -> Any:
        return factor.solve(b)

    return jax.lax.custom_linear_solve(inertia_times, b, solve, symmetric=True)


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
