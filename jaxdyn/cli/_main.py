"""Arguments to calls."""

import argparse
import contextlib
import math
import os
import signal
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import jax

from jaxdyn.cli._cache import cache_folder, keep_programs, start_quietly
from jaxdyn.cli._info import info
from jaxdyn.cli._interrupt import Ended, ended_by_signals, is_working
from jaxdyn.cli._reproduce import experiments, listing, reproduce
from jaxdyn.cli._robots import KNOWN
from jaxdyn.cli._simulate import simulate
from jaxdyn.cli._view import view
from jaxdyn.io import numbers

_TOP = """\
first steps:
  jaxdyn info puma_560                    what a robot is made of
  jaxdyn simulate configs/puma.toml       simulate it: table, plots, animation
  jaxdyn view results/puma                watch the result
  jaxdyn identify configs/puma_identify.toml     fit a robot to measured motions
  jaxdyn reproduce                        list the experiments
  jaxdyn COMMAND --help                   more about a command
"""
_INFO = """\
examples:
  jaxdyn info puma_560 --degrees --q 0 45 180 0 45 0 -o puma.png
  jaxdyn info my_robot.urdf
  jaxdyn info --check
"""
_SIMULATE = """\
The file says which robot moves, how it starts, what drives it and for how long:

  robot = "puma_560"
  degrees = true
  motion = {kind = "cycloidal", q1 = [90, 45, 180, 0, 45, 0], duration = 2}
  control = {kind = "computed_torque", kp = 100, kd = 20}

All of it is checked before anything runs. docs/command_line.md has every key.

written to results/NAME/, NAME being that of the file (or to -o FOLDER):
  trajectory.npz    times, positions, rates, forces, energies, and the robot itself
  summary.json      versions, settings, steps, errors
  *.png             plots
  animation.html    the moving robot, one page that needs no network

Nothing is overwritten without --force; an interrupted run leaves nothing behind.

example:
  jaxdyn simulate configs/puma.toml -o results/first
"""
_IDENTIFY = """\
The file says which robot it is, where the measured motions are, and what is to be
fitted to them:

  robot = "my_robot.urdf"
  log = {file = "run.csv", columns = {time = "t", pos_1 = "j1.q", cur_1 = "j1.tau"}}
  filter = {cutoff = 5}
  parameters = {fit = ["*.inertial", "*.damping", "*.friction"]}

A log is a CSV or NPZ file with the time t and the positions JOINT.q, and with the joint
forces JOINT.tau; rates and accelerations are made by the filter. Take the cutoff (Hz)
about five times the highest frequency of the motion.
All of it is checked before anything runs. docs/command_line.md has every key.

written to results/NAME/, NAME being that of the file (or to -o FOLDER):
  report.html       how well it fits, and all parameters with 95 % intervals
  model.json        the fitted robot, for robot = "model.json" in any settings
  model.urdf        the same, where URDF can hold it
  parameters.csv    name, nominal, fitted, standard deviation, interval
  summary.json      versions, settings, numbers
  *.png             plots

Nothing is overwritten without --force. A fit that was interrupted or killed goes on
where it was, when the same command is given again: its states are kept in
results/NAME.checkpoint/ until it is complete.

example:
  jaxdyn identify configs/puma_identify.toml
"""
_EXCITE = """\
The file says which robot it is, how long it may move, and within which limits:

  robot = "my_robot.urdf"
  duration = 10
  rate = 100

The motion is the one that tells most about the parameters of the robot. Send it to the
robot, log positions and forces, and fit them with jaxdyn identify.

written to results/NAME/, NAME being that of the file (or to -o FOLDER):
  motion.csv        the motion for a controller: t, JOINT.q, JOINT.qd, JOINT.qdd, and
                    the forces JOINT.tau of the nominal robot
  trajectory.npz    the same as arrays, for jaxdyn view
  deviations.csv    how sure each combination of parameters will be
  report.html, summary.json, *.png, animation.html

example:
  jaxdyn excite configs/puma_excite.toml
"""
_REPRODUCE = """\
An experiment asks whether something in print is so, and answers with tables, plots and
a verdict on each claim. It is experiments/NAME.py with the settings configs/NAME.toml.

written to results/NAME/ (or to FOLDER/NAME with -o FOLDER):
  report.md, report.json, *.png
  ../index.html     all reports on one page

examples:
  jaxdyn reproduce gripper
  jaxdyn reproduce all --force
"""
_VIEW = """\
examples:
  jaxdyn view results/puma
  jaxdyn view results/puma --page         writes results/puma/animation.html anew
  jaxdyn view puma_560                    move its joints by hand

The live view plays in a browser, until Ctrl-C. It needs viser:
  pip install 'jaxdyn[view]'
"""


