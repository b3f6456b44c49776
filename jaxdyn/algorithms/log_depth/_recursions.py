"""Inverse dynamics and inertia in O(log n) dependent steps.

The recursions of the other modules, with every walk replaced by sums along all paths or
over all subtrees. All vectors are in world axes and every moment is about its own
origin: sums follow each other (angular before linear, force before moment), so that no
lever arm from a far origin cancels. All vectors have leaves [steps].
"""

from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.algorithms.kinematics import accelerations, placed
from jaxdyn.algorithms.steps import (
    Base,
    WorldStep,
    base_frame,
    external_wrenches,
    inertias,
    less_external,
    local_steps,
    mirrored,
    pairs,
    step_terms,
)
from jaxdyn.model import FExt, Model, Nq, Nv, Topology
from jaxdyn.program import path_sum, put, subtree_sum, take
from jaxdyn.spatial import RigidInertia, Wrench, cross

T = TypeVar("T")  # a pytree


def parallel_newton_euler(
    model: Model, q: Nq, qd: Nv, qdd: Nv | None, f_ext: FExt = None, base: Base = None
) -> Nv:
    r"""Joint forces of the rigid bodies alone, gravity included.

    $$F = \sum_{subtree} f, \quad N = \sum_{subtree} (n + \sum_{children} a \times F),
      \quad \tau = e^T (N\,turn + F\,slide)$$

    The equations of `newton_euler`, O(n log n) operations in O(log n) steps.
    """
    t = model.topology
    x = step_terms(model, q, qd, qdd)
    at, _, a = accelerations(t, x, base_frame(model, q.dtype, base))
    own = RigidInertia.of(inertias(model)).rotate(at.R).wrench(at.w, at.rate)
    own = less_external(own, external_wrenches(model, f_ext))
    F = subtree_sum(t.jumps, own.f)
    N = subtree_sum(t.jumps, own.n + to_parents(t, cross(a, F)))
    tau = WorldStep.of(x.local, at.R, a).along(Wrench(F, N))
    return take(tau, t.dof_steps)


def parallel_composite(model: Model, q: Nq) -> Float[Array, "nv nv"]:
    """The inertia matrix M(q), without the armature of the joints.

    The equations of `composite` in O(log n) steps: masses of all subtrees, then their
    first moments, then their inertias, each about its own origin.
    """
    t, local = model.topology, local_steps(model, q)
    R, _, a = placed(t, local)
    r = path_sum(t.jumps, a)
    M = RigidInertia.of(inertias(model)).rotate(R)
    m = subtree_sum(t.jumps, M.m)
    h = subtree_sum(t.jumps, M.h + to_parents(t, a * m))
    zero = jax.tree.map(jnp.zeros_like, M.I)
    moved = RigidInertia(m, h, zero).shift(a).I  # what the shift adds to the inertia
    M = RigidInertia(m, h, subtree_sum(t.jumps, M.I + to_parents(t, moved)))
    p = WorldStep.of(local, R, a).column(1)
    return mirrored(t, pairs(t, *take((p, r, M.apply(p)), t.dof_steps)))


def to_parents(t: Topology, tree: T) -> T:
    """For each step the sum over its children."""
    n = len(t.steps.parent)
    parent = t.steps.parent
    return put(tree, np.where(parent < 0, n, parent), n)
