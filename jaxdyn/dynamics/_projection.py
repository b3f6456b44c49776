"""States that keep the loops closed, and how well the loops determine the motion."""

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from jaxdyn.algorithms.derivatives import inertia_factor
from jaxdyn.algorithms.kinematics import body_velocities, forward_kinematics, integrate
from jaxdyn.algorithms.loops import (
    LoopRows,
    cutoff,
    loop_rows,
    mobility,
    range_space,
    row_rates,
    solve_saddle,
)
from jaxdyn.model import Model, Nq, Nv, arguments
from jaxdyn.program import compiled

NEWTON_STEPS = 3  # from an opening e they leave e², e⁴, e⁸


class LoopCondition(eqx.Module):
    """How well the loops of a model determine its motion.

    Attributes:
        rank: the number of independent rows.
        mobility: the degrees of freedom that the loops leave: nv less the rank.
        condition_number: the largest singular value of D^(-1/2) U⁻¹ Psiᵀ over its
            smallest that is not zero; large near a singular posture.
        singular_values: all of them, largest first.
    """

    rank: Int[Array, ""]
    mobility: Int[Array, ""]
    condition_number: Float[Array, ""]
    singular_values: Float[Array, " k"]


@compiled()
def loop_condition(model: Model, q: Nq) -> LoopCondition:
    """Rank, mobility and condition number of the loops at `q`."""
    model, q = arguments(model, q=q)
    rows = loop_rows(model, forward_kinematics(model, q))
    W = mobility(model, q, inertia_factor(model, q), rows)
    s = jnp.linalg.svd(W, compute_uv=False)
    is_large = s > cutoff(W) * s.max(initial=0)
    rank = is_large.sum()
    smallest = jnp.where(is_large, s, jnp.inf).min(initial=jnp.inf)
    condition = jnp.where(rank > 0, s.max(initial=0) / smallest, 1)
    return LoopCondition(rank, model.nv - rank, condition, s)


@compiled()
def project_velocity(model: Model, q: Nq, qd: Nv) -> Nv:
    r"""The nearest rates that keep the loops closed, $\Psi \dot q = 0$.

    Nearest in kinetic energy: what an impulse in the cut joints brings about.
    """
    model, q, qd = arguments(model, q=q, qd=qd)
    if not model.loops:
        return qd
    rows = loop_rows(model, forward_kinematics(model, q))
    moved = body_velocities(model, q, qd)
    return qd - _closing(model, q, rows, row_rates(model, rows, moved.v, moved.w))


@compiled()
def project_configuration(model: Model, q: Nq) -> Nq:
    """A configuration near `q` that closes loops which are slightly open.

    Newton's method with steps that are shortest in the metric of the inertia matrix;
    derivatives are those of its steps. For loops that are far open, or that must be
    checked, use `close_loops`.
    """
    model, q = arguments(model, q=q)
    if not model.loops:
        return q

    def newton(q, _):
        rows = loop_rows(model, forward_kinematics(model, q))
        return integrate(model, q, -_closing(model, q, rows, rows.residual)), None

    return lax.scan(newton, q, length=NEWTON_STEPS)[0]


def _closing(model: Model, q: Array, rows: LoopRows, b: Array) -> Array:
    """The rates x with Psi x = b that have the least kinetic energy."""
    fixed = lax.stop_gradient((model, q, rows))
    solver = range_space(*fixed[:2], inertia_factor(*fixed[:2]), fixed[2])
    return solve_saddle(model, q, solver, jnp.zeros(model.nv, q.dtype), b)[0]
