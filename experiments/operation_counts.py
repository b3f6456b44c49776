"""How many operations do the recursions need, beside every count in print?

Ours are exact polynomials, counted on the traced programs of random serial robots with
Denavit-Hartenberg geometry, revolute joints and gravity along the first axis. M are
multiplications and divisions, A additions and subtractions. The forward dynamics of
[Mohan] and [Shah] are counted for given bias forces: step 4 of [Mohan] counts one
addition per joint for them.
"""

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import matplotlib.pyplot as plt
import numpy as np
from counted_methods import (
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

from jaxdyn.analysis import Polynomial, operation_polynomials

ROOT = Path(__file__).parents[1]


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
            kind = FORWARD if source.startswith("Mata") else SOLVE
        M, A = given["multiplications"], given["additions"]
        M, A = (None if p is None else Polynomial.of(p) for p in (M, A))
        stated, note = given.get("stated_at_n", {}), given.get("note", "")
        if kind is not None:
            rows.append(Row(source, item, kind, M, A, stated, note))
    return rows


def verdict(row: Row, ours: list[Row], claims: list[dict]) -> str:
    """One line on a published count."""
    ours = [r for r in ours if r.quantity == row.quantity]
    claim = next(
        (c for c in claims if (c["source"], c["item"]) == (row.source, row.name)), None
    )
    if claim is None:
        degree = 4 if row.M is None else len(row.M.coefficients)
        ours = [r for r in ours if "slender" not in r.name]
        mine = min((r for r in ours if len(r.M.coefficients) <= degree), key=_at_six)
        finding = "**not reproducible**: quoted without its steps"
    else:
        (mine,) = (r for r in ours if r.name == claim["ours"])
        finding = f"**reproduced in a different form**: {claim['why']}"
    if (mine.M, mine.A) == (row.M, row.A):
        finding = "**reproduced**"
    line = f"{row.source}, {row.name}: {row}. {finding}. Ours ({mine.name}): {mine}, "
    note = f" Note: {row.note}." if row.note else ""
    return f"{line}{_difference(mine, row)} at n = 6.{_arithmetic(row)}{note}"


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


def joint_verdicts(table: list[dict], found: dict) -> list[str]:
    """One line on each row of Algorithm 7.4.1."""
    why = {
        "Q_i": "no matrix is formed",
        "c_i": "delta is constant, its turn about x too",
    }
    lines = []
    for given in (g for g in table if "per joint" in g["table"]):
        kind = "revolute" if "revolute" in given["table"] else "prismatic"
        printed = tuple(int(given[k]["0"]) for k in ("multiplications", "additions"))
        item, mine = given["item"], found[kind, given["item"]]
        finding = "**reproduced**"
        if mine != printed:
            finding = f"**reproduced in a different form**: {why[item]}"
        numbers = "{}M {}A. {}. Ours: {}M {}A.".format(*printed, finding, *mine)
        lines.append(f"{given['source']}, {kind} joint, {item}: {numbers}")
    return lines


def mohan_verdicts(steps: list[dict], rows: list[Row], ours: list[Row]) -> list[str]:
    """Whether the steps add to the total, and where linear counts fall below cubic."""
    times = {"n": {1: 1}, "n-1": {1: 1, 0: -1}, "1": {0: 1}}
    sums = []
    for kind in ("multiplications_each", "additions_each"):
        parts = (Polynomial.of(times[s["times"]]) * s[kind] for s in steps)
        sums.append(sum(parts, Polynomial(())))
    *linear, cubic = (r for r in rows if r.source.startswith("Mohan"))
    finding = "reproduced" if sums == [linear[0].M, linear[0].A] else "not reproducible"
    lines = [
        f"Mohan & Saha 2007, sum of the steps: **{finding}**, {sums[0]}, {sums[1]}."
    ]
    for row in linear:
        both = [int(n) for n in row.stated]
        found = [
            _crossing(row, cubic, "M"),
            max(_crossing(row, cubic, k) for k in "MA"),
        ]
        finding = "reproduced" if found == both else "not reproducible"
        lines.append(
            f"{row.source}, {row.name}, fewer M than Walker & Orin from n = {both[0]} "
            f"on and fewer M and A from {both[1]} on: **{finding}**, the polynomials "
            f"give {found[0]} and {found[1]}."
        )
    mine, dense = (r for r in ours if r.quantity == SOLVE and "regrouped" in r.name)
    n = _crossing(mine, dense, "M")
    return [*lines, f"Ours, {mine.name}: fewer M than {dense.name} from n = {n} on."]


def _crossing(linear: Row, cubic: Row, kind: str) -> int:
    small, large = getattr(linear, kind), getattr(cubic, kind)
    return next(n for n in range(3, 99) if small(n) < large(n))


def table(quantity: str, rows: list[Row], shown: list[int]) -> list[str]:
    """All counts of one quantity, fewest M at n = 6 first, as Markdown."""
    head = ["count", "M", "A", *(f"M, A at n = {n}" for n in shown)]
    lines = [f"## {quantity[0].upper()}{quantity[1:]}", ""]
    lines += [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for row in sorted((r for r in rows if r.quantity == quantity), key=_at_six):
        name = f"{row.source}: {row.name.split(', ', 1)[-1]}"
        name = f"**ours: {row.name}**" if row.source == "ours" else name
        cells = [name, str(row.M or ""), str(row.A or "")]
        cells += ["{}, {}".format(*row.at(n)).strip(", ") for n in shown]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def plot(rows: list[Row], span: list[int], path: Path) -> None:
    """Multiplications against the number of links, ours thick."""
    figure, axes = plt.subplots(1, 3, figsize=(18, 6), layout="constrained")
    n = np.arange(span[0], span[1] + 1)
    for axis, quantity in zip(axes, (INVERSE, SOLVE, INERTIA), strict=True):
        for row in (r for r in rows if r.quantity == quantity and r.M is not None):
            width, style = (2.5, "-") if row.source == "ours" else (0.8, "--")
            label = f"{row.source}: {row.name.removeprefix(f'{quantity}, ')}"
            values = [float(row.M(int(k))) for k in n]
            axis.plot(n, values, style, linewidth=width, label=label)
        axis.set(title=quantity, xlabel="links n", ylabel="multiplications")
        axis.legend(fontsize=6)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> None:
    """Counts, compares, writes the table and the figure."""
    jax.config.update("jax_enable_x64", True)
    plt.switch_backend("Agg")
    config = tomllib.loads((ROOT / "configs/operation_counts.toml").read_text())
    published = json.loads((ROOT / config["published"]).read_text())
    ours, rows = our_counts(config["sizes"]), in_print(published["table"])
    lines = ["# Operation counts", "", *(__doc__ or "").splitlines()[2:], ""]
    for quantity in QUANTITIES:
        lines += table(quantity, [*ours, *rows], config["shown"])
    lines += ["## Single robots, with their own zeros", ""]
    lines += [f"| robot | {INVERSE} | {SOLVE} | {INERTIA} |", "|---|---|---|---|"]
    lines += [f"| {' | '.join(own_counts(r))} |" for r in config["robots"]]
    verdicts = [verdict(row, ours, config["claims"]) for row in rows]
    verdicts += joint_verdicts(published["table"], joint_counts(config["sizes"]))
    verdicts += mohan_verdicts(published["mohan_saha_steps"], rows, ours)
    lines += ["", "## Verdicts", "", *(f"- {line}" for line in verdicts)]
    results = ROOT / config["results"]
    results.mkdir(parents=True, exist_ok=True)
    (results / "table.md").write_text("\n".join(lines) + "\n")
    plot([*ours, *rows], config["plotted"], results / "counts.png")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
