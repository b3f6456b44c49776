"""`jaxdyn view`: a result or a robot, moving."""

import argparse
from pathlib import Path

import numpy as np

from jaxdyn.algorithms.kinematics import neutral
from jaxdyn.cli._results import save_page
from jaxdyn.cli._robots import is_robot, load, warnings_printed
from jaxdyn.io import load_trajectory, new_file
from jaxdyn.model import Model


def view(arguments: argparse.Namespace) -> int:
    """Opens the live view of a result or a robot, or writes the page of a result."""
    result = Path(arguments.result)
    model = None
    if is_robot(arguments.result) or (result.is_file() and result.suffix != ".npz"):
        options = {"skip": tuple(arguments.skip)} if arguments.skip else {}
        model = load(arguments.result, **options)
    if arguments.page:
        return _write_page(result, model, arguments.output)
    if arguments.output is not None:
        raise ValueError("-o is for --page alone: add it.")
    rows = []
    if model is None:
        model, arrays = load_trajectory(result)
        rows = [arrays["ts"], arrays["q"]]
    from jaxdyn.view import serve  # matplotlib only where something is shown

    def announce(url: str) -> None:
        print(f"{model.name} is at {url}; Ctrl-C ends", flush=True)

    options = dict(port=arguments.port, open_browser=not arguments.no_browser)
    with warnings_printed(model.name):
        serve(model, *rows, **options, announce=announce)
    return 0


def _write_page(result: Path, model: Model | None, output: Path | None) -> int:
    """Writes the page of a result, or of a robot in its neutral pose."""
    if model is None:
        model, arrays = load_trajectory(result)
        folder = result if result.is_dir() else result.parent
        page = output or folder / "animation.html"
    else:
        arrays = {"ts": np.zeros(1), "q": np.asarray(neutral(model))[None]}
        page = output or Path(f"{result.stem}.html")
    page.parent.mkdir(parents=True, exist_ok=True)
    with new_file(page) as draft:
        save_page(model, arrays, draft)
    print(f"page saved in {page}")
    return 0
