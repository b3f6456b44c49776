"""`jaxdyn view`: a result or a robot, moving."""

import argparse
from pathlib import Path

from jaxdyn.cli._robots import is_robot, load
from jaxdyn.io import load_trajectory, new_file


def view(arguments: argparse.Namespace) -> int:
    """Opens the live view of a result or a robot, or writes the page of a result."""
    if arguments.page:
        return _write_page(Path(arguments.result), arguments.output)
    if arguments.output is not None:
        raise ValueError("-o is for --page alone: add it.")
    if is_robot(arguments.result):
        model, rows = load(arguments.result), []
    else:
        model, arrays = load_trajectory(arguments.result)
        rows = [arrays["ts"], arrays["q"]]
    from jaxdyn.view import serve  # matplotlib only where something is shown

    def announce(url: str) -> None:
        print(f"{model.name} is at {url}; Ctrl-C ends", flush=True)

    options = dict(port=arguments.port, open_browser=not arguments.no_browser)
    serve(model, *rows, **options, announce=announce)
    return 0


def _write_page(result: Path, output: Path | None) -> int:
    model, arrays = load_trajectory(result)
    from jaxdyn.view import save_animation

    folder = result if result.is_dir() else result.parent
    page = output or folder / "animation.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    with new_file(page) as draft:
        qd, tau = arrays["qd"], arrays.get("tau")
        save_animation(model, arrays["ts"], arrays["q"], draft, qd=qd, tau=tau)
    print(f"page saved in {page}")
    return 0
