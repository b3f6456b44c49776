"""Forward dynamics of the tree of bodies, in every formulation."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve

from jaxdyn.algorithms.derivatives import (
    implicit,
    inverse_gradient,
    refined,
    solve_inertia,
    with_slopes_of,
)
from jaxdyn.algorithms.log_depth import (
    SegmentFactor,
    parallel_forward,
    parallel_pullback,
)
from jaxdyn.algorithms.recursions import (
    articulated,
    composite,
    denoc_factor,
    denoc_forward,
    gibbs_appell,
    gibbs_appell_inertia,
    newton_euler,
    noc,
    passive_forces,
)
from jaxdyn.dynamics._choose import choose
from jaxdyn.dynamics._inverse import inverse_dynamics
from jaxdyn.model import CHUNK, Model


def open_dynamics(method: str, *inputs: Any, **options: Any) -> Any:
    """The accelerations of the cut tree, and solve(b, model, q), x of M x = b.

    Both have implicit derivatives.

    `inputs` are the model, q, qd, tau, f_ext and base, as `arguments` returns them;
    `options` those of `tree_dynamics`.
    """
    recursion, pullback = _residual("newton_euler"), _pullback
    if method == "parallel":
        recursion, pullback = _residual("parallel"), _parallel_pullback
    forward = tree_dynamics(method, **options)
    return implicit(forward, recursion, _solve, pullback, *inputs)


def tree_dynamics(method: str, refine: int = 0, chunk: int = CHUNK) -> Callable:
    """The forward dynamics of a method, as a function of `inputs`.

    Args:
        refine: steps of iterative refinement.
        chunk: of "parallel".
    """
    forward = choose("forward_dynamics", method, FORWARD)
    if method != "parallel":
        return refined(forward, _residual("newton_euler"), _solve, refine)
    alone = tree_dynamics("articulated", refine)

    def in_pieces(model: Model, *inputs: Any) -> Any:
        if not model.topology.contraction(chunk).rounds:  # nothing to join
            return alone(model, *inputs)
        return forward(model, *inputs, chunk=chunk, refine=refine)

    return in_pieces


def _residual(method: str) -> Callable:
    def residual(
        qdd: Any, model: Model, q: Any, qd: Any, tau: Any, f_ext: Any, base: Any
    ) -> Any:
        found = inverse_dynamics(
            model, q, qd, qdd, f_ext=f_ext, base=base, method=method
        )
        return found - tau

    return residual


def _solve(factor: Any, slope: Any, model: Model, q: Any, *_: Any) -> Any:
    return solve_inertia(model, q, factor, slope)


def _pullback(weights: Any, qdd: Any, factor: Any, model: Model, *inputs: Any) -> Any:
    """The gradients of weighted accelerations by q, qd and tau."""
    q, qd, _, f_ext, base = inputs
    rate = solve_inertia(model, q, factor, weights)
    by_q, by_qd = inverse_gradient(model, rate, q, qd, qdd, f_ext, base)
    return -by_q, -by_qd, rate


def _parallel_pullback(weights: Any, qdd: Any, factor: Any, *inputs: Any) -> Any:
    """The same by what the factor keeps of forward dynamics.

    Its derivatives are those of inverse dynamics in O(log n) steps.
    """
    if not isinstance(factor, SegmentFactor):  # nothing was joined
        return _pullback(weights, qdd, factor, *inputs)
    residual = _residual("parallel")

    def kept(weights: Any, qdd: Any, factor: Any, *inputs: Any) -> Any:
        model, q, qd, *_ = inputs
        return parallel_pullback(model, factor, q, qd, weights)

    def known(weights: Any, qdd: Any, factor: Any, *inputs: Any) -> Any:
        model, q, qd, tau, *others = inputs
        rate = _solve(factor, -weights, model, q)

        def forces(q: Any, qd: Any, tau: Any) -> Any:
            return residual(qdd, model, q, qd, tau, *others)

        return jax.vjp(forces, q, qd, tau)[1](rate)

    return with_slopes_of(known, kept)(weights, qdd, factor, *inputs)


def _recursive(recursion: Callable) -> Callable:
    """Forward dynamics by a recursion that takes the forces of the joints away."""

    def forward(
        model: Model, q: Any, qd: Any, tau: Any, f_ext: Any, base: Any, **options: Any
    ) -> Any:
        driving = tau - passive_forces(model, q, qd)
        return recursion(model, q, qd, driving, f_ext, base, **options)

    return forward


def _dense(inertia: Callable, recursion: Callable) -> Callable:
    """Forward dynamics by an inertia matrix, its Cholesky factor, and the bias."""

    def forward(model: Model, q: Any, qd: Any, tau: Any, f_ext: Any, base: Any) -> Any:
        bias = recursion(model, q, qd, None, f_ext, base)
        M = inertia(model, q) + jnp.diag(model.armature)
        phi = tau - passive_forces(model, q, qd) - bias
        return cho_solve(cho_factor(M, lower=True), phi), denoc_factor(model, q)

    return forward


FORWARD = {
    "denoc": _recursive(denoc_forward),
    "articulated": _recursive(articulated),
    "composite": _dense(composite, newton_euler),
    "gibbs_appell": _dense(gibbs_appell_inertia, gibbs_appell),
    "noc": _dense(noc, newton_euler),
    "parallel": _recursive(parallel_forward),
}
