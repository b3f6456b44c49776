"""How does the time of closed loops grow with their number, by four methods?

Ladders of m four-bar cells ([Ghosal] lecture 30 has the orders, but no system): n = 3 m
joints and 2 m rows, at random rates that keep the loops closed, under random moments.
All programs take turns; in a turn the fastest of a program's calls counts, and times
are medians over the turns, in double precision, with LAPACK in one thread. The observed
order is the slope of log time against log m. Since n grows with m, the printed orders
are 3, 3, 3 in m, and 1 for one iteration.

The ladder is described by two trees. In one the rails hang on the rung above, and a
loop closes there: two rows cross a joint. In the other the rails continue each other,
and all loops close at the base: all rows below cross a joint. *left out*: not measured.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.figure
import numpy as np

from experiments.parts.ladder_programs import (
    AT_BASE,
    METHODS,
    SEQUENTIAL,
    Found,
    Start,
    agreement,
    programs,
    starts,
)
from experiments.parts.timed_programs import timed
from experiments.reports import Report, Verdict
from jaxdyn.io import Figure, Table

TIMED = True

ITERATION = "one iteration"  # of sequential regularization
PRINTED = {
    "kkt": "O((n + m)³)",
    "range_space": "O(n m² + m³)",
    "recursive": "O(n + m³)",
    AT_BASE: "O(n + m³)",
    SEQUENTIAL: "O(k n)",
}


@dataclass(frozen=True)
class Config:
    """What is measured, and how often."""

    turns: int
    seconds: float
    order_from: int
    tolerance: float
    iterations: list[int]
    sizes: dict[str, list[int]]


def run(config: Config, folder: Path) -> Report:
    """Measures, draws, and judges the orders in print."""
    given = starts(config.iterations, config.tolerance)
    made = programs(config.sizes, given, config.tolerance)
    apart = agreement(made)
    seconds = timed(made, config.turns, config.seconds)
    times = {(method, n // 3): x for (method, n), x in seconds.items()}
    found = orders(times, given, config.order_from)
    plot(times, given, config.tolerance, folder / "cost.png")
    return Report(
        "loop_cost",
        "Closed loops: cost against their number",
        "\n".join((__doc__ or "").splitlines()[2:]),
        [
            times_table(times),
            orders_table(found, config.order_from),
            iterations_table(given),
            agreement_table(apart),
        ],
        [Figure("cost.png", "Time of one call, and iterations, against m.")],
        verdicts(found, times, given, apart),
    )


def orders(times: Found, given: dict[int, Start], start: int) -> dict[str, float]:
    """The order of each method, and of one iteration, from m = start on."""
    made = {method: order(times, method, start) for method in METHODS}
    each = {
        (ITERATION, m): t / given[m].iterations
        for (method, m), t in times.items()
        if method == SEQUENTIAL
    }
    return made | {ITERATION: order(each, ITERATION, start)}


def order(times: Found, method: str, start: int) -> float:
    """The slope of log time against log m, from m = start on; NaN without two sizes."""
    pairs = [(m, np.median(t)) for (x, m), t in times.items() if x == method]
    pairs = [pair for pair in pairs if pair[0] >= start]
    if len(pairs) < 2:
        return np.nan
    m, seconds = np.log(np.array(pairs)).T
    return float(np.polyfit(m, seconds, 1)[0])


def times_table(times: Found) -> Table:
    """Milliseconds of one call."""

    def shown(method: str, m: int) -> str:
        found = times.get((method, m))
        return "left out" if found is None else f"{1e3 * float(np.median(found)):.3g}"

    sizes = sorted({m for _, m in times})
    rows = [[m, 3 * m, 2 * m, *(shown(x, m) for x in METHODS)] for m in sizes]
    head = ["loops m", "joints", "rows", *METHODS]
    return Table("Milliseconds of one call: accelerations and loop forces", head, rows)


def orders_table(orders: dict[str, float], start: int) -> Table:
    """Slopes beside the orders in print."""
    rows = [[x, PRINTED[x], f"{orders[x]:.2f}"] for x in METHODS]
    head = ["method", "in print", "slope"]
    return Table(f"Observed order of the time in m, from m = {start} on", head, rows)


def iterations_table(given: dict[int, Start]) -> Table:
    """Iterations of sequential regularization beside the condition of the loops."""
    rows = [
        [m, x.iterations, f"{x.condition:.0f}", x.mobility] for m, x in given.items()
    ]
    head = ["loops m", "iterations k", "condition of Psi M⁻¹ Psiᵀ", "mobility"]
    return Table("Sequential regularization", head, rows)


def agreement_table(apart: Found) -> Table:
    """How far the methods are from each other."""
    rows = [
        [method, m, *[*(f"{x:.0e}" for x in apart[method, m]), "others"][:2]]
        for method, m in sorted(apart, key=lambda x: (METHODS.index(x[0]), x[1]))
    ]
    head = ["method", "loops m", "accelerations of the bars", "loop forces"]
    return Table("Distance from range_space, relative to the largest", head, rows)


def verdicts(
    orders: dict[str, float], times: Found, given: dict[int, Start], apart: Found
) -> list[Verdict]:
    """What becomes of the orders of lecture 30, the numbers deciding."""
    made = []
    for method, where in (("kkt", "Gaussian elimination"), ("range_space", "λ first")):
        holds = orders[method] < 3.3
        made.append(
            Verdict(
                f"[Ghosal] lecture 30, {where}",
                PRINTED[method],
                "reproduced" if holds else "not reproducible",
                f"slope {orders[method]:.2f} of the time in m (3 in print); "
                f"{_longest(times, method)}. Rows that depend on others are found by "
                "singular values, of the same order as elimination.",
            )
        )
    return [*made, _recursive(orders, times, apart), *_iterations(orders, times, given)]


def _recursive(orders: dict[str, float], times: Found, apart: Found) -> Verdict:
    here, base = orders["recursive"], orders[AT_BASE]
    error = max(max(x) for (method, _), x in apart.items() if method == "recursive")
    holds = here < 3.3 and error < 1e-8
    is_better = here < 2
    found = "reproduced in a different form" if is_better else "reproduced"
    return Verdict(
        "[Ghosal] lecture 30, MEXX",
        PRINTED["recursive"],
        found if holds else "not reproducible",
        f"slope {here:.2f} where each loop closes at the rung above, as loops are "
        f"eliminated where they close ({_longest(times, 'recursive')}), and {base:.2f} "
        f"where all close at the base ({_longest(times, AT_BASE)}). Another algorithm "
        "of the same class: MEXX itself is an integrator.",
    )


def _iterations(
    orders: dict[str, float], times: Found, given: dict[int, Start]
) -> list[Verdict]:
    sizes = sorted(given)
    few, half, most = (given[m] for m in (sizes[0], sizes[len(sizes) // 2], sizes[-1]))
    growth = most.iterations / max(few.iterations, 1)
    loops = f"{sizes[0]}, {sizes[len(sizes) // 2]} and {sizes[-1]} loops"
    counts = f"{few.iterations}, {half.iterations} and {most.iterations} iterations"
    conditions = f"{few.condition:.0f}, {half.condition:.0f}, {most.condition:.0f}"
    each = times.get((SEQUENTIAL, sizes[-1]))
    spent = np.nan if each is None else 1e6 * np.median(each) / most.iterations
    linear = orders[ITERATION] < 1.5
    return [
        Verdict(
            "[Ghosal] lecture 30, sequential regularization",
            "an iteration is O(n)",
            "reproduced" if linear else "not reproducible",
            f"slope {orders[ITERATION]:.2f} of the time of one iteration in m, "
            f"{orders[SEQUENTIAL]:.2f} of that of all; {spent:.0f} µs for each of "
            f"{most.iterations} at {sizes[-1]} loops.",
        ),
        Verdict(
            "[Ghosal] lecture 30, sequential regularization",
            "k is claimed to be independent of the number of loops m, and small",
            "reproduced" if growth < 1.5 else "not reproducible",
            f"{counts} for {loops}, where the condition of Psi M⁻¹ Psiᵀ is "
            f"{conditions}. It is counted in products with that matrix.",
        ),
    ]


def _longest(times: Found, method: str) -> str:
    m = max(m for x, m in times if x == method)
    return f"{1e3 * float(np.median(times[method, m])):.3g} ms at {m} loops"


def plot(times: Found, given: dict[int, Start], tolerance: float, path: Path) -> None:
    """Time against m with lines of order 1 and 3; iterations and condition."""
    figure = matplotlib.figure.Figure(figsize=(12, 5), layout="constrained")
    left, right = figure.subplots(1, 2)
    for k, method in enumerate(METHODS):
        pairs = sorted((m, np.median(t)) for (x, m), t in times.items() if x == method)
        m, seconds = np.array(pairs).T
        left.loglog(m, 1e3 * seconds, "o-", color=f"C{k}", label=method)
    _guides(left, times)
    left.set(xlabel="loops m", ylabel="milliseconds of one call")
    left.set_title("Accelerations and loop forces of a ladder, float64")
    left.legend(fontsize="small")
    sizes = sorted(given)
    k = [given[m].iterations for m in sizes]
    condition = [given[m].condition for m in sizes]
    right.loglog(sizes, k, "o-", color="C4", label="iterations k")
    right.loglog(
        sizes, condition, "s--", color="0.4", label="condition of Psi M⁻¹ Psiᵀ"
    )
    right.set_title(f"Sequential regularization, tolerance {tolerance:g}")
    right.set(xlabel="loops m")
    right.legend()
    for axes in (left, right):
        axes.grid(alpha=0.3, which="both", lw=0.5)
    figure.savefig(path, dpi=130)


def _guides(axes: Any, times: Found) -> None:
    sizes = [m for method, m in times if method == "recursive"]
    m = np.array([max(sizes) / 4, max(sizes)])
    for method, power, style in (("recursive", 1, ":"), ("kkt", 3, "--")):
        last = 1e3 * float(np.median(times[method, max(sizes)]))
        label = f"order {power}"
        axes.loglog(m, 2 * last * (m / m[1]) ** power, f"k{style}", lw=1, label=label)
