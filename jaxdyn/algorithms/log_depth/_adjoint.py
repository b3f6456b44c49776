"""The gradient of forward dynamics by pieces, from what their walks have found.

Forward dynamics know the acceleration of every step and the wrench that each piece
passes on at its exit. The solution with the same factor for the weights of the gradient
knows these of the twists. So one walk inward, all pieces side by side, is left of the
gradient of inverse dynamics: only the gradients by angular velocities are summed over
all pieces.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.algorithms.derivatives import by_spin, by_state, by_turn, sum_step
from jaxdyn.algorithms.log_depth._factor import Released, SegmentFactor, add
from jaxdyn.model import Contraction, Model
from jaxdyn.program import Laned, collect, inward, put, spread, subtree_sum, take
from jaxdyn.spatial import Vec3


def parallel_pullback(
    model: Model,
    factor: SegmentFactor,
    q: Float[Array, " nq"],
    qd: Float[Array, " nv"],
    weights: Float[Array, " nv"],
) -> tuple[Float[Array, " nq"], Float[Array, " nv"], Float[Array, " nv"]]:
    r"""The gradients of `weights` times the joint accelerations by q, qd and tau.

    With the rates $\lambda = M^{-1}$ weights they are those of
    $-\lambda^T \tau(q, \dot q, \ddot q)$ as in `inverse_gradient`, and lambda.
    """
    t = model.topology
    x = t.contraction(factor.chunk)
    rows, spins, found = factor.kept
    other = factor.driven(weights)
    walks = rows, spins, _motions(x, found), _motions(x, other)
    owns, steps = zip(*map(_own, *walks), strict=True)
    o = Vec3.zero(q.dtype)
    tip = (o, o, o, o, o), None if spins[0][2] is None else o
    handed, sums = inward(x.lanes, _sum, tip, tuple(zip(owns, steps, strict=True)))
    beyond = spread(x.lanes, _beyond(x, (handed[0][4], handed[1])))
    kept = tuple(map(_kept, sums, beyond, steps))
    rate = collect(x.lanes, other.qdd, t.dof_steps)
    by_q, by_qd = by_state(model, rate, q, qd, collect(x.lanes, kept))
    return -by_q, -by_qd, rate


def _motions(x: Contraction, found: Released) -> Laned:
    """Of each step the wrench that its piece passes on there, and accelerations.

    The wrench is zero but at exits; the accelerations are that of its parent and its
    own.
    """
    g = put(found.g.T, x.exits, x.lanes.size)
    g = spread(x.lanes, (Vec3.of(g[:, :3]), Vec3.of(g[:, 3:])))
    return tuple(zip(g, found.before, found.after, strict=True))


def _own(row: Any, spin: Any, motion: Any, other: Any) -> Any:
    """The gradients of the power of each body, and what `sum_step` needs of its step.

    To the body at the exit of a piece counts all that is beyond. All steps at once, not
    in the walk: there XLA would compute anew for each sum what several of them share.
    """
    (joint, M, P, _), (lent, *_), _ = row
    w0, qd, external, axes = spin
    (g, a0, a), (g_, twist0, twist) = motion, other
    whole = M + lent  # g is less what drives the inertia on loan
    f, n = add(add(P, whole.apply(*a)), g)
    dv_, dw_ = add(whole.apply(*twist), g_)
    w_ = by_spin(M, w0 + joint.e * (joint.turn * qd), twist)
    screw = joint.turn, joint.slide, qd
    step = joint.e, joint.a, (w0, *a0, *twist0), screw, axes
    return ((f, n, dv_, dw_, w_), by_turn(external, twist)), step


def _sum(children: Any, x: Any) -> Any:
    own, step = x
    total = jax.tree.map(jnp.add, own, children)
    return sum_step(total, step)[0], total


def _kept(total: Any, beyond: Any, step: Any) -> Any:
    """What `sum_step` keeps, with w' and turns of what is beyond the exit."""
    (*known, w_), turned = total
    w_, turned = jax.tree.map(jnp.add, (w_, turned), beyond)
    return sum_step(((*known, w_), turned), step)[1]


def _beyond(x: Contraction, handed: Any) -> Any:
    """For each step what arrives at its piece's exit, zero if that is not beyond it."""
    above = x.jumps.parents
    total = subtree_sum(x.jumps, handed)
    total = put(total, np.where(above < 0, x.pieces, above), x.pieces)
    return take(total, x.beyond)
