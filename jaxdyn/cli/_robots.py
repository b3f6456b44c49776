"""Robots by name or file."""

import difflib
import inspect
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from jaxdyn import robots
from jaxdyn.cli._settings import Robot
from jaxdyn.io import load as load_file
from jaxdyn.model import Model

KNOWN = [name for name in vars(robots) if not name.startswith("_")]
_ENDINGS = (".urdf", ".xml", ".mjcf", ".json")
_SIZED = {"chain": {"n": 7}, "random_tree": {"seed": 1}}


def load(robot: str, folder: Path = Path(), /, **options: Any) -> Model:
    """The robot with this name or in this file, made or read with these options."""
    if robot not in KNOWN and (is_robot(robot) or (folder / robot).is_file()):
        if not (folder / robot).is_file():
            raise ValueError(f"robot {robot!r}: there is no file {folder / robot}.")
        make, known = partial(load_file, folder / robot), [*options]
    elif robot in KNOWN:
        make = getattr(robots, robot)
        known = [*inspect.signature(make).parameters]
        options = _SIZED.get(robot, {}) | options
    else:
        near = difflib.get_close_matches(robot, KNOWN, n=1)
        advice = f" Did you mean {near[0]}?" if near else ""
        raise ValueError(
            f"robot {robot!r} is not known, expected a file ending in .urdf, .xml, "
            f".mjcf or .json, or one of: {', '.join(KNOWN)}.{advice}"
        )
    for name in options:
        if name not in known:
            raise ValueError(
                f"robot {robot!r} has no option {name!r}, expected only: "
                f"{', '.join(x for x in known if x != 'dtype')}."
            )
    try:
        with warnings_printed(robot):
            return make(**options)
    except TypeError as error:  # such as a text where a number is wanted
        reason = str(error).splitlines()[0]
        raise ValueError(f"robot {robot!r}: {reason}.") from None


@contextmanager
def warnings_printed(robot: str) -> Iterator[None]:
    """Print warnings as what they are: words on a robot, not on a line of code."""

    def show(message: Warning | str, *place: object) -> None:
        print(f"jaxdyn: {robot}: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def robot_model(given: str | Robot, folder: Path, dtype: str = "float64") -> Model:
    """The robot of the settings."""
    robot = Robot(given) if isinstance(given, str) else given
    if "dtype" in robot.options:
        raise ValueError("robot.options.dtype is not known: set dtype, at the top.")
    return load(robot.name, folder, **robot.options, dtype=dtype)


def is_robot(text: str) -> bool:
    """Whether this is the name of a robot, or of a file that could hold one."""
    return text in KNOWN or Path(text).suffix.lower() in _ENDINGS
