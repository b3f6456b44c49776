"""Accelerations under given forces, with the loops of the model closed."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Float

from jaxdyn.algorithms import (
    BaseMotion,
    Factor,
    compiled,
    denoc_factor,
    integrate,
    inverse_slopes,
    range_space,
    solve_inertia,
    turning_rate,
)
from jaxdyn.dynamics._loops import constrained
from jaxdyn.dynamics._open import open_dynamics
from jaxdyn.model import Model, arguments, singular_joints


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

    Derivatives are those of the implicit function theorem, for every method. Loops of
    the model stay closed: see `constrained_dynamics`, which has their forces too.

    Args:
        f_ext: force and moment on each body, in world axes, moment about its origin.
        base: motion of the base; by default it rests.
        method: "denoc" (U D Uᵀ) or "articulated" (articulated bodies), both O(n);
            "composite", "gibbs_appell" or "noc": their inertia matrix and its Cholesky
            factor, O(n³), which loses digits where M is ill-conditioned.
    """
    given = dict(q=q, qd=qd, tau=tau, f_ext=f_ext, base=base)
    inputs = arguments(model, **given)
    return constrained(method, range_space, *inputs, None)[0]


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
    inputs = arguments(model, q=q, qd=qd, tau=tau, f_ext=f_ext, base=base)
    model, q, qd, tau, f_ext, base = inputs
    by_state, by_tau = (_closed_slopes if model.loops else _open_slopes)(*inputs)
    one, none = jnp.eye(model.nv, dtype=q.dtype), jnp.zeros_like(by_tau)
    above = jnp.concatenate([-turning_rate(model, qd), one], axis=1)
    return jnp.concatenate([above, by_state]), jnp.concatenate([none, by_tau])


def _open_slopes(model: Model, q: Any, qd: Any, tau: Any, f_ext: Any, base: Any) -> Any:
    """The derivatives of the accelerations by (d, qd) and by tau, in closed form."""
    qdd, factor = open_dynamics("denoc", model, q, qd, tau, f_ext, base)
    by_q, by_qd, _ = inverse_slopes(model, q, qd, qdd, f_ext, base)
    one = jnp.eye(model.nv, dtype=q.dtype)
    columns = jnp.concatenate([-by_q, -by_qd, one], axis=1)
    solved = solve_inertia(model, q, factor, columns)
    return solved[:, : 2 * model.nv], solved[:, 2 * model.nv :]


def _closed_slopes(
    model: Model, q: Any, qd: Any, tau: Any, f_ext: Any, base: Any
) -> Any:
    """The same with loops."""

    def accelerations(x: Any) -> Any:
        at, rate, drive = jnp.split(x, 3)
        inputs = integrate(model, q, at), qd + rate, tau + drive, f_ext, base
        return constrained("denoc", range_space, model, *inputs, None)[0]

    slopes = jax.jacfwd(accelerations)(jnp.zeros(3 * model.nv, q.dtype))
    return slopes[:, : 2 * model.nv], slopes[:, 2 * model.nv :]


@compiled()
def _factor(model: Model, q: Float[Array, " nq"]) -> Factor:
    model, q = arguments(model, q=q)
    return denoc_factor(model, q)


def _check_pivots(model: Model, q: Float[Array, " nq"]) -> None:
    singular = singular_joints(model, q)
    if singular:
        names = ", ".join(map(repr, singular))
        raise ValueError(
            f"model {model.name!r}: no inertia resists joint {names} at the given q: "
            "give its body mass or inertia, give the joint an armature, or stay away "
            "from this configuration."
        )
