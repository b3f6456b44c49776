"""Products and sums along all paths, and sums over all subtrees, in O(log n) rounds.

In round k each node knows the sum over its next 2^k ancestors, and adds what the last
of them knows. Sums over subtrees are the transposed map: of the nodes in preorder each
knows the sum of the next 2^k, and a subtree takes those blocks that the binary digits
of its size name. Both only gather and add, so that nothing cancels and nothing
scatters. Data are pytrees with leaves [nodes].
"""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from jaxdyn.program._jumps import Jumps
from jaxdyn.program._linear_map import linear_map
from jaxdyn.program._walk import from_parents
from jaxdyn.spatial import Mat3, Vec3, inverse

T = TypeVar("T")  # a pytree
Rows: TypeAlias = Float[Array, "components nodes"]


def path_sum(jumps: Jumps, tree: T) -> T:
    """For each node the sum over all nodes from the base to itself."""
    return _applied(partial(_along, jumps), partial(_below, jumps), tree)


def subtree_sum(jumps: Jumps, tree: T) -> T:
    """For each node the sum over itself and all nodes beyond it."""
    return _applied(partial(_below, jumps), partial(_along, jumps), tree)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def path_product(jumps: Jumps, C: Mat3) -> Mat3:
    """For each node the product of the rotations from the base to itself."""
    one = jnp.eye(3, dtype=C.x.x.dtype).ravel()
    start = jnp.stack(jax.tree.leaves(C))

    def multiply(before, R):  # columns of both, then components
        a, b = (x.reshape(3, 3, *x.shape[1:]) for x in (before, R))
        x, y, z = (a[None, k] * b[:, k, None] for k in range(3))
        return (x + y + z).reshape(R.shape)

    rows = _rounds(jumps, multiply, one, start)
    return Mat3(*(Vec3(*rows[3 * k : 3 * k + 3]) for k in range(3)))


@path_product.defjvp
def _(jumps: Jumps, primals: tuple[Mat3], tangents: tuple[Mat3]) -> tuple[Mat3, Mat3]:
    r"""With $\Omega = dR\,R^{-1}$ in world axes it is a sum along the path.

    The inverse, not the transpose: derivatives by the nine numbers of a rotation stay
    those of the product where these do not make a rotation, of second order too.
    """
    (C,), (dC,) = primals, tangents
    R = path_product(jumps, C)
    R0 = from_parents(jumps.parents, R, Mat3.identity(R.x.x.dtype))
    turned = R0 @ dC @ inverse(R)
    return R, path_sum(jumps, turned) @ R


def _applied(function: Callable, transpose: Callable, tree: T) -> T:
    """A map of rows [components, nodes], applied to all leaves at once."""
    leaves, structure = jax.tree.flatten(tree)
    rows = jnp.stack(leaves)
    rows = linear_map(
        lambda _, x: function(x[0]), lambda _, y: [transpose(y)], (), [rows], like=rows
    )
    return jax.tree.unflatten(structure, list(rows))


def _along(jumps: Jumps, x: Rows) -> Rows:
    return _rounds(jumps, jnp.add, jnp.zeros(len(x), x.dtype), x)


def _rounds(jumps: Jumps, step: Callable, nothing: Array, x: Rows) -> Rows:
    """x after all rounds: in each it becomes step(x of the 2^k-th ancestors, x).

    Where there is none, its place takes `nothing`.
    """
    if jumps.is_chain:
        return _along_chain(jumps, step, nothing, x)
    start = jnp.concatenate([nothing[:, None], x], axis=1)
    where = (jumps.ancestors + 1) % (x.shape[1] + 1)  # 0 is nowhere

    def jump(state, index):
        new = step(_columns(state, index), state[:, 1:])
        return lax.dynamic_update_slice(state, new, (0, 1)), None

    return lax.scan(jump, start, where)[0][:, 1:]


def _along_chain(jumps: Jumps, step: Callable, nothing: Array, x: Rows) -> Rows:
    """The same for a serial chain, with less work and slices instead of gathers.

    One node after the other in short blocks, rounds for the ends of these, and once
    more one after the other, from what is before each block. The last steps write
    each into its place: otherwise XLA does them anew in all that uses the result.
    """
    (rows, n), length = x.shape, jumps.block
    count = -(-n // length)
    fill = jnp.broadcast_to(nothing[:, None], (rows, count * length - n))
    nothing = jnp.broadcast_to(nothing[:, None], (rows, count))
    filled = jnp.concatenate([x, fill], axis=1)
    blocks = filled.reshape(rows, count, length).transpose(2, 0, 1)

    def walk(before, x):
        return step(before, x), None

    def jump(state, start):
        before = lax.dynamic_slice_in_dim(state, start, count, axis=1)
        new = step(before, state[:, count:])
        return lax.dynamic_update_slice(state, new, (0, count)), None

    def write(state, now):
        (before, found), (k, x) = state, now
        own = step(before, x)
        return (own, lax.dynamic_update_slice(found, own[..., None], (0, 0, k))), None

    ends = blocks[0] if length == 1 else lax.scan(walk, nothing, blocks)[0]
    start = jnp.concatenate([nothing, ends], axis=1)
    ends = lax.scan(jump, start, count - (1 << np.arange(jumps.rounds)))[0]
    if length == 1:
        return ends[:, count:]
    state = ends[:, count - 1 : -1], jnp.zeros((rows, count, length), x.dtype)
    (_, found), _ = lax.scan(write, state, (np.arange(length), blocks))
    return found.reshape(rows, -1)[:, :n]


def _below(jumps: Jumps, x: Rows) -> Rows:
    if jumps.is_chain:  # which is a chain from its tip as well
        return _along(jumps, x[:, ::-1])[:, ::-1]
    n = len(jumps.order)

    def jump(state, now):
        total, block = state  # blocks of the next 2^k nodes; beyond the end are zeros
        index, length = now
        total = total + _columns(block, index)
        longer = block[:, :n] + lax.dynamic_slice_in_dim(block, length, n, axis=1)
        return (total, lax.dynamic_update_slice(block, longer, (0, 0))), None

    lengths = np.minimum(1 << np.arange(len(jumps.blocks)), n)
    ordered = _columns(x, jumps.order)
    start = jnp.zeros_like(x), jnp.concatenate([ordered, jnp.zeros_like(x)], axis=1)
    total, _ = lax.scan(jump, start, (jumps.blocks, lengths))[0]
    return _columns(total, np.argsort(jumps.order))


def _columns(x: Array, index: Int[np.ndarray | Array, " columns"]) -> Array:
    is_known = isinstance(index, np.ndarray)
    if is_known and np.array_equal(index, np.arange(x.shape[1])):
        return x
    return x.at[:, index].get(mode="promise_in_bounds")
