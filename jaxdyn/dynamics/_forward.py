"""Accelerations under given forces, with the loops of the model closed."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, PyTree

from jaxdyn.algorithms.couplings import CoupledFactor, DenseFactor
from jaxdyn.algorithms.derivatives import inertia_factor, inverse_slopes
from jaxdyn.algorithms.kinematics import integrate, turning_rate
from jaxdyn.algorithms.loops import range_space
from jaxdyn.algorithms.recursions import (
    Factor,
    joint_torques,
    least_pivot,
    newton_euler,
    pivot_shares,
)
from jaxdyn.algorithms.steps import Base
from jaxdyn.dynamics._constrained import constrained
from jaxdyn.dynamics._methods import FORWARD, automatic, choose
from jaxdyn.dynamics._resisted import check_resisted, settled_resisted
from jaxdyn.model import (
    CHUNK,
    FExt,
    Model,
    Nq,
    Nv,
    arguments,
    reduced,
    singular_joints,
    whole,
)
from jaxdyn.program import compiled


def factor(model: Model, q: Nq) -> Factor | CoupledFactor | DenseFactor:
    """The factor U D Uᵀ of the inertia matrix, for many right-hand sides; O(n).

    The loops of the model are cut.

    Raises:
        ValueError: a pivot is zero but for rounding (known only outside `jax.jit`).
    """
    check_resisted(model)
    result = _factor(model, q)
    if not any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((model, q))):
        least, eps = _least_pivot(model, q), jnp.finfo(model.dtype).eps
        # the test on the host takes long: only where it might fail, or in a program
        if isinstance(least, Tracer) or not least > SURE * eps:
            _check_pivots(model, q)
    return result


class CheckedDynamics(eqx.Module):
    """Joint accelerations, and how far they can be trusted.

    Attributes:
        qdd: the accelerations.
        residual: joint forces that they leave unexplained, tau less inverse dynamics.
        correction: the size of what another step of refinement would change, relative
            to the largest acceleration.
        pivot: the least share of the inertia that it moves that resists a joint. Of the
            accelerations about rounding / pivot is lost whatever the method: this tells
            of joints that hardly any inertia resists.
    """

    qdd: Float[Array, " nv"]
    residual: Float[Array, " nv"]
    correction: Float[Array, ""]
    pivot: Float[Array, ""]

    @property
    def error(self) -> Float[Array, ""]:
        """The larger of the two as an estimate of the relative error."""
        rounding = jnp.finfo(self.qdd.dtype).eps / self.pivot
        return jnp.maximum(self.correction, rounding)


def _settled(model: Model, *values: PyTree) -> dict[str, str | int]:
    """The options checked, and for "auto" the method that is chosen."""
    *arrays, method, refine, chunk = values
    size = CHUNK if chunk is None else chunk
    for name, value, least in (("refine", refine, 0), ("chunk", size, 1)):
        is_count = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not (is_count and value >= least):
            raise ValueError(
                f"{name} is {value!r}, expected a whole number from {least} on."
            )
    if chunk is not None and method not in ("parallel", "auto"):
        raise ValueError(
            f"chunk is {chunk} for method {method!r}, expected None: only 'parallel' "
            "has pieces."
        )
    check_resisted(model)
    method = automatic(method, "denoc", model, *arrays)
    return dict(method=method, refine=int(refine), chunk=int(size))


@compiled("method", "refine", "chunk", settle=_settled)
def forward_dynamics(
    model: Model,
    q: Nq,
    qd: Nv,
    tau: Nv,
    *,
    f_ext: FExt = None,
    base: Base = None,
    method: str = "denoc",
    refine: int = 0,
    chunk: int | None = None,
) -> Nv:
    r"""The joint accelerations under the joint forces `tau`.

    $$\ddot q = M^{-1} (\tau - h + \sum_i J_i^T f_i)$$

    Derivatives are those of the implicit function theorem, for every method. Loops of
    the model stay closed: see `constrained_dynamics`, which has their forces too.

    Args:
        f_ext: force and moment on each body, in world axes, moment about its origin.
        base: motion of the base; by default it rests.
        method: "denoc" (U D Uᵀ) or "articulated" (articulated bodies), both O(n);
            "composite", "gibbs_appell" or "noc": their inertia matrix and its Cholesky
            factor, O(n³), which loses digits where M is ill-conditioned; "parallel":
            pieces of the tree joined in pairs, O(n) in O(log n) dependent steps;
            "auto": "denoc" or "parallel", see docs/parallel.md.
        refine: steps of iterative refinement, each about as costly as inverse dynamics
            and a solution; one is enough.
        chunk: of "parallel", about how many elementary steps follow each other in a
            piece: 32, or less for less depth and more work. Joins of pieces lose about
            as many digits as masses of neighbours differ by, most with 1; `refine=1`
            restores them up to ratios of 1e8. See docs/parallel.md.
    """
    inputs = arguments(model, q=q, qd=qd, tau=tau, f_ext=f_ext, base=base)
    options = dict(refine=refine, chunk=chunk or CHUNK)
    formulation = choose("forward_dynamics", method, FORWARD)
    if not model.loops:
        return formulation.solution(*inputs, **options)[0]
    return constrained(formulation, range_space, *inputs, None, **options)[0]


@compiled("method", "refine", "chunk", settle=_settled)
def checked_dynamics(
    model: Model,
    q: Nq,
    qd: Nv,
    tau: Nv,
    *,
    f_ext: FExt = None,
    base: Base = None,
    method: str = "denoc",
    refine: int = 0,
    chunk: int | None = None,
) -> CheckedDynamics:
    """`forward_dynamics` of the tree, loops cut, with its residual and its accuracy.

    Takes the time of inverse dynamics, one more solution and a factor in addition.
    """
    inputs = arguments(model, q=q, qd=qd, tau=tau, f_ext=f_ext, base=base)
    model, q, qd, tau, f_ext, base = inputs
    formulation = choose("checked_dynamics", method, FORWARD)
    qdd, solve = formulation.solution(*inputs, refine=refine, chunk=chunk or CHUNK)
    forces = joint_torques(newton_euler, *whole(model, q, qd, qdd), f_ext, base)
    residual = tau - reduced(model, q, forces)
    change = jnp.abs(solve(residual, model, q)).max(initial=0)
    largest = jnp.abs(qdd).max(initial=0)
    correction = change / jnp.where(largest > 0, largest, 1)
    pivot = _pivot_shares(model, q).min(initial=1)
    return CheckedDynamics(qdd, residual, correction, pivot)


def _pivot_shares(model: Model, q: Nq) -> Nv:
    """`pivot_shares`; where the tree alone has no factor, those of Cholesky's."""
    factor = inertia_factor(model, q) if model.couplings else None
    if not isinstance(factor, DenseFactor):
        return pivot_shares(*whole(model, q)[:2])
    squares = factor.L**2  # row i sums to M_ii
    return jnp.diag(squares) / squares.sum(axis=1)


