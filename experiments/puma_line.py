"""Do the errors and evaluations of [Mata] for a straight line of a PUMA come out?

Section 5.2, Tables 6 and 7: the tool of a PUMA 560 goes along a line, and the torques
for that drive the robot open loop, by composite bodies (CRBA), articulated bodies (ABA)
and the Gibbs-Appell equations (GA). Both durations in the paper are simulated.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import experiments.parts.puma_line_plots as plots
import jaxdyn as jd
from experiments.parts.line_motion import (
    TORQUES,
    Speed,
    intervals,
    leaving,
    mean_errors,
    prepare,
    restarted,
    simulate,
)
from experiments.parts.line_motion import Config as Config
from experiments.parts.open_loop import evaluations, median_times
from experiments.parts.puma_line_verdicts import SHORT, STEPPINGS, Case, means, verdicts
from experiments.reports import Report
from jaxdyn.io import Table

TIMED = True


def run(config: Config, folder: Path) -> Report:
    """Simulates, draws and judges."""
    length = float(np.linalg.norm(np.subtract(config.end, config.start)))
    times = [speed.seconds(length) for speed in config.speeds]
    count = max(len(intervals(t, config.interval)[0]) for t in times)
    cases = {s.name: compute(config, s, count) for s in config.speeds}
    first, lines = config.methods[0], {name: c.line for name, c in cases.items()}
    paths = {
        f"{name}, {kind} torques": plots.tool_positions(c.line, c.others[kind].q)
        for name, c in cases.items()
        for kind in TORQUES
    }
    runs = {
        name: {tol: c.runs[first, tol] for tol in config.tolerances}
        for name, c in cases.items()
    }
    figures = [
        plots.tools(paths, config, folder),
        plots.joints(lines, folder),
        plots.deviations(lines, runs, config, folder),
    ]
    tables = [error_table(name, c, config) for name, c in cases.items()]
    tables += [tolerance_table(cases, config), torque_table(cases, config)]
    tables += [count_table(cases, config), growth_table(cases)]
    text = summary(cases, length, config)
    title = "A PUMA 560 along a straight line"
    found = verdicts(cases, length, paths, config)
    return Report("puma_line", title, text, tables, figures, found)


def compute(config: Config, speed: Speed, count: int) -> Case:
    """Every simulation at one speed."""
    line, wrong = prepare(config, speed, count)
    first, tolerance = config.methods[0], config.tolerance

    def one(method: str) -> dict[tuple[str, float], jd.Trajectory]:
        tried = config.tolerances
        return {(method, x): simulate(line, method, "exact", x) for x in tried}

    with ThreadPoolExecutor(2) as pool:  # a program for each method is compiled
        found = pool.map(one, config.methods)
        runs = {key: run for runs in found for key, run in runs.items()}
    counts = {}
    for method in config.methods:
        for kind in TORQUES:
            free = simulate(line, method, kind, tolerance)
            bounded = simulate(line, method, kind, tolerance, config.interval)
            again = restarted(line, method, kind, config)[0]
            both = evaluations(free), evaluations(bounded)
            values = zip(STEPPINGS, (*both, again), strict=True)
            counts |= {(method, kind, how): n for how, n in values}
    others = {kind: simulate(line, first, kind, tolerance) for kind in TORQUES}
    programs = {
        method: lambda method=method: simulate(line, method, "exact", tolerance)
        for method in config.methods
    }
    seconds = median_times(programs, config.repeats)
    return Case(line, wrong, runs, others, counts, seconds)


def error_table(name: str, case: Case, config: Config) -> Table:
    """[Mata] Table 6 beside our errors."""
    ours = means(case, config, config.methods[-1], config.tolerance)
    rows = []
    for j in range(6):
        cells = [j + 1]
        for key in ("q", "qd", "qdd"):
            printed = getattr(config.published, key)[j]
            cells += [f"{printed:.3g}", f"{ours[key][j]:.3g}"]
        rows.append(cells)
    head = ["joint", "q printed, rad", "q ours", "qd printed, rad/s", "qd ours"]
    head += ["qdd printed, rad/s²", "qdd ours"]
    caption = f"Table 6, {name}: mean errors, Gibbs-Appell, tolerance"
    return Table(f"{caption} {config.tolerance:g}, exact torques", head, rows)


def tolerance_table(cases: dict[str, Case], config: Config) -> Table:
    """Mean errors and evaluations against the tolerance."""
    rows = []
    for name, case in cases.items():
        for tolerance in config.tolerances:
            mean = means(case, config, config.methods[-1], tolerance)["q"]
            found = case.runs[config.methods[-1], tolerance]
            seen, linear = leaving(case.line, found, config)
            cells = [name, f"{tolerance:g}", evaluations(found)]
            cells += [f"{mean.min():.2g} to {mean.max():.2g}"]
            is_off = np.isfinite(seen).any()
            cells += [f"{np.nanmin(x):.2f}" if is_off else "" for x in (seen, linear)]
            rows.append(cells)
    head = ["speed", "tolerance", "evaluations", "mean errors of q, rad"]
    head += [f"first joint off by {config.threshold:g} rad, s", "by linear growth, s"]
    return Table("Exact torques, Gibbs-Appell", head, rows)


def torque_table(cases: dict[str, Case], config: Config) -> Table:
    """Mean errors of each kind of torque beside the reference."""
    known = references(config)
    rows = []
    for name, case in cases.items():
        for kind, found in case.others.items():
            ours = mean_errors(case.line, found, config.averaged)["q"]
            cells = [name, kind, *(f"{x:.3g}" for x in ours), evaluations(found)]
            there = known.get((name, kind))
            mean = "" if there is None else f"{max(there['mean_abs_q_error']):.3g}"
            count = "" if there is None else there["function_evaluations"]
            rows.append([*cells, mean, count])
    head = ["speed", "torques", *(f"q{j}" for j in range(1, 7)), "evaluations"]
    head += ["reference: largest mean", "reference: evaluations"]
    caption = (
        f"Mean errors of q in rad, torques exact, linear between samples, or held, "
        f"every {config.interval:g} s (reference: SciPy, RK45)"
    )
    return Table(caption, head, rows)


def references(config: Config) -> dict[tuple[str, str], Any]:
    """Simulations by independent software, where there are some."""
    found = {}
    for speed in config.speeds:
        data = json.loads(speed.reference.read_text(encoding="utf-8"))
        stored = data.get("open_loop_forward_simulation_rk45_tol_1e-6", {})
        for name, values in stored.items():
            kinds = [kind for kind in TORQUES if kind in name]
            found |= {(speed.name, kind): values for kind in kinds}
    return found


def count_table(cases: dict[str, Case], config: Config) -> Table:
    """[Mata] Table 7 beside our counts for every reading."""
    rows = [["printed", "", "", *config.published.evaluations]]
    for name, case in cases.items():
        for kind in TORQUES:
            for how in STEPPINGS:
                counts = [case.counts[m, kind, how] for m in config.methods]
                rows.append([name, kind, how, *counts])
    head = ["speed", "torques", "steps", *(SHORT[m] for m in config.methods)]
    caption = (
        "Table 7: evaluations, 6 for each step tried and 2 at the start; steps free, "
        f"bounded by {config.interval:g} s, or begun anew every {config.interval:g} s"
    )
    return Table(caption, head, rows)


def growth_table(cases: dict[str, Case]) -> Table:
    """The growth of deviations at both speeds."""
    rows = []
    for t in range(1, 6):
        cells = []
        for case in cases.values():
            line = case.line
            value = np.interp(t, line.growth_ts, line.growth)
            cells.append(f"{value:.3g}" if t <= line.duration else "")
        rows.append([t, *cells])
    return Table(
        "Largest singular value of the transition matrix", ["t, s", *cases], rows
    )


def summary(cases: dict[str, Case], length: float, config: Config) -> str:
    """What the report says in front of its tables."""
    wrong = max(case.torque_error for case in cases.values())
    fitted = max(case.line.law_error for case in cases.values())
    grown = ", ".join(
        f"{case.line.growth[-1]:.0e} ({name})" for name, case in cases.items()
    )
    off = []
    for case in cases.values():
        for found in case.runs.values():
            seen, linear = leaving(case.line, found, config)
            off.append(float(np.nanmax(np.abs(seen - linear), initial=0.0)))
    return f"""
The line is {length:.4f} m long. Angles come from inverse kinematics at every time, the
torques from inverse dynamics; they agree with those of independent software to
{wrong:.0e} of the largest. Simulations take them from polynomials in each interval of
{config.interval:g} s, which are exact to {fitted:.0e} N m. The parameters of the
robot, its tool and its branch are not printed; these are the classical ones.

Under these torques deviations grow by {grown} up to the end. From the error after
{100 * config.probe:g} percent of the duration the linearized dynamics tell when joints
leave the path by {config.threshold:g} rad, to {max(off):.3f} s for all methods and
tolerances.
"""
