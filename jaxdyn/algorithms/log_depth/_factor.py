"""The inertia matrix as pieces of the tree, eliminated and joined in pairs."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from jaxdyn.algorithms.log_depth._joins import (
    Joined,
    at,
    rounds,
    rows_of,
    side_by_side,
    with_room,
    written,
)
from jaxdyn.algorithms.log_depth._recursions import parallel_newton_euler
from jaxdyn.algorithms.log_depth._segments import (
    Coupling,
    apply,
    transpose,
    twist,
    vector,
    wrench,
)
from jaxdyn.algorithms.steps import WorldStep, rates
from jaxdyn.model import Contraction, Nv, Topology
from jaxdyn.program import Laned, collect, compiled, inward, outward, put, spread
from jaxdyn.spatial import Mat3, RigidInertia, Scalar, Twist, Vec3, Wrench, dot, pytree

Vectors = Float[Array, "6 pieces"]


@pytree
class PieceStep:
    """One step of a piece before its elimination.

    Attributes:
        step, inertia: the step in world axes and the inertia that it carries.
        P, c: wrench of its body at rest; what it adds to its parent's acceleration.
        lent: inertia on loan from the pieces that hang on it.
        is_exit: 1 if any do, else 0.
        tau, stay: its force, and what is added to its pivot.
    """

    step: WorldStep
    inertia: RigidInertia
    P: Wrench
    c: Twist
    lent: RigidInertia
    is_exit: Scalar
    tau: Scalar
    stay: Scalar


@pytree
class Spin:
    """What the gradient needs of one step besides.

    Attributes:
        w0: angular velocity of its parent; qd: its velocity.
        external: external wrench on its body, or None.
        axes: its axes if joints have an inner bias, or None.
    """

    w0: Vec3
    qd: Scalar
    external: Array | None
    axes: Mat3 | None


@pytree
class SegmentStep:
    """What the elimination of one step leaves, as in `Eliminated`.

    Attributes:
        kappa: acceleration of the exit of its piece per unit of its acceleration.
    """

    step: WorldStep
    psi: Wrench
    m_hat: Scalar
    kappa: Twist


@pytree
class Released:
    """Accelerations of the joints and the two ends of all pieces.

    Attributes:
        qdd: of each step, laned.
        before, after: acceleration of its parent and its own, laned.
        a: acceleration of the body they hang on.
        g: wrench that they pass on at their exit, less what drives the inertia on loan
            there.
    """

    qdd: Laned[Array]
    before: Laned[Twist]
    after: Laned[Twist]
    a: Vectors
    g: Vectors


@pytree
class Kept:
    """What `parallel_pullback` uses of forward dynamics."""

    steps: Laned[PieceStep]
    spins: Laned[Spin]
    found: Released


class SegmentFactor(eqx.Module):
    """The inertia matrix, eliminated within pieces of the tree that are then joined.

    Attributes:
        steps: all steps, eliminated, in the lanes of the pieces.
        P: inertia of the pieces, nothing lent, a matrix in each lane.
        A: of all rows of the contraction.
        met: the couplings of all joins, with leaves [rounds, 6, 6, width].
        kept: for `parallel_pullback`, or None.
    """

    steps: Laned[SegmentStep]
    P: Float[Array, "6 6 pieces"]
    A: Float[Array, "6 6 rows"]
    met: Coupling
    kept: Kept | None
    topology: Topology = eqx.field(static=True)
    chunk: int = eqx.field(static=True)

    inverse_dynamics: ClassVar = staticmethod(parallel_newton_euler)

    def solve(self, b: Float[Array, " nv *columns"]) -> Float[Array, " nv *columns"]:
        """The solution x of M x = b, for one or many right-hand sides as columns."""
        if b.ndim == 2:
            return jax.vmap(self.solve, in_axes=1, out_axes=1)(b)
        return self._solve(b)

    @compiled()
    def _solve(self, b: Nv) -> Nv:
        lanes = self._contraction.lanes
        return collect(lanes, self.driven(b).qdd, self.topology.dof_steps)

    def driven(self, b: Nv) -> Released:
        """The motion from rest under the joint forces b alone."""
        x = self._contraction
        nothing = jnp.zeros((6, x.pieces), b.dtype)
        phi = spread(x.lanes, rates(self.topology, b))
        return self.correction(phi, nothing, nothing)

    def correction(self, phi: Laned[Array], rho: Vectors, gap: Vectors) -> Released:
        """What the motion at rest becomes under small loads.

        Args:
            phi: forces of the joints, laned.
            rho: wrenches that pull at the exits.
            gap: accelerations by which the pieces part from what they hang on.
        """
        x, dtype = self._contraction, rho.dtype

        def inwards(
            children: tuple[Wrench, Twist], row: tuple[SegmentStep, Scalar, Wrench]
        ):
            (f, own), (at, phi, pull) = children, row
            f = f + pull
            phi_hat = phi - at.step.along(f)
            phi_tilde = phi_hat / at.m_hat
            eta = f + at.psi * phi_hat
            return (at.step.to_parent(eta), own + at.kappa * phi_tilde), phi_tilde

        pull = Wrench.of(put(rho.T, x.exits, x.lanes.size))
        rows = tuple(zip(self.steps, phi, spread(x.lanes, pull), strict=True))
        tip = Wrench.zero(dtype), Twist.zero(dtype)
        (eta, own), phi_tilde = inward(x.lanes, inwards, tip, rows)
        eta = vector(eta) + apply(self.P, gap)
        b = vector(own) + apply(self.A[..., : x.pieces], gap)
        still = tuple((None, x) for x in phi_tilde)
        base = jnp.zeros(6, dtype)
        return self.release(*self._gathered(eta, b), base, still, gap)

    def release(
        self,
        eta: Float[Array, "6 rows"],
        b: Float[Array, "6 rows"],
        base: Float[Array, "6"],
        kept: Laned[tuple[Twist | None, Array]],
        gap: Vectors | float = 0.0,
    ) -> Released:
        """The accelerations, outward.

        Args:
            eta, b: of all rows of the contraction.
            base: acceleration of the base.
            kept: of each step the acceleration c that it adds to that of its parent, or
                None, and phi_tilde, laned.
            gap: as in `correction`.
        """
        lanes = self._contraction.lanes

        def outwards(
            parent: tuple[Twist, Wrench],
            x: tuple[SegmentStep, tuple[Twist | None, Scalar]],
        ):
            (before, g), (at, (c, phi_tilde)) = parent, x
            a = moved_by(at.step, before, c)
            qdd = phi_tilde - dot(a, at.psi) - dot(at.kappa, g) / at.m_hat
            a = a + at.step.column(qdd)
            return (a, g), (qdd, before, a)

        a, g = self._ends(eta, b, base)
        start = twist(a + gap), wrench(g)
        rows = tuple(zip(self.steps, kept, strict=True))
        # a lane that leaves another within a piece has kappa zero: any g will do
        found = outward(lanes, outwards, start, rows, each=True)
        qdd, before, after = map(tuple, zip(*found, strict=True))
        return Released(qdd, before, after, a + gap, g)

    def _gathered(self, eta: Vectors, b: Vectors) -> tuple[Array, Array]:
        """eta and b of all rows from those of the pieces."""
        x = self._contraction

        def gather(rows: tuple[Array, Array], now: tuple[Array, Joined, Coupling]):
            k, joined, met = now
            A_l, A_r = self._maps(joined)
            (eta_l, b_l), (eta_r, b_r), (eta_o, _) = rows_of(rows, joined)
            f, y = met.ends(b_l, eta_r + eta_o)
            new = eta_l + apply(transpose(A_l), f), b_r + apply(A_r, y)
            return written(rows, new, x, k), None

        rows = with_room((eta, b), x)
        return rounds(x, gather, rows, self.met)[0] if x.rounds else rows

    def _ends(self, eta: Array, b: Array, base: Array) -> tuple[Vectors, Vectors]:
        """Of each piece the acceleration of what it hangs on, the wrench at its exit.

        Each join knows those of its result and finds those of both its parts: from the
        last round to the first.
        """
        x = self._contraction
        count, width = x.left.size, x.left.shape[1]
        start = jnp.zeros((12, 2 * count), base.dtype)
        world = jnp.concatenate([base, jnp.zeros_like(base)])[:, None]
        own = x.ports[x.pieces + 1 :].reshape(x.left.shape)

        def part(state: Array, now: tuple[Array, Joined, Coupling, Array]):
            k, joined, met, port = now
            a, g = jnp.split(at(state, port), 2)
            A_l, A_r = self._maps(joined)
            y_0 = apply(A_l, a) + at(b, joined[0])
            e = apply(transpose(A_r), g) + at(eta, joined[1]) + at(eta, joined[2])
            f, y = met.ends(y_0, e)
            left, right = jnp.concatenate([a, f]), jnp.concatenate([y, g])
            new = jnp.stack([left, right], axis=-1).reshape(12, 2 * width)
            return lax.dynamic_update_slice(state, new, (0, 2 * width * k)), None

        state = jnp.concatenate([start, world], axis=1)
        if x.rounds:
            state, _ = rounds(x, part, state, self.met, own, reverse=True)
        a, g = jnp.split(at(state, x.ports[: x.pieces]), 2)
        return a, g

    def _maps(self, joined: Joined) -> tuple[Array, Array]:
        """A of the left and of the right part of joins."""
        left, right, _, is_sum = joined
        return side_by_side(at(self.A, left), is_sum), at(self.A, right)

    @property
    def _contraction(self) -> Contraction:
        return self.topology.contraction(self.chunk)


def moved_by(step: WorldStep, a: Twist, c: Twist | None) -> Twist:
    """The acceleration of a step from that of its parent, without its own."""
    a = step.to_child(a)
    return a if c is None else a + c
