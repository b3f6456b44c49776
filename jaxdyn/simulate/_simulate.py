"""Simulation with diffrax: from a state to a trajectory."""

from dataclasses import replace
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from jaxdyn.algorithms.loops import loop_residual
from jaxdyn.algorithms.recursions import kinetic_energy, potential_energy
from jaxdyn.dynamics import check_resisted
from jaxdyn.model import Model, Nq, Nv, arguments, is_index
from jaxdyn.simulate._drift import Drift, Projected, check_closed, check_drift
from jaxdyn.simulate._equations import Equations, check_method, control_size
from jaxdyn.simulate._events import check_start, watched
from jaxdyn.simulate._signals import signal
from jaxdyn.simulate._trajectory import Outcome, State, Trajectory


def simulate(
    model: Model,
    q0: Nq,
    qd0: Nv,
    ts: Float[Array, " times"],
    *,
    torque: Any = None,
    f_ext: Any = None,
    method: str = "denoc",
    loop_method: str = "range_space",
    drift: Drift = "projection",
    actuated: bool = False,
    solver: diffrax.AbstractSolver | None = None,
    stepsize_controller: diffrax.AbstractStepSizeController | None = None,
    adjoint: diffrax.AbstractAdjoint | None = None,
    event: diffrax.Event | None = None,
    progress: diffrax.AbstractProgressMeter | bool = False,
    dense: bool = False,
    dt0: float | None = None,
    max_steps: int = 100_000,
    throw: bool = True,
) -> Trajectory:
    r"""The motion from the state at `ts[0]` on, at the times `ts`.

    $$\dot q = \dot q(q, \text{qd}), \quad
      \dot{\text{qd}} = M^{-1}(\tau - h + \sum_i J_i^T f_i)$$

    The vector field keeps quaternions on the unit sphere: what the solver's error does
    to their length has no effect on the motion, and results are of unit length. Loops
    of the model stay closed if the first state closes them. The whole is compiled once
    for each topology, number of times and choice of options, and differentiable by the
    state, the model, and the parameters of torque and f_ext.

    Args:
        ts: increasing times, also where they are rounded to the type of the model.
        torque: joint forces: a function (t, q, qd), such as an `eqx.Module` with
            parameters, samples for all times in `ts` (linear in between), a constant,
            or None for none.
        f_ext: wrenches on the bodies as in `forward_dynamics`, in the same forms.
        method: the formulation of `forward_dynamics`; "denoc" for a model with loops.
        loop_method: the one of `constrained_dynamics`, for a model with loops.
        drift: what becomes of the error with which a solver opens loops. "projection":
            each step ends with `project_configuration` and `project_velocity`, and so
            do all results; a `Baumgarte` lets it decay; None leaves it.
        actuated: whether `torque` are controls of the model's actuators, see `actuate`.
        solver: by default Dormand and Prince's 5(4) pair; any of diffrax for one
            ordinary differential equation.
        stepsize_controller: by default adaptive, with a relative tolerance of 1e-8 and
            an absolute one of 1e-10 (float32: 1e-5, 1e-6); with
            `diffrax.ConstantStepSize()` give `dt0`.
        adjoint: by default `diffrax.RecursiveCheckpointAdjoint()`, for reverse mode;
            `diffrax.ForwardMode()` is for forward mode, `DirectAdjoint()` for both.
        event: ends the simulation; its conditions are called as (t, y, args, **other)
            with the `State` y. See `joint_limit_event`.
        progress: a progress meter, or True for a bar.
        dense: whether `Trajectory.at` can tell the state at any time.
        dt0: the length of the first step; by default chosen by the controller.
        throw: whether a failure raises; otherwise it is `Trajectory.result`.

    Raises:
        ValueError: wrong shapes, times that do not increase, a solver for other terms,
            forward mode by an adjoint for reverse mode, a first state that is not
            finite, opens a loop or is beyond a limit of the event; a joint that no
            inertia resists, if the reader of the model noted it.
        RuntimeError: too many steps, too short steps, a motion that is not finite; in
            traced code also a start beyond a limit.
    """
    model, q0, qd0 = arguments(model, q0=q0, qd0=qd0)
    ts = jnp.asarray(ts).astype(q0.dtype)
    _check_times(ts)
    check_resisted(model)
    check_start(model, q0, qd0, event)
    check_closed(model, q0, qd0)
    check_method(method, loop_method, model)
    if not is_index(max_steps) or max_steps < 1:
        raise ValueError(
            f"max_steps is {max_steps!r}, expected a whole number from 1 on."
        )
    solver = diffrax.Dopri5() if solver is None else solver
    if solver.term_structure is not diffrax.AbstractTerm:
        raise ValueError(
            f"solver is {type(solver).__name__}, expected one for a single ordinary "
            "differential equation, such as diffrax.Tsit5 or diffrax.Kvaerno5; "
            "jaxdyn.rollout has semi-implicit steps."
        )
    options = dict(
        solver=solver,
        stepsize_controller=_controller(stepsize_controller, ts, dt0),
        adjoint=diffrax.RecursiveCheckpointAdjoint() if adjoint is None else adjoint,
        event=event,
        progress_meter=_meter(progress),
        dt0=dt0,
        max_steps=int(max_steps),
    )
    equations = Equations(
        model,
        torque=signal("torque", torque, ts, (control_size(model, actuated),)),
        f_ext=None if f_ext is None else signal("f_ext", f_ext, ts, (model.n, 6)),
        drift=check_drift(drift, model),
        method=method,
        loop_method=loop_method,
        actuated=bool(actuated),
    )
    start = State(q0, qd0)
    if equations.is_projected:
        start = equations.on_constraints(start)
    try:
        trajectory = _solve(equations, start, ts, dense, options)
    except TypeError as error:
        if "forward-mode autodiff" not in str(error):
            raise
        raise ValueError(
            f"adjoint is {type(options['adjoint']).__name__}, which has no forward "
            "mode: for jax.jvp and jax.jacfwd give adjoint=diffrax.ForwardMode()."
        ) from error
    # the program may have been traced for a model with other names
    trajectory = replace(trajectory, topology=model.topology)
    return _raise_failure(trajectory) if throw else trajectory