def command() -> int:
    """Run the command line of this process; returns the exit code."""
    if cache_folder() is not None:
        start_quietly()
    return main()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code.

    It is 0, 2 for wrong input with one sentence that says what is wrong, 1 if an
    experiment or a check failed, and 128 plus the number of the signal that ended it:
    130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP.
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
    if arguments.command is not reproduce:  # which measures compilation
        keep_programs()
    try:
        with ended_by_signals():
            code = arguments.command(arguments)
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


def _run_identify(arguments: argparse.Namespace) -> int:
    from jaxdyn.cli._identify import identify  # optax and SciPy only where needed

    return identify(arguments)


def _run_excite(arguments: argparse.Namespace) -> int:
    from jaxdyn.cli._excite import excite

    return excite(arguments)


def silence() -> None:
    """Nothing more is printed, not even when Python empties its buffers at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jaxdyn",
        description="Differentiable rigid multibody dynamics on JAX.",
        epilog=_TOP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=version("jaxdyn"))
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def added(name: str, run: object, text: str, epilog: str):
        made = commands.add_parser(
            name,
            help=text,
            description=f"{text[0].upper()}{text[1:]}.",
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        made.set_defaults(command=run)
        return made

    _add_info(added("info", info, "show what a robot is made of, and draw it", _INFO))
    for name, run, text, epilog in (
        ("simulate", simulate, "run the simulation in a TOML file", _SIMULATE),
        ("excite", _run_excite, "design a motion that tells most of a robot", _EXCITE),
        ("identify", _run_identify, "fit a robot to measured motions", _IDENTIFY),
    ):
        made = added(name, run, text, epilog)
        made.add_argument("config", type=Path, metavar="CONFIG", help="the TOML file")
        _add_results(made, None, "the folder of the results (default: results/NAME)")
    made = added(
        "reproduce",
        reproduce,
        "rerun experiments on published claims; without a name, list them",
        f"{_REPRODUCE}\n{_found()}",
    )
    made.add_argument(
        "names", nargs="*", metavar="NAME", help="of experiments; all: all of them"
    )
    made.add_argument(
        "--jobs",
        type=int,
        default=min(os.cpu_count() or 1, 4),
        help="how many run at a time; those that measure times run alone (%(default)s)",
    )
    _add_results(made, Path("results"), "the folder of all results (default: results)")
    _add_view(added("view", view, "show a result in motion", _VIEW))
    return parser


def _add_info(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "robot",
        metavar="ROBOT",
        nargs="?",
        help="a file: .urdf, .xml or .mjcf (MJCF), .json (dictionary); or a robot that "
        f"comes with jaxdyn: {', '.join(KNOWN)}",
    )
    made.add_argument("--q", nargs="+", type=number, help="the pose (default: neutral)")
    made.add_argument(
        "--degrees", action="store_true", help="angles in --q are in degrees"
    )
    made.add_argument("-o", "--output", type=Path, help="where to save the picture")
    made.add_argument(
        "--check",
        action="store_true",
        help="show versions and devices, and test what some releases of JAX get wrong",
    )


def _add_results(
    made: argparse.ArgumentParser, default: Path | None, text: str
) -> None:
    made.add_argument(
        "-o", "--output", type=Path, default=default, metavar="FOLDER", help=text
    )
    made.add_argument("--force", action="store_true", help="replace earlier results")


def _add_view(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "result",
        metavar="RESULT",
        help="a folder that jaxdyn simulate has written, or the trajectory.npz in it; "
        "or a robot, whose joints then follow sliders",
    )
    made.add_argument(
        "--page", action="store_true", help="write animation.html anew, open nothing"
    )
    made.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="where --page writes the page"
    )
    made.add_argument("--port", type=int, default=8080, help="of the live view (8080)")
    made.add_argument(
        "--no-browser", action="store_true", help="print the address, open no browser"
    )


def _found() -> str:
    try:
        return f"experiments:\n{listing(experiments())}"
    except ValueError as error:
        return f"experiments: {error}"


def number(word: str) -> float:
    """The number that a word is, by the same rules as in files."""
    return float(numbers([word])[0])


def _is_negative(word: str) -> bool:
    try:
        return math.copysign(1.0, number(word)) < 0
    except ValueError:
        return False
