"""The gradient of forward dynamics by pieces, from what their walks have found.

Forward dynamics yield the acceleration of every step and the wrench that each piece
passes on at its exit. Solving with the same factor for the weights of the gradient
gives the same quantities for the virtual twists. What is left of the gradient of
inverse dynamics is one walk inward, all pieces side by side: only the gradients by
angular velocities are summed over all pieces.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.algorithms.derivatives import (
    PowerGradient,
    StepAdjoint,
    StepGradient,
    by_spin,
    by_state,
    by_turn,
    sum_step,
)
from jaxdyn.algorithms.log_depth._factor import PieceStep, Released, SegmentFactor, Spin
from jaxdyn.model import Contraction, Model, Nq, Nv
from jaxdyn.program import Laned, collect, inward, put, spread, subtree_sum, take
from jaxdyn.spatial import Twist, Vec3, Wrench

StepFound = tuple[Wrench, Twist, Twist]  # g, and the twists before and after a step
Turns = tuple[Vec3, Vec3 | None]  # by_w and by_turn


def parallel_pullback(
    model: Model, factor: SegmentFactor, q: Nq, qd: Nv, weights: Nv
) -> tuple[Nq, Nv, Nv]:
    r"""The gradients of `weights` times the joint accelerations by q, qd and tau.

    With the adjoint $\lambda = M^{-1}$ weights they are those of
    $-\lambda^T \tau(q, \dot q, \ddot q)$ as in `inverse_gradient`, and lambda.
    """
    t = model.topology
    x, kept = t.contraction(factor.chunk), factor.kept
    if kept is None:
        raise ValueError("factor has nothing kept, expected that of parallel_forward.")
    other = factor.driven(weights)
    found = _motions(x, kept.found), _motions(x, other)
    owns = tuple(map(_own, kept.steps, kept.spins, *found))
    tip = PowerGradient.zero(q.dtype, kept.spins[0].external is not None)
    handed, sums = inward(x.lanes, _sum, tip, owns)
    beyond = spread(x.lanes, _beyond(x, (handed.by_w, handed.by_turn)))
    steps = tuple(level[1] for level in owns)
    gradients = collect(x.lanes, tuple(map(_gradient, sums, beyond, steps)))
    adjoint = collect(x.lanes, other.qdd, t.dof_steps)
    by_q, by_qd = by_state(model, adjoint, q, qd, gradients)
    return -by_q, -by_qd, adjoint


def _motions(x: Contraction, found: Released) -> Laned[StepFound]:
    """Of each step the wrench that its piece passes on there, and accelerations.

    The wrench is zero but at exits; the accelerations are that of its parent and its
    own.
    """
    g = spread(x.lanes, Wrench.of(put(found.g.T, x.exits, x.lanes.size)))
    return tuple(zip(g, found.before, found.after, strict=True))


def _own(
    row: PieceStep, spin: Spin, motion: StepFound, other: StepFound
) -> tuple[PowerGradient, StepAdjoint]:
    """The gradients of the power of each body, and what `sum_step` needs of its step.

    To the body at the exit of a piece counts all that is beyond. All steps at once, not
    in the walk: there XLA would compute anew for each sum what several of them share.
    """
    step, M, w0, qd = row.step, row.inertia, spin.w0, spin.qd
    (g, a0, a), (g_, virtual0, virtual) = motion, other
    whole = M + row.lent  # g is less what drives the inertia on loan
    f = row.P + whole.apply(a) + g
    by_rate = whole.apply(virtual) + g_
    by_w = by_spin(M, w0 + step.e * (step.turn * qd), virtual)
    own = PowerGradient(f, by_rate, by_w, by_turn(spin.external, virtual))
    return own, StepAdjoint(step, qd, w0, a0, virtual0, spin.axes)


def _sum(children: PowerGradient, x: tuple[PowerGradient, StepAdjoint]):
    own, step = x
    total = jax.tree.map(jnp.add, own, children)
    return sum_step(total, step)[0], total


def _gradient(total: PowerGradient, beyond: Turns, step: StepAdjoint) -> StepGradient:
    """The gradients by each step, with w' and turns of what is beyond the exit."""
    turns = total.by_w, total.by_turn
    by_w, turned = jax.tree.map(jnp.add, turns, beyond)
    return sum_step(replace(total, by_w=by_w, by_turn=turned), step)[1]


def _beyond(x: Contraction, handed: Turns) -> Turns:
    """For each step what arrives at its piece's exit, zero if that is not beyond it."""
    above = x.jumps.parents
    total = subtree_sum(x.jumps, handed)
    total = put(total, np.where(above < 0, x.pieces, above), x.pieces)
    return take(total, x.beyond)
