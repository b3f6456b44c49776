"""Loops closed inside the recursion: articulated bodies that carry constraints."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from jaxdyn.algorithms.loops._rows import LoopRows
from jaxdyn.algorithms.recursions import Factor, eliminate, stays
from jaxdyn.algorithms.steps import PlacedStep, WorldStep, rates, world_steps
from jaxdyn.model import LoopPlan, Model, Topology, loop_plan
from jaxdyn.program import Laned, collect, inward, outward, put, spread, take
from jaxdyn.spatial import ArticulatedInertia, Scalar, Twist, Vec3, Wrench, dot, pytree

Vector = Float[Array, "..."]


@pytree
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
    P: Wrench
    K: Wrench
    g: Vector
    L: Vector
    d: Vector


@pytree
class StepRows:
    """What one step brings in: what it carries, and its constraint rows.

    Attributes:
        at: the step; stay: what is added to its pivot; phi: its force.
        rows: [slots, 6] wrenches of the rows at its body; target: [slots] of the rows.
        closing: the slots that are complete here, counted from one; zero is none.
    """

    at: PlacedStep
    stay: Scalar
    rows: Vector
    target: Vector
    closing: Array
    phi: Scalar


@pytree
class Closed:
    """What the elimination of one row leaves: its slot, K_k, g_k, L_k and 1 / L_kk."""

    slot: Array
    K: Wrench
    g: Scalar
    L: Vector
    inverse: Scalar


@pytree
class Crossed:
    """What the elimination of one step leaves, and of the rows that close there."""

    step: WorldStep
    psi: Wrench
    m_hat: Scalar
    u: Scalar
    kappa: Vector
    closed: Closed


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
    steps: Laned[PlacedStep]
    stay: Laned[Array]
    topology: Topology = eqx.field(static=True)
    plan: LoopPlan = eqx.field(static=True)

    def __call__(self, phi: Vector, b: Vector) -> tuple[Vector, Vector]:
        t, plan = self.topology, self.plan
        places = plan.first * plan.slots + plan.slot
        target = put(-b, places, len(self.own) * plan.slots).reshape(-1, plan.slots)
        own = self.own, target, jnp.asarray(plan.closing), rates(t, phi)
        terms = zip(self.steps, self.stay, spread(t.lanes, own), strict=True)
        steps = tuple(StepRows(at, stay, *x) for at, stay, x in terms)
        nothing = _nothing(plan.slots, phi.dtype)
        arrived, kept = inward(t.lanes, _inwards, nothing, steps)
        at_base = _close_base(plan, jax.tree.map(lambda x: x.sum(axis=0), arrived))
        forces = put(at_base, plan.slot[plan.at_base], plan.slots)
        still = Twist.zero(phi.dtype), forces
        found = outward(t.lanes, _outwards, still, kept)
        qdd = tuple(x[0] for x in found)
        on_the_way = collect(t.lanes, tuple(x[1] for x in found)).ravel()
        forces = take(jnp.concatenate([on_the_way, at_base]), plan.place)
        return collect(t.lanes, qdd, t.dof_steps), forces


def recursive(model: Model, q: Vector, factor: Factor, rows: LoopRows) -> Recursive:
    """Prepare `Recursive`."""
    bodies = tuple((x.body_a, x.body_b, len(x.rows)) for x in model.loops)
    plan = loop_plan(model.topology, bodies)
    own, steps = _own_rows(model, plan, rows), world_steps(model, q)
    return Recursive(own, steps, stays(model), model.topology, plan)


def _inwards(children: Subtree, x: StepRows):
    step = x.at.step
    M_hat = x.at.inertia.articulated() + children.M_hat
    K, g = children.K + Wrench.of(x.rows), children.g + x.target
    own = Subtree(M_hat, children.P, K, g, children.L, children.d)
    own, closed = lax.scan(_close, own, x.closing)
    psi, m_hat, M_bar = eliminate(own.M_hat, step, x.stay)
    u = x.phi - step.along(own.P)
    kappa = step.along(own.K)
    handed = Subtree(
        M_bar.shift(step.a),
        step.to_parent(own.P + psi * u),
        step.to_parent(own.K - psi * kappa),
        own.g + kappa * (u / m_hat),
        own.L + kappa[:, None] * (kappa / m_hat)[None],
        own.d + kappa * (kappa / m_hat),
    )
    return handed, Crossed(step, psi, m_hat, u, kappa, closed)


def _close(x: Subtree, slot: Array) -> tuple[Subtree, Closed]:
    """Eliminate the row in a slot (counted from one; zero is none)."""
    is_row = jnp.arange(1, len(x.g) + 1) == slot

    def chosen(y: Array) -> Array:
        return is_row if y.ndim == 1 else is_row[None]

    def of_row(y: Array) -> Array:
        rows: Array = jnp.where(chosen(y), y, 0)
        return rows.sum(axis=-1)

    def others(y: Array) -> Array:
        return jnp.where(chosen(y), 0, y)

    K_k, g_k, L_k, d_k = jax.tree.map(of_row, (x.K, x.g, x.L, x.d))
    pivot = of_row(L_k)
    is_free = pivot > DEPENDENT * jnp.finfo(pivot.dtype).eps * d_k
    inverse = jnp.where(is_free, 1 / jnp.where(is_free, pivot, 1), 0)
    L_k = others(L_k)
    factors = L_k * inverse
    closed = Subtree(
        x.M_hat.minus_dyad(K_k, K_k * -inverse),
        x.P + K_k * (g_k * inverse),
        jax.tree.map(others, x.K - K_k * factors),
        others(x.g - factors * g_k),
        others(others(x.L - L_k[:, None] * factors[None]).T).T,
        others(x.d),
    )
    return closed, Closed(slot, K_k, g_k, L_k, inverse)


def _outwards(parent: tuple[Twist, Vector], x: Crossed):
    mu, forces = x.step.to_child(parent[0]), parent[1]
    qdd = (x.u + (x.kappa * forces).sum()) / x.m_hat - dot(mu, x.psi)
    mu = mu + x.step.column(qdd)
    forces, found = _multipliers(mu, forces, x.closed)
    return (mu, forces), (qdd, found)


def _close_base(plan: LoopPlan, arrived: Subtree) -> Vector:
    """The multipliers of the loops that close at the base, which stands still."""
    slots = jnp.asarray(plan.slot[plan.at_base] + 1)
    _, closed = lax.scan(_close, arrived, slots)
    still = Twist.zero(arrived.g.dtype)
    return _multipliers(still, jnp.zeros_like(arrived.g), closed)[1]


def _multipliers(rate: Twist, forces: Vector, closed: Closed) -> tuple[Vector, Vector]:
    """The multipliers of the rows eliminated at a step, in all slots and one by one."""

    def multiplier(forces: Vector, row: Closed):
        second = dot(rate, row.K) + row.g
        force: Array = -(second + (row.L * forces).sum()) * row.inverse
        is_row = jnp.arange(1, len(forces) + 1) == row.slot
        return jnp.where(is_row, force, forces), force

    return lax.scan(multiplier, forces, closed, reverse=True)


DEPENDENT = 1000  # roundings of what a pivot was made of, below which it counts as zero


def _nothing(slots: int, dtype: jnp.dtype) -> Subtree:
    row, square = jnp.zeros(slots, dtype), jnp.zeros((slots, slots), dtype)
    rows, none = Vec3(row, row, row), ArticulatedInertia.zero(dtype)
    return Subtree(none, Wrench.zero(dtype), Wrench(rows, rows), row, square, row)


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
