"""How many operations do the recursions need, beside every count in print?

Ours are exact polynomials, counted on the traced programs of random serial robots with
Denavit-Hartenberg geometry, revolute joints and gravity along the first axis. M are
multiplications and divisions, A additions and subtractions. The forward dynamics of
[Mohan] and [Shah] are counted for given bias forces: step 4 of [Mohan] counts one
addition per joint for them.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.figure
import numpy as np

from experiments.parts.counted_methods import (
    FORWARD,
    INERTIA,
    INVERSE,
    INWARD,
    OURS,
    QUANTITIES,
    SOLVE,
    family,
    joint_counts,
    loads,
    own_counts,
)
from experiments.reports import Report, Verdict
from jaxdyn.analysis import Polynomial, operation_polynomials
from jaxdyn.io import Figure, Table


@dataclass(frozen=True)
class Claim:
    """Which of our counts belongs to one in print, and why they differ."""

    source: str
    item: str
    ours: str
    why: str


@dataclass(frozen=True)
class Config:
    """The counts in print, and the numbers of links at which ours are taken."""

    published: Path
    sizes: list[int]
    shown: list[int]
    plotted: tuple[int, int]
    robots: list[str]
    claims: list[Claim]


def run(config: Config, folder: Path) -> Report:
    """Counts, and compares with what is printed."""
    published = json.loads(config.published.read_text(encoding="utf-8"))
    ours, rows = our_counts(config.sizes), in_print(published["table"])
    verdicts = [verdict(row, ours, config.claims) for row in rows]
    verdicts += joint_verdicts(published["table"], joint_counts(config.sizes))
    verdicts += mohan_verdicts(published["mohan_saha_steps"], rows)
    tables = [table(quantity, [*ours, *rows], config.shown) for quantity in QUANTITIES]
    head = ["robot", INVERSE, SOLVE, INERTIA]
    own = [own_counts(robot) for robot in config.robots]
    tables.append(Table("Single robots, with their own zeros", head, own))
    plot([*ours, *rows], config.plotted, folder / "counts.png")
    mine, dense = (r for r in ours if r.quantity == SOLVE and "regrouped" in r.name)
    less = f"Of our own counts, {mine.name} has fewer M than {dense.name} from n = "
    return Report(
        "operation_counts",
        "Operation counts",
        "\n".join((__doc__ or "").splitlines()[2:])
        + f"\n{less}{crossing(mine, dense, 'M')} on.",
        tables,
        [
            Figure(
                "counts.png", "Multiplications against the number of links, ours thick"
            )
        ],
        verdicts,
    )


@dataclass(frozen=True)
class Row:
    """One count, ours or in print; M and A are None where only numbers are printed."""

    source: str
    name: str
    quantity: str
    M: Any
    A: Any
    stated: dict[str, list]
    note: str = ""
    table: str = ""

    def at(self, n: int) -> list:
        """M and A at n links."""
        if self.M is None:
            return self.stated.get(str(n), ["", ""])
        return [self.M(n), self.A(n)]

    def __str__(self) -> str:
        if self.M is None:
            return "{}M {}A at n = 6".format(*self.stated["6"])
        return f"({self.M})M ({self.A})A"


def our_counts(sizes: list[int]) -> list[Row]:
    """Our counts of all quantities."""
    rows = []
    for quantity, method, f, arrays, kind in OURS:
        found = operation_polynomials(f, family(kind, arrays), sizes)
        rows.append(Row("ours", f"{method}, {kind}", quantity, found.M, found.A, {}))
    before = operation_polynomials(loads, family("as given", 3), sizes)
    (total,) = (
        r for r in rows if r.name == "Newton-Euler, as given" and r.quantity == INVERSE
    )
    M, A = total.M + before.M * -1, total.A + before.A * -1
    return [*rows, Row("ours", total.name, INWARD, M, A, {})]


def in_print(table: list[dict]) -> list[Row]:
    """The published counts of whole algorithms."""
    rows = []
    for given in table:
        source, item = given["source"], given["item"]
        kind = next((q for q in QUANTITIES if item.startswith(q)), None)
        if item.startswith("forward"):  # [Mata] alone counts the bias
            kind = FORWARD if source == "[Mata]" else SOLVE
        M, A = given["multiplications"], given["additions"]
        M, A = (None if p is None else Polynomial.of(p) for p in (M, A))
        stated, note = given.get("stated_at_n", {}), given.get("note", "")
        if kind is not None:
            place = given["table"]
            rows.append(Row(source, item, kind, M, A, stated, note, place))
    return rows


def verdict(row: Row, ours: list[Row], claims: list[Claim]) -> Verdict:
    """What becomes of a published count."""
    ours = [r for r in ours if r.quantity == row.quantity]
    claim = next(
        (c for c in claims if (c.source, c.item) == (row.source, row.name)), None
    )
    if claim is None:
        degree = 4 if row.M is None else len(row.M.coefficients)
        ours = [r for r in ours if "slender" not in r.name]
        mine = min((r for r in ours if len(r.M.coefficients) <= degree), key=_at_six)
        finding, why = "not reproducible", "quoted without its steps"
    else:
        (mine,) = (r for r in ours if r.name == claim.ours)
        finding, why = "reproduced in a different form", claim.why
    if (mine.M, mine.A) == (row.M, row.A):
        finding, why = "reproduced", "the same polynomials"
    words = f"{mine.name}: {mine}, {_difference(mine, row)} at n = 6; {why}."
    note = f" Note: {row.note}." if row.note else ""
    claimed = f"{row.name}: {row}"
    source = f"{row.source} {row.table}"
    return Verdict(source, claimed, finding, f"{words}{_arithmetic(row)}{note}")


def _difference(mine: Row, row: Row) -> str:
    parts = []
    for kind, ours, theirs in zip("MA", mine.at(6), row.at(6), strict=True):
        word = "fewer" if ours < theirs else "more"
        parts.append(f"{abs(ours - theirs)} {word} {kind}")
    return ", ".join(parts)


def _at_six(row: Row) -> float:
    return float(row.at(6)[0])


def _arithmetic(row: Row) -> str:
    """Where the polynomials do not give the numbers that are printed beside them."""
    wrong = [
        f" Misprint: {polynomial} is {polynomial(int(n))} at n = {n}, printed {value}."
        for n, values in row.stated.items()
        for polynomial, value in zip((row.M, row.A), values, strict=True)
        if polynomial is not None and value is not None and polynomial(int(n)) != value
    ]
    return "".join(wrong)


def joint_verdicts(table: list[dict], found: dict) -> list[Verdict]:
    """What becomes of each row of Algorithm 7.4.1."""
    why = {
        "Q_i": "; no matrix is formed",
        "c_i": "; delta is constant, its turn about x too",
    }
    verdicts = []
    for given in (g for g in table if "per joint" in g["table"]):
        kind = "revolute" if "revolute" in given["table"] else "prismatic"
        printed = tuple(int(given[k]["0"]) for k in ("multiplications", "additions"))
        item, mine = given["item"], found[kind, given["item"]]
        claim = "{} joint, {}: {}M {}A".format(kind, item, *printed)
        ours = "{}M {}A".format(*mine)
        finding = "reproduced"
        if mine != printed:
            finding, ours = "reproduced in a different form", f"{ours}{why[item]}"
        source = f"{given['source']} Algorithm 7.4.1"
        verdicts.append(Verdict(source, claim, finding, f"{ours}."))
    return verdicts


def mohan_verdicts(steps: list[dict], rows: list[Row]) -> list[Verdict]:
    """Whether the steps add to the total, and where linear counts fall below cubic."""
    times = {"n": {1: 1}, "n-1": {1: 1, 0: -1}, "1": {0: 1}}
    sums = []
    for kind in ("multiplications_each", "additions_each"):
        parts = (Polynomial.of(times[s["times"]]) * s[kind] for s in steps)
        sums.append(sum(parts, Polynomial(())))
    *linear, cubic = (r for r in rows if r.source == "[Mohan]")
    claims = [("the steps add to the printed sum", sums == [linear[0].M, linear[0].A])]
    ours = ["they add to ({})M ({})A.".format(*sums)]
    for row in linear:
        both = [int(n) for n in row.stated]
        found = [crossing(row, cubic, "M"), max(crossing(row, cubic, k) for k in "MA")]
        claim = (
            "{}: fewer M than Walker & Orin from n = {} on, fewer M and A from {} on"
        )
        claims.append((claim.format(row.name, *both), found == both))
        ours.append("the polynomials give {} and {}.".format(*found))
    words = {True: "reproduced", False: "not reproducible"}
    return [
        Verdict(f"{cubic.source} {cubic.table}", claim, words[holds], text)
        for (claim, holds), text in zip(claims, ours, strict=True)
    ]


def crossing(linear: Row, cubic: Row, kind: str) -> int:
    """The number of links, from three, at which the first count falls below."""
    small, large = getattr(linear, kind), getattr(cubic, kind)
    return next(n for n in range(3, 99) if small(n) < large(n))


def table(quantity: str, rows: list[Row], shown: list[int]) -> Table:
    """All counts of one quantity, fewest M at n = 6 first."""
    lines = []
    for row in sorted((r for r in rows if r.quantity == quantity), key=_at_six):
        name = row.name if row.source == "ours" else row.name.split(", ", 1)[-1]
        at = ["{}, {}".format(*row.at(n)).strip(", ") for n in shown]
        lines.append([f"{row.source}: {name}", row.M or "", row.A or "", *at])
    head = ["count", "M", "A", *(f"M, A at n = {n}" for n in shown)]
    return Table(f"{quantity[0].upper()}{quantity[1:]}", head, lines)


def plot(rows: list[Row], span: tuple[int, int], path: Path) -> None:
    """Multiplications against the number of links, ours thick."""
    figure = matplotlib.figure.Figure(figsize=(16, 9), layout="constrained")
    n = np.arange(span[0], span[1] + 1)
    quantities = INVERSE, SOLVE, INERTIA
    for axes, quantity in zip(figure.subplots(1, 3), quantities, strict=True):
        shared = quantity.split(",")[0]
        for row in (r for r in rows if r.quantity == quantity and r.M is not None):
            width, style = (2.5, "-") if row.source == "ours" else (0.8, "--")
            label = f"{row.source}: {row.name.removeprefix(f'{shared}, ')}"
            values = [float(row.M(int(k))) for k in n]
            axes.loglog(n, values, style, linewidth=width, label=label)
        axes.set(title=quantity, xlabel="links n", ylabel="multiplications")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), fontsize="small")
    figure.savefig(path, dpi=100)
