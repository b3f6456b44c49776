"""The front door: one function for each quantity; `method` chooses the formulation."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, Float

from jaxdyn.algorithms import (
    BaseMotion,
    Factor,
    articulated,
    compiled,
    composite,
    coriolis,
    denoc,
    denoc_factor,
    denoc_forward,
    denoc_inertia,
    gibbs_appell,
    gibbs_appell_inertia,
    implicit,
    inverse_gradient,
    inverse_slopes,
    newton_euler,
    noc,
    passive_forces,
    solve_inertia,
    transmitted_wrenches,
    turning_rate,
)
from jaxdyn.model import Model, arguments, singular_joints

INVERSE = {"newton_euler": newton_euler, "gibbs_appell": gibbs_appell, "denoc": denoc}
INERTIA = {
    "composite": composite,
    "gibbs_appell": gibbs_appell_inertia,
    "noc": noc,
    "denoc": denoc_inertia,
}


@compiled("method")
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

    Gravity, armature, springs and friction of the joints take part. O(n). The loops of
    the model are cut.

    Args:
        f_ext: force and moment on each body, in world axes, moment about its origin.
        base: motion of the base; by default it rests.
        method: "newton_euler", "gibbs_appell" (Euler's tensor) or "denoc" (modules).
    """
    given = dict(q=q, qd=qd, qdd=qdd, f_ext=f_ext, base=base)
    model, q, qd, qdd, f_ext, base = arguments(model, **given)
    recursion = _choose("inverse_dynamics", method, INVERSE)
    tau = recursion(model, q, qd, qdd, f_ext, base)
    return tau + model.armature * qdd + passive_forces(model, q, qd)


@compiled("method")
def bias_forces(
    model: Model,
    q: Float[Array, " nq"],
    qd: Float[Array, " nv"],
    *,
    f_ext: Float[Array, "n 6"] | None = None,
    base: BaseMotion | None = None,
    method: str = "newton_euler",
) -> Float[Array, " nv"]:
    """Joint forces at which the accelerations are zero: inverse dynamics at qdd = 0."""
    given = dict(q=q, qd=qd, f_ext=f_ext, base=base)
    model, q, qd, f_ext, base = arguments(model, **given)
    recursion = _choose("bias_forces", method, INVERSE)
    return recursion(model, q, qd, None, f_ext, base) + passive_forces(model, q, qd)


@compiled()
def gravity_forces(model: Model, q: Float[Array, " nq"]) -> Float[Array, " nv"]:
    """Joint forces that hold the bodies against gravity, springs not included."""
    model, q = arguments(model, q=q)
    return newton_euler(model, q, jnp.zeros(model.nv, q.dtype), None)


@compiled()
def coriolis_matrix(
    model: Model, q: Float[Array, " nq"], qd: Float[Array, " nv"]
) -> Float[Array, "nv nv"]:
    """The matrix C(q, qd) of Coriolis and centrifugal forces C qd; O(n²).

    Of the many such matrices one for which Mdot - 2 C is skew; where q are coordinates,
    that of the Christoffel symbols.
    """
    model, q, qd = arguments(model, q=q, qd=qd)
    return coriolis(model, q, qd)


@compiled()
def joint_reactions(
    model: Model,
    q: Float[Array, " nq"],
    qd: Float[Array, " nv"],
    qdd: Float[Array, " nv"],
    *,
    f_ext: Float[Array, "n 6"] | None = None,
    base: BaseMotion | None = None,
) -> Float[Array, "n 6"]:
    """All six components of the wrench that each body receives through its joint.

    Force and moment about the body origin, in world axes, from the parent on the body.
    Along the directions in which the joint moves they are what drives the body: the
    joint force less armature, springs and friction. The others bear the load.
    """
    given = dict(q=q, qd=qd, qdd=qdd, f_ext=f_ext, base=base)
    return transmitted_wrenches(*arguments(model, **given))


@compiled("method")
def mass_matrix(
    model: Model, q: Float[Array, " nq"], *, method: str = "composite"
) -> Float[Array, "nv nv"]:
    r"""The inertia matrix M(q), armature included. The loops of the model are cut.

    Args:
        method: "composite" (composite bodies), "gibbs_appell" (the Hessian of Gibbs'
            function), "noc" (Tᵀ M T) or "denoc" (composite masses and N_l N_d).
    """
    model, q = arguments(model, q=q)
    M = _choose("mass_matrix", method, INERTIA)(model, q)
    return M + jnp.diag(model.armature)


def factor(model: Model, q: Float[Array, " nq"]) -> Factor:
    """The factor U D Uᵀ of the inertia matrix, for many right-hand sides; O(n).

    The loops of the model are cut.

    Raises:
        ValueError: a pivot is zero but for rounding (known only outside `jax.jit`).
    """
    result = _factor(model, q)
    if not any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((model, q))):
        _check_pivots(model, q)
    return result


