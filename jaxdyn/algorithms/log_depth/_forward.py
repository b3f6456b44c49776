"""Forward dynamics in O(log n) dependent steps: pieces of the tree, joined in pairs."""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from jaxdyn.algorithms.kinematics import parents_of, placed
from jaxdyn.algorithms.log_depth._factor import (
    Released,
    SegmentFactor,
    Wrench,
    add,
    moved_by,
    wrench,
)
from jaxdyn.algorithms.log_depth._joins import joined_pieces
from jaxdyn.algorithms.log_depth._segments import (
    Segment,
    inertia_matrix,
    vector,
)
from jaxdyn.algorithms.recursions import eliminate, pivot_terms, world
from jaxdyn.algorithms.steps import (
    BaseMotion,
    Joint,
    accelerated,
    inertias,
    joint_terms,
    less_external,
    rates,
    wrenches,
)
from jaxdyn.model import CHUNK, Contraction, Model, Topology
from jaxdyn.program import (
    Laned,
    collect,
    inward,
    lane_sums,
    outward,
    path_sum,
    put,
    spread,
    take,
)
from jaxdyn.spatial import ArticulatedInertia, Mat3, RigidInertia, Vec3, dot

LOAN = 2.0**-8  # share of its inertia that a body lends to the exit it hangs on


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Part:
    """What a part of a piece hands on, at the origin of the joint that receives it.

    Attributes:
        M_hat: articulated inertia; P: wrench at rest.
        K: the wrenches by which three unit forces and three unit moments at the exit
            arrive here: the rows of A.
    """

    M_hat: ArticulatedInertia
    P: Wrench
    K: tuple[Wrench, ...]


def parallel_forward(
    model: Model,
    q: Float[Array, " nq"],
    qd: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    f_ext: Float[Array, "n 6"] | None = None,
    base: BaseMotion | None = None,
    chunk: int = CHUNK,
    refine: int = 0,
) -> tuple[Float[Array, " nv"], SegmentFactor]:
    r"""The joint accelerations under the joint forces `tau`, and a factor of M.

    [Ghosal] names parallel methods of O(log n) for very large systems; [Featherstone]
    joins bodies in pairs by their inverse inertias. Here the tree is cut into pieces.
    Articulated bodies within each, all pieces side by side, leave its inertia P as
    seen from the body it hangs on, and the compliance C of its exit, where other pieces
    hang:

    $$C \leftarrow C + \kappa\kappa^T / \hat m, \quad A \leftarrow A - \kappa\psi^T,
      \qquad \kappa = A p$$

    Then pairs of pieces are joined (`join`) in O(log n) rounds, parted again in reverse
    order, and the accelerations within the pieces follow outward. O(n) operations.

    A piece may end with a body that has no mass of its own. So every piece lends a
    share of its first body's inertia to the exit on which it hangs, and counts that
    much less itself: the sum is the same.

    Args:
        chunk: about how many elementary steps follow each other in a piece.
        refine: how often the result is put into the equations and corrected by what is
            missing there: forces of the joints, wrenches and accelerations between the
            pieces. All of these are local, so that their rounding does not add up as
            in the joint forces of inverse dynamics.
    """
    t = model.topology
    x = t.contraction(chunk)
    _, w1, dv1, dw1 = world(model, q, base)
    link, rate, _, bias = joint_terms(model, q, qd, None)
    jumps = t.jumps_in_blocks(min(chunk, t.jumps.block))
    R, _, a = placed(t, link, jumps)
    w0 = parents_of(t, path_sum(jumps, R.z * (link.turn * rate)) + w1, w1)
    pi, o = inertias(model), Vec3.zero(q.dtype)

    def at_rest(given: Any) -> Any:
        R, a, w0, (turn, slide), rate, bias, pi, external = given
        joint = Joint(R.z, turn, slide, a, a)
        _, w, *c = accelerated((R, w0, o, o), (joint, rate, None, bias), R, a)
        inertia = RigidInertia.of(pi).rotate(R)
        P = less_external(*inertia.wrench(w, o, o), external)
        axes = None if bias is None else R
        return (joint, inertia, P, tuple(c)), (w0, rate, external, axes)

    given = R, a, w0, (link.turn, link.slide), rate, bias, pi, wrenches(model, f_ext)
    moved, spins = zip(*map(at_rest, spread(x.lanes, given)), strict=True)
    others = spread(x.lanes, (*_loans(t, x, R, pi, a), rates(t, tau)))
    rows = tuple(zip(moved, others, pivot_terms(model, x.lanes), strict=True))
    handed, kept = inward(x.lanes, _gather, _nothing(q.dtype), rows)
    steps, c, moved = (tuple(level) for level in zip(*kept, strict=True))
    C, b = lane_sums(x.lanes, tuple(map(_at_exit, steps, c, moved)))

    P = inertia_matrix(handed.M_hat)
    A, C = jnp.stack([vector(*row) for row in handed.K]), inertia_matrix(C)
    lent = inertia_matrix(_first_inertias(t, x.first, R, pi, a).articulated())
    pieces = Segment(P - lent, A, C, vector(*handed.P), vector(*b))
    segments, met = joined_pieces(x, pieces)
    joint, psi, m_hat, kappa = (tuple(level) for level in zip(*steps, strict=True))
    factor = SegmentFactor(joint, psi, m_hat, kappa, P, segments.A, met, None, t, chunk)
    found = factor.release(segments.eta, segments.b, vector(dv1, dw1), c)
    if refine:

        def improve(found: Released, _: Any) -> Any:
            change = factor.correction(*_missing(t, x, rows, found))
            return jax.tree.map(jnp.add, found, change), None

        found, _ = lax.scan(improve, found, length=refine)
    factor = replace(factor, kept=(rows, spins, found))
    return collect(x.lanes, found.qdd, t.dof_steps), factor