@eqx.filter_jit
def _solve(
    equations: Equations, start: State, ts: Any, dense: bool, options: dict[str, Any]
) -> Trajectory:
    # a list, since some adjoints do not take all pytrees
    dynamic, static = eqx.partition(equations, eqx.is_array)
    arrays, structure = jax.tree.flatten(dynamic)
    model = equations.model

    def of(arrays: Any) -> Equations:
        return eqx.combine(jax.tree.unflatten(structure, arrays), static)

    if equations.is_projected:
        solver = Projected(options["solver"], lambda y, x: of(x).on_constraints(y))
        options = options | dict(solver=solver)
    # the state at an event is no row: then, and only then, it is saved apart
    rows = diffrax.SubSaveAt(ts=ts)
    subs = rows if options["event"] is None else [rows, diffrax.SubSaveAt(t1=True)]
    found: Any = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, y, arrays: of(arrays).slope(t, y)),
        t0=ts[0],
        t1=ts[-1],
        y0=start,
        args=arrays,
        saveat=diffrax.SaveAt(subs=subs, dense=dense),
        throw=False,
        **options,
    )
    has_event = options["event"] is not None
    times, ys = (found.ts[0], found.ys[0]) if has_event else (found.ts, found.ys)

    def row(t: Any, y: State, reached: Any) -> Any:
        # rows that were not reached are computed at the start, so that their NaN, set
        # afterwards, stays out of derivatives
        y = jax.tree.map(lambda a, b: jnp.where(reached, a, b), y, start)
        values = _row(equations, t, y)
        return jax.tree.map(lambda x: jnp.where(reached, x, jnp.nan), values)

    reached = jnp.isfinite(times)
    columns = jax.vmap(row)(ts, ys, reached)
    if has_event:
        end_time, end = jax.tree.map(lambda x: x[0], (found.ts[1], found.ys[1]))
        end = equations.on_constraints(end)
    else:
        last = reached.sum() - 1
        end_time, end = times[last], State(columns["q"][last], columns["qd"][last])
    is_finite = (jnp.isfinite(columns["qdd"]).all(axis=1) | ~reached).all()
    is_finite &= jnp.isfinite(jnp.concatenate([start.q, start.qd])).all()
    result = Outcome.promote(found.result)
    for limits in watched(options["event"]):
        is_beyond = (limits.inside(start.q) < 0).any()
        result = Outcome.where(is_beyond, Outcome.starts_beyond_limit, result)
    counts = ("num_steps", "num_accepted_steps", "num_rejected_steps")
    return Trajectory(
        ts=ts,
        **columns,
        end_time=end_time,
        end=end,
        event_mask=found.event_mask,
        stats={name: found.stats[name] for name in counts},
        result=Outcome.where(is_finite, result, Outcome.not_finite),
        interpolation=found.interpolation,
        closing=model if dense and equations.is_projected else None,
        topology=model.topology,
    )


