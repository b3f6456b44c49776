"""How deep, how costly and how exact is the parallel method, against the joints?

Depth is the number of dependent steps of forward dynamics: what would be left of the
time if everything that can run at once did. It is read from the schedule, without
running anything. denoc walks three times through the tree. The parallel method sums
twice along all paths, walks twice through pieces of about 32 joints, all at once, and
joins the pieces two by two. Pieces of one joint (`chunk=1`) have the least depth.

Work is the number of multiplications and additions of the traced programs for phi/psi
chains ([Ghosal]): exact, and a polynomial in n for denoc.

Times are of one state of such a chain, float64. All programs take turns; times are
medians over the turns, ratios are medians of ratios within a turn. A gradient is that
of the sum of the accelerations by q, qd and tau. Compilation, with tracing, is timed
once, two programs at a time.

Errors are the largest deviation from exact values, relative to the largest entry. In
float64 those of the phi/psi chains are the stored ones with 50 digits, the larger error
of a helix and a coil counts. All others are computed in the run with decimal numbers
(`parts/fifty_digits.py`), in float32 from the rounded model and state. The hard chains
stand in `parts/hard_chains.py`.
"""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import jaxdyn as jd
from experiments.parts.chain_claims import Found
from experiments.parts.hard_chains import hard_chains, helix
from experiments.parts.log_depth_figures import plot_depths, plot_errors, plot_times
from experiments.parts.parallel_programs import (
    GRADIENT,
    PLAIN,
    Errors,
    alike,
    compiled,
    errors,
    rounded,
    sequential_work,
    work,
)
from experiments.parts.timed_programs import timed
from experiments.parts.tree_shapes import SHAPES, Depths, Steps, steps
from experiments.reports import Report, Verdict
from jaxdyn.analysis import Polynomial
from jaxdyn.io import Figure, Table

TIMED = True

Sizes = dict[str, list[int]]
REFINED = PLAIN[2:]


@dataclass(frozen=True)
class Config:
    """Where the references stand, and what is counted and measured."""

    reference: Path
    bodies: list[int]
    turns: int
    seconds: float
    hard: int
    hard_precisions: list[str]
    work: Sizes
    times: Sizes
    errors: Sizes


class Measured(NamedTuple):
    """What the programs cost and how exact they are."""

    seconds: Found
    compilation: Found
    denoc_work: Polynomial
    work: Found
    stored: Errors
    hard: Errors


def run(config: Config, folder: Path) -> Report:
    """Counts, measures, draws, and judges the claim of a logarithmic depth."""
    depths = {(s, n): steps(s, n) for s in SHAPES for n in config.bodies}
    found = measure(config)
    plot_depths(depths, folder / "depth.png")
    plot_times(found.seconds, folder / "times.png")
    plot_errors(found.stored, found.hard, folder / "errors.png")
    start = "\n".join((__doc__ or "").splitlines()[2:])
    return Report(
        "log_depth",
        "The parallel method: depth, cost and errors against the number of joints",
        f"{start}\n\n{summary(found)}",
        [depth_table(depths), work_table(found), *tables(found, config.hard)],
        [
            Figure("depth.png", "Dependent steps against the number of bodies"),
            Figure("times.png", "Time of one state and its gradient, phi/psi chains"),
            Figure("errors.png", "Relative errors on all chains, both precisions"),
        ],
        [verdict(depths)],
    )


def measure(config: Config) -> Measured:
    """Times first, while nothing else runs; then operations beside errors."""
    seconds, compilation = measure_times(config)
    cases = json.loads(config.reference.read_text(encoding="utf-8"))["cases"]
    groups = alike(hard_chains(config.hard))
    hard: Errors = {}
    # counting is plain Python, compiling is not: side by side they wait for nothing
    with ThreadPoolExecutor(1) as counting, ThreadPoolExecutor(2) as compiling:
        denoc = counting.submit(sequential_work)
        sizes = [(name, n) for name, given in config.work.items() for n in given]
        counts = {size: counting.submit(work, *size) for size in sizes}
        pairs = [(n, dtype) for dtype, given in config.errors.items() for n in given]
        stored = {
            pair: compiling.submit(stored_errors, cases, *pair) for pair in pairs[::-1]
        }
        parts = [(group, dtype) for group in groups for dtype in config.hard_precisions]
        for part in compiling.map(lambda part: hard_errors(*part), parts):
            hard |= part
        return Measured(
            seconds,
            compilation,
            denoc.result(),
            {size: count.result() for size, count in counts.items()},
            {pair: stored[pair].result() for pair in pairs},
            hard,
        )


def measure_times(config: Config) -> tuple[Found, Found]:
    """Seconds of each program in each turn, and seconds of its compilation."""
    sizes = {n for given in config.times.values() for n in given}
    chains = {n: helix(n, np.random.default_rng(0)) for n in sizes}
    pairs = [(name, n) for name, given in config.times.items() for n in given]
    slow_first = sorted(pairs, key=lambda pair: "parallel" in pair[0], reverse=True)
    with ThreadPoolExecutor(2) as pool:
        made = pool.map(lambda pair: compiled(pair[0], chains[pair[1]]), slow_first)
        programs = dict(zip(slow_first, made, strict=True))
    turns = timed([programs[pair][0] for pair in pairs], config.turns, config.seconds)
    return turns, {pair: programs[pair].seconds for pair in pairs}


