"""The inertia matrix by composite bodies."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.algorithms._bodies import Body, bodies
from jaxdyn.algorithms._walk import collect, inward
from jaxdyn.model import Model
from jaxdyn.spatial import RigidInertia, Sym3, Vec3, cross, dot


def composite(model: Model, q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
    r"""The inertia matrix M(q), without the armature of the joints.

    $$M_{ij} = p_i^T A_{ji}^T \tilde M_j p_j, \qquad
      \tilde M_i = M_i + \sum_j A_{ji}^T \tilde M_j A_{ji}$$

    Composite inertias by an inward walk, O(n); then one entry for each pair of joints
    on a path to the base, O(n²): the method of Walker and Orin, [Mohan] eqs. 28 and 29
    with the composite mass shifted by A_{i+1,i} on both sides.
    """
    lanes, dtype = model.topology.lanes, q.dtype

    def compose(children: RigidInertia, body: Body) -> Any:  # eq. 28
        M = body.inertia + children
        return M.shift(body.a), (body, M.apply(*body.column(1)))

    o = Vec3.zero(dtype)
    tip = RigidInertia(jnp.zeros((), dtype), o, Sym3.zero(dtype))
    _, kept = inward(lanes, compose, tip, bodies(model, q))
    body, (f, n) = collect(lanes, kept, model.topology.dof_steps)
    upper = pairs(body, f, n)  # eq. 29
    above = jnp.asarray(model.topology.ancestors)
    upper = jnp.where(above, upper, 0)
    return upper + jnp.where(above, upper, 0).T * (1 - jnp.eye(model.nv, dtype=dtype))


def pairs(body: Body, f: Vec3, n: Vec3) -> Float[Array, "nv nv"]:
    """For joints i (rows) and wrenches j at their joints: p_iᵀ A_{ji}ᵀ [f_j; n_j]."""

    def rows(v: Vec3) -> Vec3:
        return Vec3(v.x[:, None], v.y[:, None], v.z[:, None])

    def columns(v: Vec3) -> Vec3:
        return Vec3(v.x[None], v.y[None], v.z[None])

    e, f, n = rows(body.e), columns(f), columns(n)
    n = n + cross(columns(body.r) - rows(body.r), f)
    return body.slide[:, None] * dot(e, f) + body.turn[:, None] * dot(e, n)
