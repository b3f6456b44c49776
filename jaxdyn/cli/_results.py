"""What commands with settings share: how these are read, and where results go."""

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from jaxdyn.cli._robots import warnings_printed
from jaxdyn.cli._settings import Output
from jaxdyn.io import new_results, read_config
from jaxdyn.model import Model

_Settings = TypeVar("_Settings")
_SHOWN = ("qd", "tau", "f_ext", "loop_forces")  # on pages, where there are any


def settings_of(path: Path, schema: type[_Settings], what: str) -> _Settings:
    """The settings in a file, or a `ValueError` that also knows experiments."""
    try:
        return read_config(path, schema)
    except ValueError as error:
        script = path.resolve().parent.parent / "experiments" / f"{path.stem}.py"
        if script.is_file():
            raise ValueError(
                f"{path} has the settings of an experiment, expected those of {what}: "
                f"run python -m experiments {path.stem}."
            ) from None
        raise error


@contextmanager
def errors_of(path: Path) -> Iterator[None]:
    """Within it, errors name the file whose settings they are about."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise ValueError(f"{path}: {error}") from None


def folder_of(arguments: argparse.Namespace) -> Path:
    """Where the results go."""
    return arguments.output or Path("results") / arguments.config.stem


@contextmanager
def written(arguments: argparse.Namespace) -> Iterator[Path]:
    """A folder to write results to; what is in it is printed when it is complete."""
    folder = folder_of(arguments)
    with new_results(folder, arguments.force) as new:
        yield new
        files = sorted(p.name for p in new.iterdir() if p.name[0] != ".")
    print(f"\nwritten to {folder}/: {', '.join(files)}")


def animate(output: Output, model: Model, motion: Any, folder: Path) -> None:
    """Writes the page of a motion, if it is wanted; what it needs is loaded here."""
    if output.animation:
        arrays = {name: getattr(motion, name, None) for name in ("ts", "q", *_SHOWN)}
        save_page(model, arrays, folder / "animation.html", fps=output.fps)


def save_page(
    model: Model, arrays: Mapping[str, Any], page: Path, **options: Any
) -> None:
    """Writes the page of the arrays of a result, with arrows of its forces."""
    from jaxdyn.view import save_animation  # what it needs is loaded here

    shown = {name: arrays.get(name) for name in _SHOWN}
    f_ext = shown.pop("f_ext")
    forces = {} if f_ext is None else {"external forces": f_ext}
    ts, q = arrays["ts"], arrays["q"]
    with warnings_printed(model.name):
        save_animation(model, ts, q, page, forces=forces, **shown, **options)
