"""States in the order and axes of MuJoCo."""

import numpy as np
from jaxtyping import Array, Float

from jaxdyn.model import Model, Topology, arguments, independent, whole
from jaxdyn.spatial import Quaternion, Vec3


def to_mujoco(
    model: Model, q: Float[Array, " nq"], qd: Float[Array, " nv"]
) -> tuple[Float[Array, " npos"], Float[Array, " nvel"]]:
    r"""MuJoCo's `qpos` and `qvel` of a state.

    Quaternions become w, x, y, z. The linear velocity of a free joint turns from body
    to world axes, $v_0 = R\,v$; its angular velocity stays in body axes. All other
    numbers are the same. Joints that follow others have theirs too.

    Args:
        model: a model whose coordinates stand in the order of MuJoCo and whose free
            joints are placed at the world's origin, such as those of `load_mjcf`.
    """
    model, q, qd, _ = whole(*arguments(model, q=q, qd=qd))
    t = model.topology
    R = Quaternion.of(q[t.free_quaternion_q]).unit().matrix()
    v = R @ Vec3.of(qd[t.position_v])
    return q[_quaternions(t, (3, 0, 1, 2))], qd.at[t.position_v].set(v.array())


def from_mujoco(
    model: Model, qpos: Float[Array, " npos"], qvel: Float[Array, " nvel"]
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    r"""The state with MuJoCo's `qpos` and `qvel`: the inverse of `to_mujoco`.

    Quaternions become x, y, z, w; the linear velocity of a free joint turns from world
    to body axes, $v = R^T v_0$. Joints that follow others play no role.

    Args:
        model: as in `to_mujoco`.
    """
    tree, qpos, qvel = arguments(model.tree, qpos=qpos, qvel=qvel)
    t = tree.topology
    q = qpos[_quaternions(t, (1, 2, 3, 0))]
    R = Quaternion.of(q[t.free_quaternion_q]).unit().matrix()
    v = R.T @ Vec3.of(qvel[t.position_v])
    return independent(model, q, qvel.at[t.position_v].set(v.array()))


def _quaternions(t: Topology, order: tuple[int, ...]) -> np.ndarray:
    """The places in q, with those of each quaternion in another order."""
    places = np.arange(t.nq)
    places[t.quaternion_q] = t.quaternion_q[:, order]
    return places
