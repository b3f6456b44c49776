"""Arguments to calls."""

import argparse
import contextlib
import math
import os
import signal
import sys
import tomllib
from collections.abc import Callable, Sequence
from importlib import import_module, resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax

from jaxdyn.cli._bench_gpu import BATCHES, PROGRAMS, ROBOTS, bench_gpu
from jaxdyn.cli._cache import cache_folder, keep_programs, start_quietly
from jaxdyn.cli._info import info
from jaxdyn.cli._interrupt import Ended, ended_by_signals, is_working
from jaxdyn.cli._robots import KNOWN
from jaxdyn.cli._simulate import simulate
from jaxdyn.cli._view import view
from jaxdyn.io import numbers


def command() -> int:
    """Run the command line of this process; returns the exit code."""
    if cache_folder() is not None:
        start_quietly()
    return main()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code.

    It is 1 if a check failed, otherwise as `exit_code` says.
    """
    words = sys.argv[1:] if argv is None else argv
    # argparse takes -1e-3 for an option; with a space before it, for a value
    words = [f" {w}" if _is_negative(w) else w for w in words]
    parser = _parser()
    if not words:
        parser.print_help(sys.stderr)
        return 2
    arguments = parser.parse_args(words)
    jax.config.update("jax_enable_x64", True)
    keep_programs()
    return exit_code(lambda: arguments.command(arguments))


def exit_code(command: Callable[[], int]) -> int:
    """Run a command; returns the exit code.

    It is that of the command, which is 0 if all went well; 2 for wrong input, with one
    sentence that says what is wrong; and 128 plus the number of the signal that ended
    it: 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP.
    """
    try:
        with ended_by_signals():
            code = command()
            sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader of a pipe has seen enough
        silence()
        return 0
    except (ValueError, OSError) as error:
        print(f"jaxdyn: {error}", file=sys.stderr)
        return 2
    except (KeyboardInterrupt, Ended) as error:
        return _left(error.number if isinstance(error, Ended) else signal.SIGINT)


def _left(number: int) -> int:
    """The exit code after a signal; says so, if anyone can still hear it."""
    with contextlib.suppress(OSError):  # the terminal may be gone
        print("\njaxdyn: interrupted, nothing half-written is left", file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
    if is_working():  # compiled code in a thread would crash the way out
        os._exit(128 + number)
    return 128 + number


def _later(name: str) -> Callable[[argparse.Namespace], int]:
    """A command whose module is loaded when it runs: optax and SciPy are slow."""
    return lambda given: getattr(import_module(f"jaxdyn.cli._{name}"), name)(given)


def silence() -> None:
    """Nothing more is printed, not even when Python empties its buffers at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    epilogs = resources.files("jaxdyn.cli").joinpath("help.toml")
    more = tomllib.loads(epilogs.read_text(encoding="utf-8"))
    parser = argparse.ArgumentParser(
        prog="jaxdyn",
        description="Differentiable rigid multibody dynamics on JAX.",
        epilog=more["top"],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=version("jaxdyn"))
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def added(name: str, run: object, text: str):
        made = commands.add_parser(
            name,
            help=text,
            description=f"{text[0].upper()}{text[1:]}.",
            epilog=more[name],
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        made.set_defaults(command=run)
        return made

    _add_info(added("info", info, "show what a robot is made of, and draw it"))
    for name, run, text in (
        ("simulate", simulate, "run the simulation in a TOML file"),
        ("excite", _later("excite"), "design a motion that tells most of a robot"),
        ("identify", _later("identify"), "fit a robot to measured motions"),
    ):
        made = added(name, run, text)
        made.add_argument("config", type=Path, metavar="CONFIG", help="the TOML file")
        _add_results(made, None, "the folder of the results (default: results/NAME)")
    _add_view(added("view", view, "show a result in motion"))
    _add_bench(added("bench-gpu", bench_gpu, "measure a GPU and check its results"))
    return parser


def _add_info(made: argparse.ArgumentParser) -> None:
    add = made.add_argument
    add(
        "robot",
        metavar="ROBOT",
        nargs="?",
        help="a file: .urdf, .xml or .mjcf (MJCF), .json (dictionary); or a robot that "
        f"comes with jaxdyn: {', '.join(KNOWN)}",
    )
    add("--q", nargs="+", type=number, help="the pose (default: neutral)")
    add("--degrees", action="store_true", help="angles in --q are in degrees")
    add("-o", "--output", type=Path, help="where to save the picture")
    add(
        "--check",
        action="store_true",
        help="show versions and devices, and test what some releases of JAX get wrong",
    )


def _add_results(made: argparse.ArgumentParser, default: Any, text: str) -> None:
    add = made.add_argument
    add("-o", "--output", type=Path, default=default, metavar="FOLDER", help=text)
    add("--force", action="store_true", help="replace earlier results")


def _add_view(made: argparse.ArgumentParser) -> None:
    add = made.add_argument
    add(
        "result",
        metavar="RESULT",
        help="a folder that jaxdyn simulate has written, or the trajectory.npz in it; "
        "or a robot or its file, whose joints then follow sliders",
    )
    add("--page", action="store_true", help="write a page instead, open nothing")
    add(
        "-o", "--output", type=Path, metavar="FILE", help="where --page writes the page"
    )
    add(
        "--skip",
        action="append",
        metavar="PLACE",
        help="what to leave out of a robot file, such as joint/mimic; may be repeated",
    )
    add("--port", type=int, default=8080, help="of the live view (8080)")
    add("--no-browser", action="store_true", help="print the address, open no browser")


def _add_bench(made: argparse.ArgumentParser) -> None:
    add = made.add_argument
    add("-o", "--output", type=Path, metavar="FILE", help="also write JSON")
    add("--device", metavar="PLATFORM", help="cpu, gpu, tpu (default: the GPU)")
    add("--robot", nargs="+", choices=ROBOTS, default=(), help="default: all")
    add("--program", nargs="+", choices=PROGRAMS, default=(), help="default: all")
    add("--batch", nargs="+", type=int, help=f"default: {' '.join(map(str, BATCHES))}")


def number(word: str) -> float:
    """The number that a word is, by the same rules as in files."""
    return float(numbers([word])[0])


def _is_negative(word: str) -> bool:
    try:
        return math.copysign(1.0, number(word)) < 0
    except ValueError:
        return False
