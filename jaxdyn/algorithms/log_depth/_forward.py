"""Forward dynamics in O(log n) dependent steps: pieces of the tree, joined in pairs."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array

from jaxdyn.algorithms.kinematics import parents_of, placed
from jaxdyn.algorithms.log_depth._factor import (
    Kept,
    PieceStep,
    Released,
    SegmentFactor,
    SegmentStep,
    Spin,
    Vectors,
    moved_by,
)
from jaxdyn.algorithms.log_depth._joins import joined_pieces
from jaxdyn.algorithms.log_depth._segments import (
    Segment,
    inertia_matrix,
    twist,
    vector,
    wrench,
)
from jaxdyn.algorithms.recursions import eliminate, stays
from jaxdyn.algorithms.steps import (
    Base,
    MovingFrame,
    WorldStep,
    accelerated,
    base_frame,
    external_wrenches,
    inertias,
    less_external,
    rates,
    step_terms,
)
from jaxdyn.model import CHUNK, Contraction, FExt, Model, Nq, Nv, Topology
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
from jaxdyn.spatial import (
    ArticulatedInertia,
    Mat3,
    RigidInertia,
    Scalar,
    Twist,
    Vec3,
    Wrench,
    dot,
    pytree,
)

LOAN = 2.0**-8  # share of its inertia that a body lends to the exit it hangs on


@pytree
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
    q: Nq,
    qd: Nv,
    tau: Nv,
    f_ext: FExt = None,
    base: Base = None,
    chunk: int = CHUNK,
    refine: int = 0,
) -> tuple[Nv, SegmentFactor]:
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
    x, root = t.contraction(chunk), base_frame(model, q.dtype, base)
    terms, pi = step_terms(model, q, qd, None), inertias(model)
    jumps = t.jumps_in_blocks(min(chunk, t.jumps.block))
    R, _, a = placed(t, terms.local, jumps)
    w = path_sum(jumps, R.z * (terms.local.turn * terms.qd)) + root.w
    w0 = parents_of(t, w, root.w)
    external = external_wrenches(model, f_ext)
    step = WorldStep.of(terms.local, R, a)
    given = spread(x.lanes, (step, R, w0, terms.qd, terms.bias, pi, external))
    others = spread(x.lanes, (*_loans(t, x, R, pi, a), rates(t, tau)))
    levels = zip(given, others, stays(model, x.lanes), strict=True)
    at_rest = [_at_rest(*level) for level in levels]
    rows, spins = tuple(x[0] for x in at_rest), tuple(x[1] for x in at_rest)
    handed, kept = inward(x.lanes, _gather, _nothing(q.dtype), rows)
    steps = tuple(level[0] for level in kept)
    C, b = lane_sums(x.lanes, tuple(_at_exit(*level) for level in kept))

    P, C = inertia_matrix(handed.M_hat), inertia_matrix(C)
    A = jnp.stack([vector(row) for row in handed.K])
    lent = inertia_matrix(_first_inertias(t, x.first, R, pi, a).articulated())
    pieces = Segment(P - lent, A, C, vector(handed.P), vector(b))
    segments, met = joined_pieces(x, pieces)
    factor = SegmentFactor(steps, P, segments.A, met, None, t, chunk)
    still = tuple((row.c, level[1]) for row, level in zip(rows, kept, strict=True))
    found = factor.release(segments.eta, segments.b, vector(root.rate), still)
    if refine:

        def improve(found: Released, _: None):
            change = factor.correction(*_missing(t, x, rows, found))
            return jax.tree.map(jnp.add, found, change), None

        found, _ = lax.scan(improve, found, length=refine)
    factor = replace(factor, kept=Kept(rows, spins, found))
    return collect(x.lanes, found.qdd, t.dof_steps), factor


def _at_rest(given: tuple, others: tuple, stay: Scalar) -> tuple[PieceStep, Spin]:
    """Each step with the wrench of its body where its parent does not accelerate."""
    (step, R, w0, qd, bias, pi, external), (lent, is_exit, tau) = given, others
    still = Twist.zero(w0.x.dtype)
    at = accelerated(MovingFrame(R, w0, still), R, step, qd, None, bias)
    inertia = RigidInertia.of(pi).rotate(R)
    P = less_external(inertia.wrench(at.w, still), external)
    axes = None if bias is None else R
    row = PieceStep(step, inertia, P, at.rate, lent, is_exit, tau, stay)
    return row, Spin(w0, qd, external, axes)


def _missing(
    t: Topology, x: Contraction, rows: Laned[PieceStep], found: Released
) -> tuple[Laned[Array], Vectors, Vectors]:
    """What the equations still lack, as `SegmentFactor.correction` takes it."""

    def move(a: Twist, z: tuple[PieceStep, Scalar]):
        row, qdd = z
        a = moved_by(row.step, a, row.c) + row.step.column(qdd)
        return a, a

    def balance(children: Wrench, z: tuple[PieceStep, Scalar, Twist, Wrench]):
        row, qdd, a, g = z
        borrowed = row.lent.apply(a)
        f = row.inertia.apply(a) + row.P + (borrowed + (children + g))
        phi = row.tau - row.step.along(f) - row.stay * qdd
        return row.step.to_parent(f), (phi, borrowed)

    n, parent = x.lanes.size, t.steps.parent[x.first]
    moving = tuple(zip(rows, found.qdd, strict=True))
    a = outward(x.lanes, move, twist(found.a), moving, each=True)
    g = spread(x.lanes, Wrench.of(put(found.g.T, x.exits, n)))
    loads = tuple(zip(rows, found.qdd, a, g, strict=True))
    taken, kept = inward(x.lanes, balance, Wrench.zero(found.a.dtype), loads)
    phi, borrowed = tuple(x[0] for x in kept), tuple(x[1] for x in kept)

    hangs = jnp.asarray(parent >= 0, found.a.dtype)
    at = take(collect(x.lanes, a), np.maximum(parent, 0))
    gap = (vector(at) - found.a) * hangs[None]
    carried = put(vector(taken).T, np.where(parent < 0, n, parent), n)
    given_back = vector(take(collect(x.lanes, borrowed), x.exits))
    return phi, take(carried, x.exits).T - given_back - found.g, gap


def _gather(children: Part, x: PieceStep):
    """One step inward: it is eliminated, [Ghosal] eqs. 46 and 47, and K."""
    step = x.step
    M_hat = (x.inertia + x.lent).articulated() + children.M_hat
    P = x.P + children.P
    K = [row + _unit(k, x.is_exit) for k, row in enumerate(children.K)]
    psi, m_hat, M_bar = eliminate(M_hat, step, x.stay)
    u = x.tau - step.along(P)
    kappa = [step.along(row) for row in K]
    K = [row - psi * k for row, k in zip(K, kappa, strict=True)]
    moved = twist([dot(x.c, row) for row in K])
    handed = Part(
        M_bar.shift(step.a),
        step.to_parent(P + M_bar.apply(x.c) + psi * u),
        tuple(step.to_parent(row) for row in K),
    )
    return handed, (SegmentStep(step, psi, m_hat, twist(kappa)), u / m_hat, moved)


def _at_exit(
    x: SegmentStep, phi_tilde: Scalar, moved: Twist
) -> tuple[ArticulatedInertia, Twist]:
    """What each step adds to the compliance C and the acceleration b of the exit."""
    none, kappa = ArticulatedInertia.zero(x.m_hat.dtype), x.kappa
    column = Wrench(kappa.v, kappa.w)  # C = kappa kappaᵀ / m_hat, in the same blocks
    C = none.minus_dyad(column, column * (-1 / x.m_hat))
    return C, moved + kappa * phi_tilde


def _loans(
    t: Topology, x: Contraction, R: Mat3, pi: Array, a: Vec3
) -> tuple[RigidInertia, Array]:
    """What each step has on loan from the pieces that hang on it; whether any do."""
    n = len(t.steps.parent)
    lender = x.first[t.steps.parent[x.first] >= 0]
    lent = _first_inertias(t, lender, R, pi, a)
    is_exit = np.isin(np.arange(n), x.exits)
    return put(lent, t.steps.parent[lender], n), jnp.asarray(is_exit, a.x.dtype)


def _first_inertias(
    t: Topology, first: np.ndarray, R: Mat3, pi: Array, a: Vec3
) -> RigidInertia:
    """The loans of pieces by their first steps, none for those on the base."""
    body = t.steps.last[t.steps.body[first]]
    share = jnp.asarray(LOAN * (t.steps.parent[first] >= 0), a.x.dtype)
    lent = RigidInertia.of(take(pi, body) * share[:, None]).rotate(take(R, body))
    # the body's origin is that of its first step but for a slide within the joint,
    # and any inertia will do that is lent and taken back
    return lent.shift(take(a, first))


def _nothing(dtype: jnp.dtype) -> Part:
    """What arrives at the tips."""
    o = Wrench.zero(dtype)
    return Part(ArticulatedInertia.zero(dtype), o, (o,) * 6)


def _unit(k: int, size: Scalar) -> Wrench:
    """The wrench with one component."""
    o = jnp.zeros_like(size)
    return wrench([size if j == k else o for j in range(6)])
