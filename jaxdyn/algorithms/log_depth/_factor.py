"""The inertia matrix as pieces of the tree, eliminated and joined in pairs."""

from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from jaxdyn.algorithms.log_depth._joins import (
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
    vector,
)
from jaxdyn.algorithms.steps import Joint, rates
from jaxdyn.model import Contraction, Topology
from jaxdyn.program import Laned, collect, compiled, inward, outward, put, spread
from jaxdyn.spatial import Vec3, dot

Wrench = tuple[Vec3, Vec3]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Released:
    """Accelerations of the joints and the two ends of all pieces.

    Attributes:
        qdd: of each step, laned.
        before, after: acceleration of its parent and its own, laned.
        a: [6, pieces] acceleration of the body they hang on.
        g: [6, pieces] wrench that they pass on at their exit, less what drives the
            inertia on loan there.
    """

    qdd: Laned
    before: Laned
    after: Laned
    a: Any
    g: Any


class SegmentFactor(eqx.Module):
    """The inertia matrix, eliminated within pieces of the tree that are then joined.

    Attributes:
        joint, psi, m_hat: as those of `Factor`, of the lanes of the pieces.
        kappa: acceleration of the exit of its piece by each joint, laned.
        P: inertia of the pieces, nothing lent, a matrix in each lane.
        A: of all rows of the contraction.
        met: the couplings of all joins, with leaves [rounds, 6, 6, width].
        kept: what `parallel_pullback` uses of forward dynamics.
    """

    joint: Laned
    psi: Laned
    m_hat: Laned
    kappa: Laned
    P: Float[Array, "6 6 pieces"]
    A: Float[Array, "6 6 rows"]
    met: Coupling
    kept: Any
    topology: Topology = eqx.field(static=True)
    chunk: int = eqx.field(static=True)

    inverse_dynamics: ClassVar = staticmethod(parallel_newton_euler)

    def solve(self, b: Float[Array, " nv *columns"]) -> Float[Array, " nv *columns"]:
        """The solution x of M x = b, for one or many right-hand sides as columns."""
        if b.ndim == 2:
            return jax.vmap(self.solve, in_axes=1, out_axes=1)(b)
        return self._solve(b)

    @compiled()
    def _solve(self, b: Float[Array, " nv"]) -> Float[Array, " nv"]:
        lanes = self._contraction.lanes
        return collect(lanes, self.driven(b).qdd, self.topology.dof_steps)

    def driven(self, b: Float[Array, " nv"]) -> "Released":
        """The motion from rest under the joint forces b alone."""
        x = self._contraction
        nothing = jnp.zeros((6, x.pieces), b.dtype)
        phi = spread(x.lanes, rates(self.topology, b))
        return self.correction(phi, nothing, nothing)

    def correction(self, phi: Laned, rho: Any, gap: Any) -> "Released":
        """What the motion at rest becomes under small loads.

        Args:
            phi: forces of the joints, laned.
            rho: [6, pieces] wrenches that pull at the exits.
            gap: [6, pieces] accelerations by which the pieces part from what they hang
                on.
        """
        x, zero = self._contraction, (Vec3.zero(rho.dtype),) * 2

        def inwards(children: Any, row: Any) -> Any:
            ((f, n), own), (joint, psi, m_hat, kappa, (phi, pull)) = children, row
            f, n = add((f, n), pull)
            phi_hat = phi - joint.along(f, n)
            eta = f + psi[0] * phi_hat, n + psi[1] * phi_hat
            phi_tilde = phi_hat / m_hat
            own = add(own, (kappa[0] * phi_tilde, kappa[1] * phi_tilde))
            return (joint.to_parent(*eta), own), phi_tilde

        pull = put(rho.T, x.exits, x.lanes.size)
        pull = Vec3.of(pull[:, :3]), Vec3.of(pull[:, 3:])
        loads = zip(phi, spread(x.lanes, pull), strict=True)
        rows = tuple(zip(*self._steps, loads, strict=True))
        (eta, own), phi_tilde = inward(x.lanes, inwards, (zero, zero), rows)
        eta = vector(*eta) + apply(self.P, gap)
        b = vector(*own) + apply(self.A[..., : x.pieces], gap)
        still, base = tuple((None, x) for x in phi_tilde), jnp.zeros(6, rho.dtype)
        return self.release(*self._gathered(eta, b), base, still, gap)

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
            (before, g), (joint, psi, m_hat, kappa, (c, phi_tilde)) = parent, x
            a = moved_by(joint, before, c)
            qdd = phi_tilde - dot(psi[0], a[0]) - dot(psi[1], a[1])
            qdd = qdd - (dot(kappa[0], g[0]) + dot(kappa[1], g[1])) / m_hat
            a = add(a, joint.column(qdd))
            return (a, g), (qdd, before, a)

        a, g = self._ends(eta, b, base)
        start = wrench(a + gap), wrench(g)
        rows = tuple(zip(*self._steps, kept, strict=True))
        # a lane that leaves another within a piece has kappa zero: any g will do
        found = outward(lanes, outwards, start, rows, each=True)
        qdd, before, after = (tuple(level) for level in zip(*found, strict=True))
        return Released(qdd, before, after, a + gap, g)

    def _gathered(self, eta: Any, b: Any) -> tuple[Any, Any]:
        """eta and b of all rows from those of the pieces."""
        x = self._contraction

        def gather(rows: Any, now: Any) -> Any:
            k, joined, met = now
            A_l, A_r = self._maps(joined)
            (eta_l, b_l), (eta_r, b_r), (eta_o, _) = rows_of(rows, joined)
            f, y = met.ends(b_l, eta_r + eta_o)
            new = eta_l + apply(transpose(A_l), f), b_r + apply(A_r, y)
            return written(rows, new, x, k), None

        rows = with_room((eta, b), x)
        return rounds(x, gather, rows, self.met)[0]

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
            a, g = jnp.split(at(state, port), 2)
            A_l, A_r = self._maps(joined)
            y_0 = apply(A_l, a) + at(b, joined[0])
            e = apply(transpose(A_r), g) + at(eta, joined[1]) + at(eta, joined[2])
            f, y = met.ends(y_0, e)
            left, right = jnp.concatenate([a, f]), jnp.concatenate([y, g])
            new = jnp.stack([left, right], axis=-1).reshape(12, 2 * width)
            return lax.dynamic_update_slice(state, new, (0, 2 * width * k)), None

        state = jnp.concatenate([start, world], axis=1)
        state, _ = rounds(x, part, state, self.met, own, reverse=True)
        a, g = jnp.split(at(state, x.ports[: x.pieces]), 2)
        return a, g

    def _maps(self, joined: Any) -> tuple[Any, Any]:
        """A of the left and of the right part of joins."""
        left, right, _, is_sum = joined
        return side_by_side(at(self.A, left), is_sum), at(self.A, right)

    @property
    def _contraction(self) -> Contraction:
        return self.topology.contraction(self.chunk)

    @property
    def _steps(self) -> tuple[Laned, ...]:
        return self.joint, self.psi, self.m_hat, self.kappa


def moved_by(joint: Joint, a: Wrench, c: Wrench | None) -> Wrench:
    """The acceleration of a step from that of its parent, without its own."""
    a = joint.to_child(*a)
    return a if c is None else add(a, c)


def wrench(x: Any) -> Wrench:
    """The wrench, or acceleration, with six components, linear part first."""
    return Vec3(*x[:3]), Vec3(*x[3:])


def add(a: Wrench, b: Wrench) -> Wrench:
    """The sum of two wrenches, or of two accelerations."""
    return a[0] + b[0], a[1] + b[1]
