"""The front door: one function for each quantity; `method` chooses the formulation."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, Float

from jaxdyn.algorithms import (
    BaseMotion,
    Factor,
    articulated,
    composite,
    denoc_factor,
    implicit,
    newton_euler,
    passive_forces,
    solve_inertia,
)
from jaxdyn.model import Model, arguments


def inverse_dynamics(
    model: Model,
    q: Float[Array, " nq"],
    qd: Float[Array, " nv"],
    qdd: Float[Array, " nv"],
    *,
    f_ext: Float[Array, "n 6"] | None = None,
    base: BaseMotion | None = None,
    method: str = "newton_euler",
) -> Float[Array, " nv"]:
    r"""Joint forces that produce the accelerations `qdd`.

    $$\tau = M(q)\,\ddot q + h(q, \dot q) - \sum_i J_i^T f_i$$

    Gravity, armature, springs and friction of the joints take part.

    Args:
        f_ext: force and moment on each body, in world axes, moment about its origin.
        base: motion of the base; by default it rests.
        method: "newton_euler".
    """
    given = dict(q=q, qd=qd, qdd=qdd, f_ext=f_ext, base=base)
    model, q, qd, qdd, f_ext, base = arguments(model, **given)
    recursion = _choose("inverse_dynamics", method, {"newton_euler": newton_euler})
    tau = recursion(model, q, qd, qdd, f_ext, base)
    return tau + model.armature * qdd + passive_forces(model, q, qd)


def bias_forces(
    model: Model, q: Float[Array, " nq"], qd: Float[Array, " nv"]
) -> Float[Array, " nv"]:
    """Joint forces at which the accelerations are zero: inverse dynamics at qdd = 0."""
    return inverse_dynamics(model, q, qd, jnp.zeros(model.nv, model.dtype))


def gravity_forces(model: Model, q: Float[Array, " nq"]) -> Float[Array, " nv"]:
    """Joint forces that hold the bodies against gravity, springs not included."""
    model, q = arguments(model, q=q)
    at_rest = jnp.zeros(model.nv, q.dtype)
    return newton_euler(model, q, at_rest, at_rest)


def mass_matrix(
    model: Model, q: Float[Array, " nq"], *, method: str = "composite"
) -> Float[Array, "nv nv"]:
    r"""The inertia matrix M(q), armature included.

    Args:
        method: "composite" (composite bodies) or "denoc" (the product U D Uᵀ).
    """
    model, q = arguments(model, q=q)
    methods = {
        "composite": lambda: composite(model, q) + jnp.diag(model.armature),
        "denoc": lambda: denoc_factor(model, q).matrix(),
    }
    return _choose("mass_matrix", method, methods)()


def factor(model: Model, q: Float[Array, " nq"]) -> Factor:
    """The factor U D Uᵀ of the inertia matrix, for many right-hand sides."""
    model, q = arguments(model, q=q)
    return denoc_factor(model, q)


def forward_dynamics(
    model: Model,
    q: Float[Array, " nq"],
    qd: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    *,
    f_ext: Float[Array, "n 6"] | None = None,
    base: BaseMotion | None = None,
    method: str = "denoc",
) -> Float[Array, " nv"]:
    r"""The joint accelerations under the joint forces `tau`.

    $$\ddot q = M^{-1} (\tau - h + \sum_i J_i^T f_i)$$

    Derivatives are those of the implicit function theorem, for every method. Loops of
    the model are cut.

    Args:
        f_ext: force and moment on each body, in world axes, moment about its origin.
        base: motion of the base; by default it rests.
        method: "denoc" (U D Uᵀ, O(n)), "articulated" (articulated bodies, O(n)) or
            "composite" (the inertia matrix and its Cholesky factor, O(n³)).
    """
    given = dict(q=q, qd=qd, tau=tau, f_ext=f_ext, base=base)
    inputs = arguments(model, **given)
    methods = {"denoc": _denoc, "articulated": _articulated, "composite": _composite}
    return implicit(_choose("forward_dynamics", method, methods), _residual, *inputs)


def _residual(
    qdd: Any, model: Model, q: Any, qd: Any, tau: Any, f_ext: Any, base: Any
) -> Any:
    return inverse_dynamics(model, q, qd, qdd, f_ext=f_ext, base=base) - tau


def _denoc(model: Model, q: Any, qd: Any, tau: Any, f_ext: Any, base: Any) -> Any:
    phi = -_residual(jnp.zeros_like(qd), model, q, qd, tau, f_ext, base)
    return solve_inertia(model, q, phi)


def _articulated(model: Model, q: Any, qd: Any, tau: Any, f_ext: Any, base: Any) -> Any:
    driving = tau - passive_forces(model, q, qd)
    return articulated(model, q, qd, driving, f_ext, base)


def _composite(model: Model, q: Any, qd: Any, tau: Any, f_ext: Any, base: Any) -> Any:
    phi = -_residual(jnp.zeros_like(qd), model, q, qd, tau, f_ext, base)
    return cho_solve(cho_factor(mass_matrix(model, q), lower=True), phi)


def _choose(quantity: str, method: str, methods: dict[str, Callable]) -> Callable:
    if method not in methods:
        raise ValueError(
            f"{quantity}: method is {method!r}, expected one of: {', '.join(methods)}."
        )
    return methods[method]
