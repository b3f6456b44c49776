"""Poses and motions of all steps in O(log n) dependent steps.

Walks are replaced by sums along all paths, in which angular motion comes before linear:
no lever arm from a far origin cancels. All vectors have leaves [steps].
"""

from typing import TypeVar

from jaxdyn.algorithms.steps import (
    Base,
    LocalStep,
    Motion,
    MovingFrame,
    StepTerms,
    WorldStep,
    accelerated,
    base_motion,
    local_steps,
    step_terms,
)
from jaxdyn.model import Model, Nq, Nv, Topology
from jaxdyn.program import Jumps, from_parents, path_product, path_sum
from jaxdyn.spatial import Mat3, Twist, Vec3, cross, turn_z

T = TypeVar("T")  # a pytree


def parallel_motions(
    model: Model, q: Nq, qd: Nv, qdd: Nv | None = None, base: Base = None
) -> Motion:
    """The motion of every step, gravity not included; axes are those of the step."""
    t, root = model.topology, base_motion(q.dtype, base)
    x = step_terms(model, q, qd, qdd)
    at, w0, a = accelerations(t, x, MovingFrame(root.R, root.w, root.rate))
    sliding = at.R.z * (x.local.slide * x.qd)
    v = path_sum(t.jumps, cross(w0, a) + sliding) + root.v
    return Motion(at.R, path_sum(t.jumps, a), Twist(v, at.w), at.rate)


def parallel_poses(model: Model, q: Nq) -> tuple[Mat3, Vec3]:
    """The axes and origins of all steps."""
    t = model.topology
    R, _, a = placed(t, local_steps(model, q))
    return R, path_sum(t.jumps, a)


def accelerations(
    t: Topology, x: StepTerms, base: MovingFrame
) -> tuple[MovingFrame, Vec3, Vec3]:
    """All steps as moving frames; the angular velocities w_0 of parents; offsets a."""
    R, R0, a = placed(t, x.local)
    w = path_sum(t.jumps, R.z * (x.local.turn * x.qd)) + base.w
    w0 = parents_of(t, w, base.w)
    still, step = Twist.zero(w.x.dtype), WorldStep.of(x.local, R, a)
    # what each step adds to the acceleration of its parent
    c = accelerated(MovingFrame(R0, w0, still), R, step, x.qd, x.qdd, x.bias).rate
    dw = path_sum(t.jumps, c.w) + base.rate.w
    dw0 = parents_of(t, dw, base.rate.w)
    dv = path_sum(t.jumps, c.v + cross(dw0, a)) + base.rate.v
    return MovingFrame(R, w, Twist(dv, dw)), w0, a


def placed(
    t: Topology, step: LocalStep, jumps: Jumps | None = None
) -> tuple[Mat3, Mat3, Vec3]:
    """The axes of all steps in the world, those of their parents, and the offsets a.

    R_i = R_p C_i Rz(theta_i) and a_i = R_p b_i + e_i d_i.
    """
    jumps = t.jumps if jumps is None else jumps
    R = path_product(jumps, turn_z(Mat3.of(step.C), step.c, step.s))
    R0 = parents_of(t, R, Mat3.identity(step.c.dtype))
    return R, R0, R0 @ Vec3.of(step.b) + R.z * step.d


def parents_of(t: Topology, tree: T, root: T) -> T:
    """For each step the value of its parent, or `root` for those on the base."""
    return from_parents(t.steps.parent, tree, root)
