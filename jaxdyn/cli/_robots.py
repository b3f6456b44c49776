"""Robots by name or file."""

import difflib
import inspect
import json
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any

from jaxdyn import robots
from jaxdyn.cli._settings import Robot
from jaxdyn.io import from_dict, load_mjcf, load_urdf
from jaxdyn.model import Model

KNOWN = [name for name in vars(robots) if not name.startswith("_")]
_SIZED = {"chain": {"n": 7}, "random_tree": {"seed": 1}}


def load(robot: str, folder: Path = Path(), /, **options: Any) -> Model:
    """The robot with this name or in this file, made or read with these options."""
    reader = _READERS.get(Path(robot).suffix.lower())
    if reader is not None:
        if not (folder / robot).is_file():
            raise ValueError(f"robot {robot!r}: there is no file {folder / robot}.")
        make, first = partial(reader, folder / robot), 1
    elif robot in KNOWN:
        make, first = getattr(robots, robot), 0
        options = _SIZED.get(robot, {}) | options
    else:
        near = difflib.get_close_matches(robot, KNOWN, n=1)
        advice = f" Did you mean {near[0]}?" if near else ""
        raise ValueError(
            f"robot {robot!r} is not known, expected a file ending in .urdf, .xml, "
            f".mjcf or .json, or one of: {', '.join(KNOWN)}.{advice}"
        )
    function = reader or make
    known = list(inspect.signature(function).parameters)[first:]
    for name in options:
        if name not in known:
            raise ValueError(
                f"robot {robot!r} has no option {name!r}, expected only: "
                f"{', '.join(x for x in known if x != 'dtype')}."
            )
    try:
        with warnings.catch_warnings(record=True) as doubts:
            model = make(**options)
    except TypeError as error:  # such as a text where a number is wanted
        reason = str(error).splitlines()[0]
        raise ValueError(f"robot {robot!r}: {reason}.") from None
    for doubt in doubts:
        print(f"jaxdyn: {robot}: {doubt.message}", file=sys.stderr)
    return model


def robot_model(given: str | Robot, folder: Path, dtype: str = "float64") -> Model:
    """The robot of the settings."""
    robot = Robot(given) if isinstance(given, str) else given
    if "dtype" in robot.options:
        raise ValueError("robot.options.dtype is not known: set dtype, at the top.")
    return load(robot.name, folder, **robot.options, dtype=dtype)


def is_robot(text: str) -> bool:
    """Whether this is the name of a robot, or of a file that could hold one."""
    return text in KNOWN or Path(text).suffix.lower() in _READERS


def _load_json(
    path: Path, *, check_inertia: bool | None = None, dtype: Any = None
) -> Model:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{path}, line {error.lineno}: {error.msg}: expected a robot in JSON."
        ) from None
    except (ValueError, RecursionError) as error:  # not UTF-8, or nested too deep
        raise ValueError(f"{path}: {error}: expected a robot in JSON.") from None
    return from_dict(data, check_inertia=check_inertia, dtype=dtype)


_READERS = {
    ".urdf": load_urdf,
    ".xml": load_mjcf,
    ".mjcf": load_mjcf,
    ".json": _load_json,
}
