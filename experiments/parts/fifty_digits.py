"""Dynamics of chains with 50 digits, without JAX: all at once, or joint by joint.

`chain_dynamics`, for revolute joints, has no recursive solution: Newton's and Euler's
equations link by link give the bias and the columns of the inertia matrix; Gauss'
elimination gives the accelerations. The numbers of the model and of the state are taken
as they are, every sum and product keeps 60 digits.

`chain_accelerations` eliminates joint by joint, for chains too long for a matrix of
decimal numbers.
"""

from decimal import Decimal, localcontext
from typing import Any, NamedTuple

import numpy as np

import jaxdyn as jd

_exact: Any = np.frompyfunc(Decimal, 1, 1)


class Dynamics(NamedTuple):
    """What the references hold, rounded to double precision at the end."""

    qdd_fd: np.ndarray
    tau_id: np.ndarray
    M: np.ndarray


def chain_dynamics(model: jd.Model, state: dict[str, Any]) -> Dynamics:
    """Accelerations under `tau`, forces for `qdd`, and the inertia matrix at `q`."""
    n = model.n
    with localcontext(prec=60):
        q, qd, qdd, tau = (
            _exact(np.array(state[k])) for k in ("q", "qd", "qdd", "tau")
        )
        gravity = _decimal(model.gravity)
        # columns: the bias, inverse dynamics, and a unit of each acceleration at rest
        rates, pull = _exact(np.zeros((n, n + 2))), _exact(np.zeros((3, n + 2)))
        rates[:, :2], pull[:, :2] = qd[:, None], gravity[:, None]
        rising = np.column_stack([qd * 0, qdd, _exact(np.eye(n))])
        forces = _forces(_links(model, q), pull, rates, rising)
        bias, tau_id, M = forces[:, 0], forces[:, 1], forces[:, 2:]
        found = _solve(M, tau - bias), tau_id, M
    return Dynamics(*(x.astype(float) for x in found))


def chain_accelerations(model: jd.Model, q: Any, qd: Any, tau: Any) -> np.ndarray:
    """Accelerations of a chain by articulated bodies with 60 digits, of order n.

    For revolute, prismatic and universal joints and rotor inertias. The numbers are
    taken as they are, but axes are normalised and placements turned into the nearest
    rotations: what the rounded numbers of a model mean.
    """
    with localcontext(prec=60):
        axles = _axles(model, *(_decimal(x) for x in (q, qd, tau)))
        found = _outward(_inward(axles), _decimal(model.gravity))
    return found.astype(float)


class _Axle(NamedTuple):
    """One axis of a joint with what it carries; linear parts first, world axes.

    The frame of an axle has its origin at the joint. `X` moves the acceleration of the
    one before to this origin, `S` is the direction of motion, `c` the acceleration by
    the rates, `M` and `p` are inertia and velocity forces of the body.
    """

    S: np.ndarray
    X: np.ndarray
    c: np.ndarray
    M: np.ndarray
    p: np.ndarray
    tau: Decimal
    armature: Decimal


def _axles(
    model: jd.Model, q: np.ndarray, qd: np.ndarray, tau: np.ndarray
) -> list[_Axle]:
    """The axles of all joints from the base on; the last of a joint has the body."""
    axles, R, w = [], _decimal(np.eye(3)), _decimal(np.zeros(3))
    armature = _decimal(model.armature)
    arrays = (model.R, model.p, model.axis, model.axis2)
    placements, offsets, first, second = map(_decimal, arrays)
    for i, joint in enumerate(model.joints):
        offset = R @ offsets[i]
        R = R @ _nearest_rotation(placements[i])
        axes = (first[i], second[i])[: 2 if joint == "universal" else 1]
        for axis in axes:
            k = len(axles)
            unit = axis / (axis @ axis).sqrt()
            e = R @ unit
            rate = e * qd[k]
            if joint == "prismatic":
                offset = offset + e * q[k]
                S = np.concatenate([e, e * 0])
                pull, twist = 2 * _cross(w, rate), e * 0
            else:
                R = R @ _rotation(unit, q[k])
                S = np.concatenate([e * 0, e])
                pull, twist = e * 0, _cross(w, rate)
            c = np.concatenate([pull + _cross(w, _cross(w, offset)), twist])
            w = w if joint == "prismatic" else w + rate
            body = _body(model, i, R, w) if axis is axes[-1] else _nothing()
            axles.append(_Axle(S, _shift(offset), c, *body, tau[k], armature[k]))
            offset = offset * 0
    return axles


