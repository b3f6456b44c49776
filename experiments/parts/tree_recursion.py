"""The articulated-body recursion of [Ghosal] as printed, on a tree, in NumPy."""

from typing import Any

import numpy as np

import jaxdyn as jd


def as_printed(model: jd.Model, q: Any, tau: Any, base: np.ndarray) -> np.ndarray:
    """Joint accelerations by (46) to (50), for revolute joints.

    Six-vectors are linear part first, in world axes about the world origin, so that
    neighbours add without shifts, as the lecture writes them; children are summed. The
    formulas have no velocities. `base` is the linear acceleration given to the base.
    """
    S, J = axes_of(model, q), inertias_of(model, q)
    P = np.zeros((model.n, 6))
    tau, pivots = np.asarray(tau), np.zeros(model.n)
    for i in reversed(range(model.n)):  # (47)
        pivots[i] = S[i] @ J[i] @ S[i]
        parent, U = model.parents[i], J[i] @ S[i]
        if parent >= 0:
            J[parent] += J[i] - np.outer(U, U) / pivots[i]
            P[parent] += P[i] + U * (tau[i] - S[i] @ P[i]) / pivots[i]
    A, qdd = np.zeros((model.n, 6)), np.zeros(model.n)
    for i, parent in enumerate(model.parents):  # (50) and (48)
        before = A[parent] if parent >= 0 else np.concatenate([base, np.zeros(3)])
        pull = tau[i] - S[i] @ J[i] @ before - S[i] @ P[i]
        qdd[i] = pull / pivots[i]
        A[i] = before + S[i] * qdd[i]
    return qdd


def axes_of(model: jd.Model, q: Any) -> np.ndarray:
    """The joint axes as screws about the world origin."""
    poses = jd.forward_kinematics(model, q)
    e = np.einsum("nij,nj->ni", poses.R, model.axis)
    return np.concatenate([np.cross(poses.p, e), e], axis=1)


def inertias_of(model: jd.Model, q: Any) -> np.ndarray:
    """The 6 x 6 inertias of the bodies about the world origin, in world axes."""
    poses, J = jd.forward_kinematics(model, q), np.zeros((model.n, 6, 6))
    R, p = np.asarray(poses.R), np.asarray(poses.p)
    for i in range(model.n):
        m, c = float(model.mass[i]), p[i] + R[i] @ np.asarray(model.com[i])
        skew = np.cross(np.eye(3), c)  # times x: c x x
        about = R[i] @ np.asarray(model.inertia[i]) @ R[i].T + m * skew @ skew.T
        J[i] = np.block([[m * np.eye(3), m * skew.T], [m * skew, about]])
    return J


def gyroscopic_part(model: jd.Model, q: Any, qd: Any) -> float:
    """The largest moment ω x I ω of a body about its centre of mass."""
    R = np.asarray(jd.forward_kinematics(model, q).R)
    w = np.asarray(jd.body_velocities(model, q, qd).w)
    I = np.einsum("nij,njk,nlk->nil", R, np.asarray(model.inertia), R)
    return float(np.abs(np.cross(w, np.einsum("nij,nj->ni", I, w))).max())


def mass_accelerations(model: jd.Model, q: Any, qd: Any, qdd: Any) -> np.ndarray:
    """The accelerations of the centres of mass, [Ghosal] eq. 42."""
    R = np.asarray(jd.forward_kinematics(model, q).R)
    w = np.asarray(jd.body_velocities(model, q, qd).w)
    rates = jd.body_accelerations(model, q, qd, qdd)
    dv, dw = np.asarray(rates.dv), np.asarray(rates.dw)
    c = np.einsum("nij,nj->ni", R, np.asarray(model.com))
    return dv + np.cross(dw, c) + np.cross(w, np.cross(w, c))
