"""What commands with settings share: how these are read, and where results go."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from jaxdyn.cli._settings import Output
from jaxdyn.io import new_results, read_config
from jaxdyn.model import Model

_Settings = TypeVar("_Settings")


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
        from jaxdyn.view import save_animation

        options: dict[str, Any] = dict(qd=motion.qd, tau=motion.tau, fps=output.fps)
        page = folder / "animation.html"
        save_animation(model, motion.ts, motion.q, page, **options)
