"""States of a floating base in MuJoCo's conventions, which several libraries share.

There the quaternion is w, x, y, z, and the linear velocity, acceleration and force of
the base are in world axes.
"""

import numpy as np


def rotations(q: np.ndarray) -> np.ndarray:
    """The rotation matrix of the base of each state; quaternions are x, y, z, w."""
    v, w = q[:, 3:6], q[:, 6]
    K = np.zeros((len(q), 3, 3))
    K[:, 2, 1], K[:, 0, 2], K[:, 1, 0] = v.T
    K = K - K.transpose(0, 2, 1)
    return np.eye(3) + 2 * w[:, None, None] * K + 2 * K @ K


def to_mujoco(states: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """States in MuJoCo's conventions."""
    q, result = states["q"], dict(states)
    R = rotations(q)
    result["q"] = np.concatenate([q[:, :3], q[:, [6, 3, 4, 5]], q[:, 7:]], 1)
    for name in {"qd", "qdd", "tau"} & set(states):
        result[name] = states[name].copy()
    if "qdd" in states:  # the rate of the components in world axes
        result["qdd"][:, :3] += np.cross(states["qd"][:, 3:6], states["qd"][:, :3])
    for name in {"qd", "qdd", "tau"} & set(states):
        result[name][:, :3] = _turn(R, result[name][:, :3])
    return result


def from_mujoco(
    row: str, states: dict[str, np.ndarray], output: np.ndarray
) -> np.ndarray:
    """The result of a row in jaxdyn's conventions."""
    R, output = rotations(states["q"]), np.array(output, float)
    if row == "mass_matrix":
        output[:, :3] = R.transpose(0, 2, 1) @ output[:, :3]
        output[:, :, :3] = output[:, :, :3] @ R
        return output
    output[:, :3] = _turn(R.transpose(0, 2, 1), output[:, :3])
    if row == "forward_dynamics":
        output[:, :3] -= np.cross(states["qd"][:, 3:6], states["qd"][:, :3])
    return output


def _turn(R: np.ndarray, v: np.ndarray) -> np.ndarray:
    return (R @ v[:, :, None])[:, :, 0]
