"""How do time and accuracy grow with the number of joints?

phi/psi chains ([Ghosal]) with 6 to 1000 joints, by every method of forward dynamics and
by Newton-Euler inverse dynamics. All programs take turns; in a turn the fastest of a
program's calls counts. Times are medians over the turns, ratios are medians of ratios
within a turn, an observed order is the slope of log time against log n from 100 joints
on. Of one state the time includes the call from Python, some ten microseconds, which is
most of it on the shortest chains; of a batch it does not matter. Claims of an order in
n are decided by the operations of the traced programs, exact polynomials in n, and not
by times.

Errors are the largest deviation from values with 50 digits, relative to the largest
entry, over a helix and a coil. The values for 100, 300 and 1000 joints are stored; for
fewer joints they are computed in the run from Newton's and Euler's equations with
decimal numbers (`parts/fifty_digits.py`).

*left out*: not measured, as one more program to compile or too slow. *no result*: the
rounded inertia matrix is not positive definite. Parallel methods of O(log n), which
[Ghosal] names too, have an experiment of their own, log_depth.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.figure
import numpy as np

import jaxdyn as jd
from experiments.parts.chain_claims import Found, Measured, claims, order, ratio
from experiments.parts.fifty_digits import chain_dynamics
from experiments.parts.timed_programs import (
    HAS_ONE_THREAD,
    INVERSE,
    QUICK,
    Program,
    method_of,
    programs,
    timed,
)
from experiments.reports import Report
from jaxdyn.analysis import Polynomial, operation_polynomials
from jaxdyn.io import Figure, Table

TIMED = True

METHODS = ("denoc", "articulated", "composite", "gibbs_appell", "noc", INVERSE)
THREADS = {
    True: "LAPACK, which factors the formed matrices, ran in one thread.",
    False: "LAPACK may have used several threads, which can stall each other: times of "
    "formed matrices are not to be trusted in this run. Run this experiment by itself, "
    "without OPENBLAS_NUM_THREADS or with 1.",
}
Sizes = dict[str, list[int]]


@dataclass(frozen=True)
class Config:
    """Where references and printed counts stand, and what is measured how often."""

    reference: Path
    published: Path
    batch: int
    turns: int
    seconds: float
    order_from: int
    one: Sizes
    many: Sizes
    single: Sizes


class Case(NamedTuple):
    """A chain, the states with their exact results, and the condition number of M."""

    model: jd.Model
    states: list[dict[str, Any]]
    condition: float


def run(config: Config, folder: Path) -> Report:
    """Measures, draws, and judges what is printed."""
    found, orders = measure(config), {}
    for name, times in (("one state", found.one), ("batch", found.many)):
        orders |= {(m, name): order(times, m, config.order_from) for m, _ in times}
    counts, own = in_print(config.published), own_counts()
    plot_times(found, config.batch, folder / "times.png")
    plot_errors(found, folder / "errors.png")
    plot_counts(counts, folder / "counts.png")
    start = "\n".join((__doc__ or "").splitlines()[2:])
    check = (
        "The shortest stored chain, computed in the run too, differs from what is "
        f"stored by {stored_difference(config):.0e} of the largest entry."
    )
    return Report(
        "long_chains",
        "Long chains: time and accuracy against the number of joints",
        f"{start}\n\n{check} {THREADS[HAS_ONE_THREAD]}",
        [*tables(found, orders, config.batch), operations(own)],
        [
            Figure("times.png", "Time per state against the number of joints"),
            Figure("errors.png", "Relative error against the number of joints"),
            Figure(
                "counts.png", "Operations by the formulas of [Shah] Table 4, Fig. 8"
            ),
        ],
        claims(found, orders, counts, own),
    )


def chain(cases: list[dict[str, Any]], n: int) -> Case:
    """The chain with n joints: a stored one, or the beginning of the longest."""
    for case in cases:
        if case["model"]["nv"] == n:
            model = jd.from_dict(case["model"])
            return Case(model, case["states"], max(s["cond_M"] for s in case["states"]))
    model = jd.robots.protein_chain(cases[-1]["model"]["sequence"][: n // 2])
    states, conditions = [], []
    for stored in cases[-1]["states"]:
        state = {key: stored[key][:n] for key in ("q", "qd", "qdd", "tau")}
        exact = chain_dynamics(model, state)
        states.append(state | {"qdd_fd": exact.qdd_fd, "tau_id": exact.tau_id})
        conditions.append(float(np.linalg.cond(exact.M)))
    return Case(model, states, max(conditions))


def stored_difference(config: Config) -> float:
    """How far 50 digits in the run are from those that are stored, shortest chain."""
    (first, *_) = _cases(config.reference)
    model, state = jd.from_dict(first["model"]), first["states"][0]
    return relative(chain_dynamics(model, state).qdd_fd, state["qdd_fd"])


def measure(config: Config) -> Measured:
    """Times and errors of all methods on all chains."""
    found, cases = Measured({}, {}, {}, {}, {}), _cases(config.reference)
    one, many = [], []

    def made(n: int) -> tuple[Case, list[Program], list[Program], list[Program]]:
        case = chain(cases, n)
        given, methods = (case.model, case.states[0]), _having(config.single, n)
        return (
            case,
            programs(_having(config.one, n), *given),
            programs(methods, *given, dtype="float32", options=QUICK),
            programs(_having(config.many, n), *given, batch=config.batch),
        )

    sizes = sorted({n for sizes in config.one.values() for n in sizes})
    with ThreadPoolExecutor(2) as pool:  # else one ends alone on each chain
        found_for = dict(zip(sizes[::-1], pool.map(made, sizes[::-1]), strict=True))
    for n in sizes:
        (_, states, found.conditions[n]), double, single, batches = found_for[n]
        found.double.update({p.size: worst(p, states) for p in double})
        found.single.update({p.size: worst(p, states) for p in single})
        one += double
        many += batches
    found.one.update(timed(one, config.turns, config.seconds))
    for size, seconds in timed(many, config.turns, config.seconds).items():
        found.many[size] = seconds / config.batch
    return found


def worst(program: Program, states: list[dict[str, Any]]) -> float:
    """The largest relative error over the states, NaN where there is no result."""
    key = "tau_id" if program.method == INVERSE else "qdd_fd"
    errors = [relative(program.at(state), state[key]) for state in states]
    return float(np.max(errors))  # keeps a NaN


def relative(found: Any, exact: Any) -> float:
    """The largest deviation, relative to the largest entry."""
    exact = np.array(exact)
    apart = np.asarray(found, float) - exact
    return float(np.abs(apart).max() / np.abs(exact).max())


def in_print(path: Path) -> dict[str, Polynomial]:
    """M and A together of each forward dynamics in [Shah] Table 4, as polynomials."""
    table = json.loads(path.read_text(encoding="utf-8"))["table"]
    return {
        row["item"].removeprefix("forward dynamics, "): Polynomial.of(
            row["multiplications"]
        )
        + Polynomial.of(row["additions"])
        for row in table
        if row["source"] == "[Shah]" and row["item"].startswith("forward")
    }


def own_counts() -> dict[str, Polynomial]:
    """M and A together of our methods on these chains."""
    family = lambda n: (jd.robots.protein_chain("A" * (n // 2)), *np.ones((3, n)))  # noqa: E731
    counts = {}
    for method in METHODS:
        found = operation_polynomials(method_of(method), family, range(6, 18, 2))
        counts[method] = found.M + found.A
    return counts


def operations(own: dict[str, Polynomial]) -> Table:
    """What our methods count, exactly and in numbers."""
    sizes = (6, 10, 100, 1000)
    head = ["method", "M and A", *(f"n = {n}" for n in sizes)]
    rows = [[m, str(p), *(int(p(n)) for n in sizes)] for m, p in own.items()]
    return Table("Operations of our methods on these chains", head, rows)


def tables(found: Measured, orders: dict, batch: int) -> list[Table]:
    """Times, ratios, orders and errors, a row for each number of joints."""
    time = lambda t: _digits(np.median(t) * 1e6, 3)  # noqa: E731
    error = lambda x: x if np.isnan(x) else f"{x:.1e}"  # noqa: E731
    batches = f"a batch of {batch}"
    made = [
        _table("Microseconds of one state, float64", found.one, time),
        _table(f"Microseconds per state of {batches}, float64", found.many, time),
    ]
    for name, times in (("one state", found.one), (batches, found.many)):
        over = {key: _digits(ratio(times, *key), 2) for key in times}
        made.append(_table(f"Time over that of denoc, {name}", over, str))
    kinds = list(dict.fromkeys(kind for _, kind in orders))
    methods = list(dict.fromkeys(method for method, _ in orders))
    slopes = [[m, *(_order(orders.get((m, k))) for k in kinds)] for m in methods]
    made.append(Table("Observed order of the time in n", ["method", *kinds], slopes))
    made.append(_table("Relative error, float64", found.double, error))
    made.append(_table("Relative error, float32", found.single, error))
    rows = [[n, f"{x:.1e}"] for n, x in found.conditions.items()]
    made.append(Table("Condition number of M, the larger of both", ["n", "cond"], rows))
    return made


def _table(caption: str, found: Found, shown: Any) -> Table:
    methods = list(dict.fromkeys(method for method, _ in found))
    rows = []
    for n in sorted({n for _, n in found}):
        cells = [(method, n) for method in methods]
        rows.append(
            [n, *(shown(found[c]) if c in found else "left out" for c in cells)]
        )
    return Table(caption, ["n", *methods], rows)


def _digits(x: float, count: int) -> str:
    """Rounded to some digits, without a power of ten."""
    return f"{float(f'{x:.{count}g}'):g}"


def _order(slope: float | None) -> str:
    return "left out" if slope is None or np.isnan(slope) else f"{slope:.2f}"


def plot_times(found: Measured, batch: int, path: Path) -> None:
    """Time per state against n, one state and a batch, with lines of order 1 and 3."""
    figure = matplotlib.figure.Figure(figsize=(12, 5), layout="constrained")
    panels = {"one state": found.one, f"batch of {batch}": found.many}
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, (name, times) in zip((left, right), panels.items(), strict=True):
        median = {key: float(np.median(t)) * 1e6 for key, t in times.items()}
        _lines(axes, median)
        _guides(axes, median["denoc", 100])
        axes.set(title=f"{name}, float64", xlabel="joints n")
    left.set_ylabel("microseconds per state")
    left.legend(fontsize="small")
    figure.savefig(path, dpi=130)


def plot_errors(found: Measured, path: Path) -> None:
    """Errors against n in both precisions, and the condition number times rounding."""
    figure = matplotlib.figure.Figure(figsize=(12, 5), layout="constrained")
    n = np.array(list(found.conditions))
    conditions = np.array(list(found.conditions.values()))
    panels = {"float64": found.double, "float32": found.single}
    left, right = figure.subplots(1, 2)
    for axes, (dtype, errors) in zip((left, right), panels.items(), strict=True):
        _lines(axes, errors)
        bound = np.minimum(1.0, np.finfo(dtype).eps * conditions)
        axes.loglog(n, bound, "k:", lw=1, label="cond(M) × rounding, at most 1")
        axes.set(title=dtype, xlabel="joints n")
    left.set_ylabel("relative error (lines end where there is no result)")
    left.legend(fontsize="small")
    figure.savefig(path, dpi=130)


def plot_counts(counts: dict[str, Polynomial], path: Path) -> None:
    """[Shah] Fig. 8 from the formulas of Table 4."""
    figure = matplotlib.figure.Figure(figsize=(7, 5), layout="constrained")
    axes, n = figure.subplots(), np.unique(np.geomspace(2, 1000, 60).astype(int))
    for name, polynomial in counts.items():
        axes.loglog(n, [float(polynomial(int(k))) for k in n], label=name)
    axes.set(xlabel="joints n", ylabel="multiplications and additions")
    axes.set_title("Forward dynamics, bias given: [Shah] Table 4")
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=130)


def _lines(axes: Any, values: dict[tuple[str, int], float]) -> None:
    """A line for each method, always in the same colour."""
    for k, method in enumerate(METHODS):
        pairs = sorted((n, x) for (m, n), x in values.items() if m == method)
        if pairs:
            axes.loglog(*zip(*pairs, strict=True), "o-", color=f"C{k}", label=method)


def _guides(axes: Any, start: float) -> None:
    """Lines of order 1 and 3 from 100 joints on."""
    n = np.array([100.0, 1000.0])
    for power, style in ((1, ":"), (3, "--")):
        label = f"order {power}"
        axes.loglog(n, 0.7 * start * (n / 100) ** power, f"k{style}", lw=1, label=label)


def _having(sizes: Sizes, n: int) -> list[str]:
    return [method for method, given in sizes.items() if n in given]


def _cases(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf-8"))["cases"]
