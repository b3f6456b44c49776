"""Segments of a tree with two ends, and how two of them become one.

Matrices are [6, 6, lanes] and vectors [6, lanes], linear part first; products are sums
of outer products, which run along the lanes.
"""

import operator
from functools import reduce

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from jaxdyn.spatial import ArticulatedInertia, Mat3, Twist, Vec3, Wrench, pytree


@pytree
class Segment:
    r"""A part of the tree between the body it hangs on and its exit.

    With the acceleration a of the body it hangs on and the wrench g that it passes on
    at its exit, the wrench f that it takes and the acceleration y of its exit are

    $$f = P a + A^T g + \eta, \qquad y = A a - C g + b$$

    P is the articulated inertia, C the compliance of the exit. Without an exit A, C and
    b are zero.
    """

    P: Array
    A: Array
    C: Array
    eta: Array
    b: Array


@pytree
class Coupling:
    r"""Two ends that meet: a compliance C on the left, an inertia P on the right.

    $$Q = (P^{-1} + C)^{-1}, \qquad W = (1 + C P)^{-1}, \qquad Z = W C$$
    """

    Q: Array
    W: Array
    Z: Array

    def ends(self, y_0: Array, e: Array) -> tuple[Array, Array]:
        """The wrench f and the acceleration y between the two.

        From the acceleration y_0 of the left end without a wrench, and the wrench e at
        the right end without an acceleration.
        """
        f = apply(self.Q, y_0) + apply(transpose(self.W), e)
        return f, apply(self.W, y_0) - apply(self.Z, e)


def couple(C: Array, P: Array) -> Coupling:
    r"""The coupling of a compliance C and an inertia P.

    A compliance is a set of joints: with $C = \sum_k \delta_k u_k u_k^T$ the exit moves
    along u_k by $z_k = -\delta_k u_k^T f$, as a joint with the armature $1 / \delta_k$
    does that no force drives. So they are eliminated from P as joints are, one after
    the other, with a divisor of at least one where P is an inertia, regular or not.
    """
    one = jnp.eye(6, dtype=C.dtype)[:, :, None]
    C = C + C * one * (16 * jnp.finfo(C.dtype).eps)  # no pivot is rounding alone
    state = C, P, jnp.broadcast_to(one, C.shape), jnp.zeros_like(C)

    def eliminate(state: tuple[Array, Array, Array, Array], k: Array):
        C, Q, W, Z = state
        row = lax.dynamic_index_in_dim(C, k, keepdims=False)
        delta = lax.dynamic_index_in_dim(row, k, keepdims=False)
        moves = delta > 0
        u = row * jnp.where(moves, 1 / jnp.where(moves, delta, 1), 0)[None]
        q, w = apply(Q, u), apply(W, u)
        t = (delta / (1 + delta * (u * q).sum(axis=0)))[None]
        C, Q = C - outer(row, u), Q - outer(q, q) * t[None]
        return (C, Q, W - outer(w, q * t), Z + outer(w, w) * t[None]), None

    return Coupling(*lax.scan(eliminate, state, jnp.arange(6))[0][1:])


def join(left: Segment, right: Segment) -> tuple[Segment, Coupling]:
    """The segment of two, the right one at the exit of the left one."""
    met = couple(left.C, right.P)
    f, y = met.ends(left.b, right.eta)
    return Segment(
        left.P + congruence(transpose(left.A), met.Q),
        product(right.A, product(met.W, left.A)),
        right.C + congruence(right.A, met.Z),
        left.eta + apply(transpose(left.A), f),
        right.b + apply(right.A, y),
    ), met


def product(A: Array, B: Array) -> Array:
    """The matrix product in each lane."""
    return reduce(operator.add, (A[:, k, None] * B[None, k] for k in range(6)))


def congruence(A: Array, S: Array) -> Array:
    """The product A S Aᵀ in each lane, symmetric as S is."""
    full = product(A, product(S, transpose(A)))
    return 0.5 * (full + transpose(full))


def apply(A: Array, x: Array) -> Array:
    """The product of a matrix and a vector in each lane."""
    return reduce(operator.add, (A[:, k] * x[k, None] for k in range(6)))


def outer(x: Array, y: Array) -> Array:
    """The dyad of two vectors in each lane."""
    return x[:, None] * y[None]


def transpose(A: Array) -> Array:
    """The transposed matrix in each lane."""
    return A.swapaxes(0, 1)


def vector(x: Twist | Wrench) -> Array:
    """A twist or wrench as one vector [6, lanes]."""
    return jnp.stack(jax.tree.leaves(x))


def twist(x: Array | list[Array]) -> Twist:
    """The twist with six rows of components."""
    return Twist(Vec3(*x[:3]), Vec3(*x[3:]))


def wrench(x: Array | list[Array]) -> Wrench:
    """The wrench with six rows of components."""
    return Wrench(Vec3(*x[:3]), Vec3(*x[3:]))


def inertia_matrix(M: ArticulatedInertia) -> Array:
    """The same map as a matrix [6, 6, lanes]."""
    blocks = (M.A.mat(), M.B), (M.B.T, M.D.mat())
    return jnp.concatenate(
        [jnp.concatenate([_matrix(m) for m in row], axis=1) for row in blocks]
    )


def _matrix(m: Mat3) -> Array:
    """[3, 3, lanes]."""
    return jnp.stack([jnp.stack([c.x, c.y, c.z]) for c in (m.x, m.y, m.z)], axis=1)
