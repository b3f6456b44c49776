"""`jaxdyn simulate`: a simulation described by a TOML file."""

import argparse
import dataclasses
import sys
import time
from pathlib import Path
from typing import Any

import diffrax
import jax
import numpy as np

from jaxdyn.algorithms.kinematics import difference
from jaxdyn.cli._interrupt import interruptible
from jaxdyn.cli._problem import Problem, prepare
from jaxdyn.cli._results import animate, errors_of, folder_of, settings_of, written
from jaxdyn.cli._settings import Simulation
from jaxdyn.io import aligned, save_summary, save_trajectory
from jaxdyn.model import Model
from jaxdyn.simulate import Outcome, PowerBalance, Trajectory, power_balance
from jaxdyn.simulate import simulate as run_simulation

ROWS = 24  # joints that the table shows


def simulate(arguments: argparse.Namespace) -> int:
    """Runs the simulation, prints a table and writes its results."""
    path: Path = arguments.config
    config = settings_of(path, Simulation, "a simulation")
    with errors_of(path):
        problem = prepare(config, path.parent)
    with written(arguments) as new:
        model, end = problem.model, float(problem.ts[-1])
        print(
            f"{model.name}: {model.nv} degrees of freedom, to {end:.6g} s", flush=True
        )
        start = time.perf_counter()
        trajectory = interruptible(lambda: _run(problem))
        seconds = time.perf_counter() - start
        wanted = _wanted(problem, trajectory)
        balance = power_balance(model, trajectory)
        statistics = _statistics(model, trajectory, balance, wanted)
        statistics["seconds"] = round(seconds, 3)
        more = {} if wanted is None else {"q_wanted": wanted}
        save_trajectory(new, model, trajectory, **more)
        save_summary(new, config=config, dtype=config.dtype, statistics=statistics)
        if config.output.plots:
            from jaxdyn.view import save_plots  # matplotlib only where it is wanted

            save_plots(model, trajectory, new, balance=balance)
        animate(config.output, model, trajectory, new)
        _print(model, statistics)
    if config.output.animation:
        folder = folder_of(arguments)
        print(f"open {folder}/animation.html, or run: jaxdyn view {folder}")
    return 0


def _run(problem: Problem) -> Trajectory:
    """The trajectory up to its last row, all of which was reached."""
    is_quiet = not sys.stderr.isatty()
    bar = diffrax.NoProgressMeter() if is_quiet else diffrax.TqdmProgressMeter(200)
    given, options = (problem.q0, problem.qd0, problem.ts), problem.options
    trajectory = run_simulation(
        problem.model, *given, **options, progress=bar, throw=False
    )
    end = f"{float(trajectory.end_time):.6g} s"
    if not bool(trajectory.is_successful):
        reason = Outcome[trajectory.result]
        raise ValueError(f"the simulation failed at {end}: {reason}")
    rows = int(np.isfinite(trajectory.kinetic_energy).sum())
    if rows < 2:
        raise ValueError(
            f"the simulation stopped at {end}, before its second row: make time.dt "
            "smaller, or look at the joint limits."
        )
    names = ("ts", "q", "qd", "qdd", "tau", "kinetic_energy", "potential_energy")
    names += ("f_ext", "loop_forces", "loop_residual")
    columns = {name: getattr(trajectory, name) for name in names}
    kept = {name: x[:rows] for name, x in columns.items() if x is not None}
    return dataclasses.replace(trajectory, **kept)


def _wanted(problem: Problem, trajectory: Trajectory) -> Any:
    """The positions of the motion at the times of the trajectory."""
    if problem.motion is None:
        return None
    return jax.jit(jax.vmap(lambda t: problem.motion(t).q))(trajectory.ts)


def _statistics(
    model: Model, trajectory: Trajectory, balance: PowerBalance, wanted: Any
) -> dict[str, Any]:
    """What came out, in numbers."""
    apart = None
    if wanted is not None:
        apart = jax.vmap(difference, (None, 0, 0))(model, wanted, trajectory.q)
        apart = np.abs(apart).max(axis=0)
    opening, joints = trajectory.loop_residual, trajectory.reached_limits(model)
    opening = None if opening is None else float(np.abs(opening).max())
    opening = None if opening is None else float(np.abs(opening).max())
    result = f"stopped at a limit of {', '.join(joints)}" if joints else ""
    return {
        "result": result or Outcome[trajectory.result] or "the end was reached",
        "end_time": float(trajectory.end_time),
        "steps": {name: int(count) for name, count in trajectory.stats.items()},
        "rows": len(trajectory.ts),
        "q": trajectory.end.q,
        "qd": trajectory.end.qd,
        "largest_tau": np.abs(trajectory.tau).max(axis=0),
        "largest_tracking_error": apart,
        "energy": [float(x) for x in (trajectory.energy[0], trajectory.energy[-1])],
        "work": float(balance.work[-1]),
        "energy_error": float(np.abs(balance.drift).max()),
        "power_error": float(np.abs(balance.error).max()),
        "largest_loop_residual": opening,
    }


def _print(model: Model, statistics: dict[str, Any]) -> None:
    """A row for each joint, then the sums."""
    apart = statistics["largest_tracking_error"]
    head = ["joint", "q", "qd", "largest |tau|", "largest error"]
    rows = [head if apart is not None else head[:-1]]
    for i, joint in enumerate(model.joint_names):
        q, v = model.q_slice(i), model.v_slice(i)
        if v.start == v.stop:
            continue
        row = [joint, _numbers(statistics["q"][q]), _numbers(statistics["qd"][v])]
        row.append(_numbers(statistics["largest_tau"][v]))
        if apart is not None:
            row.append(" ".join(f"{x:.1e}" for x in apart[v]))
        rows.append(row)
    left = len(rows) - 1 - ROWS
    print(f"\nat {statistics['end_time']:.6g} s, in SI units and radians:")
    print(aligned(rows[: ROWS + 1], indent="  "))
    if left > 0:
        print(f"  and {left} joints more")
    first, last = statistics["energy"]
    steps = statistics["steps"]
    if statistics["largest_loop_residual"] is not None:
        print(f"loops closed to {statistics['largest_loop_residual']:.1e}")
    print(
        f"energy {first:.6g} J to {last:.6g} J, work {statistics['work']:.6g} J, "
        f"balance to {statistics['energy_error']:.1e} J\n"
        f"{steps['num_steps']} steps, {steps['num_rejected_steps']} rejected, in "
        f"{statistics['seconds']:.1f} s with compilation: {statistics['result']}"
    )


def _numbers(values: Any) -> str:
    return " ".join(f"{x + 0.0:.6g}" for x in np.asarray(values).tolist())
