"""Forward dynamics of the tree of bodies: what a formulation consists of."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, PyTree

from jaxdyn.algorithms.derivatives import (
    InertiaFactor,
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
    denoc_factor,
    joint_torques,
    newton_euler,
    passive_forces,
)
from jaxdyn.model import CHUNK, Model


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
        return implicit(forward, equations, _solve, self.adjoint, *inputs)


def by_recursion(recursion: Callable) -> ForwardMethod:
    """A recursion that takes what drives the bodies."""

    def once(model, q, qd, tau, f_ext, base):
        driving = tau - passive_forces(model, q, qd)
        return recursion(model, q, qd, driving, f_ext, base)

    return _sequential(once)


def by_matrix(inertia: Callable, recursion: Callable) -> ForwardMethod:
    """An inertia matrix, its Cholesky factor, and the bias forces by a recursion."""

    def once(model, q, qd, tau, f_ext, base):
        bias = recursion(model, q, qd, None, f_ext, base)
        M = inertia(model, q) + jnp.diag(model.armature)
        phi = tau - passive_forces(model, q, qd) - bias
        return cho_solve(cho_factor(M, lower=True), phi), denoc_factor(model, q)

    return _sequential(once)


def _sequential(once: Callable) -> ForwardMethod:
    def forward(refine: int, chunk: int) -> Callable:
        return refined(once, partial(residual, newton_euler), _solve, refine)

    return ForwardMethod(forward, newton_euler, _adjoint)


def residual(inverse: Callable, qdd: Array, *inputs: PyTree) -> Array:
    """The joint forces that accelerations need beyond those that there are."""
    model, q, qd, tau, f_ext, base = inputs
    return joint_torques(inverse, model, q, qd, qdd, f_ext, base) - tau


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
        if not model.topology.contraction(chunk).rounds:  # nothing to join
            return single(model, q, qd, tau, f_ext, base)
        driving = tau - passive_forces(model, q, qd)
        return parallel_forward(model, q, qd, driving, f_ext, base, chunk, refine)

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
