"""Poses and motions of all steps in O(log n) dependent steps.

Walks are replaced by sums along all paths, in which angular motion comes before linear:
no lever arm from a far origin cancels. All vectors have leaves [steps].
"""

from typing import Any

from jaxtyping import Array, Float

from jaxdyn.algorithms.steps import (
    BaseMotion,
    Link,
    Motion,
    accelerated,
    base_state,
    joint_terms,
    links,
)
from jaxdyn.model import Model, Topology
from jaxdyn.program import Jumps, from_parents, path_product, path_sum
from jaxdyn.spatial import Mat3, Vec3, cross, turn_z


def parallel_motions(
    model: Model,
    q: Float[Array, " nq"],
    qd: Float[Array, " nv"],
    qdd: Float[Array, " nv"] | None = None,
    base: BaseMotion | None = None,
) -> Motion:
    """The motion of every step, gravity not included; axes are those of the step."""
    t = model.topology
    joints = joint_terms(model, q, qd, qdd)
    R, v, w, dv, dw = base_state(q.dtype, base)
    own, a, before = accelerations(t, joints, (R, w, dv, dw))
    sliding = own[0].z * (joints[0].slide * joints[1])
    v = path_sum(t.jumps, cross(before[1], a) + sliding) + v
    return Motion(own[0], path_sum(t.jumps, a), v, *own[1:])


def parallel_poses(model: Model, q: Float[Array, " nq"]) -> tuple[Mat3, Vec3]:
    """The axes and origins of all steps."""
    t, link = model.topology, links(model, q)
    R, _, a = placed(t, link)
    return R, path_sum(t.jumps, a)


def accelerations(t: Topology, joints: Any, base: Any) -> tuple[Any, Vec3, Any]:
    """Axes, w, dv, dw of all steps; their offsets a; and the first four of parents.

    `joints` are the terms of `accelerate`, `base` the axes, w, dv, dw of the base.
    """
    (R, w, c_v, c_w), a, (R0, w0) = turning(t, joints, base)
    _, _, dv1, dw1 = base
    dw = path_sum(t.jumps, c_w) + dw1
    dw0 = parents_of(t, dw, dw1)
    dv = path_sum(t.jumps, c_v + cross(dw0, a)) + dv1
    return (R, w, dv, dw), a, (R0, w0, parents_of(t, dv, dv1), dw0)


def turning(t: Topology, joints: Any, base: Any) -> tuple[Any, Vec3, Any]:
    """The same, but dv and dw are only what each step adds to those of its parent."""
    link, qd = joints[0], joints[1]
    _, w1, _, _ = base
    R, R0, a = placed(t, link)
    w = path_sum(t.jumps, R.z * (link.turn * qd)) + w1
    w0 = parents_of(t, w, w1)
    o = Vec3.zero(w1.x.dtype)
    _, _, c_v, c_w = accelerated((R0, w0, o, o), joints, R, a)
    return (R, w, c_v, c_w), a, (R0, w0)


def placed(
    t: Topology, link: Link, jumps: Jumps | None = None
) -> tuple[Mat3, Mat3, Vec3]:
    """The axes of all steps in the world, those of their parents, and the offsets a.

    R_i = R_p C_i Rz(theta_i) and a_i = R_p b_i + e_i d_i.
    """
    jumps = t.jumps if jumps is None else jumps
    R = path_product(jumps, turn_z(Mat3.of(link.C), link.c, link.s))
    R0 = parents_of(t, R, Mat3.identity(link.c.dtype))
    return R, R0, R0 @ Vec3.of(link.b) + R.z * link.d


def parents_of(t: Topology, tree: Any, root: Any) -> Any:
    """For each step the value of its parent, or `root` for those on the base."""
    return from_parents(t.steps.parent, tree, root)
