"""Inverse dynamics and inertia in O(log n) dependent steps.

The recursions of the other modules, with every walk replaced by sums along all paths or
over all subtrees. All vectors are in world axes and every moment is about its own
origin: sums follow each other (angular before linear, force before moment), so that no
lever arm from a far origin cancels. All vectors have leaves [steps].
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.algorithms.kinematics import accelerations, placed
from jaxdyn.algorithms.recursions import world
from jaxdyn.algorithms.steps import (
    BaseMotion,
    Joint,
    inertias,
    joint_terms,
    less_external,
    links,
    mirrored,
    pairs,
    wrenches,
)
from jaxdyn.model import Model, Topology
from jaxdyn.program import (
    path_sum,
    put,
    subtree_sum,
    take,
)
from jaxdyn.spatial import RigidInertia, cross, dot


def parallel_newton_euler(
    model: Model,
    q: Float[Array, " nq"],
    qd: Float[Array, " nv"],
    qdd: Float[Array, " nv"] | None,
    f_ext: Float[Array, "n 6"] | None = None,
    base: BaseMotion | None = None,
) -> Float[Array, " nv"]:
    r"""Joint forces of the rigid bodies alone, gravity included.

    $$F = \sum_{subtree} f, \quad N = \sum_{subtree} (n + \sum_{children} a \times F),
      \quad \tau = e^T (N\,turn + F\,slide)$$

    The equations of `newton_euler`, O(n log n) operations in O(log n) steps.
    """
    t = model.topology
    joints, pi = joint_terms(model, q, qd, qdd), inertias(model)
    (R, w, dv, dw), a, _ = accelerations(t, joints, world(model, q, base))
    f, n = RigidInertia.of(pi).rotate(R).wrench(w, dv, dw)
    f, n = less_external(f, n, wrenches(model, f_ext))
    f = subtree_sum(t.jumps, f)
    n = subtree_sum(t.jumps, n + to_parents(t, cross(a, f)))
    link = joints[0]
    tau = link.turn * dot(R.z, n) + link.slide * dot(R.z, f)
    return take(tau, t.dof_steps)


def parallel_composite(model: Model, q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
    """The inertia matrix M(q), without the armature of the joints.

    The equations of `composite` in O(log n) steps: masses of all subtrees, then their
    first moments, then their inertias, each about its own origin.
    """
    t, link = model.topology, links(model, q)
    R, _, a = placed(t, link)
    joint = Joint(R.z, link.turn, link.slide, a, path_sum(t.jumps, a))
    M = RigidInertia.of(inertias(model)).rotate(R)
    m = subtree_sum(t.jumps, M.m)
    h = subtree_sum(t.jumps, M.h + to_parents(t, a * m))
    zero = jax.tree.map(jnp.zeros_like, M.I)
    moved = RigidInertia(m, h, zero).shift(a).I  # what the shift adds to the inertia
    M = RigidInertia(m, h, subtree_sum(t.jumps, M.I + to_parents(t, moved)))
    p = joint.column(1)
    column, r, (f, n) = take((p, joint.r, M.apply(*p)), t.dof_steps)
    return mirrored(t, pairs(t, column, r, f, n))


def to_parents(t: Topology, tree: Any) -> Any:
    """For each step the sum over its children."""
    n = len(t.steps.parent)
    parent = t.steps.parent
    return put(tree, np.where(parent < 0, n, parent), n)
