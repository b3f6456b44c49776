"""Forward dynamics of the tree of bodies, in every formulation."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve

from jaxdyn.algorithms import (
    articulated,
    composite,
    denoc_factor,
    denoc_forward,
    gibbs_appell,
    gibbs_appell_inertia,
    implicit,
    inverse_gradient,
    newton_euler,
    noc,
    passive_forces,
    solve_inertia,
)
from jaxdyn.dynamics._choose import choose
from jaxdyn.dynamics._inverse import inverse_dynamics
from jaxdyn.model import Model


def open_dynamics(method: str, *inputs: Any) -> Any:
    """The accelerations of the cut tree, with implicit derivatives, and its factor.

    `inputs` are the model, q, qd, tau, f_ext and base, as `arguments` returns them.
    """
    forward = choose("forward_dynamics", method, FORWARD)
    return implicit(forward, _residual, _solve, _gradient, *inputs)


def _residual(
    qdd: Any, model: Model, q: Any, qd: Any, tau: Any, f_ext: Any, base: Any
) -> Any:
    return inverse_dynamics(model, q, qd, qdd, f_ext=f_ext, base=base) - tau


def _solve(factor: Any, slope: Any, model: Model, q: Any, *_: Any) -> Any:
    return solve_inertia(model, q, factor, slope)


def _gradient(
    rate: Any, qdd: Any, model: Model, q: Any, qd: Any, tau: Any, f_ext: Any, base: Any
) -> Any:
    """The product of joint rates with the derivatives of the residual by q, qd, tau."""
    return (*inverse_gradient(model, rate, q, qd, qdd, f_ext, base), -rate)


def _recursive(recursion: Callable) -> Callable:
    """Forward dynamics by a recursion that takes the forces of the joints away."""

    def forward(model: Model, q: Any, qd: Any, tau: Any, f_ext: Any, base: Any) -> Any:
        driving = tau - passive_forces(model, q, qd)
        return recursion(model, q, qd, driving, f_ext, base)

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
}
