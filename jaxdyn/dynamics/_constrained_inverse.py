"""Forces of actuated joints that produce a motion of a mechanism with loops."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jaxtyping import Array, Bool, Float

from jaxdyn.algorithms.kinematics import forward_kinematics
from jaxdyn.algorithms.loops import (
    cutoff,
    loop_jacobian,
    loop_rows,
    loop_wrenches,
    row_forces,
)
from jaxdyn.algorithms.steps import Base
from jaxdyn.dynamics._inverse import inverse_dynamics, joint_reactions
from jaxdyn.model import FExt, Model, Nq, Nv, arguments, chosen_coordinates
from jaxdyn.program import compiled

Indices = tuple[int, ...]


class LoopTorques(eqx.Module):
    """What drives a motion of a mechanism with loops.

    Attributes:
        tau: joint forces, zero where a coordinate is not actuated.
        loop_forces: multipliers of the rows of `loop_residual`.
        wrenches: of each loop, as `loop_wrenches`.
        reactions: wrench that each body receives through its joint, as
            `joint_reactions`.
        residual: forces still missing at coordinates that are not actuated; zero for
            a motion that the actuators can produce.
        tau_is_determinate: which joint forces follow from the motion alone; the others
            are a choice, that of least norm.
        loop_force_is_determinate: the same for the loop forces.
    """

    tau: Float[Array, " nv"]
    loop_forces: Float[Array, " nc"]
    wrenches: Float[Array, "loops 6"]
    reactions: Float[Array, "n 6"]
    residual: Float[Array, " nv"]
    tau_is_determinate: Bool[Array, " nv"]
    loop_force_is_determinate: Bool[Array, " nc"]


def constrained_inverse_dynamics(
    model: Model,
    q: Nq,
    qd: Nv,
    qdd: Nv,
    *,
    actuated: str | int | Sequence[str | int] | None = None,
    f_ext: FExt = None,
    base: Base = None,
) -> LoopTorques:
    r"""Forces of the actuated joints and of the cut joints for a consistent motion.

    $$\tau + \Psi^T \lambda = t, \qquad t = M \ddot q + h$$

    where t are the joint forces of the cut tree. Where more than one tau does it, the
    least in norm is returned, and to it the lambda of least norm. [Shah] section 2.2
    calls unknowns determinate that follow from the motion; the result says which are.
    With Q the projection on the range of Psiᵀ and its rows u, not actuated,

    $$w = Q t + Q_u^+ (t_u - Q_u t), \qquad \tau = t - w, \qquad
      \lambda = (\Psi^T)^+ w.$$

    O(nv³ + nv nc²). Derivatives are exact where the ranks do not change.

    Args:
        q, qd, qdd: a motion that keeps the loops closed; not checked.
        actuated: names of joints or bodies (all coordinates of the joint), or indices
            into qd; None for all coordinates.
        f_ext: force and moment on each body, in world axes, moment about its origin.
        base: motion of the base; by default it rests.

    Raises:
        ValueError: a joint or coordinate that the model has not or that is listed
            twice, or fewer actuated coordinates than the loops leave freedoms. Within
            traced code the latter is known only if no `q` could have enough.
    """
    everything = tuple(range(model.nv)) if actuated is None else actuated
    chosen = chosen_coordinates(model, "actuated", everything, model.nc)
    found, rank = _solve(model, q, qd, qdd, f_ext=f_ext, base=base, actuated=chosen)
    if not isinstance(rank, Tracer):
        chosen_coordinates(model, "actuated", chosen, int(rank))
    return found


@compiled("actuated")
def _solve(
    model: Model, q: Nq, qd: Nv, qdd: Nv, *, f_ext: FExt, base: Base, actuated: Indices
) -> tuple[LoopTorques, Array]:
    """The result, and the number of independent rows."""
    given = dict(q=q, qd=qd, qdd=qdd, f_ext=f_ext, base=base)
    model, q, qd, qdd, f_ext, base = arguments(model, **given)
    t = inverse_dynamics(model, q, qd, qdd, f_ext=f_ext, base=base)
    if not model.loops:
        f, wrenches, rank = jnp.zeros(0, t.dtype), jnp.zeros((0, 6), t.dtype), 0
        tau, residual, free_tau, free_f = *_split(t, actuated), t != t, f != f
    else:
        Psi = loop_jacobian(model, q)
        tau, f, residual, (free_tau, free_f, rank) = _balance(Psi, t, actuated)
        wrenches = loop_wrenches(model, q, f)
        loads = row_forces(model, loop_rows(model, forward_kinematics(model, q)), f)
        f_ext = loads if f_ext is None else f_ext + loads
    reactions = joint_reactions(model, q, qd, qdd, f_ext=f_ext, base=base)
    result = LoopTorques(tau, f, wrenches, reactions, residual, ~free_tau, ~free_f)
    return result, jnp.asarray(rank)


def _balance(
    Psi: Array, t: Array, actuated: Indices
) -> tuple[Array, Array, Array, tuple[Array, Array, Array]]:
    """The forces tau and lambda, what is missing, and how far they are determined."""
    u = np.setdiff1d(np.arange(t.size), actuated)
    eps = float(jnp.finfo(t.dtype).eps)
    H = jnp.linalg.pinv(Psi.T, rtol=cutoff(Psi))
    Q = _times(Psi.T, H)
    G = _pinv(Q[u], 1.0, eps**0.75)  # Q has the rounding of Psi, times its condition
    w = _times(Q, t)
    w = w + _times(G, (t - w)[u])
    tau, residual = _split(t - w, actuated)

    Psi, Q, G = lax.stop_gradient((Psi, Q, G))
    Psi_u = Psi.T[u]
    inner = Q - _times(G, Q[u])  # loads that only actuated joints feel
    back = _pinv(Psi_u, jnp.linalg.norm(Psi), cutoff(Psi))
    slack = jnp.eye(Psi.shape[0], dtype=t.dtype) - _times(back, Psi_u)  # their forces
    free_tau, free_f = ((x**2).sum(axis=1) > eps for x in (inner, slack))
    rank = jnp.round(jnp.trace(Q)).astype(int)
    return tau, _times(H, w), residual, (free_tau, free_f, rank)


def _pinv(A: Array, size: Array | float, share: float) -> Array:
    """The pseudo-inverse without singular values below a share of `size`.

    That is not less than any of them; all may be small.
    """
    m, n = A.shape
    beside = jnp.pad(A, ((0, 1), (0, 1))).at[m, n].set(size)
    return jnp.linalg.pinv(beside, rtol=share)[:n, :m]


def _times(A: Array, x: Array) -> Array:
    return jnp.matmul(A, x, precision="highest")


def _split(t: Array, actuated: Indices) -> tuple[Array, Array]:
    """Forces at the actuated coordinates, and those at the others."""
    is_actuated = np.isin(np.arange(t.size), actuated)
    return jnp.where(is_actuated, t, 0), jnp.where(is_actuated, 0, t)
