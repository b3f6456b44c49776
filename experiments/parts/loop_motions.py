"""Motions of mechanisms with loops, by Runge-Kutta steps, under three kinds of care."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jaxdyn as jd
from experiments.parts.timed_programs import QUICK

CARES = ("none", "Baumgarte", "projection")
MECHANISMS = {
    "four-bar": jd.robots.four_bar,
    "five-bar": jd.robots.five_bar,
    "slider-crank": jd.robots.slider_crank,
    "3-RRR": jd.robots.three_rrr,
    "Stewart-Gough": jd.robots.stewart_gough,
}
# classical Runge-Kutta: how far each stage goes ahead, and its share of the step
_AHEAD, _SHARE = (1 / 2, 1 / 2, 1.0, 0.0), (1 / 6, 1 / 3, 1 / 3, 1 / 6)


@dataclass(frozen=True)
class Steps:
    """How the motions are computed."""

    duration: float
    step: float
    frequency: float  # of Baumgarte's method, in rad/s
    damping: float


@dataclass(frozen=True)
class Mechanism:
    """A mechanism, where it starts, and its motion by independent software."""

    name: str
    model: jd.Model
    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    reference: dict[str, Any]


@dataclass(frozen=True)
class Rows:
    """A motion under one kind of care, a row for each step."""

    ts: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    forces: np.ndarray  # of the loops
    residual: np.ndarray  # the widest opening of any row, m
    drift: np.ndarray  # energy less work, less that at the start, J
    energy: np.ndarray  # J


@dataclass(frozen=True)
class Balance:
    """What is left over of the equations at rows of a motion, relative."""

    motion: float  # M qdd + h - tau - Psi^T lambda
    closure: float  # Psi qdd + dPsi/dt qd
    cut: float  # accelerations of the cut tree under the loop forces less qdd


def mechanisms(*references: Path) -> list[Mechanism]:
    """The mechanisms at the starts that the reference motions have."""
    texts = [path.read_text(encoding="utf-8") for path in references]
    cases = [case for text in texts for case in json.loads(text)["cases"]]
    made = []
    for (name, make), case in zip(MECHANISMS.items(), cases, strict=True):
        model, motion = make(), case["motion"]
        q, qd, tau = motion["q"][0], motion["qd"][0], motion["tau"]
        start = np.array(q), np.array(qd), np.array(tau)
        assert model.name == case["model"]["name"]
        made.append(Mechanism(name, model, *start, motion))
    return made


def motions(given: list[Mechanism], steps: Steps) -> list[dict[str, Rows]]:
    """The motion of each mechanism under each kind of care."""
    count = round(steps.duration / steps.step)

    def one(x: Mechanism) -> dict[str, Rows]:
        program = jax.jit(partial(_motion, count))
        start = x.model, *map(jnp.asarray, (x.q, x.qd, x.tau)), jnp.asarray(steps.step)
        found = {}
        for care in CARES:
            frequency = steps.frequency if care == "Baumgarte" else 0.0
            baumgarte = jd.Baumgarte(jnp.asarray(frequency), jnp.asarray(steps.damping))
            is_projected = jnp.asarray(care == "projection")
            rows = program(*start, baumgarte, is_projected)
            found[care] = Rows(
                np.arange(count + 1) * steps.step, *map(np.asarray, rows)
            )
        return found

    with ThreadPoolExecutor(2) as pool:  # compiling is most of the time
        found = list(pool.map(one, given[::-1]))  # the largest first
    return found[::-1]


def _motion(
    count: int,
    model: jd.Model,
    q0: Any,
    qd0: Any,
    tau: Any,
    h: Any,
    baumgarte: jd.Baumgarte,
    is_projected: Any,
) -> Any:
    """The rows of `Rows` but for the times; without Baumgarte the frequency is zero."""

    def rate(y: Any) -> Any:
        q, qd, _ = y
        qdd, forces = jd.constrained_dynamics(model, q, qd, tau, baumgarte=baumgarte)
        return (jd.configuration_rate(model, q, qd), qdd, tau @ qd), forces

    def step(y: Any, _: None) -> Any:
        def stage(carried: Any, weights: Any) -> Any:
            (place, total), (ahead, share) = carried, weights
            slope, forces = rate(place)
            place = jax.tree.map(lambda y, s: y + ahead * h * s, y, slope)
            total = jax.tree.map(lambda y, s: y + share * h * s, total, slope)
            return (place, total), (slope[1], forces)

        weights = jnp.array(_AHEAD), jnp.array(_SHARE)
        (_, (q, qd, work)), (qdd, forces) = lax.scan(stage, (y, y), weights)
        q = jd.integrate(model, q, jnp.zeros(model.nv))  # quaternions of unit length
        closed = jd.project_configuration(model, q)
        slower = jd.project_velocity(model, closed, qd)
        q, qd = (jnp.where(is_projected, a, b) for a, b in ((closed, q), (slower, qd)))
        energy = jd.kinetic_energy(model, *y[:2]) + jd.potential_energy(model, y[0])
        residual = jnp.abs(jd.loop_residual(model, y[0])).max()
        row = *y[:2], qdd[0], forces[0], residual, energy - y[2], energy
        return (q, qd, work), row

    start = q0, qd0, jnp.zeros(())
    _, rows = lax.scan(step, start, None, length=count + 1)
    *others, balance, energy = rows
    return *others, balance - balance[0], energy


def balances(given: list[Mechanism], found: list[Rows], count: int) -> list[Balance]:
    """The equations of [Ghosal] and the cut tree of [Shah] at some rows of motions."""

    def one(pair: tuple[Mechanism, Rows]) -> Balance:
        x, rows = pair
        k = np.linspace(0, len(rows.ts) - 1, count).astype(int)
        at = [jnp.asarray(y[k]) for y in (rows.q, rows.qd, rows.qdd, rows.forces)]
        many = jax.vmap(_balance, (None, 0, 0, 0, 0, None))
        left = jax.jit(many, compiler_options=QUICK)(x.model, *at, jnp.asarray(x.tau))
        return Balance(*(float(y.max()) for y in left))

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, zip(given, found, strict=True)))


def _balance(model: jd.Model, q: Any, qd: Any, qdd: Any, forces: Any, tau: Any) -> Any:
    M, h = jd.mass_matrix(model, q), jd.bias_forces(model, q, qd)
    Psi, bias = jd.loop_jacobian(model, q), jd.loop_bias(model, q, qd)
    motion = M @ qdd + h - tau - Psi.T @ forces
    tree = model.without_loops()
    open_ = jd.forward_dynamics(tree, q, qd, tau, f_ext=wrenches(model, q, forces))

    def relative(x: Any, *parts: Any) -> Any:
        return jnp.abs(x).max() / jnp.max(jnp.stack([jnp.abs(y).max() for y in parts]))

    return (
        relative(motion, M @ qdd, h, tau),
        relative(Psi @ qdd - bias, Psi @ qdd, bias),
        relative(open_ - qdd, qdd),
    )


def wrenches(model: jd.Model, q: Any, forces: Any) -> Any:
    """The loop forces as external forces on the bodies of the cut tree."""
    poses, total = jd.forward_kinematics(model, q), jnp.zeros((model.n, 6))
    for loop, wrench in zip(
        model.loops, jd.loop_wrenches(model, q, forces), strict=True
    ):
        f, n = wrench[:3], wrench[3:]
        a, b = loop.body_a, loop.body_b
        arm = poses.R[a] @ loop.p_a
        from_b = poses.p[a] + arm - poses.p[b]
        on_a = jnp.concatenate([f, n + jnp.cross(arm, f)])
        on_b = jnp.concatenate([f, n + jnp.cross(from_b, f)])
        total = total.at[a].add(on_a).at[b].add(-on_b)
    return total


def from_reference(x: Mechanism, rows: Rows) -> float:
    """The largest distance of the positions from the reference at common times."""
    step = rows.ts[1]
    at = [
        (round(t / step), j)
        for j, t in enumerate(x.reference["t"])
        if abs(t / step - round(t / step)) < 1e-6 and t <= rows.ts[-1] + 1e-9
    ]
    i, j = np.array(at).T
    return float(np.abs(rows.q[i] - np.array(x.reference["q"])[j]).max())