def stored_errors(cases: list[dict], n: int, dtype: str) -> dict[str, float]:
    """The larger error of both states of a stored chain."""
    (case,) = (case for case in cases if case["model"]["nv"] == n)
    model, states = jd.from_dict(case["model"]), case["states"]
    chains = [(model, x["q"], x["qd"], x["tau"]) for x in states]
    exact = [x["qdd_fd"] for x in states] if dtype == "float64" else None
    found = errors(PLAIN, [rounded(chain, dtype) for chain in chains], exact)
    return {name: float(np.max(pair)) for name, pair in found.items()}


def hard_errors(group: dict[str, Any], dtype: str) -> Errors:
    """The errors with refinement on chains that share their programs."""
    found = errors(REFINED, [rounded(chain, dtype) for chain in group.values()])
    return {
        (chain, dtype): {name: values[k] for name, values in found.items()}
        for k, chain in enumerate(group)
    }


def ratio(seconds: Found, name: str, n: int) -> float:
    """Time over that of denoc, a gradient over that of denoc, in the same turns."""
    beside = f"{GRADIENT}denoc" if name.startswith(GRADIENT) else "denoc"
    return float(np.median(seconds[name, n] / seconds[beside, n]))


def summary(found: Measured) -> str:
    """What the parallel method costs here, in the numbers of the run."""
    said = []
    for name in ("parallel", f"{GRADIENT}parallel"):
        sizes = sorted(n for other, n in found.seconds if other == name)
        ratios = [f"{ratio(found.seconds, name, n):.2f} (n = {n})" for n in sizes]
        what = "the gradient" if name.startswith(GRADIENT) else "one state"
        said.append(f"for {what} {', '.join(ratios)}")
    return (
        f"On the {os.cpu_count()} cores of this machine the parallel method takes, "
        f"times the time of denoc: {'; '.join(said)}. Below 1 it is the faster one."
    )


def verdict(depths: Depths) -> Verdict:
    """Decided by the schedule: a constant number of steps more for each doubling."""
    sizes = sorted({n for _, n in depths})
    least = [depths["chain", n].least for n in sizes]
    doublings = np.diff(np.log2(sizes))
    rises = np.diff(least) / doublings
    last = {s: _last_rise(depths, s, sizes) for s in SHAPES}
    is_constant = bool(np.ptp(rises) == 0) and last["chain"].parallel == rises[-1]
    holds = is_constant and max(x.least for x in last.values()) <= rises[-1]
    shown = ", ".join(f"{s} {x.parallel:g} and {x.least:g}" for s, x in last.items())
    n, at = sizes[-1], depths["chain", sizes[-1]]
    return Verdict(
        "[Ghosal]",
        "for very large systems there are parallel algorithms of O(log N)",
        "reproduced" if holds else "not reproducible",
        f"dependent steps on a chain of {n} bodies: {at.parallel} with the default "
        f"chunk and {at.least} with chunk=1, against {at.sequential} one after the "
        f"other. More steps for each doubling from n = {sizes[-2]} to {n}, default "
        f"and chunk=1: {shown}. On chains with chunk=1 each doubling from n = "
        f"{sizes[0]} on costs {' or '.join(f'{x:g}' for x in np.unique(rises))} more. "
        "Steps are counted here, not time.",
    )


def _last_rise(depths: Depths, shape: str, sizes: list[int]) -> Any:
    """More steps for each doubling, between the two largest sizes."""
    before, after = (np.array(depths[shape, n]) for n in sizes[-2:])
    return Steps(*(after - before) / np.log2(sizes[-1] / sizes[-2]))


def depth_table(depths: Depths) -> Table:
    """Dependent steps, a row for each shape and way."""
    sizes = sorted({n for _, n in depths})
    ways = ("denoc", "parallel", "parallel, chunk=1")
    rows = [
        [shape, way, *(depths[shape, n][k] for n in sizes)]
        for shape in SHAPES
        for k, way in enumerate(ways)
    ]
    head = ["tree", "method", *(f"n = {n}" for n in sizes)]
    return Table("Dependent steps of forward dynamics", head, rows)


def work_table(found: Measured) -> Table:
    """Operations, and how many times those of denoc."""
    rows = []
    for (name, n), count in found.work.items():
        denoc = int(found.denoc_work(n))
        rows.append([name, n, count, denoc, f"{count / denoc:.2f}"])
    head = ["method", "n", "M and A", f"of denoc, {found.denoc_work}", "ratio"]
    return Table("Multiplications and additions, phi/psi chains", head, rows)


def tables(found: Measured, hard: int) -> list[Table]:
    """Times with compilation, and errors."""
    rows = []
    for (name, n), turns in found.seconds.items():
        time = f"{np.median(turns) * 1e6:.0f}"
        over = f"{ratio(found.seconds, name, n):.2f}"
        rows.append([name, n, time, over, f"{found.compilation[name, n]:.1f}"])
    head = ["method", "n", "µs", "over denoc", "s of compilation"]
    return [
        Table("Time of one state, float64, phi/psi chains", head, rows),
        _errors("Relative errors on phi/psi chains", "n", PLAIN, found.stored),
        _errors(f"Relative errors, n = {hard}", "chain", REFINED, found.hard),
    ]


def _errors(caption: str, first: str, names: Any, found: Errors) -> Table:
    rows = [
        [chain, dtype, *(f"{values[name]:.1e}" for name in names)]
        for (chain, dtype), values in found.items()
    ]
    return Table(caption, [first, "precision", *names], rows)
