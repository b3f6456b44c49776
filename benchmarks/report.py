"""Results as markdown and plots."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.bars import Bar, bars, without_numbers
from benchmarks.plan import PEERS
from benchmarks.plots import write_plots
from benchmarks.results import Best, Record, best, reasons, select

DOCUMENT = Path(__file__).parent.parent / "docs" / "performance.md"
START, STOP = "<!-- results -->", "<!-- /results -->"
TITLES = {
    "inverse_dynamics": "inverse dynamics",
    "mass_matrix": "mass matrix",
    "forward_dynamics": "forward dynamics",
    "jacobian": "Jacobian of forward dynamics",
    "rollout": "rollout, 100 steps",
    "rollout_gradient": "gradient of a rollout, 100 steps",
}


def write_report(folder: Path) -> str:
    """Write report.md and the plots beside results.json; returns the text."""
    results = json.loads((folder / "results.json").read_text())
    plots = write_plots(results, folder)
    parts = [
        _head(results),
        _bars(bars(results)),
        *_tables(results["records"]),
        *_compile(results),
        _memory(results["records"]),
        _agreement(results["records"]),
        _notes(results),
        _absent(results),
        "\n\n".join(f"![{path.stem}]({path.name})" for path in plots),
    ]
    text = "\n\n".join(part for part in parts if part) + "\n"
    (folder / "report.md").write_text(text)
    return text


def publish(text: str, folder: Path, document: Path = DOCUMENT) -> None:
    """Put the report between the markers of a document, its plots beside it."""
    page = document.read_text()
    if START not in page or STOP not in page:
        raise ValueError(f"{document} has no markers {START} and {STOP}.")
    images = document.parent / "images"
    images.mkdir(exist_ok=True)
    for plot in folder.glob("*.png"):  # also of earlier runs, which are left out
        if f"({plot.name})" in text:
            (images / f"performance_{plot.name}").write_bytes(plot.read_bytes())
            text = text.replace(f"({plot.name})", f"(images/performance_{plot.name})")
    before, rest = page.split(START, 1)
    after = rest.split(STOP, 1)[1]
    document.write_text(f"{before}{START}\n\n{text}\n{STOP}{after}")


def table(head: list[str], rows: list[list[str]]) -> str:
    """A markdown table; the first column is text, the others are numbers."""
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _head(results: dict[str, Any]) -> str:
    """Machine, versions and load: what a reader must know first."""
    machine, versions = results["machine"], results["versions"]
    before, after = (results[f"load_{when}"][0] for when in ("before", "after"))
    names = ", ".join(f"{name} {number}" for name, number in versions.items())
    minutes = results["seconds"] / 60
    threads = "a thread of JAX" if results["asynchronous"] else "the calling thread"
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB, "
        f"Python {machine['python']}; {results['kind']} of {minutes:.0f} minutes, "
        f"load average {before:.1f} before and {after:.1f} after. Medians of "
        f"{results['repeats']} interleaved turns, programs in {threads}. {names}."
    )


def _bars(found: list[Bar]) -> str:
    verdicts = {True: "yes", False: "no", None: "not measured"}
    rows = []
    for bar in found:
        measured = "–" if bar.measured is None else f"{bar.measured:.2f}"
        sign = "≥" if bar.at_least else "≤"
        limit, verdict = f"{sign} {bar.limit:g}", verdicts[bar.is_met]
        rows.append([bar.what, limit, measured, verdict, bar.against])
    return table(["bar", "limit", "measured", "met", "compared with"], rows)


def _tables(records: list[Record]) -> list[str]:
    """For each robot and number of cores a table: rows by libraries."""
    parts = []
    for robot in dict.fromkeys(record["case"]["robot"] for record in records):
        for all_cores in (False, True):
            for precision in ("float64", "float32"):
                place = {"robot": robot, "all_cores": all_cores, "precision": precision}
                found = select(records, **place)
                if any(record["turns"] for record in found):
                    parts.append(_table(found, **place))
    return parts


def _table(records: list[Record], robot: str, all_cores: bool, precision: str) -> str:
    """Microseconds per state; each library by its fastest way and flags."""
    peers = [p for p in PEERS if select(records, peer=p)]
    cases = dict.fromkeys((r["case"]["row"], r["case"]["batch"]) for r in records)
    rows = []
    for row, batch in cases:
        cells = []
        for peer in peers:
            fastest = best(records, (peer,), row=row, batch=batch)
            each = fastest.seconds * 1e6 / max(batch, 1) if fastest else None
            cells.append("–" if each is None else f"{each:.3g}")
        size = f"batch {batch}" if batch else "one state"
        rows.append([f"{TITLES.get(row, row)}, {size}", *cells])
    cores = "all cores" if all_cores else "one core"
    title = f"## {robot}, {precision}, {cores}: microseconds per state"
    return f"{title}\n\n{table(['', *peers], rows)}"


def _compile(results: dict[str, Any]) -> list[str]:
    """Import time, plain calls, and seconds to compile."""
    parts, startup = [], results.get("startup")
    if startup:
        lines = [f"import {k}: {v:.2f} s" for k, v in startup["import"].items()]
        calls = startup["plain_calls"]
        found = calls.get("failed") or (
            f"first call {calls['first']:.2f} s, second {calls['second'] * 1e3:.2f} ms"
        )
        lines.append(f"forward_dynamics of the arm outside of jit: {found}")
        parts.append("## Start\n\n" + "\n".join(f"- {line}" for line in lines))
    records = results.get("compile", [])
    robots = list(dict.fromkeys(record["case"]["robot"] for record in records))
    rows = []
    pairs = dict.fromkeys((r["peer"], r["case"]["row"]) for r in records)
    for peer, row in sorted(pairs, key=lambda pair: PEERS.index(pair[0])):
        cells = []
        for robot in robots:
            fastest = best(records, (peer,), row=row, robot=robot)
            failed = reasons(records, peer, row=row, robot=robot)
            cells.append(f"{fastest.seconds:.2f}" if fastest else "; ".join(failed))
        rows.append([f"{peer}, {row.replace('_', ' ')}", *cells])
    if rows:
        body = table(["", *robots], rows)
        parts.append(f"## Seconds to trace and compile, one state\n\n{body}")
    return parts


def _memory(records: list[Record]) -> str:
    """Bytes per state of the chains, as the compiler tells."""
    chains = [r for r in records if r["case"]["robot"].startswith("chain")]
    chains = [r for r in chains if r.get("memory") and r["turns"]]
    robots = list(dict.fromkeys(record["case"]["robot"] for record in chains))
    rows = []
    for peer in (p for p in PEERS if select(chains, peer=p)):
        cells = []
        for robot in robots:
            fastest = best(chains, (peer,), robot=robot, row="forward_dynamics")
            size = (
                fastest.record["memory"] / fastest.record["case"]["batch"] / 1024
                if fastest
                else None
            )
            cells.append("–" if size is None else f"{size:.3g}")
        rows.append([peer, *cells])
    if not rows:
        return ""
    title = "## Memory of forward dynamics: temporaries and results, kB per state"
    return f"{title}\n\n{table(['', *robots], rows)}"


def _agreement(records: list[Record]) -> str:
    """The largest relative error of each library against jaxdyn in float64."""
    rows = []
    for peer in (p for p in PEERS if select(records, peer=p)):
        cells = []
        for precision in ("float64", "float32"):
            found = select(records, peer=peer, precision=precision)
            errors = [record["error"] for record in found if "error" in record]
            cells.append(f"{max(errors):.1e}" if errors else "–")
        rows.append([peer, *cells])
    title = "## Largest relative difference from jaxdyn in float64, before timing"
    return f"{title}\n\n{table(['', 'float64', 'float32'], rows)}" if rows else ""


def _notes(results: dict[str, Any]) -> str:
    """How each library is called, and the best flags of each."""
    notes = [f"- {peer}: {note}" for peer, note in results["notes"].items()]
    for peer in (p for p in PEERS if select(results["records"], peer=p)):
        flags = Counter(
            fastest.record["flags"] for fastest in _fastest(results["records"], peer)
        )
        if set(flags) - {"default"}:
            often = ", ".join(f"{name} {count} times" for name, count in flags.items())
            notes.append(f"- {peer} was fastest under the XLA flags: {often}")
    flags = [f"- {name}: `{text}`" for name, text in results["flags"].items() if text]
    title = "## How the libraries are called"
    return "\n".join([title, "", *notes, "", "XLA flags:", "", *flags])


def _fastest(records: list[Record], peer: str) -> list[Best]:
    """The fastest way and flags of a library, for each case and precision."""
    keys = {(*record["case"].values(), record["precision"]) for record in records}
    found = []
    for robot, row, batch, all_cores, precision in sorted(keys):
        case = {"robot": robot, "row": row, "batch": batch, "all_cores": all_cores}
        found.append(best(records, (peer,), **case, precision=precision))
    return [fastest for fastest in found if fastest]


def _absent(results: dict[str, Any]) -> str:
    """Every dash with its reason, and libraries that are missing."""
    lines = [f"- {peer}: {why}" for peer, why in results["missing"].items()]
    groups: dict[tuple[str, str], list[str]] = {}
    for record in results["records"]:
        if "failed" in record:
            case, who = record["case"], record["precision"]
            if record["flags"] != "default":
                who += f", {record['flags']}"
            if record["way"]:
                who += f", {record['way']}"
            size = f"batch {case['batch']}" if case["batch"] else "one state"
            where = f"{case['robot']} {case['row']} {size} ({who})"
            groups.setdefault((record["peer"], record["failed"]), []).append(where)
    for (peer, why), places in groups.items():
        more = f" and {len(places) - 2} more" if len(places) > 2 else ""
        lines.append(f"- {peer}: {why}: {'; '.join(places[:2])}{more}")
    for peer in without_numbers(results["records"]):
        lines.append(f"- {peer} has no number at all")
    return "## Missing, and why\n\n" + "\n".join(lines) if lines else ""
