"""Forward dynamics in O(log n) dependent steps: pieces of the tree, joined in pairs."""

from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from jaxdyn.algorithms._bodies import Joint
from jaxdyn.algorithms._compiled import compiled
from jaxdyn.algorithms._factor import eliminate, pivot_terms
from jaxdyn.algorithms._jumps import path_sum
from jaxdyn.algorithms._links import (
    inertias,
    joint_terms,
    less_external,
    rates,
    wrenches,
)
from jaxdyn.algorithms._log_depth import parents_of, placed
from jaxdyn.algorithms._motion import BaseMotion, accelerated
from jaxdyn.algorithms._newton_euler import world
from jaxdyn.algorithms._rows import put, take
from jaxdyn.algorithms._segments import Coupling, Segment, apply, join, transpose
from jaxdyn.algorithms._walk import Laned, collect, inward, outward, spread
from jaxdyn.model import CHUNK, Contraction, Model, Topology
from jaxdyn.spatial import ArticulatedInertia, Mat3, RigidInertia, Vec3, dot

Wrench = tuple[Vec3, Vec3]
LOAN = 2.0**-8  # share of its inertia that a body lends to the exit it hangs on


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Part:
    """What a part of a piece hands on, at the origin of the joint that receives it.

    Attributes:
        M_hat: articulated inertia; P: wrench at rest.
        K: the wrenches by which three unit forces and three unit moments at the exit
            arrive here: the rows of A.
        C: [6, 6] compliance of the exit; b: [6] its acceleration.
    """

    M_hat: ArticulatedInertia
    P: Wrench
    K: tuple[Wrench, ...]
    C: Any
    b: Any


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Released:
    """Accelerations of the joints, laned, and the two ends of all pieces.

    Attributes:
        a: [6, pieces] acceleration of the body they hang on.
        g: [6, pieces] wrench that they pass on at their exit.
    """

    qdd: Laned
    a: Any
    g: Any


