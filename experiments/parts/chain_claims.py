"""What [Shah] and [Ghosal] claim about long chains, judged by what was measured."""

from typing import Any, NamedTuple

import numpy as np

from experiments.reports import Verdict
from jaxdyn.analysis import Polynomial

BEST = "denoc"
DENSE = ("composite", "gibbs_appell", "noc")
SHORT = 6  # joints, up to which [Ghosal] calls methods of order 3 efficient
Found = dict[tuple[str, int], Any]  # by method and number of joints
Orders = dict[tuple[str, str], float]  # by method and "one state" or "batch"


class Measured(NamedTuple):
    """Seconds per state of one call and of a batch, and errors by precision."""

    one: Found
    many: Found
    double: Found
    single: Found
    conditions: dict[int, float]


def order(times: Found, method: str, start: int) -> float:
    """The slope of log time against log n, from n = start on; NaN without two sizes."""
    pairs = [(n, np.median(t)) for (m, n), t in times.items() if m == method]
    pairs = [pair for pair in pairs if pair[0] >= start]
    if len(pairs) < 2:
        return np.nan
    n, seconds = np.log(np.array(pairs)).T
    return float(np.polyfit(n, seconds, 1)[0])


def ratio(times: Found, method: str, n: int) -> float:
    """Time of a method over that of denoc, in the same turns."""
    return float(np.median(times[method, n] / times[BEST, n]))


def claims(
    found: Measured,
    orders: Orders,
    counts: dict[str, Polynomial],
    own: dict[str, Polynomial],
) -> list[Verdict]:
    """A verdict on each claim, from the operations in print and from our own."""
    n = max(n for _, n in found.one)
    both = "both algorithms are of order n"
    return [
        _linear(own, orders, "[Shah] section 4", both, "denoc", "newton_euler"),
        _fewer_operations(counts),
        _rope(found, own),
        _slow(found, n),
        _unstable(found, n),
        _linear(own, orders, "[Ghosal] Newton-Euler", "O(N)", "newton_euler"),
        _linear(own, orders, "[Ghosal] articulated bodies", "O(N)", "articulated"),
        _cubic(found, orders, own),
        _feasible(found, n),
    ]


def _linear(
    own: dict[str, Polynomial], orders: Orders, source: str, claim: str, *methods: str
) -> Verdict:
    """Decided by operations, of which the order is exact."""
    holds = all(degree(own[m]) == 1 for m in methods)
    slopes = [f"{m} {x:.2f} ({k})" for (m, k), x in orders.items() if m in methods]
    return Verdict(
        source,
        claim,
        "reproduced" if holds else "not reproducible",
        f"operations: {'; '.join(f'{m} {own[m]}' for m in methods)}. Observed order of "
        f"the time: {', '.join(slopes)}.",
    )


def degree(polynomial: Polynomial) -> int:
    """The highest power of n."""
    return len(polynomial.coefficients) - 1


def _fewer_operations(counts: dict[str, Polynomial]) -> Verdict:
    (ours,) = (p for name, p in counts.items() if "proposed" in name)
    others = {name: p for name, p in counts.items() if "proposed" not in name}
    start = {name: _below(ours, p) for name, p in others.items()}
    holds = all(n is not None for n in start.values())
    shown = ", ".join(f"{name} from n = {n} on" for name, n in start.items())
    at = {name: float(p(100) / ours(100)) for name, p in others.items()}
    times = ", ".join(f"{x:.2f} ({name})" for name, x in at.items())
    return Verdict(
        "[Shah] Table 4 and Fig. 8",
        "on chains with many joints the proposed forward dynamics need fewer "
        "operations than the others",
        "reproduced" if holds else "not reproducible",
        f"by the printed formulas fewer than {shown}; at n = 100 the others need "
        f"{times} times as many. The second coefficient of Lilly & Orin is illegible "
        "and taken as 23/2. Our own counts are in `operation_counts`.",
    )


def _below(ours: Polynomial, other: Polynomial) -> int | None:
    """From which number of joints on ours is smaller, up to 1000."""
    larger = [n for n in range(2, 1001) if ours(n) >= other(n)]
    last = max(larger, default=1)
    return None if last == 1000 else last + 1


def _rope(found: Measured, own: dict[str, Polynomial]) -> Verdict:
    """Decided by operations, as times of two methods so alike are a matter of luck."""
    counts = {method: float(own[method](100)) for method in (BEST, "articulated")}
    more = counts["articulated"] / counts[BEST]
    times = [ratio(t, "articulated", 100) for t in (found.one, found.many)]
    return Verdict(
        "[Shah] section 4",
        "with Featherstone's articulated bodies the rope of 100 joints would take "
        "4.54 s instead of 3.44 s, 1.32 times as long",
        "reproduced" if 1.2 < more < 1.5 else "not reproducible",
        f"here articulated bodies need {more:.2f} times the operations of {BEST} for "
        f"100 joints, and {times[0]:.2f} times its time for one state, {times[1]:.2f} "
        "times in a batch: both eliminate joints by the same arithmetic in world axes. "
        "Seconds on their machine cannot be compared.",
    )


