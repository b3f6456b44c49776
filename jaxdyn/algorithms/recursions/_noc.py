"""The natural orthogonal complement, and the inertia matrix with it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.algorithms.couplings import along_columns, of_tree
from jaxdyn.algorithms.steps import poses, product, screw, step_frames
from jaxdyn.model import Model, Nq, arguments
from jaxdyn.program import collect, compiled, take
from jaxdyn.spatial import Twist, Vec3, skew


class Layout(eqx.Module):
    """Where everything is, in the world.

    Attributes:
        e, r: axis and origin of the joint of each velocity coordinate.
        origin, center: origin and centre of mass of each body.
        R: axes of each body.
    """

    e: Vec3
    r: Vec3
    origin: Vec3
    center: Vec3
    R: Float[Array, "n 3 3"]


def layout(model: Model, q: Nq) -> Layout:
    """Joints and bodies in the world, by one walk."""
    t = model.topology
    R, r = collect(t.lanes, poses(model, q))
    turned, origin = take((R, r), t.steps.last)
    Q = take(step_frames(model), t.steps.last)
    axes = product(turned.array(), Q.swapaxes(-1, -2))
    center = origin + Vec3.of(product(axes, model.com[..., None])[..., 0])
    e, r = take((R.z, r), t.dof_steps)
    return Layout(e, r, origin, center, axes)


def noc(model: Model, q: Nq) -> Float[Array, "nv nv"]:
    r"""The inertia matrix M(q), without the armature of the joints.

    $$I = T^T M T, \qquad M = \mathrm{diag}(m_1 1, I_1, \ldots, m_n 1, I_n)$$

    [Angeles] eq. 7.58, with the masses of the uncoupled bodies; O(n³).
    """
    at = layout(model, q)
    T = natural(model, at, at.center)
    linear = T[:, :3] * model.mass[:, None, None]
    angular = jnp.matmul(center_inertias(model, at), T[:, 3:], precision="highest")
    momenta = jnp.concatenate([linear, angular], axis=1)
    rows = 6 * model.n, model.nv
    M = jnp.matmul(T.reshape(rows).T, momenta.reshape(rows), precision="highest")
    return 0.5 * (M + M.T)


@compiled()
@of_tree(along_columns)
def natural_complement(model: Model, q: Nq) -> Float[Array, "twists nv"]:
    r"""The twist-shaping matrix T with $t = T \dot q$, [Angeles] eq. 7.54.

    The twists t of the bodies are stacked, each [v; w] at its centre of mass in world
    axes (the book stacks the angular part first). T is an orthogonal complement of the
    constraints K: K T = 0, eq. 7.55b.
    """
    model, q = arguments(model, q=q)
    at = layout(model, q)
    return natural(model, at, at.center).reshape(6 * model.n, model.nv)


@compiled()
@of_tree()
def joint_constraints(model: Model, q: Nq) -> Float[Array, "twists twists"]:
    r"""The matrix K of the kinematic constraints $K t = 0$, [Angeles] eq. 7.50.

    Six rows for each joint: of the twist of its body relative to the parent, what no
    motion of the joint can bring about,

    $$K_{ii} = 1 - P_i (P_i^T P_i)^{-1} P_i^T, \qquad K_{ip} = -K_{ii} A_{ip}$$

    with the columns P_i of the joint. The rank of K is 6 n - nv. Twists are those of
    `natural_complement`.
    """
    model, q = arguments(model, q=q)
    n, at, one = model.n, layout(model, q), jnp.eye(6, dtype=q.dtype)
    parents = np.array(model.parents)
    moved = np.flatnonzero(parents >= 0)
    K = one[None] - _reachable(model, natural(model, at, at.center))
    A = _propagations(at.center)[moved, parents[moved]]
    result = jnp.zeros((n, 6, n, 6), q.dtype)
    result = result.at[np.arange(n), :, np.arange(n)].set(K)
    result = result.at[moved, :, parents[moved]].set(-product(K[moved], A))
    return result.reshape(6 * n, 6 * n)


def natural(model: Model, at: Layout, place: Vec3) -> Float[Array, "n 6 nv"]:
    """The blocks of N: the twist of each body for a unit rate of each joint.

    [Mohan] eq. 8a: A_ij p_j where joint j moves body i, else zero. Twists [v; w] are
    taken at `place`, the origins or the centres of mass of the bodies.
    """
    t = model.topology
    screws = take(screw(model), t.dof_steps)
    (turn, slide), e, r = jax.tree.map(lambda x: x[None], (screws, at.e, at.r))
    lever = jax.tree.map(lambda x: x[:, None], place) - r
    columns = Twist(e * slide, e * turn).shift(lever)
    columns = jax.tree.map(lambda x: jnp.broadcast_to(x, lever.x.shape), columns)
    N: Array = columns.array().swapaxes(1, 2)
    return jnp.where(t.moves.T[:, None], N, 0)


def propagation(model: Model, at: Layout) -> Float[Array, "twists twists"]:
    """The matrix N_l of the twist propagations A_ij, [Mohan] eq. 8c."""
    below = model.topology.body_ancestors.T
    A = jnp.where(below[..., None, None], _propagations(at.origin), 0)
    return A.swapaxes(1, 2).reshape(6 * model.n, 6 * model.n)


def center_inertias(model: Model, at: Layout) -> Float[Array, "n 3 3"]:
    """The inertia of each body about its centre of mass, in world axes."""
    I = 0.5 * (model.inertia + model.inertia.swapaxes(-1, -2))
    return product(product(at.R, I), at.R.swapaxes(-1, -2))


def _reachable(model: Model, T: Float[Array, "n 6 nv"]) -> Float[Array, "n 6 6"]:
    """For each joint the projection on the twists that it can bring about."""
    t = model.topology
    table = np.full((model.n, 6), model.nv)  # the coordinates of each joint
    for i, (first, end) in enumerate(zip(t.v_start, t.v_start[1:], strict=False)):
        table[i, : end - first] = np.arange(first, end)
    P = jnp.pad(T, ((0, 0), (0, 0), (0, 1)))[np.arange(model.n)[:, None], :, table]
    unused = np.eye(6) * (table == model.nv)[:, None]
    G = product(P, P.swapaxes(-1, -2)) + jnp.asarray(unused, T.dtype)
    return product(P.swapaxes(-1, -2), jnp.linalg.solve(G, P))


def _propagations(place: Vec3) -> Float[Array, "n n 6 6"]:
    """A_ij for all pairs: [1, -skew(r_i - r_j); 0, 1]."""
    lever = jax.tree.map(lambda x: x[:, None] - x[None], place)
    upper = -skew(lever).array()
    one = jnp.broadcast_to(jnp.eye(3, dtype=upper.dtype), upper.shape)
    return jnp.block([[one, upper], [jnp.zeros_like(one), one]])
