"""The gripper of [Shah] in both readings: torques, falls, elimination by modules."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from jaxdyn import motion

JOINTS = ("1¹", "1²", "2²", "1³")  # link k of module i is kⁱ
READINGS = ("finger 3 at the middle of link 1", "finger 3 at the tip of link 1")
METHODS = ("denoc", "newton_euler", "gibbs_appell")
Angles = tuple[float, float, float, float]


@dataclass(frozen=True)
class Motion:
    """A cycloidal motion in degrees and seconds."""

    start: Angles
    end: Angles
    duration: float
    samples: int


@dataclass(frozen=True)
class Fall:
    """A fall from rest in degrees and seconds."""

    start: Angles
    duration: float
    step: float
    tolerance: float
    samples: int


@dataclass(frozen=True)
class Forces:
    """Torques of the motion in one reading, by all methods, beside the reference."""

    model: jd.Model
    ts: np.ndarray
    motion: motion.JointMotion
    tau: np.ndarray  # [times, joints] by DeNOC
    apart: float  # the largest difference between methods
    error: float  # and from the reference
    seconds: float


@dataclass(frozen=True)
class Falls:
    """The fall in one reading: by fixed steps, and with a tight tolerance."""

    ts: np.ndarray
    q: np.ndarray  # of the tight run
    fixed: np.ndarray  # |q of fixed steps - q of the tight run| [times]
    error: float  # from the reference
    energy: dict[str, np.ndarray]  # deviation from that at the start [times]
    steps: dict[str, int]
    seconds: float  # of the fixed steps


def readings() -> tuple[jd.Model, jd.Model]:
    """The gripper in both readings, as models of one topology, for one program."""
    middle, tip = jd.robots.gripper(), jd.robots.gripper(at_tip=True)
    return middle, eqx.tree_at(lambda model: model.p, middle, tip.p)


def torques(model: jd.Model, given: Motion, reference: dict[str, Any]) -> Forces:
    """The joint torques along the motion of eq. 15."""
    q0, q1 = jnp.deg2rad(jnp.array(given.start)), jnp.deg2rad(jnp.array(given.end))
    path = motion.cycloidal(model, q0, q1, given.duration)
    ts = jnp.linspace(0.0, given.duration, given.samples)
    wanted = _along(path, ts)
    rates = wanted.q, wanted.qd, wanted.qdd
    found = {x: _timed(_torques, model, *rates, x) for x in METHODS}
    tau, seconds = found["denoc"]
    return Forces(
        model=model,
        ts=np.asarray(ts),
        motion=wanted,
        tau=tau,
        apart=max(float(np.abs(x - tau).max()) for x, _ in found.values()),
        error=difference(tau, ts, reference["tau"], reference["t"]),
        seconds=seconds,
    )


def fall(model: jd.Model, given: Fall, reference: dict[str, Any]) -> Falls:
    """The fall by Runge-Kutta steps of fixed length, and by adaptive ones."""
    q0, rest = jnp.deg2rad(jnp.array(given.start)), jnp.zeros(model.nv)
    ts = jnp.linspace(0.0, given.duration, given.samples)
    count = round(given.duration / given.step)
    forces = jnp.zeros((count, model.nv))
    fixed = partial(jd.rollout, integrator="rk4")
    (qs, qds), seconds = _timed(fixed, model, q0, rest, forces, given.step)
    rows = slice(None, None, count // (given.samples - 1))
    controller = diffrax.PIDController(rtol=given.tolerance, atol=given.tolerance)
    tight = jd.simulate(
        model,
        q0,
        rest,
        ts,
        solver=diffrax.Dopri8(),
        stepsize_controller=controller,
    )
    energies = {
        "fixed": _energy(model, qs[rows], qds[rows]),
        "tight": tight.energy,
    }
    return Falls(
        ts=np.asarray(ts),
        q=np.asarray(tight.q),
        fixed=np.abs(np.asarray(qs)[rows] - tight.q).max(axis=1),
        error=difference(tight.q, ts, reference["q"], reference["t"]),
        energy={name: np.abs(np.asarray(e - e[0])) for name, e in energies.items()},
        steps={
            "fixed": count,
            "tight": int(tight.stats["num_steps"]),
        },
        seconds=seconds,
    )


@jax.jit
def _along(path: Any, ts: Any) -> motion.JointMotion:
    return jax.vmap(path)(ts)


@partial(jax.jit, static_argnames="method")
def _torques(model: jd.Model, q: Any, qd: Any, qdd: Any, method: str) -> Any:
    one = partial(jd.inverse_dynamics, model, method=method)
    return jax.vmap(one)(q, qd, qdd)


@jax.jit
def _energy(model: jd.Model, q: Any, qd: Any) -> Any:
    def one(q: Any, qd: Any) -> Any:
        return jd.kinetic_energy(model, q, qd) + jd.potential_energy(model, q)

    return jax.vmap(one)(q, qd)


def by_modules(model: jd.Model, q: Any) -> tuple[np.ndarray, np.ndarray]:
    """U and D of eq. 18: block elimination of one module after the other.

    With N^i and A^{i,β} cut from the matrices N_l and N_d (eqs. 7a and 10), articulated
    masses of the modules inward (eqs. 19 to 21). The blocks of D are full.
    """
    N_l, N_d = map(np.asarray, jd.denoc_matrices(model, q))
    bodies = [[model.body(name) for name in names] for names in model.modules.bodies]
    rows = [np.concatenate([np.arange(6 * k, 6 * k + 6) for k in x]) for x in bodies]
    columns = [np.concatenate([np.r_[model.v_slice(k)] for k in x]) for x in bodies]
    N_i = [(N_l @ N_d)[np.ix_(r, c)] for r, c in zip(rows, columns, strict=True)]
    M_hat = [mass_of(model, q)[np.ix_(r, r)] for r in rows]
    D, U = np.zeros((model.nv, model.nv)), np.eye(model.nv)
    for i in reversed(range(len(bodies))):
        psi_hat = M_hat[i] @ N_i[i]
        D[np.ix_(columns[i], columns[i])] = I_hat = N_i[i].T @ psi_hat
        psi = psi_hat @ np.linalg.inv(I_hat)
        left = M_hat[i] - psi @ N_i[i].T @ M_hat[i]
        j, handed = model.modules.parents[i], N_l[rows[i]]
        while j >= 0:
            A = _of_last_body(handed, rows[j])
            U[np.ix_(columns[j], columns[i])] = N_i[j].T @ A.T @ psi
            if j == model.modules.parents[i]:
                M_hat[j] = M_hat[j] + A.T @ left @ A
            j = model.modules.parents[j]
    return U, D


def _of_last_body(N_l: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The matrix A^{i,β}: its columns are zero but for the last body of the parent."""
    A = np.zeros((len(N_l), len(rows)))
    A[:, -6:] = N_l[:, rows[-6:]]
    return A


