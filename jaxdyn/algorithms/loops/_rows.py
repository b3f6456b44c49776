"""The kinematics of closed loops: how far cut joints are open, and how they move.

`model/elements/_rows.py` defines the rows of a cut joint; here they are those of all
loops.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.algorithms.couplings import along_columns, of_tree
from jaxdyn.algorithms.kinematics import Poses, body_motions, forward_kinematics
from jaxdyn.algorithms.steps import Motion, WorldStep, product, world_steps
from jaxdyn.model import ROWS, Model, Nq, Nv, Side, arguments, whole
from jaxdyn.program import collect, compiled, from_parents, put, take
from jaxdyn.spatial import Mat3, Twist, Vec3, Wrench, cross, cross_columns


class LoopRows(eqx.Module):
    """What all loops hold, one row for each multiplier.

    Attributes:
        residual: how far the row is open.
        wrench_a, wrench_b: force and moment on body a and body b for a multiplier of
            one, in world axes, about the origin of that body.
    """

    residual: Float[Array, " nc"]
    wrench_a: Float[Array, "nc 6"]
    wrench_b: Float[Array, "nc 6"]


@compiled()
def loop_residual(model: Model, q: Nq) -> Float[Array, " nc"]:
    """How far the loops are open at `q`: the rows of each cut joint, loop by loop.

    Lengths in metres, and small angles (their sines) in radians.
    """
    model, q = arguments(model, q=q)
    return loop_rows(model, forward_kinematics(model, q)).residual


@compiled()
@of_tree(along_columns)
def loop_jacobian(model: Model, q: Nq) -> Float[Array, "nc nv"]:
    r"""The matrix Psi(q) with $\dot\varphi = \Psi \dot q$, [Ghosal] lecture 30."""
    model, q = arguments(model, q=q)
    at = collect(model.topology.lanes, world_steps(model, q))
    rows = loop_rows(model, forward_kinematics(model, q))
    return loop_matrix(model, at.step, at.r, rows)


@compiled()
def loop_bias(model: Model, q: Nq, qd: Nv) -> Float[Array, " nc"]:
    r"""The right-hand side $-\dot\Psi \dot q$ of $\Psi \ddot q = -\dot\Psi \dot q$."""
    model, q, qd = arguments(model, q=q, qd=qd)
    return -second_rates(model, body_motions(*whole(model, q, qd)))


@compiled()
def loop_wrenches(
    model: Model, q: Nq, loop_forces: Float[Array, " nc"]
) -> Float[Array, "loops 6"]:
    """Force and moment that body a of each loop receives through its cut joint.

    In world axes, the moment about the origin of frame a; body b receives the opposite.
    """
    model, q, loop_forces = arguments(model, q=q, loop_forces=loop_forces)
    poses = forward_kinematics(model, q)
    owner = np.repeat(np.arange(len(model.loops)), _row_counts(model))
    rows = loop_rows(model, poses).wrench_a * loop_forces[:, None]
    wrench = put(rows, owner, len(model.loops))
    return Wrench.of(wrench).shift(-_frames(model, "a", poses).arm).array()


def loop_rows(model: Model, poses: Poses) -> LoopRows:
    """The rows of all loops at the poses of the bodies."""
    a, b = loop_frames(model, poses)
    on_a, on_b = [], []
    for row in _kinds(model):
        load_a, load_b = ROWS[row].loads(a, b)
        on_a.append(Wrench(*load_a).shift(a.arm).array())
        on_b.append(Wrench(*load_b).shift(b.arm).array())
    wrenches = (_chosen(model, loads) for loads in (on_a, on_b))
    return LoopRows(_openings(model, a, b), *wrenches)


def loop_frames(model: Model, poses: Poses) -> tuple[Side, Side]:
    """The frames a and b of all loops at the poses of the bodies."""
    return _frames(model, "a", poses), _frames(model, "b", poses)


def row_rates(
    model: Model, rows: LoopRows, v: Float[Array, "n 3"], w: Float[Array, "n 3"]
) -> Float[Array, " nc"]:
    """The rates Psi qd of the rows, from the velocities of the bodies; O(n + m)."""
    twists = jnp.concatenate([v, w], axis=-1)
    still = jnp.zeros(6, twists.dtype)
    a, b = (
        wrench * from_parents(_row_bodies(model, side), twists, still)
        for side, wrench in (("a", rows.wrench_a), ("b", rows.wrench_b))
    )
    return (a + b).sum(axis=-1)


def row_forces(
    model: Model, rows: LoopRows, loop_forces: Float[Array, " nc"]
) -> Float[Array, "n 6"]:
    """The wrenches of the loop forces on all bodies, as `f_ext`; O(n + m)."""
    end = model.n + 1  # the share of the world is put beyond the end, and dropped
    a, b = (
        put(loop_forces[:, None] * wrench, _row_bodies(model, side) % end, model.n)
        for side, wrench in (("a", rows.wrench_a), ("b", rows.wrench_b))
    )
    return a + b


def loop_matrix(
    model: Model, step: WorldStep, r: Vec3, rows: LoopRows
) -> Float[Array, "nc nv"]:
    """The matrix Psi: columns of the joints that move either body; O(nc nv).

    `step` and `r` are all steps in world axes and their places.
    """
    t = model.topology
    origins = take(r, t.steps.last)
    zero = Vec3.zero(origins.x.dtype)
    step, r = jax.tree.map(lambda x: x[None], take((step, r), t.dof_steps))

    def part(side: str, wrench: Float[Array, "nc 6"]) -> Array:
        bodies = _row_bodies(model, side)
        origin = from_parents(bodies, origins, zero)
        w, origin = jax.tree.map(lambda x: x[:, None], (Wrench.of(wrench), origin))
        moves = np.concatenate([t.moves, np.zeros((t.nv, 1), bool)], axis=1)
        power: Array = step.along(w.shift(origin - r))
        return jnp.where(moves[:, bodies].T, power, 0)

    return part("a", rows.wrench_a) + part("b", rows.wrench_b)


def second_rates(model: Model, at: Motion) -> Float[Array, " nc"]:
    r"""The second rates $\Psi \ddot q + \dot\Psi \dot q$ of the rows in a motion.

    The rows are products of axes and origins of both frames, whose motion is known.
    """
    a, b = (_moving(model, side, at) for side in "ab")
    frames, rates, second = zip(a, b, strict=True)

    def rate(sides, rates):
        return jax.jvp(lambda a, b: _openings(model, a, b), sides, rates)[1]

    return jax.jvp(rate, (frames, rates), (rates, second))[1]


def _openings(model: Model, a: Side, b: Side) -> Float[Array, " nc"]:
    return _chosen(model, [ROWS[row].opening(a, b) for row in _kinds(model)])


def _frames(model: Model, side: str, poses: Poses) -> Side:
    """The frames of all loops on one side."""
    dtype = poses.p.dtype
    bodies = _loop_bodies(model, side)
    world = jnp.eye(3, dtype=dtype), jnp.zeros(3, dtype)
    R, p = from_parents(bodies, (poses.R, poses.p), world)
    frame_R, frame_p = (
        jnp.array([getattr(loop, f"{name}_{side}") for loop in model.loops], dtype)
        for name in "Rp"
    )
    if not model.loops:
        frame_R, frame_p = frame_R.reshape(0, 3, 3), frame_p.reshape(0, 3)
    arm = product(R, frame_p[..., None])[..., 0]
    A = Mat3.of(product(R, frame_R))
    return Side(A, Vec3.of(p + arm), Vec3.of(arm))


def _moving(model: Model, side: str, at: Motion) -> tuple[Side, Side, Side]:
    """The frames of one side, their rates and second rates."""
    frame = _frames(model, side, Poses(at.R.array(), at.p.array()))
    bodies = _loop_bodies(model, side)
    o = Twist.zero(at.p.x.dtype)
    twist, second = from_parents(bodies, (at.twist, at.rate), (o, o))
    v, w, dv, dw = twist.v, twist.w, second.v, second.w
    spin, turning = cross_columns(w, frame.A), cross(w, frame.arm)
    twice = cross_columns(dw, frame.A) + cross_columns(w, spin)
    bent = cross(dw, frame.arm) + cross(w, turning)
    rate = Side(spin, v + turning, turning)
    return frame, rate, Side(twice, dv + bent, bent)


def _loop_bodies(model: Model, side: str) -> np.ndarray:
    """Of each loop its body on one side, -1 for the world."""
    return np.array([getattr(loop, f"body_{side}") for loop in model.loops], int)


def _row_bodies(model: Model, side: str) -> np.ndarray:
    """Of each row its body on one side, -1 for the world."""
    return np.repeat(_loop_bodies(model, side), _row_counts(model))


def _row_counts(model: Model) -> np.ndarray:
    return np.array([len(loop.rows) for loop in model.loops], int)


def _kinds(model: Model) -> list[str]:
    """The kinds of rows that the loops of the model have; never none."""
    return sorted({row for loop in model.loops for row in loop.rows}) or ["X"]


def _chosen(model: Model, of_kinds: list[Array]) -> Array:
    """The rows of the cut joints, of those of each of `_kinds` for all loops."""
    kinds = _kinds(model)
    index = [
        kinds.index(row) * len(model.loops) + k
        for k, loop in enumerate(model.loops)
        for row in loop.rows
    ]
    return take(jnp.concatenate(of_kinds), np.array(index, int))
