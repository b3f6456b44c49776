"""Derivatives of forward dynamics by the implicit function theorem.

The accelerations solve ID(x, qdd) = tau, where x is everything else. So M dqdd = dtau -
dID at fixed qdd: a derivative costs one differentiated inverse dynamics and one solve
with the factor in hand, and no derivative ever goes through the elimination.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero
from jaxtyping import Array, Float, PyTree

from jaxdyn.algorithms.recursions import armature_forces
from jaxdyn.model import Model, Nq, Nv, reduced, whole
from jaxdyn.program import linear_map


@runtime_checkable
class InertiaFactor(Protocol):
    """A factor of the inertia matrix.

    Attributes:
        inverse_dynamics: joint forces of the rigid bodies, by a recursion that is as
            deep as solving with the factor.
    """

    @property
    def inverse_dynamics(self) -> Callable: ...

    def solve(
        self, b: Float[Array, " nv *columns"]
    ) -> Float[Array, " nv *columns"]: ...


def refined(
    forward: Callable, equations: Callable, solve: Callable, count: int
) -> Callable:
    """`forward` and some steps of iterative refinement, all as in `implicit`."""

    def run(*inputs):
        unknowns, factor = forward(*inputs)

        def improve(unknowns, _):
            missing = jax.tree.map(jnp.negative, equations(unknowns, *inputs))
            change = solve(factor, missing, *inputs)
            return jax.tree.map(jnp.add, unknowns, change), None

        return jax.lax.scan(improve, unknowns, length=count)[0], factor

    return run if count else forward


def implicit(
    forward: Callable,
    equations: Callable,
    solve: Callable,
    pullback: Callable | None,
    *inputs: PyTree,
) -> tuple[PyTree[Array], Callable]:
    """The unknowns of forward(*inputs), and solve(slope, *inputs) with its factor.

    Derivatives are those of `equations`. The factor has none, so it is not handed out:
    `solve` knows how the equations vary. `inputs` are the model, q, qd, tau and others.

    Args:
        forward: forward(*inputs) are the unknowns and a factor.
        equations: equations(unknowns, *inputs) is zero at the result.
        solve: solve(factor, slope, *inputs) are the unknowns x for which the equations,
            linear in small changes of the unknowns, change by `slope`. Derivatives by
            the inputs are its own, the factor counts as a constant.
        pullback: pullback(weights, unknowns, factor, *inputs), the gradients by q, qd
            and tau of the unknowns times `weights`, for reverse mode by these and the
            armature alone; None to leave it to JAX.
    """

    solution = jax.custom_jvp(forward)

    def rule(primals, tangents):
        unknowns, factor = solution(*primals)
        leaves, tree = jax.tree.flatten(primals)
        moving, moved = _moving(tangents)
        first = len(jax.tree.leaves(primals[0]))

        def along(fixed, tangents):
            (unknowns, factor), leaves = fixed
            inputs = jax.tree.unflatten(tree, leaves)
            slope = _slope(partial(equations, unknowns), inputs, moving, tangents)
            return solve(factor, jax.tree.map(jnp.negative, slope), *inputs)

        def against(pullback, fixed, weights):
            (unknowns, factor), leaves = fixed
            inputs = jax.tree.unflatten(tree, leaves)
            found = dict(enumerate(pullback(weights, unknowns, factor, *inputs), first))
            if armature in moving:
                found[armature] = _by_armature(inputs, unknowns, found[first + 2])
            return [found[k] for k in moving]

        fixed, armature = ((unknowns, factor), leaves), _armature_leaf(primals[0])
        known = {first, first + 1, first + 2, armature}
        if pullback is not None and set(moving) <= known:
            transpose = partial(against, pullback)
            change = linear_map(along, transpose, fixed, moved, like=unknowns)
        else:
            change = along(fixed, moved)
        return (unknowns, factor), (change, jax.tree.map(jnp.zeros_like, factor))

    solution.defjvp(rule, symbolic_zeros=True)
    unknowns, factor = solution(*inputs)
    return unknowns, partial(solve, factor)


def _armature_leaf(model: Model) -> int:
    """The place of the armature among the leaves of a model."""
    marked = jax.tree.map(lambda _: False, model)
    marked = eqx.tree_at(lambda m: m.armature, marked, True)
    return jax.tree.leaves(marked).index(True)


def _by_armature(inputs: PyTree, qdd: Nv, by_tau: Nv) -> Nv:
    """The gradient by the armature, for that by tau: both act in the joints."""
    model, _, qd, *_ = inputs

    def forces(armature: Nv) -> Nv:
        return armature_forces(model, armature, qd, qdd)

    return -jax.vjp(forces, model.armature)[1](by_tau)[0]


def solve_inertia(
    model: Model, q: Nq, factor: InertiaFactor, b: Float[Array, " nv *columns"]
) -> Float[Array, " nv *columns"]:
    """The solution x of M(q) x = b with a factor of M(q) in hand.

    Its derivatives are those of M(q) x = b, by the recursion for M x that is as deep as
    the factor; the factor counts as a constant.
    """
    still = eqx.tree_at(lambda m: m.gravity, model, jnp.zeros_like(model.gravity))

    def inertia_times(x: Float[Array, " nv *columns"]) -> Float[Array, " nv *columns"]:
        if x.ndim == 2:
            return jax.vmap(inertia_times, in_axes=1, out_axes=1)(x)
        tree, joints, _, rates = whole(still, q, None, x)
        rigid = factor.inverse_dynamics(tree, joints, jnp.zeros_like(rates), rates)
        return reduced(model, q, rigid + tree.armature * rates)

    # zero tangents as symbols: JAX fails where only the factor has any
    constant = jax.lax.stop_gradient(factor)

    def solve(_, b):
        return constant.solve(b)

    return jax.lax.custom_linear_solve(inertia_times, b, solve, symmetric=True)


def with_slopes_of(function: Callable, other: Callable) -> Callable:
    """What `other` returns, which is the same, with the derivatives of `function`."""

    @jax.custom_jvp
    def value(*inputs):
        return other(*inputs)

    def rule(primals, tangents):
        return value(*primals), _slope(function, primals, *_moving(tangents))

    value.defjvp(rule, symbolic_zeros=True)
    return value


def _slope(
    function: Callable, inputs: PyTree, moving: list[int], tangents: list[Array]
) -> PyTree[Array]:
    """The derivative of function(*inputs) along tangents of some of their leaves."""
    leaves, tree = jax.tree.flatten(inputs)

    def of_moving(*values):
        replaced = dict(zip(moving, values, strict=True))
        inputs = [replaced.get(k, x) for k, x in enumerate(leaves)]
        return function(*jax.tree.unflatten(tree, inputs))

    return jax.jvp(of_moving, [leaves[k] for k in moving], tangents)[1]


def _moving(tangents: PyTree) -> tuple[list[int], list[Array]]:
    """The leaves that have a tangent, and the tangents."""

    def is_zero(tangent):
        return isinstance(tangent, SymbolicZero)

    slopes = jax.tree.leaves(tangents, is_leaf=is_zero)
    moving = [k for k, t in enumerate(slopes) if not is_zero(t)]
    return moving, [slopes[k] for k in moving]
