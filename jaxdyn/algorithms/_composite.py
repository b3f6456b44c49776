"""The inertia matrix by composite bodies."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.algorithms._bodies import joints, pairs
from jaxdyn.algorithms._walk import collect, inward
from jaxdyn.model import Model, Topology
from jaxdyn.spatial import RigidInertia


def composite(model: Model, q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
    r"""The inertia matrix M(q), without the armature of the joints.

    $$M_{ij} = p_i^T A_{ji}^T \tilde M_j p_j, \qquad
      \tilde M_i = M_i + \sum_j A_{ji}^T \tilde M_j A_{ji}$$

    Composite inertias by an inward walk, O(n); the wrench that accelerates each of them
    along its joint, and its parts along all joints on the path to the base, O(n²): the
    method of [Walker].
    """

    def compose(children: RigidInertia, x: Any) -> Any:
        joint, inertia = x
        M = inertia + children
        return M.shift(joint.a), (joint, M.apply(*joint.column(1)))

    t = model.topology
    tip = RigidInertia.zero(q.dtype)
    _, kept = inward(t.lanes, compose, tip, joints(model, q))
    joint, (f, n) = collect(t.lanes, kept, t.dof_steps)
    return symmetric_fill(t, pairs(joint, f, n))


def symmetric_fill(
    topology: Topology, upper: Float[Array, "nv nv"]
) -> Float[Array, "nv nv"]:
    """The symmetric matrix whose entries for i on the path to j are those given.

    Joints on different branches do not meet: their entries are zero.
    """
    upper = jnp.where(topology.ancestors, upper, 0)
    return upper + upper.T * (1 - jnp.eye(topology.nv, dtype=upper.dtype))
