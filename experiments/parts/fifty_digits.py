"""Dynamics of chains of revolute joints with 50 digits: no recursive solution, no JAX.

Newton's and Euler's equations link by link give the bias and the columns of the inertia
matrix; Gauss' elimination gives the accelerations. The numbers of the model and of the
state are taken as they are, every sum and product keeps 60 digits.
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
        gravity = _exact(np.asarray(model.gravity, float))
        # columns: the bias, inverse dynamics, and a unit of each acceleration at rest
        rates, pull = _exact(np.zeros((n, n + 2))), _exact(np.zeros((3, n + 2)))
        rates[:, :2], pull[:, :2] = qd[:, None], gravity[:, None]
        rising = np.column_stack([qd * 0, qdd, _exact(np.eye(n))])
        forces = _forces(_links(model, q), pull, rates, rising)
        bias, tau_id, M = forces[:, 0], forces[:, 1], forces[:, 2:]
        found = _solve(M, tau - bias), tau_id, M
    return Dynamics(*(x.astype(float) for x in found))


def _links(model: jd.Model, q: np.ndarray) -> list[tuple]:
    """Axis, offset, mass centre, inertia and mass of each link, in world axes."""
    places = (model.R, model.p, model.axis, model.com, model.inertia, model.mass)
    links, R = [], _exact(np.eye(3))
    rows = zip(*(_exact(np.asarray(x, float)) for x in places), q, strict=True)
    for placement, p, axis, com, inertia, mass, angle in rows:
        a = R @ p
        R = R @ placement @ _rotation(axis, angle)
        vectors = (x[:, None] for x in (R @ axis, a, R @ com))
        links.append((*vectors, R @ inertia @ R.T, mass))
    return links


def _rotation(axis: np.ndarray, angle: Decimal) -> np.ndarray:
    """Rodrigues' formula, with the sine and cosine from their series."""
    x, y, z = axis
    K = np.array([[z * 0, -z, y], [z, z * 0, -x], [-y, x, z * 0]])
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
