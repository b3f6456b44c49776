"""The inertia matrix by composite bodies."""

from typing import Any

from jaxtyping import Array, Float

from jaxdyn.algorithms.steps import joints, mirrored, pairs
from jaxdyn.model import Model
from jaxdyn.program import collect, inward
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
        p = joint.column(1)
        return M.shift(joint.a), (p, joint.r, M.apply(*p))

    t = model.topology
    tip = RigidInertia.zero(q.dtype)
    _, kept = inward(t.lanes, compose, tip, joints(model, q))
    column, r, (f, n) = collect(t.lanes, kept, t.dof_steps)
    return mirrored(t, pairs(t, column, r, f, n))
