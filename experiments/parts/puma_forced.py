"""Simulations of the 6R PUMA of slender rods under the torques of a desired motion."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from experiments.parts.open_loop import (
    carried,
    departures,
    growth,
    median_times,
    state_matrices,
    step_control,
    transitions,
)
from jaxdyn import motion


@dataclass(frozen=True)
class Published:
    """What [Mohan] prints, in seconds; joints are numbered from 1."""

    recursive: tuple[float, float, float, float, float, float]
    nonrecursive: tuple[float, float, float, float, float, float]
    deviating: list[int]
    deviate_after: float
    recursive_in_text: float
    nonrecursive_in_text: float
    smooth_until: float


@dataclass(frozen=True)
class Config:
    """The settings of configs/puma_denoc.toml."""

    reference: Path
    turn: float
    duration: float
    until: float
    rows: int
    probe: float
    earlier_probe: float
    threshold: float
    methods: list[str]
    tolerance: float
    tolerances: list[float]
    largest_steps: list[float]
    shortest_step: float
    timed_until: float
    repeats: int
    growth_step: float
    kp: float
    kd: float
    published: Published


class Case(eqx.Module):
    """The robot, its desired motion and the torques for it."""

    model: jd.Model
    path: motion.Cycloidal
    law: motion.Feedforward

    @staticmethod
    def of(config: Config, has_gravity: bool = True) -> "Case":
        """The case of the paper, or the same without gravity."""
        model = jd.robots.puma_mohan_saha()
        if not has_gravity:
            model = eqx.tree_at(lambda m: m.gravity, model, jnp.zeros(3))
        end = jnp.full(model.nq, np.deg2rad(config.turn))
        path = motion.cycloidal(model, jnp.zeros(model.nq), end, config.duration)
        return Case(model, path, motion.feedforward(model, path))

    def simulate(self, ts: Any, method: str, control: Any, torque: Any = None) -> Any:
        """The motion from rest under the torques of the desired one."""
        at = self.path(0.0)
        return jd.simulate(
            self.model,
            at.q,
            at.qd,
            ts,
            torque=self.law if torque is None else torque,
            method=method,
            stepsize_controller=control,
            throw=False,  # far off the path it may spin without end
        )


@jax.jit
def desired(case: Case, ts: Any) -> tuple[Any, Any]:
    """The desired motion and its torques at many times."""
    return jax.vmap(lambda t: (case.path(t), case.law(t)))(ts)


@dataclass(frozen=True)
class Forced:
    """A simulation beside the desired motion."""

    method: str
    tolerance: float
    largest_step: float
    trajectory: Any
    wanted: Any

    @property
    def ts(self) -> np.ndarray:
        """The times."""
        return np.asarray(self.trajectory.ts)

    @property
    def steps(self) -> int:
        """The steps that were tried."""
        return int(self.trajectory.stats["num_steps"])

    def error(self, name: str) -> np.ndarray:
        """By how much q, qd or qdd differ from the desired ones."""
        found, wanted = getattr(self.trajectory, name), getattr(self.wanted, name)
        return np.asarray(found) - np.asarray(wanted)

    @property
    def powers(self) -> tuple[np.ndarray, np.ndarray]:
        """The desired and the simulated power of the actuators."""
        tau = np.asarray(self.trajectory.tau)
        rates = (np.asarray(x.qd) for x in (self.wanted, self.trajectory))
        wanted, found = ((tau * qd).sum(axis=1) for qd in rates)
        return wanted, found


@dataclass(frozen=True)
class Growth:
    """The transition matrix of deviations from the desired motion."""

    ts: np.ndarray
    A: np.ndarray
    phi: np.ndarray
    largest: np.ndarray

    @staticmethod
    def of(case: Case, config: Config) -> "Growth":
        """By integration of the linearized dynamics, with steps `growth_step`."""
        count = round(config.duration / config.growth_step)
        halves = jnp.linspace(0.0, config.duration, 2 * count + 1)
        at, tau = desired(case, halves)
        A = state_matrices(case.model, at.q, at.qd, tau)
        phi = transitions(A, jnp.asarray(config.duration / count))
        return Growth(np.asarray(halves)[::2], np.asarray(A)[::2], phi, growth(phi))

    def at(self, t: float) -> float:
        """The growth up to a time."""
        return float(np.exp(np.interp(t, self.ts, np.log(self.largest))))

    def predicted(self, forced: Forced, probe: float) -> tuple[Any, Any]:
        """Times after `probe`, and the errors of q that linear growth gives there."""
        k, row = (int(np.abs(ts - probe).argmin()) for ts in (self.ts, forced.ts))
        start = np.concatenate([forced.error("q")[row], forced.error("qd")[row]])
        later = carried(self.phi, k, start)[:, : len(start) // 2]
        return self.ts[k:], later


def forced(
    case: Case,
    config: Config,
    method: str,
    tolerance: float,
    largest_step: float | None = None,
    until: float | None = None,
) -> Forced:
    """One forced simulation."""
    until = config.until if until is None else until
    step = config.duration if largest_step is None else largest_step
    ts = jnp.linspace(0.0, until, config.rows)
    found = case.simulate(ts, method, step_control(tolerance, step))
    return Forced(method, tolerance, step, found, desired(case, ts)[0])


def study(case: Case, config: Config) -> list[Forced]:
    """Every method with every tolerance, then with every largest step."""
    runs = [
        forced(case, config, method, tolerance)
        for method in config.methods
        for tolerance in config.tolerances
    ]
    runs += [
        forced(case, config, method, config.tolerance, step)
        for method in config.methods
        for step in config.largest_steps
    ]
    first = config.methods[0]
    shortest = forced(case, config, first, config.tolerance, config.shortest_step)
    return [*runs, shortest]


def leaving(run: Forced, threshold: float) -> np.ndarray:
    """When each joint leaves the path."""
    return departures(run.ts, run.error("q"), threshold)


def leaving_predicted(
    growth: Growth, run: Forced, probe: float, threshold: float
) -> np.ndarray:
    """When each joint is to leave the path, from the error at the probe alone."""
    return departures(*growth.predicted(run, probe), threshold)


def closed_loop(case: Case, config: Config) -> Forced:
    """The whole motion under computed torque."""
    ts = jnp.linspace(0.0, config.duration, config.rows)
    law = motion.computed_torque(case.model, case.path, config.kp, config.kd)
    control = step_control(config.tolerance, config.duration)
    found = case.simulate(ts, config.methods[0], control, law)
    wanted = desired(case, ts)[0]
    return Forced("closed loop", config.tolerance, config.duration, found, wanted)


def evaluation_errors(case: Case, methods: list[str], reference: Any) -> dict[str, Any]:
    """Largest and mean error in rad/s² of the accelerations of single evaluations.

    Along the desired motion, from torques that were rounded from 50 digits. The last
    row multiplies with the inverse of the inertia matrix.
    """
    q, qd, qdd, tau = (jnp.asarray(reference[k]) for k in ("q", "qd", "qdd", "tau"))

    def inverted(model: jd.Model, q: Any, qd: Any, tau: Any) -> Any:
        return jnp.linalg.inv(jd.mass_matrix(model, q)) @ (
            tau - jd.bias_forces(model, q, qd)
        )

    found = {}
    for method in [*methods, "inverse of M"]:
        one = inverted if method == "inverse of M" else _forward(method)
        each = jax.jit(jax.vmap(one, (None, 0, 0, 0)))
        error = np.abs(np.asarray(each(case.model, q, qd, tau) - qdd))
        found[method] = float(error.max()), float(error.mean())
    return found


def _forward(method: str) -> Any:
    def accelerations(model: jd.Model, q: Any, qd: Any, tau: Any) -> Any:
        return jd.forward_dynamics(model, q, qd, tau, method=method)

    return accelerations


def timing(case: Case, config: Config) -> dict[tuple[str, float], tuple[int, float]]:
    """Steps and median seconds of the first two methods for each largest step."""
    ts = jnp.linspace(0.0, config.timed_until, config.rows)
    runs, steps = {}, {}
    for method in config.methods[:2]:
        for step in config.largest_steps:
            control = step_control(config.tolerance, step)

            def run(method: str = method, control: Any = control) -> Any:
                return case.simulate(ts, method, control)

            runs[method, step] = run
            steps[method, step] = int(run().stats["num_steps"])
    medians = median_times(runs, config.repeats)
    return {key: (steps[key], medians[key]) for key in runs}


def inertia(case: Case, q: Any) -> tuple[float, float]:
    """The largest condition number and the smallest eigenvalue of M along a motion."""
    M = np.asarray(jax.jit(jax.vmap(jd.mass_matrix, (None, 0)))(case.model, q))
    values = np.linalg.eigvalsh(M)
    return float((values[:, -1] / values[:, 0]).max()), float(values.min())


def load_reference(path: Path) -> Any:
    """The desired motion and its torques by independent software."""
    return json.loads(path.read_text(encoding="utf-8"))["trajectory"]