class SegmentFactor(eqx.Module):
    """The inertia matrix, eliminated within pieces of the tree that are then joined.

    Attributes:
        joint, psi, m_hat: as those of `Factor`, of the lanes of the pieces.
        kappa: [6] acceleration of the exit of its piece by each joint, laned.
        P: inertia of the pieces, nothing lent, a matrix in each lane.
        A: of all rows of the contraction.
        met: the couplings of all joins, with leaves [rounds, 6, 6, width].
    """

    joint: Laned
    psi: Laned
    m_hat: Laned
    kappa: Laned
    P: Float[Array, "6 6 pieces"]
    A: Float[Array, "6 6 rows"]
    met: Coupling
    topology: Topology = eqx.field(static=True)
    chunk: int = eqx.field(static=True)

    def solve(self, b: Float[Array, " nv *columns"]) -> Float[Array, " nv *columns"]:
        """The solution x of M x = b, for one or many right-hand sides as columns."""
        if b.ndim == 2:
            return jax.vmap(self.solve, in_axes=1, out_axes=1)(b)
        return self._solve(b)

    @compiled()
    def _solve(self, b: Float[Array, " nv"]) -> Float[Array, " nv"]:
        t, lanes = self.topology, self._contraction.lanes
        nothing = jnp.zeros((6, len(self._contraction.first)), b.dtype)
        change = self.correction(spread(lanes, rates(t, b)), nothing, nothing)
        return collect(lanes, change.qdd, t.dof_steps)

    def correction(self, phi: Laned, rho: Any, gap: Any) -> "Released":
        """What the motion at rest becomes under small loads.

        Args:
            phi: forces of the joints, laned.
            rho: [6, pieces] wrenches that pull at the exits.
            gap: [6, pieces] accelerations by which the pieces part from what they hang
                on.
        """
        x, zero = self._contraction, Vec3.zero(rho.dtype)

        def inwards(children: Any, row: Any) -> Any:
            ((f, n), own), (joint, psi, m_hat, kappa, (phi, pull)) = children, row
            f, n = _add((f, n), pull)
            phi_hat = phi - joint.along(f, n)
            eta = f + psi[0] * phi_hat, n + psi[1] * phi_hat
            phi_tilde = phi_hat / m_hat
            return (joint.to_parent(*eta), own + kappa * phi_tilde), phi_tilde

        pull = put(rho.T, x.exits, x.lanes.size)
        pull = Vec3.of(pull[:, :3]), Vec3.of(pull[:, 3:])
        loads = zip(phi, spread(x.lanes, pull), strict=True)
        rows = tuple(zip(*self._steps, loads, strict=True))
        tip = (zero, zero), jnp.zeros(6, rho.dtype)
        (eta, own), phi_tilde = inward(x.lanes, inwards, tip, rows)
        eta = _vector(*eta) + apply(self.P, gap)
        b = own.T + apply(self.A[..., : x.pieces], gap)
        still = tuple((None, x) for x in phi_tilde)
        return self.release(
            *self._gathered(eta, b), jnp.zeros_like(rho[:, 0]), still, gap
        )

    def release(
        self, eta: Any, b: Any, base: Any, kept: Laned, gap: Any = 0
    ) -> "Released":
        """The accelerations, outward.

        Args:
            eta, b: of all rows of the contraction.
            base: [6] acceleration of the base.
            kept: of each step the acceleration c that it adds to that of its parent, or
                None, and phi_tilde, laned.
            gap: as in `correction`.
        """
        lanes = self._contraction.lanes

        def outwards(parent: Any, x: Any) -> Any:
            (a, g), (joint, psi, m_hat, kappa, (c, phi_tilde)) = parent, x
            a = _moved(joint, a, c)
            qdd = phi_tilde - dot(psi[0], a[0]) - dot(psi[1], a[1])
            qdd = qdd - (kappa * g).sum() / m_hat
            return (_add(a, joint.column(qdd)), g), qdd

        a, g = self._ends(eta, b, base)
        start = (Vec3(*(a + gap)[:3]), Vec3(*(a + gap)[3:])), g.T
        rows = tuple(zip(*self._steps, kept, strict=True))
        # a lane that leaves another within a piece has kappa zero: any g will do
        qdd = outward(lanes, outwards, start, rows, each=True)
        return Released(qdd, a + gap, g)

    def _gathered(self, eta: Any, b: Any) -> tuple[Any, Any]:
        """eta and b of all rows from those of the pieces."""
        x = self._contraction

        def gather(rows: Any, now: Any) -> Any:
            k, joined, met = now
            A_l, A_r = self._maps(joined)
            (eta_l, b_l), (eta_r, b_r), (eta_o, _) = _rows_of(rows, joined)
            f, y = met.ends(b_l, eta_r + eta_o)
            new = eta_l + apply(transpose(A_l), f), b_r + apply(A_r, y)
            return _written(rows, new, x, k), None

        rows = _with_room((eta, b), x)
        return _rounds(x, gather, rows, self.met)[0]

    def _ends(self, eta: Any, b: Any, base: Any) -> tuple[Any, Any]:
        """Of each piece the acceleration of what it hangs on, the wrench at its exit.

        Each join knows those of its result and finds those of both its parts: from the
        last round to the first.
        """
        x = self._contraction
        count, width = x.left.size, x.left.shape[1]
        start = jnp.zeros((12, 2 * count), base.dtype)
        world = jnp.concatenate([base, jnp.zeros_like(base)])[:, None]
        own = x.ports[x.pieces + 1 :].reshape(x.left.shape)

        def part(state: Any, now: Any) -> Any:
            k, joined, met, port = now
            a, g = jnp.split(_at(state, port), 2)
            A_l, A_r = self._maps(joined)
            y_0 = apply(A_l, a) + _at(b, joined[0])
            e = apply(transpose(A_r), g) + _at(eta, joined[1]) + _at(eta, joined[2])
            f, y = met.ends(y_0, e)
            left, right = jnp.concatenate([a, f]), jnp.concatenate([y, g])
            new = jnp.stack([left, right], axis=-1).reshape(12, 2 * width)
            return lax.dynamic_update_slice(state, new, (0, 2 * width * k)), None

        state = jnp.concatenate([start, world], axis=1)
        state, _ = _rounds(x, part, state, self.met, own, reverse=True)
        a, g = jnp.split(_at(state, x.ports[: x.pieces]), 2)
        return a, g

    def _maps(self, joined: Any) -> tuple[Any, Any]:
        """A of the left and of the right part of joins."""
        left, right, _, is_sum = joined
        return _side_by_side(_at(self.A, left), is_sum), _at(self.A, right)

    @property
    def _contraction(self) -> Contraction:
        return self.topology.contraction(self.chunk)

    @property
    def _steps(self) -> tuple[Laned, ...]:
        return self.joint, self.psi, self.m_hat, self.kappa


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
        return joint, inertia, P, tuple(c)

    given = R, a, w0, (link.turn, link.slide), rate, bias, pi, wrenches(model, f_ext)
    moved = tuple(map(at_rest, spread(x.lanes, given)))
    others = spread(x.lanes, (*_loans(t, x, R, pi, a), rates(t, tau)))
    rows = tuple(zip(moved, others, pivot_terms(model, x.lanes), strict=True))
    handed, kept = inward(x.lanes, _gather, _nothing(q.dtype), rows)
    steps, c = (tuple(level) for level in zip(*kept, strict=True))

    P = _inertia_matrix(handed.M_hat)
    pieces = _segments(P, handed, _first_inertias(t, x.first, R, pi, a))
    segments, met = _joined(x, pieces)
    joint, psi, m_hat, kappa = (tuple(level) for level in zip(*steps, strict=True))
    factor = SegmentFactor(joint, psi, m_hat, kappa, P, segments.A, met, t, chunk)
    found = factor.release(segments.eta, segments.b, _vector(dv1, dw1), c)
    if refine:

        def improve(found: Released, _: Any) -> Any:
            change = factor.correction(*_missing(t, x, rows, found))
            return jax.tree.map(jnp.add, found, change), None

        found, _ = lax.scan(improve, found, length=refine)
    return collect(x.lanes, found.qdd, t.dof_steps), factor