def _body(
    model: jd.Model, i: int, R: np.ndarray, w: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Inertia of a body about its origin, and its velocity forces."""
    mass, com, inertia = (
        _decimal(x[i]) for x in (model.mass, model.com, model.inertia)
    )
    r = R @ com
    about_origin = R @ inertia @ R.T - mass * _skew(r) @ _skew(r)
    H = _skew(mass * r)
    M = np.block([[_decimal(np.eye(3)) * mass, -H], [H, about_origin]])
    force = mass * _cross(w, _cross(w, r))
    return M, np.concatenate([force, _cross(w, about_origin @ w)])


def _nothing() -> tuple[np.ndarray, np.ndarray]:
    return _decimal(np.zeros((6, 6))), _decimal(np.zeros(6))


def _inward(axles: list[_Axle]) -> list[tuple]:
    """Each axle with its column of the articulated inertia, pivot and free force."""
    eliminated = []
    M, p = _nothing()
    for axle in axles[::-1]:
        M, p = M + axle.M, p + axle.p
        column = M @ axle.S
        pivot = axle.S @ column + axle.armature
        free = axle.tau - axle.S @ p
        eliminated.append((axle, column, pivot, free))
        M = M - np.outer(column, column) / pivot
        p = p + M @ axle.c + column * (free / pivot)
        M, p = axle.X.T @ M @ axle.X, axle.X.T @ p
    return eliminated[::-1]


def _outward(eliminated: list[tuple], gravity: np.ndarray) -> np.ndarray:
    """The accelerations from the base on, which is given minus gravity."""
    found, a = [], np.concatenate([-gravity, gravity * 0])
    for axle, column, pivot, free in eliminated:
        a = axle.X @ a + axle.c
        found.append((free - column @ a) / pivot)
        a = a + axle.S * found[-1]
    return np.array(found)


def _shift(offset: np.ndarray) -> np.ndarray:
    """The matrix that takes the acceleration of a point to another of the same body."""
    eye = _decimal(np.eye(3))
    return np.block([[eye, -_skew(offset)], [eye * 0, eye]])


def _nearest_rotation(R: np.ndarray) -> np.ndarray:
    """Newton's iteration for the orthogonal factor, exact after rounding errors."""
    for _ in range(4):
        R = R - R @ (R.T @ R - _decimal(np.eye(3))) / 2
    return R


def _skew(a: np.ndarray) -> np.ndarray:
    x, y, z = a
    return np.array([[z * 0, -z, y], [z, z * 0, -x], [-y, x, z * 0]])


def _decimal(x: Any) -> np.ndarray:
    return _exact(np.asarray(x, float))


def _links(model: jd.Model, q: np.ndarray) -> list[tuple]:
    """Axis, offset, mass centre, inertia and mass of each link, in world axes."""
    places = (model.R, model.p, model.axis, model.com, model.inertia, model.mass)
    links, R = [], _exact(np.eye(3))
    rows = zip(*(_decimal(x) for x in places), q, strict=True)
    for placement, p, axis, com, inertia, mass, angle in rows:
        a = R @ p
        R = R @ placement @ _rotation(axis, angle)
        vectors = (x[:, None] for x in (R @ axis, a, R @ com))
        links.append((*vectors, R @ inertia @ R.T, mass))
    return links


def _rotation(axis: np.ndarray, angle: Decimal) -> np.ndarray:
    """Rodrigues' formula, with the sine and cosine from their series."""
    K = _skew(axis)
    terms = [Decimal(1)]
    while abs(terms[-1]) > Decimal("1e-60") or len(terms) < 4:
        terms.append(terms[-1] * angle / len(terms))
    cosine = sum(terms[::4]) - sum(terms[2::4])
    sine = sum(terms[1::4]) - sum(terms[3::4])
    return _exact(np.eye(3)) + sine * K + (1 - cosine) * (K @ K)


def _forces(
    links: list[tuple], gravity: np.ndarray, qd: np.ndarray, qdd: np.ndarray
) -> np.ndarray:
    """Joint forces, one column for each column of the arguments."""
    w = dw = gravity * 0
    dv, loads = -gravity, []
    for (e, a, c, I, m), rate, rise in zip(links, qd, qdd, strict=True):
        dv = dv + _cross(dw, a) + _cross(w, _cross(w, a))
        dw = dw + _cross(w, e * rate) + e * rise
        w = w + e * rate
        f = m * (dv + _cross(dw, c) + _cross(w, _cross(w, c)))
        loads.append((I @ dw + _cross(w, I @ w) + _cross(c, f), f))
    tau, n, f = [], gravity * 0, gravity * 0
    for (e, a, *_), (own_n, own_f) in zip(links[::-1], loads[::-1], strict=True):
        n, f = n + own_n, f + own_f
        tau.append((e * n).sum(axis=0))
        n = n + _cross(a, f)
    return np.stack(tau[::-1])


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    pairs = ((1, 2), (2, 0), (0, 1))
    return np.stack([a[i] * b[j] - a[j] * b[i] for i, j in pairs])


def _solve(M: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Gauss' elimination without a choice of pivots, as M is positive definite."""
    rows = np.column_stack([M, b])
    for k in range(len(M)):
        rows[k] = rows[k] / rows[k, k]
        others = np.arange(len(M)) != k
        rows[others] -= np.outer(rows[others, k], rows[k])
    return rows[:, -1]