@compiled("method")
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

    Derivatives are those of the implicit function theorem, for every method. A model
    with loops is an error.

    Args:
        f_ext: force and moment on each body, in world axes, moment about its origin.
        base: motion of the base; by default it rests.
        method: "denoc" (U D Uᵀ) or "articulated" (articulated bodies), both O(n);
            "composite", "gibbs_appell" or "noc": their inertia matrix and its Cholesky
            factor, O(n³), which loses digits where M is ill-conditioned.
    """
    given = dict(q=q, qd=qd, tau=tau, f_ext=f_ext, base=base)
    forward = _choose("forward_dynamics", method, FORWARD)
    _check_open(model)
    return implicit(forward, *RESIDUAL, *arguments(model, **given))[0]


@compiled()
def linearize(
    model: Model,
    q: Float[Array, " nq"],
    qd: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    *,
    f_ext: Float[Array, "n 6"] | None = None,
    base: BaseMotion | None = None,
) -> tuple[Float[Array, "states states"], Float[Array, "states nv"]]:
    r"""The matrices A and B of the tangent dynamics $\dot x = A x + B\, \delta\tau$.

    x = (d, dqd) are small deviations from the motion through the given state: d a
    tangent step of q as in `integrate`, dqd a change of qd. The external wrenches keep
    their components in world axes.
    """
    _check_open(model)
    inputs = arguments(model, q=q, qd=qd, tau=tau, f_ext=f_ext, base=base)
    model, q, qd, tau, f_ext, base = inputs
    qdd, factor = implicit(FORWARD["denoc"], *RESIDUAL, *inputs)
    by_q, by_qd, _ = inverse_slopes(model, q, qd, qdd, f_ext, base)
    one, none = jnp.eye(model.nv, dtype=q.dtype), jnp.zeros_like(by_q)
    columns = jnp.concatenate([-by_q, -by_qd, one], axis=1)
    solved = solve_inertia(model, q, factor, columns)
    by_state, by_tau = solved[:, : 2 * model.nv], solved[:, 2 * model.nv :]
    above = jnp.concatenate([-turning_rate(model, qd), one], axis=1)
    return jnp.concatenate([above, by_state]), jnp.concatenate([none, by_tau])


@compiled()
def inverse_dynamics_derivatives(
    model: Model,
    q: Float[Array, " nq"],
    qd: Float[Array, " nv"],
    qdd: Float[Array, " nv"],
    *,
    f_ext: Float[Array, "n 6"] | None = None,
    base: BaseMotion | None = None,
) -> tuple[Float[Array, "nv nv"], Float[Array, "nv nv"], Float[Array, "nv nv"]]:
    """The derivatives of `inverse_dynamics` by q, qd and qdd; the last is M(q).

    Those by q are along tangent steps, as in `integrate`. In closed form, O(n²). The
    external wrenches keep their components in world axes. The loops of the model are
    cut.
    """
    given = dict(q=q, qd=qd, qdd=qdd, f_ext=f_ext, base=base)
    return inverse_slopes(*arguments(model, **given))


@compiled()
def _factor(model: Model, q: Float[Array, " nq"]) -> Factor:
    model, q = arguments(model, q=q)
    return denoc_factor(model, q)


def _residual(
    qdd: Any, model: Model, q: Any, qd: Any, tau: Any, f_ext: Any, base: Any
) -> Any:
    return inverse_dynamics(model, q, qd, qdd, f_ext=f_ext, base=base) - tau


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


def _check_pivots(model: Model, q: Float[Array, " nq"]) -> None:
    singular = singular_joints(model, q)
    if singular:
        names = ", ".join(map(repr, singular))
        raise ValueError(
            f"model {model.name!r}: no inertia resists joint {names} at the given q: "
            "give its body mass or inertia, give the joint an armature, or stay away "
            "from this configuration."
        )


def _check_open(model: Model) -> None:
    if model.loops:
        raise ValueError(
            f"model {model.name!r} has {len(model.loops)} loops, expected none: the "
            "forces that keep them closed are not known here; take "
            "model.without_loops() for the cut tree."
        )


def _choose(quantity: str, method: str, methods: dict[str, Callable]) -> Callable:
    if method not in methods:
        raise ValueError(
            f"{quantity}: method is {method!r}, expected one of: {', '.join(methods)}."
        )
    return methods[method]


FORWARD = {
    "denoc": _recursive(denoc_forward),
    "articulated": _recursive(articulated),
    "composite": _dense(composite, newton_euler),
    "gibbs_appell": _dense(gibbs_appell_inertia, gibbs_appell),
    "noc": _dense(noc, newton_euler),
}
RESIDUAL = _residual, _gradient
rnea, crba, aba = inverse_dynamics, mass_matrix, forward_dynamics  # names peers use