def _missing(t: Topology, x: Contraction, rows: Laned, found: Released) -> Any:
    """What the equations still lack, as `SegmentFactor.correction` takes it."""

    def move(a: Wrench, z: Any) -> Any:
        ((joint, _, _, c), _, _), qdd = z
        a = _add(_moved(joint, a, c), joint.column(qdd))
        return a, a

    def balance(children: Wrench, z: Any) -> Any:
        (((joint, inertia, P, _), (_, _, tau), stay), qdd), a, g = z
        f = _add(_add(inertia.apply(*a), P), _add(children, g))
        return joint.to_parent(*f), tau - joint.along(*f) - stay * qdd

    moving = tuple(zip(rows, found.qdd, strict=True))
    start = Vec3(*found.a[:3]), Vec3(*found.a[3:])
    a = outward(x.lanes, move, start, moving, each=True)
    g = put(found.g.T, x.exits, x.lanes.size)
    g = spread(x.lanes, (Vec3.of(g[:, :3]), Vec3.of(g[:, 3:])))
    tip = (Vec3.zero(found.a.dtype),) * 2
    taken, phi = inward(x.lanes, balance, tip, tuple(zip(moving, a, g, strict=True)))
    parent = t.steps.parent[x.first]
    hangs = jnp.asarray(parent >= 0, found.a.dtype)
    at = take(collect(x.lanes, a), np.maximum(parent, 0))
    gap = (_vector(*at) - found.a) * hangs[None]
    carried = put(
        _vector(*taken).T, np.where(parent < 0, x.lanes.size, parent), x.lanes.size
    )
    rho = take(carried, x.exits).T - found.g
    return phi, rho, gap


def _gather(children: Part, x: Any) -> Any:
    """One step inward: its joint is eliminated, [Ghosal] eqs. 46 and 47, and K."""
    (joint, inertia, P, c), (lent, is_exit, tau), stay = x
    M_hat = (inertia + lent).articulated() + children.M_hat
    P = P[0] + children.P[0], P[1] + children.P[1]
    K = [_add(row, _unit(k, is_exit)) for k, row in enumerate(children.K)]
    psi, m_hat, M_bar = eliminate(M_hat, joint, stay)
    u = tau - joint.along(*P)
    kappa = [joint.along(*row) for row in K]
    K = [(f - psi[0] * k, n - psi[1] * k) for (f, n), k in zip(K, kappa, strict=True)]
    moved = jnp.stack([dot(f, c[0]) + dot(n, c[1]) for f, n in K])
    kappa, phi_tilde = jnp.stack(kappa), u / m_hat
    handed = Part(
        M_bar.shift(joint.a),
        joint.to_parent(*_add(_add(P, M_bar.apply(*c)), (psi[0] * u, psi[1] * u))),
        tuple(joint.to_parent(*row) for row in K),
        children.C + kappa[:, None] * (kappa / m_hat)[None],
        children.b + kappa * phi_tilde + moved,
    )
    return handed, ((joint, psi, m_hat, kappa), (c, phi_tilde))


