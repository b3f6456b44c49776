"""`python -m experiments`: the command line of the experiments."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import jax

from experiments.runner import listing, reproduce
from jaxdyn.cli import exit_code

HELP = """
An experiment asks whether something in print is so, and answers with tables, plots and
a verdict on each claim. It is experiments/NAME.py with the settings configs/NAME.toml.

written to results/NAME/ (or to FOLDER/NAME with -o FOLDER):
  report.md, report.json, *.png
  ../index.html     all reports on one page

examples:
  python -m experiments gripper
  python -m experiments all --force

experiments:
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run experiments; returns the exit code.

    It is 1 if an experiment failed, otherwise as `jaxdyn.cli.exit_code` says.
    """
    arguments = _parser().parse_args(argv)
    jax.config.update("jax_enable_x64", True)
    return exit_code(lambda: _run(arguments))


def _run(given: argparse.Namespace) -> int:
    if given.names:
        return reproduce(given.names, given.output, force=given.force, jobs=given.jobs)
    print(f"{listing()}\n")
    print("run one: python -m experiments NAME    run all: python -m experiments all")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description="Rerun experiments on published claims; without a name, list them.",
        epilog=HELP + listing(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="of experiments; all: all of them")
    add(
        "--jobs",
        type=int,
        default=min(os.cpu_count() or 1, 4),
        help="how many run at a time; those that measure times run alone (%(default)s)",
    )
    add(
        "-o",
        "--output",
        type=Path,
        default=Path("results"),
        metavar="FOLDER",
        help="the folder of all results (default: results)",
    )
    add("--force", action="store_true", help="replace earlier results")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
