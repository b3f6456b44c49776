r"""Accelerations of a step in which what resists the motion is taken at its end.

Springs, dampers, friction and force elements exert f(q, qd). A step of length h ends at
the velocity v' = v + h a and about at the configuration q' = q + h v', where they are

$$f(q', v') \approx f(q + h v, v) - (D + h K)\, h a, \qquad
  D = -\frac{\partial f}{\partial \dot q}, \quad K = -\frac{\partial f}{\partial q}$$

with the slopes at (q + h v, v), so that

$$(M + h D + h^2 K)\, a = \tau - h(q, v) + f(q + h v, v)$$

What acts joint by joint is a diagonal of D and K: it adds to the armature, and costs
nothing. Coulomb friction enters by the secant D = f / v instead of its slope: it can
then stop a joint within a step, but not turn it around.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from jaxdyn.algorithms.forces import element_forces, joint_slopes
from jaxdyn.algorithms.kinematics import integrate
from jaxdyn.algorithms.recursions import (
    gyroscopic_forces,
    joint_resistance,
    spring_forces,
)
from jaxdyn.model import Model, Nq, Nv, reduced, whole, with_rate_leaves

Law = Callable[[Nq, Nv], Nv]  # forces along the coordinates


def implicit_dynamics(
    accelerations: Callable[[Model, Nv], Nv],
    model: Model,
    q: Nq,
    qd: Nv,
    tau: Nv,
    h: Float[Array, ""],
    law: Law | None = None,
) -> Nv:
    """The acceleration during a step of length h; O(n) but for a `law` and elements.

    Args:
        accelerations: forward dynamics at (q, qd) by a model and joint forces.
        law: forces by (q, qd) beside `tau`, such as those of servos.
    """
    tree, joints, rates, _ = whole(model, q, qd)
    ahead = integrate(tree, joints, h * rates)
    damping, stiffness = joint_resistance(tree, rates)
    change = spring_forces(tree, joints) - spring_forces(tree, ahead)
    own = joint_slopes(tree, ahead, rates) if model.forces else None
    if own is not None:
        damping, stiffness = damping + own.damping, stiffness + own.stiffness
        change = change + element_forces(tree, ahead, rates)
    added = h * (damping + h * stiffness)
    if tree.topology.quaternion_bodies.size:  # the armature of these joints is inertia
        change = change + gyroscopic_forces(tree, added * rates, rates)
    raised = with_rate_leaves(model, armature=tree.armature + added)
    raised, force = replace(raised, forces=()), tau + reduced(model, q, change)
    coupled = []
    if own is not None and own.others:
        some = replace(tree, forces=own.others)
        rows = _resistance(partial(element_forces, some), tree, ahead, rates, h)
        coupled.append(reduced(model, q, reduced(model, q, rows).T).T)
    if law is not None:
        there = integrate(model, q, h * qd)
        force = force + law(there, qd)
        coupled.append(_resistance(law, model, there, qd, h))
    if not coupled:
        return accelerations(raised, force)
    B = sum(coupled[1:], coupled[0])
    free, push = jax.linearize(partial(accelerations, raised), force)
    # a = P (r - B a) with P the inverse of M, or what loops leave of it
    A = jnp.eye(model.nv, dtype=q.dtype) + jax.vmap(push, 1, 1)(B)
    return _solve(A, free)


def _resistance(
    law: Law, model: Model, q: Array, qd: Array, h: Array
) -> Float[Array, "nv nv"]:
    """The matrix h D + h² K of forces."""

    def forces(a: Nv) -> Nv:
        return law(integrate(model, q, h * h * a), qd + h * a)

    return -jax.jacfwd(forces)(jnp.zeros_like(qd))


def _solve(A: Float[Array, "n n"], b: Float[Array, " n"]) -> Float[Array, " n"]:
    """The solution x of A x = b in operations that a kernel can hold."""
    return lax.custom_linear_solve(
        lambda x: (A * x[None]).sum(axis=1),
        b,
        lambda _, b: _eliminate(A, b),
        lambda _, b: _eliminate(A.T, b),
    )


def _eliminate(A: Array, b: Array) -> Array:
    """By Gauss and Jordan, with the largest entry of a column as its pivot."""
    n = len(b)
    places = jnp.arange(n)

    def column(rows: Array, k: Array) -> tuple[Array, None]:
        size = jnp.where(places < k, -1, jnp.abs(rows[:, k]))
        pivot = jnp.where(size == size.max(), places, n).min()
        pivot = jnp.minimum(pivot, n - 1)  # none is the largest among NaN
        swapped = jnp.where(places == pivot, k, places)
        rows = rows[jnp.where(places == k, pivot, swapped)]
        share = jnp.where(places == k, 0, rows[:, k] / rows[k, k])
        return rows - share[:, None] * rows[k][None], None

    rows, _ = lax.scan(column, jnp.concatenate([A, b[:, None]], axis=1), places)
    return rows[:, n] / jnp.diagonal(rows)