def _joined(x: Contraction, pieces: Segment) -> tuple[Segment, Coupling]:
    """All rows of the contraction, and the couplings of its joins."""

    def step(rows: Segment, now: Any) -> Any:
        k, joined = now
        left, right, load = _rows_of(rows, joined)
        is_sum = joined[3]
        A, C = _side_by_side(left.A, is_sum), jnp.where(is_sum, 0, left.C)
        right = replace(right, P=right.P + load.P, eta=right.eta + load.eta)
        new, met = join(replace(left, A=A, C=C), right)
        return _written(rows, new, x, k), met

    rows = _with_room(pieces, x)
    if not x.rounds:
        none = jnp.zeros((0, 6, 6, x.left.shape[1]), rows.A.dtype)
        return rows, Coupling(none, none, none)
    return _rounds(x, step, rows)


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


def _segments(P: Any, handed: Part, lent: RigidInertia) -> Segment:
    """The pieces, from what they hand on, less what they lent."""
    A = jnp.stack([_vector(*row) for row in handed.K])
    C, b = jnp.moveaxis(handed.C, 0, -1), handed.b.T
    lent = _inertia_matrix(lent.articulated())
    return Segment(P - lent, A, C, _vector(*handed.P), b)


def _inertia_matrix(M: ArticulatedInertia) -> Any:
    """[6, 6, lanes]."""
    blocks = (M.A.mat(), M.B), (M.B.T, M.D.mat())
    return jnp.concatenate(
        [jnp.concatenate([_matrix(m) for m in row], axis=1) for row in blocks]
    )


def _nothing(dtype: Any) -> Part:
    """What arrives at the tips."""
    o = Vec3.zero(dtype), Vec3.zero(dtype)
    C, b = jnp.zeros((6, 6), dtype), jnp.zeros(6, dtype)
    return Part(ArticulatedInertia.zero(dtype), o, (o,) * 6, C, b)


def _moved(joint: Joint, a: Wrench, c: Wrench | None) -> Wrench:
    """The acceleration of a step from that of its parent, without its own."""
    a = joint.to_child(*a)
    return a if c is None else _add(a, c)


def _add(a: Wrench, b: Wrench) -> Wrench:
    return a[0] + b[0], a[1] + b[1]


def _unit(k: int, size: Any) -> Wrench:
    """The wrench with one component."""
    o = jnp.zeros_like(size)
    x = [size if j == k else o for j in range(6)]
    return Vec3(*x[:3]), Vec3(*x[3:])


def _matrix(m: Mat3) -> Any:
    """[3, 3, lanes]."""
    return jnp.stack([jnp.stack([c.x, c.y, c.z]) for c in (m.x, m.y, m.z)], axis=1)


def _vector(f: Vec3, n: Vec3) -> Any:
    """[6, lanes]."""
    return jnp.stack([f.x, f.y, f.z, n.x, n.y, n.z])


def _side_by_side(A: Any, is_sum: Any) -> Any:
    """A of the left part of joins: 1 where the right one hangs beside it."""
    return jnp.where(is_sum, jnp.eye(6, dtype=A.dtype)[:, :, None], A)


def _at(x: Any, index: Any) -> Any:
    return x.at[..., index].get(mode="promise_in_bounds")


def _rows_of(rows: Any, joined: Any) -> tuple[Any, Any, Any]:
    """The left and right parts and the loads of joins."""
    left, right, load, _ = joined
    return tuple(
        jax.tree.map(lambda x, i=i: _at(x, i), rows) for i in (left, right, load)
    )


def _with_room(rows: Any, x: Contraction) -> Any:
    """The rows of the pieces, an empty one, and room for the results of all joins."""

    def wider(v: Any) -> Any:
        room = jnp.zeros((*v.shape[:-1], 1 + x.left.size), v.dtype)
        return jnp.concatenate([v, room], axis=-1)

    return jax.tree.map(wider, rows)


def _written(rows: Any, new: Any, x: Contraction, k: Any) -> Any:
    """The rows with the results of round k."""
    start = x.pieces + 1 + k * x.left.shape[1]

    def write(v: Any, w: Any) -> Any:
        return lax.dynamic_update_slice_in_dim(v, w, start, axis=v.ndim - 1)

    return jax.tree.map(write, rows, new)


def _rounds(
    x: Contraction, step: Any, rows: Any, *terms: Any, reverse: bool = False
) -> tuple[Any, Any]:
    """All rounds; a step gets the number of its round, its joins, and its terms."""
    if not x.rounds:
        return rows, None
    joined = x.left, x.right, x.load, x.is_sum
    now = np.arange(x.rounds), joined, *terms
    return lax.scan(step, rows, now, reverse=reverse)