@compiled(settle=settled_resisted)
def tangent_dynamics(
    model: Model, q: Nq, qd: Nv, tau: Nv, *, f_ext: FExt = None, base: Base = None
) -> tuple[Float[Array, "states states"], Float[Array, "states nv"]]:
    """The matrices of `linearize` in continuous time."""
    inputs = arguments(model, q=q, qd=qd, tau=tau, f_ext=f_ext, base=base)
    model, q, qd, *_ = inputs
    by_state, by_tau = (
        _closed_slopes if model.loops or model.couplings else _open_slopes
    )(*inputs)
    one, none = jnp.eye(model.nv, dtype=q.dtype), jnp.zeros_like(by_tau)
    above = jnp.concatenate([-turning_rate(model, qd), one], axis=1)
    return jnp.concatenate([above, by_state]), jnp.concatenate([none, by_tau])


def _open_slopes(*inputs: PyTree) -> tuple[Array, Array]:
    """The derivatives of the accelerations by (d, qd) and by tau, in closed form."""
    model, q, qd, _, f_ext, base = inputs
    qdd, solve = FORWARD["denoc"].solution(*inputs)
    by_q, by_qd, _ = inverse_slopes(model, q, qd, qdd, f_ext, base)
    one = jnp.eye(model.nv, dtype=q.dtype)
    columns = jnp.concatenate([-by_q, -by_qd, one], axis=1)
    solved = solve(columns, model, q)
    return solved[:, : 2 * model.nv], solved[:, 2 * model.nv :]


def _closed_slopes(*inputs: PyTree) -> tuple[Array, Array]:
    """The same with loops or couplings."""
    model, q, qd, tau, *others = inputs

    def accelerations(x):
        at, rate, drive = jnp.split(x, 3)
        moved = integrate(model, q, at), qd + rate, tau + drive, *others
        return forward_dynamics(model, *moved[:3], f_ext=others[0], base=others[1])

    slopes = jax.jacfwd(accelerations)(jnp.zeros(3 * model.nv, q.dtype))
    return slopes[:, : 2 * model.nv], slopes[:, 2 * model.nv :]


@compiled()
def _factor(model: Model, q: Nq) -> Factor | CoupledFactor | DenseFactor:
    return inertia_factor(*arguments(model, q=q))


@compiled()
def _least_pivot(model: Model, q: Nq) -> Float[Array, ""]:
    tree, joints, *_ = whole(*arguments(model, q=q))
    return least_pivot(tree, joints)


SURE = 1000  # roundings, ten times those of `singular_joints`: the walk rounds too


def _check_pivots(model: Model, q: Nq) -> None:
    singular = singular_joints(model, q)
    if singular:
        names = ", ".join(map(repr, singular))
        raise ValueError(
            f"model {model.name!r}: no inertia resists joint {names} at the given q: "
            "give its body mass or inertia, give the joint an armature, or stay away "
            "from this configuration."
        )