def _slow(found: Measured, n: int) -> Verdict:
    times = {m: ratio(found.one, m, n) for m in DENSE}
    shown = ", ".join(f"{x:.0f} ({m})" for m, x in times.items())
    start = _faster_from(found)
    return Verdict(
        "[Shah] section 3.2",
        "for large n methods of order n³ should be avoided, as they are slow",
        "reproduced" if min(times.values()) > 10 else "not reproducible",
        f"at n = {n} they take {shown} times as long as {BEST} for one state. "
        f"{BEST} is faster than composite bodies with Cholesky from n = {start[0]} on "
        f"for one state and from n = {start[1]} on in a batch, of the sizes measured.",
    )


def _faster_from(found: Measured) -> list[int | None]:
    """The smallest size from which on denoc is the faster one, of one and of many."""
    starts: list[int | None] = []
    for times in (found.one, found.many):
        start = None
        for n in sorted((n for m, n in times if m == "composite"), reverse=True):
            if ratio(times, "composite", n) < 1:
                break
            start = n
        starts.append(start)
    return starts


def _unstable(found: Measured, n: int) -> Verdict:
    recursive = max(found.double[m, n] for m in ("denoc", "articulated"))
    formed = {m: found.double[m, n] for m in DENSE}
    least = min(n for _, n in found.double)
    small = found.double["composite", least] / found.double[BEST, least]
    shown = ", ".join(f"{x:.0e} ({m})" for m, x in formed.items())
    lost = min(formed.values()) / recursive
    return Verdict(
        "[Shah] section 3.2",
        "for large n methods of order n³ have problems with numerical instability",
        "reproduced in a different form" if lost > 100 else "not reproducible",
        f"the condition of M decides, not n: at n = {n} with cond(M) = "
        f"{found.conditions[n]:.1e} the recursive methods err by {recursive:.0e}, the "
        f"formed matrix with Cholesky by {shown}; at n = {least} with cond(M) = "
        f"{found.conditions[least]:.0e} by {small:.1g} times as much as {BEST}.",
    )


def _cubic(found: Measured, orders: Orders, own: dict[str, Polynomial]) -> Verdict:
    """Decided by operations; times of short chains are mostly those of the call."""
    is_cubic = all(degree(own[m]) == 3 for m in DENSE)
    formed, recursive = own["composite"], own[BEST]
    share = float(formed.coefficients[-1] * SHORT**3 / formed(SHORT))
    work = float(formed(SHORT) / recursive(SHORT))
    times = [ratio(t, "composite", SHORT) for t in (found.one, found.many)]
    holds = is_cubic and share < 0.1 and work < 1
    form = "reproduced in a different form" if holds else "not reproducible"
    slopes = ", ".join(f"{orders[m, 'one state']:.2f} ({m})" for m in DENSE)
    return Verdict(
        "[Ghosal] forward dynamics by M and elimination",
        "O(N³), with a small coefficient; efficient when N ≤ 6",
        "reproduced" if holds and max(times) < 1 else form,
        f"operations: {'; '.join(f'{m} {own[m]}' for m in DENSE)}. For {SHORT} joints "
        f"the cubic term of composite is {share:.1%} of them, and all of them "
        f"{work:.2f} times those of {BEST} ({recursive}); {BEST} needs fewer from n = "
        f"{_below(recursive, formed)} on. In time composite takes {times[0]:.2f} times "
        f"as long as {BEST} for {SHORT} joints and one state, {times[1]:.2f} times in "
        f"a batch. Observed order of the time of one state: {slopes}.",
    )


def _feasible(found: Measured, n: int) -> Verdict:
    seconds = {m: float(np.median(found.one[m, n])) for m in (BEST, *DENSE)}
    dense = min(seconds[m] for m in DENSE)
    error = found.double[BEST, n]
    holds = seconds[BEST] < 0.1 * dense and error < 1e-9
    return Verdict(
        "[Ghosal]",
        "proteins with 100 to 1000 joint variables need O(N) methods; O(N³) is not "
        "very useful there",
        "reproduced" if holds else "not reproducible",
        f"at n = {n} one evaluation takes {seconds[BEST] * 1e3:.2g} ms by {BEST}, with "
        f"an error of {error:.0e}, and {dense * 1e3:.3g} ms at best by a formed "
        "matrix.",
    )
