"""How the joints follow a straight path of a frame."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn.algorithms.kinematics import Place, difference, integrate, jacobian_at
from jaxdyn.model import Model
from jaxdyn.motion._inputs import tolerance_of
from jaxdyn.motion._inverse_kinematics import Goal, poses_of, within
from jaxdyn.motion._motion import JointMotion, horner, quintic
from jaxdyn.program import alone

NEWTON_STEPS = 2  # from guesses that are wrong by GUESS at most: 1e-3, 1e-6, 1e-12
GUESS = 1e-3


class Line(eqx.Module):
    """The path of the frame as s goes from 0 to 1, and how the joints follow it."""

    model: Model
    start: Any
    end: Any
    attitude: Any
    place: Place = eqx.field(static=True)

    def goal(self, s: Any) -> Goal:
        """Where the frame is to stand."""
        return Goal((self.place,), self.position(s), self.attitude)

    def position(self, s: Any) -> Any:
        """Where its origin is to be."""
        return self.start + s * (self.end - self.start)

    def solve(self, q: Any, s: Any) -> Any:
        """The configuration at s, by Newton's method from a guess."""

        def step(q: Any, _: Any) -> Any:
            at = poses_of(self.model, q, (self.place,))
            twist = self.position(s) - at.p[0]
            if self.attitude is not None:
                turn = jnp.cross(at.R[0], self.attitude, axis=0).sum(axis=1) / 2
                twist = jnp.concatenate([twist, turn])
            return integrate(self.model, q, self._inverse(q) @ twist), None

        return jax.lax.scan(step, q, None, length=NEWTON_STEPS)[0]

    def slope(self, q: Any) -> Any:
        """The least rate of the joints for a rate of one of s."""
        return self._inverse(q)[:, :3] @ (self.end - self.start)

    def rates(self, q: Any) -> JointMotion:
        """The first and second derivative by s of the configuration.

        With J P v = v for the pseudoinverse P of J, as on a path that can be followed,
        x = P v has the rate -P Jdot x + (1 - P J) Jdotᵀ Pᵀ x. The second term is that
        of a redundant arm.
        """
        J, P = self.jacobian(q), self._inverse(q)
        x = P[:, :3] @ (self.end - self.start)

        def moved(e: Any) -> Any:
            return self.jacobian(integrate(self.model, q, e))

        Jdot = jax.jvp(moved, (jnp.zeros_like(x),), (x,))[1]
        own = Jdot.T @ (P.T @ x)
        return JointMotion(q, x, own - P @ (J @ own + Jdot @ x))

    def jacobian(self, q: Any) -> Any:
        """Rows for the position and, if it is given, the attitude."""
        J = jacobian_at(self.model, q, place=self.place)
        return J[:3] if self.attitude is None else J

    def _inverse(self, q: Any) -> Any:
        return jnp.linalg.pinv(self.jacobian(q), rtol=_cut(q.dtype))


def between(line: Line, nodes: Any, guesses: Any, s: Any) -> Any:
    """The configuration at s from the stored guesses."""
    return line.solve(_guess(line, nodes, guesses, s), s)


def _guess(line: Line, nodes: Any, guesses: Any, s: Any) -> Any:
    count = len(guesses)
    k = jnp.clip((s * count).astype(int), 0, count - 1)
    step = horner(guesses[k], s * count - k.astype(s.dtype))
    return integrate(line.model, nodes[k], step)


@alone("count")
def sampled(line: Line, first: Any, count: int) -> tuple[Any, ...]:
    """The path cut into segments, and whether it can be followed."""
    model, h = line.model, jnp.asarray(1 / count, first.dtype)
    places = jnp.linspace(0, 1, count + 1, dtype=first.dtype)

    def advance(q: Any, to: Any) -> Any:
        s, h = to
        q = line.solve(_runge_kutta(line, q, h), s)
        return q, q

    lengths = jnp.full(count + 1, h).at[0].set(0)  # the first node is q itself
    nodes = jax.lax.scan(advance, first, (places, lengths))[1]
    at = jax.lax.map(line.rates, nodes)  # compiles in half the time of a batch
    ends = jax.tree.map(lambda x: x[:-1], at), jax.tree.map(lambda x: x[1:], at)
    guesses = jax.vmap(lambda a, b: quintic(model, a, b, h))(*ends)
    return nodes, guesses, *_judged(line, places, at, guesses)


def _runge_kutta(line: Line, q: Any, h: Any) -> Any:
    """The classical step of fourth order, in coordinates around q."""
    model = line.model

    def rate(x: Any) -> Any:
        at = integrate(model, q, x)
        slope = line.slope(at)

        def moved(e: Any) -> Any:
            return difference(model, q, integrate(model, at, e))

        return jax.jvp(moved, (jnp.zeros_like(slope),), (slope,))[1]

    def stage(state: Any, weights: Any) -> Any:
        (k, total), (reach, weight) = state, weights
        k = rate(k * (reach * h))
        return (k, total + k * (weight * h)), None

    rows = [0, 1 / 2, 1 / 2, 1], [1 / 6, 1 / 3, 1 / 3, 1 / 6]
    weights = tuple(jnp.asarray(row, q.dtype) for row in rows)
    zero = jnp.zeros(model.nv, q.dtype)
    (_, total), _ = jax.lax.scan(stage, (zero, zero), weights)
    return integrate(model, q, total)


def _judged(line: Line, places: Any, at: JointMotion, guesses: Any) -> tuple:
    """The error, the smallest singular value, and whether the path can be followed."""
    line, places, at, guesses = jax.lax.stop_gradient((line, places, at, guesses))
    model, nodes, cut = line.model, at.q, _cut(at.q.dtype)

    def compare(q: Any, s: Any) -> Any:
        beyond = jnp.abs(q - within(model, q)).max(initial=0)
        return line.goal(s).error(model, q), beyond

    def half_way(s: Any) -> Any:
        guess = _guess(line, nodes, guesses, s)
        q = line.solve(guess, s)
        return compare(q, s), jnp.abs(difference(model, guess, q)).max(initial=0)

    def at_node(node: Any) -> Any:
        q, slope, s = node
        J = line.jacobian(q)
        missed = jnp.abs(J[:3] @ slope - (line.end - line.start)).max()
        sizes = jnp.linalg.svd(J, compute_uv=False)
        counts = sizes > cut * sizes.max()
        least = jnp.where(counts, sizes, jnp.inf).min()
        is_square = J.shape[0] == J.shape[1]
        # a determinant that changes its sign was zero in between
        side = jnp.sign(jnp.linalg.det(J)) if is_square else jnp.zeros_like(least)
        return compare(q, s), missed, least, counts.sum(), side

    middles = (places[:-1] + places[1:]) / 2
    between_nodes, wrong = jax.lax.map(half_way, middles)
    on_nodes, missed, least, rank, side = jax.lax.map(at_node, (nodes, at.qd, places))
    error, beyond = jax.tree.map(
        lambda a, b: jnp.concatenate([a, b]).max(axis=0), on_nodes, between_nodes
    )
    is_there = jnp.append(error, missed.max()).max() <= tolerance_of(nodes.dtype)
    is_regular = (rank == rank[0]).all() & (side == side[0]).all()
    is_resolved = (wrong < GUESS).all() & (beyond <= tolerance_of(nodes.dtype))
    return error, least.min(), is_there & is_regular & is_resolved


def _cut(dtype: Any) -> float:
    """The part of the largest singular value below which others count as zero."""
    return 1e-6 if dtype == jnp.float64 else 1e-4
