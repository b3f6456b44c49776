"""Plots of a run: throughput against batch, time, compile time and memory against n."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.plan import GROWTH, PEERS
from benchmarks.results import Best, best

Curves = dict[str, dict[int, float]]
POINTS, LIBRARIES = 4, 2  # with fewer a plot shows nothing


def write_plots(results: dict[str, Any], folder: Path) -> list[Path]:
    """All plots for which the run has enough: some points each of some libraries."""
    records, compiled = results["records"], results.get("compile", [])
    row = {"row": "forward_dynamics", "precision": "float64"}

    def by_batch(peer: str, batch: int) -> Best | None:
        case = {"robot": "arm", "batch": batch, "all_cores": False}
        return best(records, (peer,), **row, **case)

    def by_n(peer: str, n: int) -> Best | None:
        return best(records, (peer,), **row, robot=f"chain{n}", batch=GROWTH)

    def compile_by_n(peer: str, n: int) -> Best | None:
        return best(compiled, (peer,), **row, robot=f"chain{n}")

    batches = _numbers(records, "batch")
    sizes = _numbers(records, "robot")
    compiled_sizes = _numbers(compiled, "robot")
    plots = {
        "throughput": (
            _curves(batches, by_batch, lambda b, n: n / b.seconds),
            (
                "batch",
                "states per second",
                "Forward dynamics, 7 dof, float64, one core",
            ),
        ),
        "time_against_n": (
            _curves(sizes, by_n, lambda b, n: b.seconds * 1e6 / GROWTH),
            ("joints", "microseconds per state", "Forward dynamics of chains, float64"),
        ),
        "memory_against_n": (
            _curves(sizes, by_n, lambda b, n: (b.record.get("memory") or 0) / GROWTH),
            ("joints", "bytes per state", "Forward dynamics of chains: memory"),
        ),
        "compile_against_n": (
            _curves(compiled_sizes, compile_by_n, lambda b, n: b.seconds),
            ("joints", "seconds", "Forward dynamics of chains: compile time"),
        ),
    }
    written = []
    for name, (curves, labels) in plots.items():
        curves = {k: c for k, c in curves.items() if len(c) >= POINTS}
        curves = {k: c for k, c in curves.items() if any(c.values())}
        if len(curves) >= LIBRARIES:
            written.append(_plot(curves, labels, folder / f"{name}.png"))
    return written


def _numbers(records: list, key: str) -> list[int]:
    """The batches, or the lengths of the chains, that occur."""
    values = {record["case"][key] for record in records}
    if key == "robot":
        chains = {v for v in values if v.startswith("chain")}
        values = {int(v.removeprefix("chain")) for v in chains}
    return sorted(value for value in values if value)


def _curves(
    points: list[int],
    find: Callable[[str, int], Best | None],
    value: Callable[[Best, int], float],
) -> Curves:
    curves: Curves = {}
    for peer in PEERS:
        found = {point: find(peer, point) for point in points}
        curves[peer] = {n: value(b, n) for n, b in found.items() if b}
    return curves


def _plot(curves: Curves, labels: tuple[str, str, str], path: Path) -> Path:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    for peer, curve in curves.items():
        width = 2.5 if peer == "jaxdyn" else 1.2
        axes.plot([*curve], [*curve.values()], "o-", label=peer, linewidth=width)
    axes.set(xscale="log", yscale="log", xlabel=labels[0], ylabel=labels[1])
    axes.set_title(labels[2])
    axes.grid(True, which="both", alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)
    return path