def _missing(t: Topology, x: Contraction, rows: Laned, found: Released) -> Any:
    """What the equations still lack, as `SegmentFactor.correction` takes it."""

    def move(a: Wrench, z: Any) -> Any:
        ((joint, _, _, c), _, _), qdd = z
        a = add(moved_by(joint, a, c), joint.column(qdd))
        return a, a

    def balance(children: Wrench, z: Any) -> Any:
        (((joint, inertia, P, _), (lent, _, tau), stay), qdd), a, g = z
        borrowed = lent.apply(*a)
        f = add(add(inertia.apply(*a), P), add(borrowed, add(children, g)))
        return joint.to_parent(*f), (tau - joint.along(*f) - stay * qdd, borrowed)

    n, parent = x.lanes.size, t.steps.parent[x.first]
    moving = tuple(zip(rows, found.qdd, strict=True))
    start = wrench(found.a)
    a = outward(x.lanes, move, start, moving, each=True)
    g = put(found.g.T, x.exits, n)
    g = spread(x.lanes, (Vec3.of(g[:, :3]), Vec3.of(g[:, 3:])))
    tip = (Vec3.zero(found.a.dtype),) * 2
    taken, kept = inward(x.lanes, balance, tip, tuple(zip(moving, a, g, strict=True)))
    phi, borrowed = (tuple(level) for level in zip(*kept, strict=True))

    hangs = jnp.asarray(parent >= 0, found.a.dtype)
    at = take(collect(x.lanes, a), np.maximum(parent, 0))
    gap = (vector(*at) - found.a) * hangs[None]
    carried = put(vector(*taken).T, np.where(parent < 0, n, parent), n)
    given_back = vector(*take(collect(x.lanes, borrowed), x.exits))
    return phi, take(carried, x.exits).T - given_back - found.g, gap


def _gather(children: Part, x: Any) -> Any:
    """One step inward: its joint is eliminated, [Ghosal] eqs. 46 and 47, and K."""
    (joint, inertia, P, c), (lent, is_exit, tau), stay = x
    M_hat = (inertia + lent).articulated() + children.M_hat
    P = add(P, children.P)
    K = [add(row, _unit(k, is_exit)) for k, row in enumerate(children.K)]
    psi, m_hat, M_bar = eliminate(M_hat, joint, stay)
    u = tau - joint.along(*P)
    kappa = [joint.along(*row) for row in K]
    K = [(f - psi[0] * k, n - psi[1] * k) for (f, n), k in zip(K, kappa, strict=True)]
    moved = wrench([dot(f, c[0]) + dot(n, c[1]) for f, n in K])
    handed = Part(
        M_bar.shift(joint.a),
        joint.to_parent(*add(add(P, M_bar.apply(*c)), (psi[0] * u, psi[1] * u))),
        tuple(joint.to_parent(*row) for row in K),
    )
    return handed, ((joint, psi, m_hat, wrench(kappa)), (c, u / m_hat), moved)


def _at_exit(step: Any, at_rest: Any, moved: Wrench) -> tuple[Any, Wrench]:
    """What each step adds to the compliance C and the acceleration b of the exit."""
    (_, _, m_hat, (v, w)), (_, phi_tilde) = step, at_rest
    none, share = ArticulatedInertia.zero(m_hat.dtype), -1 / m_hat
    C = none.minus_dyad(v, w, v * share, w * share)
    return C, add(moved, (v * phi_tilde, w * phi_tilde))


def _loans(t: Topology, x: Contraction, R: Mat3, pi: Any, a: Vec3) -> Any:
    """What each step has on loan from the pieces that hang on it; whether any do."""
    n = len(t.steps.parent)
    lender = x.first[t.steps.parent[x.first] >= 0]
    lent = _first_inertias(t, lender, R, pi, a)
    is_exit = np.isin(np.arange(n), x.exits)
    return put(lent, t.steps.parent[lender], n), jnp.asarray(is_exit, a.x.dtype)


def _first_inertias(
    t: Topology, first: np.ndarray, R: Mat3, pi: Any, a: Vec3
) -> RigidInertia:
    """The loans of pieces by their first steps, none for those on the base."""
    body = t.steps.last[t.steps.body[first]]
    share = jnp.asarray(LOAN * (t.steps.parent[first] >= 0), a.x.dtype)
    lent = RigidInertia.of(take(pi, body) * share[:, None]).rotate(take(R, body))
    # the body's origin is that of its first step but for a slide within the joint,
    # and any inertia will do that is lent and taken back
    return lent.shift(take(a, first))


def _nothing(dtype: Any) -> Part:
    """What arrives at the tips."""
    o = Vec3.zero(dtype), Vec3.zero(dtype)
    return Part(ArticulatedInertia.zero(dtype), o, (o,) * 6)


def _unit(k: int, size: Any) -> Wrench:
    """The wrench with one component."""
    o = jnp.zeros_like(size)
    return wrench([size if j == k else o for j in range(6)])
