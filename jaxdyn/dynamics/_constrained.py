"""Mechanisms with closed loops: accelerations and loop forces."""

from collections.abc import Callable
from functools import partial

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from jaxdyn.algorithms.derivatives import implicit, inertia_factor, refined
from jaxdyn.algorithms.kinematics import Poses, body_motions
from jaxdyn.algorithms.loops import (
    LoopRows,
    loop_rows,
    row_forces,
    row_rates,
    second_rates,
    sequential_regularization,
    solve_saddle,
)
from jaxdyn.algorithms.recursions import Factor, newton_euler
from jaxdyn.algorithms.steps import Base
from jaxdyn.dynamics._methods import FORWARD, SOLVERS, choose
from jaxdyn.dynamics._resisted import settled_resisted
from jaxdyn.dynamics._tree import ForwardMethod, residual
from jaxdyn.model import CHUNK, FExt, Model, Nq, Nv, arguments, whole
from jaxdyn.program import compiled


class Baumgarte(eqx.Module):
    r"""Constraints that open loops close again, as a spring and a damper would.

    $$\Psi \ddot q = -\dot\Psi \dot q - 2 \zeta \omega\, \Psi \dot q
      - \omega^2 \varphi$$

    Attributes:
        frequency: omega in 1/s; openings decay as exp(-omega t) where damping is one.
        damping: zeta.
    """

    frequency: Float[Array, ""] | float = 10.0
    damping: Float[Array, ""] | float = 1.0


_WITH_COUPLINGS = ("range_space", "kkt")


# few methods can be one kernel
@compiled("method", "tolerance", flat=False, settle=settled_resisted)
def constrained_dynamics(
    model: Model,
    q: Nq,
    qd: Nv,
    tau: Nv,
    *,
    f_ext: FExt = None,
    base: Base = None,
    baumgarte: Baumgarte | None = None,
    method: str = "range_space",
    tolerance: float | None = None,
) -> tuple[Nv, Float[Array, " nc"]]:
    r"""Accelerations, and the forces in the cut joints that keep the loops closed.

    $$M \ddot q + h = \tau + \Psi^T \lambda, \qquad \Psi \ddot q = -\dot\Psi \dot q$$

    [Ghosal] lecture 30. The accelerations of the cut tree open the loops; the loop
    forces undo that. Derivatives are those of these equations, for every method. Rows
    that depend on others are no error: the accelerations do not depend on them, and the
    loop forces are those of least norm ("recursive": dependent ones are zero).

    Args:
        f_ext: force and moment on each body, in world axes, moment about its origin.
        base: motion of the base, on which the world axes of the loops are fixed.
        baumgarte: closes loops that are open.
        method: with n joints and m rows, "kkt" solves all n + m equations at once,
            O((n + m)³); "range_space" has multipliers first, O(n m² + m³); "recursive"
            eliminates loops inside the recursion, O(n + m) if few of them cross any
            joint; "sequential_regularization" iterates, O(n + m) an iteration.
        tolerance: of "sequential_regularization", relative; by default 1e-10 (float32:
            1e-5). Where 10 000 iterations do not reach it, as near a singular posture,
            an error is raised; see `loop_iterations`.

    Returns:
        The accelerations, and one loop force for each row of `loop_residual`: on body
        a, and its opposite on body b. `loop_wrenches` turns them into forces and
        moments.
    """
    if tolerance is not None and method != "sequential_regularization":
        raise ValueError(
            f"tolerance is {tolerance} for method {method!r}, which does not iterate, "
            "expected None."
        )
    given = dict(q=q, qd=qd, tau=tau, f_ext=f_ext, base=base)
    prepare = choose("constrained_dynamics", method, SOLVERS)
    if method == "sequential_regularization":
        prepare = partial(prepare, tolerance=tolerance)
    inputs = arguments(model, **given)
    if model.couplings and method not in _WITH_COUPLINGS:
        raise ValueError(
            f"constrained_dynamics: method is {method!r} for model {model.name!r}, "
            f"which has couplings, expected one of: {', '.join(_WITH_COUPLINGS)}."
        )
    if not model.loops:
        qdd, _ = FORWARD["denoc"].solution(*inputs)
        return qdd, jnp.zeros(0, qdd.dtype)
    return constrained(FORWARD["denoc"], prepare, *inputs, baumgarte)


def constrained(
    method: ForwardMethod,
    prepare: Callable,
    *inputs: PyTree,
    refine: int = 0,
    chunk: int = CHUNK,
) -> tuple[Array, Array]:
    """Accelerations and loop forces by a method for the tree and one for the loops.

    `inputs` are the model, q, qd, tau, f_ext, base and Baumgarte's method.
    """

    def forward(*inputs):
        model, q, qd, *_, baumgarte = inputs
        qdd, factor = method.forward(0, chunk)(*inputs[:-1])
        if not isinstance(factor, Factor):  # solvers need its halves
            factor = inertia_factor(model, q)
        rows, opening = _opening(model, q, qd, qdd, baumgarte)
        solver = prepare(model, q, factor, rows)
        closing, loop_forces = solver(jnp.zeros_like(qdd), -opening)
        return (qdd + closing, loop_forces), solver

    forward = refined(forward, _equations, _solve, refine)
    return implicit(forward, _equations, _solve, None, *inputs)[0]


def _equations(unknowns: tuple[Array, Array], *inputs: PyTree) -> tuple[Array, Array]:
    """Zero at the solution; their derivatives by it are those of `solve_saddle`."""
    (qdd, loop_forces), (model, q, qd, tau, f_ext, base, baumgarte) = unknowns, inputs
    rows, opening = _opening(model, q, qd, qdd, baumgarte)
    wrenches = row_forces(model, rows, loop_forces)
    if f_ext is not None:
        wrenches = wrenches + f_ext
    missing = residual(newton_euler, qdd, model, q, qd, tau, wrenches, base)
    return missing, -opening


def _solve(
    solver: Callable, slope: tuple[Array, Array], model: Model, q: Array, *_: PyTree
) -> tuple[Array, Array]:
    return solve_saddle(model, q, solver, slope[0], -slope[1])


def _opening(
    model: Model, q: Array, qd: Array, qdd: Array, baumgarte: Baumgarte | None
) -> tuple[LoopRows, Array]:
    """The rows, and their second rates with what Baumgarte's method adds to these."""
    at = body_motions(*whole(model, q, qd, qdd))
    rows = loop_rows(model, Poses(at.R.array(), at.p.array()))
    opening = second_rates(model, at)
    if baumgarte is None:
        return rows, opening
    omega = jnp.asarray(baumgarte.frequency, q.dtype)
    zeta = jnp.asarray(baumgarte.damping, q.dtype)
    rate = row_rates(model, rows, at.v.array(), at.w.array())
    return rows, opening + 2 * zeta * omega * rate + omega**2 * rows.residual


@compiled("tolerance")
def loop_iterations(
    model: Model, q: Nq, qd: Nv, tau: Nv, *, tolerance: float | None = None
) -> Int[Array, ""]:
    """How many O(n) iterations "sequential_regularization" takes."""
    inputs = arguments(model, q=q, qd=qd, tau=tau)
    model, q, qd, tau = inputs
    if model.couplings:
        raise ValueError(
            f"model {model.name!r} has couplings, expected none: "
            '"sequential_regularization" does not know them.'
        )
    qdd, factor = FORWARD["denoc"].forward(0, CHUNK)(*inputs, None, None)
    rows, opening = _opening(model, q, qd, qdd, None)
    solver = sequential_regularization(model, q, factor, rows, tolerance)
    return solver.iterate(jnp.zeros_like(qd), -opening)[2]
