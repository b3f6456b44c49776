"""The inertia matrix by composite bodies."""

from jaxtyping import Array, Float

from jaxdyn.algorithms.steps import PlacedStep, mirrored, pairs, world_steps
from jaxdyn.model import Model, Nq
from jaxdyn.program import collect, inward
from jaxdyn.spatial import RigidInertia


def composite(model: Model, q: Nq) -> Float[Array, "nv nv"]:
    r"""The inertia matrix M(q), without the armature of the joints.

    $$M_{ij} = p_i^T A_{ji}^T \tilde M_j p_j, \qquad
      \tilde M_i = M_i + \sum_j A_{ji}^T \tilde M_j A_{ji}$$

    Composite inertias by an inward walk, O(n); the wrench that accelerates each of them
    along its joint, and its parts along all joints on the path to the base, O(n²): the
    method of [Walker].
    """

    def compose(children: RigidInertia, x: PlacedStep):
        M, p = x.inertia + children, x.step.column(1)
        return M.shift(x.step.a), (p, x.r, M.apply(p))

    t = model.topology
    tip = RigidInertia.zero(q.dtype)
    _, kept = inward(t.lanes, compose, tip, world_steps(model, q))
    return mirrored(t, pairs(t, *collect(t.lanes, kept, t.dof_steps)))
