"""The two sliders of [Ghosal] solved in four ways."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd


@dataclass(frozen=True)
class Case:
    """Masses, forces [[fx1, fy1], [fx2, fy2]] on the bodies, forces of the joints."""

    m: np.ndarray
    f: np.ndarray
    tau: np.ndarray


@dataclass(frozen=True)
class Solution:
    """Accelerations (x1'', y2'') and multipliers (λ1, λ2)."""

    qdd: np.ndarray
    multipliers: np.ndarray


def with_masses(m: np.ndarray) -> jd.Model:
    """The two sliders with other masses."""
    model = jd.robots.featherstone_2p()
    return eqx.tree_at(lambda x: x.mass, model, jnp.asarray(m))


def closed_form(case: Case) -> Solution:
    """By elimination: the sum of both x equations has no λ2, and y2'' has neither."""
    (m1, m2), ((fx1, fy1), (fx2, fy2)), (tau1, tau2) = case.m, case.f, case.tau
    x1dd, y2dd = (fx1 + fx2 + tau1) / (m1 + m2), (fy2 + tau2) / m2
    return Solution(np.array([x1dd, y2dd]), np.array([fy1 - tau2, fx2 - m2 * x1dd]))


def with_multipliers(case: Case) -> Solution:
    """The six equations of the lecture for x1'', y1'', x2'', y2'', λ1, λ2 at once."""
    (m1, m2), f, (tau1, tau2) = case.m, case.f, case.tau
    constraints = np.array([[0.0, 1, 0, 0], [-1, 0, 1, 0]])
    masses = np.diag([m1, m1, m2, m2])
    K = np.block([[masses, constraints.T], [constraints, np.zeros((2, 2))]])
    driven = f.ravel() + np.array([tau1, -tau2, 0.0, tau2])
    x = np.linalg.solve(K, np.concatenate([driven, np.zeros(2)]))
    return Solution(x[[0, 3]], x[4:])


def by_library(model: jd.Model, case: Case) -> Solution:
    """Forward dynamics; multipliers are the joint reactions across the joints."""
    solved = _solve(model, jnp.asarray(case.f), jnp.asarray(case.tau))
    return Solution(*map(np.asarray, solved))


@jax.jit
def _solve(model: jd.Model, f: Any, tau: Any) -> tuple[Any, Any]:
    q, qd, f_ext = jnp.zeros(2), jnp.zeros(2), jnp.pad(f, ((0, 0), (0, 4)))
    qdd = jd.forward_dynamics(model, q, qd, tau, f_ext=f_ext)
    wrench = jd.joint_reactions(model, q, qd, qdd, f_ext=f_ext)
    return qdd, -jnp.stack([wrench[0, 1], wrench[1, 0]])


def recursion(case: Case) -> dict[str, np.ndarray]:
    """[Ghosal] (46) to (50) in the plane, in order; with body forces in the bias."""
    (m1, m2), one = case.m, np.eye(2)
    S1, S2 = one
    found = {"J2": m2 * one, "P2": -case.f[1]}
    found["pivot2"] = S2 @ found["J2"] @ S2
    left = found["J2"] @ np.outer(S2, S2) @ found["J2"] / found["pivot2"]
    found["handed"] = found["J2"] - left
    found["J1"] = m1 * one + found["handed"]
    pushed = found["J2"] @ S2 * (case.tau[1] - S2 @ found["P2"]) / found["pivot2"]
    found["P1"] = -case.f[0] + found["P2"] + pushed
    found["pivot1"] = S1 @ found["J1"] @ S1
    found["x1dd"] = (case.tau[0] - S1 @ found["P1"]) / found["pivot1"]
    A1 = S1 * found["x1dd"]
    pull = case.tau[1] - S2 @ found["J2"] @ A1 - S2 @ found["P2"]
    found["y2dd"] = pull / found["pivot2"]
    A2 = A1 + S2 * found["y2dd"]
    # what the joints exert is F = J A + P, (46); the multipliers are minus that
    found["lambda1"] = -(found["J1"] @ A1 + found["P1"])[1]
    found["lambda2"] = -(found["J2"] @ A2 + found["P2"])[0]
    return found


def felt_inertia(m: np.ndarray) -> np.ndarray:
    """The inertia that a hand on body 1 feels in x and y, with body 2 free to slide.

    The definition of an articulated inertia: body 1 on a planar joint instead of its
    slider; the block of M⁻¹ that belongs to it, inverted.
    """
    b = jd.ModelBuilder("held", gravity=(0.0, 0.0, 0.0))
    block = [jd.Inertial(k, np.zeros(3), 1e-3 * k * np.eye(3)) for k in m]
    z, x = (0, 0, 1), (1, 0, 0)
    b.add_body("body1", None, "planar", axis=z, axis2=x, inertial=block[0])
    b.add_body("body2", "body1", "prismatic", axis=(0, 1, 0), inertial=block[1])
    model = b.build()
    inverse = np.asarray(jd.factor(model, jnp.zeros(model.nq)).inverse())
    return np.linalg.inv(inverse[:2, :2])


def difference(a: Solution, b: Solution) -> float:
    """The largest difference of two solutions."""
    apart = (a.qdd - b.qdd, a.multipliers - b.multipliers)
    return float(np.abs(np.concatenate(apart)).max())
