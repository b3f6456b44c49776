"""`python -m benchmarks`: jaxdyn beside its peers; JSON, tables and plots."""

import argparse
import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.machine import machine, versions
from benchmarks.plan import (
    PEERS,
    PRECISIONS,
    QUICK_COMPILE,
    QUICK_LEFT_OUT,
    Case,
    bars_cases,
    bars_contestants,
    compile_cases,
    contestants,
    full_cases,
    quick_cases,
    quick_contestants,
    takes_part_in_bars,
)
from benchmarks.problem import ROWS
from benchmarks.report import publish, write_report
from benchmarks.run import Settings, run, run_compile, run_startup
from benchmarks.session import FLAGS, known_flags

QUICK = {"repeats": 5, "limit": 60.0, "ways": 1, "left_out": QUICK_LEFT_OUT}
BARS = {"ways": 1, "left_out": QUICK_LEFT_OUT, "takes_part": takes_part_in_bars}


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser("benchmarks", description=__doc__)
    add = parser.add_argument
    add("--quick", action="store_true", help="the subset of less than five minutes")
    add("--bars", action="store_true", help="what the bars compare, in 15 minutes")
    add("--rows", nargs="+", choices=[*ROWS, "compile"], help="only these rows")
    add("--robots", nargs="+", help="only these robots")
    add("--batches", nargs="+", type=int, help="only these batches; 0 is one state")
    add("--cores", choices=["one", "all"], help="only on one core, or on all")
    add("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    add("--precisions", nargs="+", choices=PRECISIONS, default=list(PRECISIONS))
    add("--flags", nargs="+", choices=list(FLAGS), default=list(FLAGS))
    add("--asynchronous", action="store_true", help="JAX's own threads, its default")
    add("--repeats", type=int, help="turns of each contestant")
    add("--limit", type=float, help="seconds for one request to a worker")
    add("--report", action="store_true", help="only the report of earlier results")
    add("--publish", action="store_true", help="tables to docs/performance.md")
    add("-o", "--output", type=Path, default=Path("results/benchmarks"))
    return parser.parse_args(arguments)


def chosen(options: argparse.Namespace) -> list[Case]:
    """The cases of the plan that the command line does not exclude."""
    cases = full_cases()
    if options.quick or options.bars:
        cases = quick_cases() if options.quick else bars_cases()
    wanted = {"row": options.rows, "robot": options.robots, "batch": options.batches}
    if options.cores:
        wanted["all_cores"] = [options.cores == "all"]
    for key, values in wanted.items():
        cases = [c for c in cases if values is None or getattr(c, key) in values]
    return cases


def measure(options: argparse.Namespace) -> None:
    """Run what the command line asks for and keep results.json up to date."""
    kind, is_short = "full run", options.quick or options.bars
    who = contestants(options.peers, options.precisions, options.flags)
    settings = Settings(options.output.resolve(), who)
    if options.quick:
        kind, settings = "quick subset", replace(settings, **QUICK)
        settings.contestants = quick_contestants(options.peers)
    elif options.bars:
        kind, settings = "run of the bars", replace(settings, **BARS)
        settings.contestants = bars_contestants(options.peers)
    settings.is_asynchronous = options.asynchronous
    for key in ("repeats", "limit"):
        if getattr(options, key) is not None:
            setattr(settings, key, getattr(options, key))
    results: dict[str, Any] = {
        "kind": kind,
        "machine": machine(),
        "versions": versions(),
        "flags": {name: known_flags(text) for name, text in FLAGS.items()},
        "asynchronous": options.asynchronous,
        "repeats": settings.repeats,
        "load_before": os.getloadavg(),
        "missing": settings.missing,
        "notes": settings.notes,
        "records": [],
        "compile": [],
    }
    start = time.time()

    def save(**parts: Any) -> None:
        results.update(parts, load_after=os.getloadavg(), seconds=time.time() - start)
        path = options.output / "results.json"
        path.write_text(json.dumps(results, indent=1))

    save()
    run(chosen(options), settings, lambda records: save(records=records))
    if options.rows is None or "compile" in options.rows:
        settings.repeats = 2 if options.quick else 3
        if is_short:
            everybody = settings.contestants
            settings.contestants = [w for w in everybody if w.peer in QUICK_COMPILE]
        save(startup=run_startup(settings))
        cases = compile_cases(is_short)
        run_compile(cases, settings, lambda records: save(compile=records))
    save()


def main() -> None:
    """Measure, then report."""
    options = parse()
    options.output.mkdir(parents=True, exist_ok=True)
    if not options.report:
        measure(options)
        print(f"measured: {options.output}/results.json (--report writes its report)")
    text = write_report(options.output)
    print(text.split("\n## ")[0])
    if options.publish:
        publish(text, options.output)
    print(f"{options.output}/report.md and plots")


if __name__ == "__main__":
    main()
