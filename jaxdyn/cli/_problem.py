"""From settings to a simulation that is ready to run."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import optimistix

import jaxdyn.motion as motions
from jaxdyn.algorithms.kinematics import forward_kinematics, frame_poses, neutral
from jaxdyn.cli import _settings as settings
from jaxdyn.cli._robots import robot_model
from jaxdyn.io import load_log, radians
from jaxdyn.model import Model
from jaxdyn.simulate import adaptive_steps, joint_limit_event

ROWS = 501  # unless the settings say otherwise


@dataclass(frozen=True)
class Problem:
    """What `simulate` needs, and the motion that is wanted, if there is one."""

    model: Model
    q0: Any
    qd0: Any
    ts: Any
    motion: Any
    options: dict[str, Any]


def prepare(config: settings.Simulation, folder: Path) -> Problem:
    """The simulation that the settings describe; their paths start at the folder."""
    numbers = _Numbers(robot_model(config.robot, folder, config.dtype), config.degrees)
    model = numbers.model
    if model.loops:
        _check_loops(config, model)
    motion = _motion(config, numbers)
    q0, qd0 = _start(config.start, numbers, motion)
    ts = _times(config.time, model, motion)
    options = _solver(config.solver, ts) | {
        "torque": _torque(config.control, numbers, motion),
        "f_ext": _wrenches(config.external, model),
    }
    if config.stop_at_limits:
        options["event"] = _limits(model, q0)
    return Problem(model, q0, qd0, ts, motion, options)


@dataclass(frozen=True)
class _Numbers:
    """Lists of numbers from the settings as arrays for one robot."""

    model: Model
    degrees: bool

    def poses(self, key: str, q: Sequence[float]) -> Any:
        made = self._array(key, q, "nq", "q" if self.degrees else None)
        for places in self.model.topology.quaternion_q:
            length = np.linalg.norm(made[places])
            if abs(length - 1) > 1e-3:
                raise ValueError(
                    f"{key}: the quaternion in numbers {places[0]} to {places[-1]} "
                    f"has length {length:.4g}, expected 1."
                )
        return made

    def rates(self, key: str, qd: Sequence[float]) -> Any:
        return self._array(key, qd, "nv", "qd" if self.degrees else None)

    def forces(self, key: str, tau: float | Sequence[float]) -> Any:
        each = [tau] * self.model.nv if isinstance(tau, int | float) else tau
        return self._array(key, each, "nv", None)

    def optional(self, read: Callable, table: Any, *names: str) -> dict[str, Any]:
        """What is given of these keys of the table motion."""
        given = {name: getattr(table, name) for name in names}
        return {k: read(f"motion.{k}", x) for k, x in given.items() if x is not None}

    def _array(self, key: str, x: Sequence[float], size: str, turned: Any) -> Any:
        if len(x) != getattr(self.model, size):
            raise ValueError(
                f"{key} has {len(x)} numbers, expected {size} = "
                f"{getattr(self.model, size)} for robot {self.model.name!r}."
            )
        x = x if turned is None else radians(self.model, turned, x).tolist()
        return jnp.asarray(x, self.model.dtype)


def _check_loops(config: settings.Simulation, model: Model) -> None:
    """Raise a `ValueError` for what is not for mechanisms with loops."""
    kinds = (settings.NoControl, settings.Constant, settings.Samples)
    if not isinstance(config.control, kinds):
        raise ValueError(
            f"control.kind is {config.control.kind!r}, which drives all joints of a "
            f"tree, but robot {model.name!r} has loops: expected one of: 'none', "
            "'constant', 'samples'."
        )
    if config.solver.method != "denoc":
        raise ValueError(
            f"solver.method is {config.solver.method!r}, but robot {model.name!r} has "
            "loops: expected 'denoc'."
        )


def _motion(config: settings.Simulation, numbers: _Numbers) -> Any:
    at, model = config.motion, numbers.model
    if at is None:
        return None
    pose, rates = numbers.poses, numbers.rates
    if isinstance(at, settings.Spline):
        rows = [pose(f"motion.qs[{k}]", q) for k, q in enumerate(at.qs)]
        times = jnp.asarray(at.times, model.dtype)
        more = numbers.optional(rates, at, "qd0", "qd1")
        return motions.spline(model, times, jnp.stack(rows), **more)
    if isinstance(at, settings.Recorded):
        return _recorded(at, model)
    start = numbers.optional(pose, at, "q0").get("q0")
    if start is None:
        given = config.start.q
        start = neutral(model) if given is None else pose("start.q", given)
    if isinstance(at, settings.StraightLine):
        return _line(at, model, start)
    end = pose("motion.q1", at.q1)
    if isinstance(at, settings.Cycloidal):
        return motions.cycloidal(model, start, end, at.duration)
    more = numbers.optional(rates, at, "qd0", "qd1", "qdd0", "qdd1")
    return motions.polynomial(model, start, end, at.duration, **more)


def _recorded(at: settings.Recorded, model: Model) -> Any:
    """The motion of a log, at rest at its ends unless the log has rates there."""
    log = load_log(at.file, model, ignore="*", degrees=at.degrees)
    rows = np.append(np.arange(0, len(log.ts) - 1, at.every), len(log.ts) - 1)
    given = {"times": (log.ts - log.ts[0])[rows], "qs": log.q[rows]}
    if log.qd is not None:
        given |= {"qd0": log.qd[0], "qd1": log.qd[-1]}
    arrays = {name: jnp.asarray(x, model.dtype) for name, x in given.items()}
    return motions.spline(model, **arrays)


def _line(at: settings.StraightLine, model: Model, q0: Any) -> Any:
    """The straight line; attitude and start are those of the pose, if so wished."""
    k = _index("motion.frame", at.frame, [*model.frame_names, *model.names])
    poses = [frame_poses(model, q0), forward_kinematics(model, q0)]
    attitude, place = (
        jnp.concatenate([getattr(x, name) for x in poses])[k] for name in ("R", "p")
    )
    if at.attitude == "free":
        attitude = None
    elif at.attitude != "start":
        attitude = jnp.asarray(at.attitude, model.dtype)
    start = place if at.start is None else jnp.asarray(at.start, model.dtype)
    end = jnp.asarray(at.end, model.dtype)
    options: dict[str, Any] = dict(attitude=attitude, q0=q0, law=at.law, throw=False)
    motion = motions.straight_line(model, at.frame, start, end, at.duration, **options)
    if not motion.converged:
        raise ValueError(
            f"motion: {at.frame!r} cannot follow the line: it is off by "
            f"{motion.error[0]:.2g} m and {motion.error[1]:.2g} rad, smallest singular "
            f"value of the Jacobian {motion.singular_value:.2g}: change start, end, "
            "attitude or q0."
        )
    return motion


def _index(key: str, name: str, known: Sequence[str]) -> int:
    if name not in known:
        raise ValueError(f"{key} is {name!r}, expected one of: {', '.join(known)}.")
    return known.index(name)


def _start(given: settings.Start, numbers: _Numbers, motion: Any) -> tuple[Any, Any]:
    model = numbers.model
    q, qd = neutral(model), jnp.zeros(model.nv, model.dtype)
    if motion is not None:
        first = motion(jnp.zeros((), model.dtype))
        q, qd = first.q, first.qd
    q = q if given.q is None else numbers.poses("start.q", given.q)
    qd = qd if given.qd is None else numbers.rates("start.qd", given.qd)
    try:
        return motions.closed_state(model, q, qd)
    except ValueError as error:
        raise ValueError(f"start.{error}") from None


def _times(given: settings.Time, model: Model, motion: Any) -> Any:
    end = float(motion.duration) if given.end is None else given.end
    rows = ROWS if given.samples is None else given.samples
    if given.dt is not None:
        most = settings.MOST_ROWS
        if end / given.dt > most:
            raise ValueError(
                f"time.dt is {given.dt}, expected at least {end / most:.6g}: {most} "
                f"rows to time.end = {end:.6g} at most."
            )
        rows = round(end / given.dt) + 1
        if rows < 2 or abs((rows - 1) * given.dt - end) > 1e-6 * end:
            raise ValueError(
                f"time.dt is {given.dt}, expected a part of time.end = {end:.6g}."
            )
    return jnp.linspace(0, end, rows, dtype=model.dtype)


def _torque(given: Any, numbers: _Numbers, motion: Any) -> Any:
    model, forces = numbers.model, numbers.forces
    if isinstance(given, settings.NoControl):
        return None
    if isinstance(given, settings.Constant):
        return forces("control.tau", given.tau)
    if isinstance(given, settings.Samples):
        rows = [forces(f"control.taus[{k}]", x) for k, x in enumerate(given.taus)]
        times, taus = jnp.asarray(given.times, model.dtype), jnp.stack(rows, axis=1)
        return lambda t, q, qd: jax.vmap(lambda x: jnp.interp(t, times, x))(taus)
    if isinstance(given, settings.Feedforward):
        return motions.feedforward(model, motion, saturate=given.saturate)
    gains = forces("control.kp", given.kp), forces("control.kd", given.kd)
    if isinstance(given, settings.ComputedTorque):
        return motions.computed_torque(model, motion, *gains, saturate=given.saturate)
    if given.target is not None:
        target = numbers.poses("control.target", given.target)
    elif motion is not None:
        target = motion(motion.duration).q
    else:
        raise ValueError("control.target is missing, expected a pose: add it.")
    return motions.pd_gravity(model, target, *gains, saturate=given.saturate)


def _wrenches(given: list[settings.External], model: Model) -> Any:
    if not given:
        return None
    wrenches = np.zeros((model.n, 6))
    for k, push in enumerate(given):
        i = _index(f"external[{k}].body", push.body, model.names)
        wrenches[i] += [*push.force, *push.moment]
    return jnp.asarray(wrenches, model.dtype)


def _solver(given: settings.Solver, ts: Any) -> dict[str, Any]:
    solver = getattr(diffrax, given.name)()
    if given.step is not None and isinstance(solver, diffrax.AbstractImplicitSolver):
        usual = adaptive_steps(ts)
        roots = diffrax.VeryChord(float(usual.rtol), float(usual.atol))
        solver = dataclasses.replace(solver, root_finder=roots)
    options = dict(method=given.method, solver=solver, max_steps=given.max_steps)
    if given.step is not None:
        if float(ts[-1]) / given.step > given.max_steps:
            raise ValueError(
                f"solver.step is {given.step}, which takes more than solver.max_steps "
                f"= {given.max_steps} steps to {float(ts[-1]):.6g} s."
            )
        controller = diffrax.ConstantStepSize()
        return options | dict(stepsize_controller=controller, dt0=given.step)
    if not isinstance(solver, diffrax.AbstractAdaptiveSolver):
        raise ValueError(f"solver.name is {given.name!r}, which wants solver.step.")
    controller = adaptive_steps(ts, given.rtol, given.atol)
    return options | dict(stepsize_controller=controller)


def _limits(model: Model, q0: Any) -> Any:
    beyond = np.flatnonzero((q0 < model.lower) | (q0 > model.upper))
    if beyond.size:
        k = int(beyond[0])
        raise ValueError(
            f"start.q[{k}] is {q0[k]:.6g}, expected {model.lower[k]:.6g} to "
            f"{model.upper[k]:.6g}, the limits of the joint."
        )
    tolerance = 1e-8 if model.dtype == np.float64 else 1e-5
    find = optimistix.Bisection(tolerance, tolerance, flip=True)
    return joint_limit_event(model, root_finder=find)
