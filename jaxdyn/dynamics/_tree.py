"""Forward dynamics of the tree of bodies: what a formulation consists of."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from jaxdyn.algorithms.couplings import CoupledFactor, coupled_factor
from jaxdyn.algorithms.derivatives import (
    InertiaFactor,
    dense_factor,
    implicit,
    inverse_gradient,
    refined,
    solve_inertia,
    with_slopes_of,
)
from jaxdyn.algorithms.log_depth import (
    SegmentFactor,
    parallel_forward,
    parallel_newton_euler,
    parallel_pullback,
)
from jaxdyn.algorithms.recursions import (
    articulated,
    composite,
    denoc_factor,
    joint_torques,
    newton_euler,
    passive_forces,
)
from jaxdyn.model import CHUNK, Model, Nq, Nv, coupled_rates, reduced, whole


@dataclass(frozen=True)
class ForwardMethod:
    """A formulation of forward dynamics.

    `inputs` are always the model, q, qd, tau, f_ext and base, as `arguments` returns
    them.

    Attributes:
        forward: forward(refine, chunk) is the function of the inputs that returns
            accelerations and a factor of M.
        inverse: the recursion of inverse dynamics whose derivatives are used.
        adjoint: adjoint(weights, qdd, factor, *inputs), the gradients of weighted
            accelerations by q, qd and tau.
    """

    forward: Callable
    inverse: Callable
    adjoint: Callable

    def solution(
        self, *inputs: PyTree, refine: int = 0, chunk: int = CHUNK
    ) -> tuple[Array, Callable]:
        """The accelerations, and solve(b, model, q), x of M x = b.

        Both have implicit derivatives.

        Args:
            refine: steps of iterative refinement.
            chunk: of "parallel".
        """
        forward = self.forward(refine, chunk)
        equations = partial(residual, self.inverse)
        adjoint = None if inputs[0].couplings else self.adjoint
        return implicit(forward, equations, _solve, adjoint, *inputs)


def by_recursion(recursion: Callable) -> ForwardMethod:
    """A recursion that takes what drives the bodies."""

    def once(model, q, qd, tau, f_ext, base):
        if model.couplings and model.couplings.is_dense:
            return _dense(composite, newton_euler)(model, q, qd, tau, f_ext, base)
        if model.couplings:
            return _coupled(once, model, q, qd, tau, f_ext, base)
        driving = tau - passive_forces(model, q, qd)
        return recursion(model, q, qd, driving, f_ext, base)

    return _sequential(once)


def _coupled(
    forward: Callable, model: Model, q: Nq, qd: Nv, tau: Nv, *others: PyTree
) -> tuple[Array, CoupledFactor]:
    """The accelerations of free joints, less what forces of the couplings undo."""
    tree, joints, rates, following = whole(model, q, qd)
    at = coupled_rates(model, q)
    qdd, factor = forward(tree, joints, rates, at.lifted(tau), *others)
    found = coupled_factor(factor, at)
    return found.closed(qdd - following), found


def by_matrix(inertia: Callable, recursion: Callable) -> ForwardMethod:
    """An inertia matrix, its Cholesky factor, and the bias forces by a recursion."""

    once = _dense(inertia, recursion)

    def with_tree_factor(model, q, *others):
        qdd, dense = once(model, q, *others)
        return qdd, dense if model.couplings else denoc_factor(model, q)

    return _sequential(with_tree_factor)


def _dense(inertia: Callable, recursion: Callable) -> Callable:
    def once(model, q, qd, tau, f_ext, base):
        tree, joints, rates, following = whole(model, q, qd)
        bias = recursion(tree, joints, rates, following, f_ext, base)
        bias = bias + passive_forces(tree, joints, rates)
        if following is not None:
            bias = bias + tree.armature * following
        M = inertia(tree, joints) + jnp.diag(tree.armature)
        factor = dense_factor(reduced(model, q, reduced(model, q, M).T))
        return factor.solve(tau - reduced(model, q, bias)), factor

    return once


def _sequential(once: Callable) -> ForwardMethod:
    def forward(refine: int, chunk: int) -> Callable:
        return refined(once, partial(residual, newton_euler), _solve, refine)

    return ForwardMethod(forward, newton_euler, _adjoint)


def residual(inverse: Callable, qdd: Array, *inputs: PyTree) -> Array:
    """The joint forces that accelerations need beyond those that there are."""
    model, q, qd, tau, f_ext, base = inputs
    motion = whole(model, q, qd, qdd)
    return reduced(model, q, joint_torques(inverse, *motion, f_ext, base)) - tau


def _solve(
    factor: InertiaFactor, slope: Array, model: Model, q: Array, *_: PyTree
) -> Array:
    return solve_inertia(model, q, factor, slope)


def _adjoint(
    weights: Array, qdd: Array, factor: InertiaFactor, *inputs: PyTree
) -> tuple[Array, Array, Array]:
    model, q, qd, _, f_ext, base = inputs
    rate = solve_inertia(model, q, factor, weights)
    by_q, by_qd = inverse_gradient(model, rate, q, qd, qdd, f_ext, base)
    return -by_q, -by_qd, rate


def _pieces(refine: int, chunk: int) -> Callable:
    """Pieces of the tree joined in pairs, or articulated bodies for a single piece."""
    single = by_recursion(articulated).forward(refine, chunk)

    def pieces(model, q, qd, tau, f_ext, base):
        if model.couplings:
            return coupled(model, q, qd, tau, f_ext, base)
        if not model.topology.contraction(chunk).rounds:  # nothing to join
            return single(model, q, qd, tau, f_ext, base)
        driving = tau - passive_forces(model, q, qd)
        return parallel_forward(model, q, qd, driving, f_ext, base, chunk, refine)

    equations = partial(residual, parallel_newton_euler)
    coupled = refined(partial(_coupled, pieces), equations, _solve, refine)
    return pieces


def _adjoint_of_pieces(
    weights: Array, qdd: Array, factor: InertiaFactor, *inputs: PyTree
) -> tuple[Array, Array, Array]:
    """The gradients by what the factor keeps of forward dynamics.

    Their derivatives are those of inverse dynamics in O(log n) steps.
    """
    if not isinstance(factor, SegmentFactor):  # nothing was joined
        return _adjoint(weights, qdd, factor, *inputs)

    def kept(weights, qdd, factor, *inputs):
        model, q, qd, *_ = inputs
        return parallel_pullback(model, factor, q, qd, weights)

    def known(weights, qdd, factor, *inputs):
        model, q, qd, tau, *others = inputs
        rate = _solve(factor, -weights, model, q)

        def forces(q, qd, tau):
            return residual(parallel_newton_euler, qdd, model, q, qd, tau, *others)

        return jax.vjp(forces, q, qd, tau)[1](rate)

    return with_slopes_of(known, kept)(weights, qdd, factor, *inputs)


BY_PIECES = ForwardMethod(_pieces, parallel_newton_euler, _adjoint_of_pieces)