def mass_of(model: jd.Model, q: Any) -> np.ndarray:
    """The mass matrices of all bodies about their origins, in world axes, [v; ω]."""
    M = np.zeros((6 * model.n, 6 * model.n))
    R = np.asarray(jd.forward_kinematics(model, q).R)
    for k in range(model.n):
        m, d = float(model.mass[k]), R[k] @ np.asarray(model.com[k])
        skew = np.cross(np.eye(3), d)  # times x: d x x
        I = R[k] @ np.asarray(model.inertia[k]) @ R[k].T + m * skew @ skew.T
        at = slice(6 * k, 6 * k + 6)
        M[at, at] = np.block([[m * np.eye(3), m * skew.T], [m * skew, I]])
    return M


def _timed(function: Callable, *args: Any) -> tuple[Any, float]:
    """What the function returns, and the least time of some calls after the first."""
    result, spent = jax.block_until_ready(function(*args)), []
    for _ in range(5):
        start = time.perf_counter()
        jax.block_until_ready(function(*args))
        spent.append(time.perf_counter() - start)
    return jax.tree.map(np.asarray, result), min(spent)


def difference(found: Any, ts: Any, reference: Any, times: Any) -> float:
    """The largest difference at the times that both have; they must share some."""
    at = [
        (i, j) for j, t in enumerate(times) for i in np.flatnonzero(abs(ts - t) < 1e-9)
    ]
    if not at:
        raise ValueError("the samples share no instant with the reference.")
    i, j = np.array(at).T
    return float(np.abs(np.asarray(found)[i] - np.array(reference)[j]).max())