def _row(equations: Equations, t: Any, y: State) -> dict[str, Any]:
    """What a trajectory holds of one time."""
    if equations.is_projected:
        y = equations.on_constraints(y)
    model = equations.model
    q, tau, f_ext, qdd, loop_forces = equations(t, y)
    return dict(
        q=q,
        qd=y.qd,
        qdd=qdd,
        tau=tau,
        f_ext=f_ext,
        loop_forces=loop_forces,
        loop_residual=loop_residual(model, q) if model.loops else None,
        kinetic_energy=kinetic_energy(model, q, y.qd),
        potential_energy=potential_energy(model, q),
    )


def _raise_failure(trajectory: Trajectory) -> Trajectory:
    """The trajectory, if it is successful; known only when it runs inside of `jit`."""
    failed = ~trajectory.is_successful
    if isinstance(failed, Tracer):
        return trajectory.result.error_if(trajectory, failed)
    if failed:
        raise RuntimeError(
            f"simulate: {Outcome[trajectory.result]} The motion ended at t = "
            f"{trajectory.end_time} of {trajectory.ts[-1]} after "
            f"{trajectory.stats['num_steps']} steps; throw=False returns it."
        )
    return trajectory


def _controller(given: Any, ts: Any, dt0: float | None) -> Any:
    if isinstance(given, diffrax.ConstantStepSize) and dt0 is None:
        raise ValueError(
            "dt0 is None, expected the length of the steps, for ConstantStepSize."
        )
    return adaptive_steps(ts) if given is None else given


class AdaptiveSteps(diffrax.PIDController):
    """A controller that gives up where the length of the next step is not a number.

    So it is after a state or a first slope that is not finite; steps that end at NaN
    would go on until `max_steps`.
    """

    def adapt_step_size(self, t0: Any, t1: Any, *others: Any, **named: Any) -> Any:
        """Whether a step is kept, where the next one begins and ends, and the rest."""
        kept, start, end, *rest, result = super().adapt_step_size(
            t0, t1, *others, **named
        )
        is_number = jnp.isfinite(end)
        failure = diffrax.RESULTS.dt_min_reached
        result = diffrax.RESULTS.where(is_number, result, failure)
        return kept, start, jnp.where(is_number, end, t1), *rest, result


def adaptive_steps(
    ts: Float[Array, " times"], rtol: float | None = None, atol: float | None = None
) -> diffrax.PIDController:
    """The controller that `simulate` uses by default.

    Steps that rounding would swallow are a failure, as where forces are not numbers.
    """
    is_double = ts.dtype == jnp.float64
    rtol = (1e-8 if is_double else 1e-5) if rtol is None else rtol
    atol = (1e-10 if is_double else 1e-6) if atol is None else atol
    shortest = jnp.abs(ts).max() * jnp.finfo(ts.dtype).eps
    return AdaptiveSteps(rtol, atol, dtmin=shortest, force_dtmin=False)


def _meter(given: diffrax.AbstractProgressMeter | bool) -> Any:
    if isinstance(given, bool):
        return diffrax.TqdmProgressMeter() if given else diffrax.NoProgressMeter()
    return given


def _check_times(ts: Any) -> None:
    if ts.ndim != 1 or len(ts) < 2:
        raise ValueError(f"ts has shape {ts.shape}, expected two times or more.")
    if isinstance(ts, Tracer):
        return
    wrong = np.flatnonzero(~np.isfinite(ts))
    if wrong.size:
        raise ValueError(f"ts[{wrong[0]}] is {ts[wrong[0]]}, expected a finite time.")
    wrong = np.flatnonzero(~(np.diff(ts) > 0))
    if wrong.size:
        k = int(wrong[0])
        raise ValueError(
            f"ts[{k + 1}] is {ts[k + 1]} after {ts[k]}, expected increasing times in "
            f"{ts.dtype}."
        )
