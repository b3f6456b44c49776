"""Loops closed inside the recursion: articulated bodies that carry constraints."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from jaxdyn.algorithms.loops._rows import LoopRows
from jaxdyn.algorithms.recursions import Factor, eliminate, pivot_terms
from jaxdyn.algorithms.steps import joints, rates
from jaxdyn.model import LoopPlan, Model, Topology, loop_plan
from jaxdyn.program import collect, inward, outward, put, spread, take
from jaxdyn.spatial import ArticulatedInertia, Vec3, dot

Vector = Float[Array, "..."]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Subtree:
    r"""What a subtree hands on, at the origin of the joint that receives it.

    With the twist rate a and the multipliers lambda of the loops that leave the
    subtree, each in a slot of its own, the wrench that drives it and the second rates
    of its rows are

    $$w = \hat M a + P - K \lambda, \qquad y = K^T a + g + L \lambda$$

    Attributes:
        M_hat: articulated inertia; P: wrench at a = 0.
        K: [slots] wrenches of the rows.
        g, L: [slots], [slots, slots] rows at a = 0 and what they yield to each other.
        d: [slots] the diagonal of L before rows were eliminated from it.
    """

    M_hat: ArticulatedInertia
    P: tuple[Vec3, Vec3]
    K: tuple[Vec3, Vec3]
    g: Vector
    L: Vector
    d: Vector


class Recursive(eqx.Module):
    r"""Loops eliminated where they close, by one walk inward and one outward.

    The rows of a loop travel from both of its bodies to their nearest common ancestor.
    There they are complete and are eliminated, row by row, as joints are:

    $$\hat M \leftarrow \hat M + K_k K_k^T / L_{kk}, \quad
      P \leftarrow P + K_k g_k / L_{kk}, \quad
      K_l \leftarrow K_l - K_k L_{kl} / L_{kk}$$

    A joint with the column p takes $\kappa = K^T p$ with it: $K \leftarrow K - \psi
    \kappa^T$, $L \leftarrow L + \kappa\kappa^T / \hat m$. Loops that close at the base
    are eliminated there in the same way. O(n + m) if at most a fixed number of loops
    crosses any joint, O(n m² + m³) if all cross all joints. The class of [Lubich] in
    [Ghosal] lecture 30, with loops eliminated early.

    The loops are taken to be closed. A row that depends on rows eliminated before it
    has the multiplier zero.
    """

    own: Float[Array, "steps slots 6"]
    links: Any
    topology: Topology = eqx.field(static=True)
    plan: LoopPlan = eqx.field(static=True)

    def __call__(self, phi: Vector, b: Vector) -> tuple[Vector, Vector]:
        t, plan = self.topology, self.plan
        places = plan.first * plan.slots + plan.slot
        target = put(-b, places, len(self.own) * plan.slots)
        rows = self.own, target.reshape(-1, plan.slots), jnp.asarray(plan.closing)
        terms = spread(t.lanes, (*rows, rates(t, phi)))
        links = tuple(zip(self.links, terms, strict=True))
        nothing = _nothing(plan.slots, phi.dtype)
        arrived, kept = inward(t.lanes, _inwards, nothing, links)
        at_base = _close_base(plan, jax.tree.map(lambda x: x.sum(axis=0), arrived))
        zero = Vec3.zero(phi.dtype)
        still = (zero, zero), put(at_base, plan.slot[plan.at_base], plan.slots)
        found = outward(t.lanes, _outwards, still, kept)
        qdd, forces = (tuple(level) for level in zip(*found, strict=True))
        on_the_way = collect(t.lanes, forces).ravel()
        forces = take(jnp.concatenate([on_the_way, at_base]), plan.place)
        return collect(t.lanes, qdd, t.dof_steps), forces


def recursive(model: Model, q: Vector, factor: Factor, rows: LoopRows) -> Recursive:
    """Prepare `Recursive`."""
    bodies = tuple((x.body_a, x.body_b, len(x.rows)) for x in model.loops)
    plan = loop_plan(model.topology, bodies)
    links = tuple(zip(joints(model, q), pivot_terms(model), strict=True))
    return Recursive(_own_rows(model, plan, rows), links, model.topology, plan)


def _inwards(children: Subtree, x: Any) -> Any:
    ((joint, inertia), stay), (rows, target, closing, phi) = x
    K = Vec3.of(rows[:, :3]), Vec3.of(rows[:, 3:])
    M_hat = inertia.articulated() + children.M_hat
    K = children.K[0] + K[0], children.K[1] + K[1]
    g = children.g + target
    own = Subtree(M_hat, children.P, K, g, children.L, children.d)
    own, closed = lax.scan(_close, own, closing)
    psi, m_hat, M_bar = eliminate(own.M_hat, joint, stay)
    u = phi - joint.along(*own.P)
    kappa = joint.along(*own.K)
    K = own.K[0] - psi[0] * kappa, own.K[1] - psi[1] * kappa
    P = own.P[0] + psi[0] * u, own.P[1] + psi[1] * u
    handed = Subtree(
        M_bar.shift(joint.a),
        joint.to_parent(*P),
        joint.to_parent(*K),
        own.g + kappa * (u / m_hat),
        own.L + kappa[:, None] * (kappa / m_hat)[None],
        own.d + kappa * (kappa / m_hat),
    )
    return handed, ((joint, psi, m_hat), u, kappa, (closing, closed))


def _close(x: Subtree, slot: Any) -> Any:
    """Eliminate the row in a slot (counted from one; zero is none)."""
    is_row = jnp.arange(1, len(x.g) + 1) == slot

    def chosen(y: Any) -> Any:
        return is_row if y.ndim == 1 else is_row[None]

    def of_row(y: Any) -> Any:
        return jax.tree.map(lambda y: jnp.where(chosen(y), y, 0).sum(axis=-1), y)  # type: ignore

    def others(y: Any) -> Any:
        return jax.tree.map(lambda y: jnp.where(chosen(y), 0, y), y)

    K_k, g_k, L_k, d_k = of_row(x.K), of_row(x.g), of_row(x.L), of_row(x.d)
    pivot: Array = of_row(L_k)
    is_free = pivot > DEPENDENT * jnp.finfo(pivot.dtype).eps * d_k
    inverse = jnp.where(is_free, 1 / jnp.where(is_free, pivot, 1), 0)
    L_k = others(L_k)
    factors = L_k * inverse
    f, n = K_k
    closed = Subtree(
        x.M_hat.minus_dyad(f, n, f * -inverse, n * -inverse),
        (x.P[0] + f * (g_k * inverse), x.P[1] + n * (g_k * inverse)),
        (others(x.K[0] - f * factors), others(x.K[1] - n * factors)),
        others(x.g - factors * g_k),
        others(others(x.L - L_k[:, None] * factors[None]).T).T,
        others(x.d),
    )
    return closed, (K_k, g_k, L_k, inverse)


def _outwards(parent: Any, x: Any) -> Any:
    mu, forces = parent
    (joint, psi, m_hat), u, kappa, closing = x
    v, w = joint.to_child(*mu)
    qdd = (u + (kappa * forces).sum()) / m_hat - dot(psi[0], v) - dot(psi[1], w)
    p_v, p_w = joint.column(qdd)
    v, w = v + p_v, w + p_w
    forces, found = _multipliers((v, w), forces, closing)
    return ((v, w), forces), (qdd, found)


def _close_base(plan: LoopPlan, arrived: Subtree) -> Vector:
    """The multipliers of the loops that close at the base, which stands still."""
    slots = jnp.asarray(plan.slot[plan.at_base] + 1)
    _, closed = lax.scan(_close, arrived, slots)
    none, zero = jnp.zeros_like(arrived.g), Vec3.zero(arrived.g.dtype)
    return _multipliers((zero, zero), none, (slots, closed))[1]


def _multipliers(rate: tuple[Vec3, Vec3], forces: Vector, closing: Any) -> Any:
    """The multipliers of the rows eliminated at a step, in all slots and one by one."""

    def multiplier(forces: Any, row: Any) -> Any:
        slot, (K_k, g_k, L_k, inverse) = row
        second = dot(K_k[0], rate[0]) + dot(K_k[1], rate[1]) + g_k
        force = -(second + (L_k * forces).sum()) * inverse
        is_row = jnp.arange(1, len(forces) + 1) == slot
        return jnp.where(is_row, force, forces), force

    return lax.scan(multiplier, forces, closing, reverse=True)


DEPENDENT = 1000  # roundings of what a pivot was made of, below which it counts as zero


def _nothing(slots: int, dtype: Any) -> Subtree:
    zero, row = Vec3.zero(dtype), jnp.zeros(slots, dtype)
    rows = Vec3(row, row, row)
    square = jnp.zeros((slots, slots), dtype)
    none = ArticulatedInertia.zero(dtype)
    return Subtree(none, (zero, zero), (rows, rows), row, square, row)


def _own_rows(model: Model, plan: LoopPlan, rows: LoopRows) -> Vector:
    """[steps, slots, 6] the wrenches of all rows at the steps of both bodies."""
    steps = len(model.topology.steps.body)
    size = steps * plan.slots
    sides = zip(plan.sides, (rows.wrench_a, rows.wrench_b), strict=True)
    a, b = (
        put(wrench, np.where(step < 0, size, step * plan.slots + plan.slot), size)
        for step, wrench in sides
    )
    return (a + b).reshape(steps, plan.slots, 6)
