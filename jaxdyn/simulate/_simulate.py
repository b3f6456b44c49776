"""Simulation with diffrax: from a state to a trajectory."""

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from jaxdyn.algorithms import (
    configuration_rate,
    kinetic_energy,
    potential_energy,
    unit_quaternions,
)
from jaxdyn.dynamics import forward_dynamics
from jaxdyn.model import Model, arguments
from jaxdyn.simulate._signals import Law, signal
from jaxdyn.simulate._trajectory import Outcome, State, Trajectory


def simulate(
    model: Model,
    q0: Float[Array, " nq"],
    qd0: Float[Array, " nv"],
    ts: Float[Array, " times"],
    *,
    torque: Any = None,
    f_ext: Any = None,
    method: str = "denoc",
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
    to their length has no effect on the motion, and results are of unit length. The
    whole is compiled once for each topology, number of times and choice of options, and
    differentiable by the state, the model, and the parameters of torque and f_ext.

    Args:
        ts: increasing times.
        torque: joint forces: a function (t, q, qd), such as an `eqx.Module` with
            parameters, samples for all times in `ts` (linear in between), a constant,
            or None for none.
        f_ext: wrenches on the bodies as in `forward_dynamics`, in the same forms.
        method: the formulation of `forward_dynamics`.
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
            forward mode by an adjoint for reverse mode.
        RuntimeError: too many steps, too short steps, a motion that is not finite.
    """
    ts = jnp.asarray(ts)
    _check_times(ts)
    model, q0, qd0 = arguments(model, q0=q0, qd0=qd0)
    ts = ts.astype(q0.dtype)
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
        max_steps=max_steps,
    )
    forces = (
        signal("torque", torque, ts, (model.nv,)),
        None if f_ext is None else signal("f_ext", f_ext, ts, (model.n, 6)),
    )
    try:
        trajectory = _solve(model, State(q0, qd0), ts, forces, method, dense, options)
    except TypeError as error:
        if "forward-mode autodiff" not in str(error):
            raise
        raise ValueError(
            f"adjoint is {type(options['adjoint']).__name__}, which has no forward "
            "mode: for jax.jvp and jax.jacfwd give adjoint=diffrax.ForwardMode()."
        ) from error
    return _raise_failure(trajectory) if throw else trajectory


@eqx.filter_jit
def _solve(
    model: Model,
    start: State,
    ts: Float[Array, " times"],
    forces: tuple[Law, Law | None],
    method: str,
    dense: bool,
    options: dict[str, Any],
) -> Trajectory:
    # a list, since some adjoints do not take all pytrees
    dynamic, static = eqx.partition((model, forces), eqx.is_array)
    arrays, structure = jax.tree.flatten(dynamic)

    def applied(t: Any, y: State, arrays: Any) -> Any:
        dynamic = jax.tree.unflatten(structure, arrays)
        model, (torque, f_ext) = eqx.combine(dynamic, static)
        q = unit_quaternions(model.topology, y.q)
        tau = torque(t, q, y.qd)
        wrenches = None if f_ext is None else f_ext(t, q, y.qd)
        qdd = forward_dynamics(model, q, y.qd, tau, f_ext=wrenches, method=method)
        return model, q, tau, wrenches, qdd

    def field(t: Any, y: State, arrays: Any) -> State:
        model, _, _, _, qdd = applied(t, y, arrays)
        return State(configuration_rate(model, y.q, y.qd), qdd)

    # the state at an event is no row: then, and only then, it is saved apart
    rows = diffrax.SubSaveAt(ts=ts)
    subs = rows if options["event"] is None else [rows, diffrax.SubSaveAt(t1=True)]
    found: Any = diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        t0=ts[0],
        t1=ts[-1],
        y0=start,
        args=arrays,
        saveat=diffrax.SaveAt(subs=subs, dense=dense),
        throw=False,
        **options,
    )
    times, ys = found.ts, found.ys
    if options["event"] is None:
        last = jnp.isfinite(times).sum() - 1
        end_time, end = jax.tree.map(lambda x: x[last], (times, ys))
    else:
        times, ys = times[0], ys[0]
        end_time, end = jax.tree.map(lambda x: x[0], (found.ts[1], found.ys[1]))
    end = State(unit_quaternions(model.topology, end.q), end.qd)

    def row(t: Any, y: State, reached: Any) -> Any:
        # rows that were not reached are computed at the start, so that their NaN, set
        # afterwards, stays out of derivatives
        y = jax.tree.map(lambda a, b: jnp.where(reached, a, b), y, start)
        model, q, tau, wrenches, qdd = applied(t, y, arrays)
        energies = kinetic_energy(model, q, y.qd), potential_energy(model, q)
        values = q, y.qd, qdd, tau, wrenches, *energies
        return jax.tree.map(lambda x: jnp.where(reached, x, jnp.nan), values)

    reached = jnp.isfinite(times)
    q, qd, qdd, tau, wrenches, kinetic, potential = jax.vmap(row)(ts, ys, reached)
    is_finite = (jnp.isfinite(qdd).all(axis=1) | ~reached).all()
    result = Outcome.promote(found.result)
    counts = ("num_steps", "num_accepted_steps", "num_rejected_steps")
    return Trajectory(
        ts=ts,
        q=q,
        qd=qd,
        qdd=qdd,
        tau=tau,
        f_ext=wrenches,
        kinetic_energy=kinetic,
        potential_energy=potential,
        end_time=end_time,
        end=end,
        event_mask=found.event_mask,
        stats={name: found.stats[name] for name in counts},
        result=Outcome.where(is_finite, result, Outcome.not_finite),
        interpolation=found.interpolation,
        topology=model.topology,
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


def adaptive_steps(
    ts: Float[Array, " times"], rtol: float | None = None, atol: float | None = None
) -> diffrax.PIDController:
    """The controller that `simulate` uses by default.

    Steps that rounding would swallow are a failure, as where forces are not numbers.
    """
    is_double = ts.dtype == jnp.float64
    rtol = rtol or (1e-8 if is_double else 1e-5)
    atol = atol or (1e-10 if is_double else 1e-6)
    shortest = jnp.abs(ts).max() * jnp.finfo(ts.dtype).eps
    return diffrax.PIDController(rtol, atol, dtmin=shortest, force_dtmin=False)


def _meter(given: diffrax.AbstractProgressMeter | bool) -> Any:
    if isinstance(given, bool):
        return diffrax.TqdmProgressMeter() if given else diffrax.NoProgressMeter()
    return given


def _check_times(ts: Any) -> None:
    if ts.ndim != 1 or len(ts) < 2:
        raise ValueError(f"ts has shape {ts.shape}, expected two times or more.")
    if not isinstance(ts, Tracer):
        steps = np.diff(np.asarray(ts, float))
        if not (steps > 0).all():
            k = int(np.argmin(steps > 0))
            raise ValueError(
                f"ts[{k + 1}] is {ts[k + 1]} after {ts[k]}, expected increasing times."
            )
