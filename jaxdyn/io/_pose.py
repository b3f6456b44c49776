"""Rotations as robot files write them, on the host."""

import numpy as np

from jaxdyn.model import unit_vectors


def rotation_about(axis: np.ndarray, angle: float) -> np.ndarray:
    """The rotation matrix by `angle` about the unit vector `axis`."""
    x, y, z = axis
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def rpy_to_matrix(rpy: np.ndarray) -> np.ndarray:
    """The rotation Rz(yaw) Ry(pitch) Rx(roll) of URDF."""
    x, y, z = np.eye(3)
    roll, pitch, yaw = rpy
    turns = rotation_about(z, yaw), rotation_about(y, pitch), rotation_about(x, roll)
    return turns[0] @ turns[1] @ turns[2]


def matrix_to_rpy(R: np.ndarray) -> np.ndarray:
    """Roll, pitch, yaw of a rotation; yaw is zero where they are not unique."""
    c = np.hypot(R[0, 0], R[1, 0])
    pitch = np.arctan2(-R[2, 0], c)
    if c == 0:
        return np.array([np.arctan2(-R[1, 2], R[1, 1]), pitch, 0.0])
    yaw = np.arctan2(R[1, 0], R[0, 0])
    # roll from axes turned back by yaw: accurate also near pitch = 90 degrees
    s, c = np.sin(yaw), np.cos(yaw)
    roll = np.arctan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return np.array([roll, pitch, yaw])


def quaternion_to_matrix(x: float, y: float, z: float, w: float) -> np.ndarray:
    """The rotation of a quaternion of any length but zero."""
    x, y, z, w = unit_vectors(np.array([x, y, z, w]))
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + 2 * w * K + 2 * K @ K


def matrix_to_quaternion(R: np.ndarray) -> np.ndarray:
    """The unit quaternion x, y, z, w of a rotation."""
    s = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    trace = np.trace(R)
    products = np.block(
        [[R + R.T + (1 - trace) * np.eye(3), s[:, None]], [s, 1 + trace]]
    )  # 4 q qᵀ
    return unit_vectors(products[np.argmax(products.diagonal())])
