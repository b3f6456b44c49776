"""Runs experiments and writes what they found."""

import ast
import gc
import importlib.util
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

import jax
from tqdm import tqdm

from experiments.reports import Report, save_report, write_index
from jaxdyn import io
from jaxdyn.cli import Ended, ended_by_signals

TOP = Path(__file__).parents[1]  # of the checkout


@dataclass(frozen=True)
class Experiment:
    """A script with `Config` and `run(config, folder)`, and its settings."""

    name: str
    script: Path
    config: Path

    @property
    def question(self) -> str:
        """The first line of the script, which is read and not run."""
        program = self._program()
        if isinstance(program, SyntaxError):
            return f"(cannot be read: {program})"
        return (ast.get_docstring(program) or "(no docstring)").splitlines()[0]

    @property
    def is_timed(self) -> bool:
        """Whether it measures times, as the script says by `TIMED = True`."""
        lines = getattr(self._program(), "body", [])
        return any(ast.unparse(line) == "TIMED = True" for line in lines)

    def _program(self) -> ast.Module | SyntaxError:
        try:
            return ast.parse(self.script.read_text(encoding="utf-8"))
        except SyntaxError as error:
            return error

    def prepared(self) -> Callable[[Path], Report]:
        """The experiment with its settings, checked; it writes pictures to a folder."""
        module = self._module()
        if not hasattr(module, "Config") or not hasattr(module, "run"):
            raise ValueError(
                f"{self.script}: an experiment has `class Config` and "
                "`def run(config, folder)`."
            )
        config = io.read_config(self.config, module.Config)
        return lambda folder: module.run(config, folder)

    def _module(self) -> Any:
        name = f"experiments.{self.name}"
        spec = importlib.util.spec_from_file_location(name, self.script)
        assert spec is not None and spec.loader is not None  # it ends in .py
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # where dataclasses look for their types
        spec.loader.exec_module(module)
        return module


def experiments() -> dict[str, Experiment]:
    """The experiments of the checkout, by name."""
    configs = sorted((TOP / "configs").glob("*.toml"))
    found = (Experiment(c.stem, TOP / f"experiments/{c.stem}.py", c) for c in configs)
    return {x.name: x for x in found if x.script.is_file()}


def listing() -> str:
    """The experiments, each with its question."""
    known = experiments()
    width = max(map(len, known), default=0)
    return "\n".join(f"  {x.name:<{width}}  {x.question}" for x in known.values())


def reproduce(names: Sequence[str], results: Path, *, force: bool, jobs: int) -> int:
    """Runs experiments, `jobs` at a time; the exit code, 1 if one has failed.

    What can be checked is checked before the first one starts.
    """
    chosen = _chosen(names, experiments())
    for x in chosen:
        io.check_results(results / x.name, force)
    runs, failed = _prepared(chosen)
    is_quiet = len(runs) < 2 or not sys.stderr.isatty()
    with tqdm(total=len(runs), disable=is_quiet, unit="experiment") as bar:

        def begins(x: Experiment) -> None:
            bar.write(f"\n{x.name}: {x.question}", sys.stdout)
            sys.stdout.flush()

        for x, lines, reason in _done(runs, results, force, jobs, begins):
            if reason:
                failed.append(x.name)
                bar.write(reason, sys.stderr)
            else:
                bar.write("\n".join(lines), sys.stdout)
            bar.update()
    print(f"\nall reports on one page: {write_index(results)}")
    if failed:
        print(f"jaxdyn: failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _done(
    runs: list[Experiment],
    results: Path,
    force: bool,
    jobs: int,
    begins: Callable[[Experiment], None],
) -> Iterator[tuple[Experiment, list[str], str]]:
    """The experiments, each with what there is to say, or with a reason why not.

    Those that measure times run one by one, the others side by side, in processes.
    """
    together = [x for x in runs if not x.is_timed]
    if len(together) < 2 or jobs < 2:
        together = []
    for x in runs:
        if x not in together:
            begins(x)
            yield x, *_tried(x, results, force)
    if not together:
        return
    workers = min(jobs, len(together))
    with ProcessPoolExecutor(workers, get_context("spawn"), _begin) as pool:
        try:
            work = [pool.submit(_tried_apart, x, results, force) for x in together]
            for x, found in zip(together, work, strict=True):
                lines, reason = found.result()
                begins(x)
                yield x, lines, reason
        except BaseException:
            for process in active_children():
                process.terminate()  # it removes its folder first
            pool.shutdown(cancel_futures=True)
            raise


def _begin() -> None:
    """What the command does before it works, for a process of its own."""
    jax.config.update("jax_enable_x64", True)


def _tried_apart(x: Experiment, results: Path, force: bool) -> tuple[list[str], str]:
    """As `_tried`, in a process of its own, which a signal ends."""
    try:
        with ended_by_signals():
            return _tried(x, results, force)
    except Ended as end:
        os._exit(128 + end.number)


def _tried(x: Experiment, results: Path, force: bool) -> tuple[list[str], str]:
    """What an experiment found, or why it failed."""
    import matplotlib

    matplotlib.use("Agg")  # pictures go to files, also where there is a screen
    try:
        with _few_collections():
            return _run(x, results, force), ""
    except Exception as error:
        return [], _reason(x.name, error)


@contextmanager
def _few_collections() -> Iterator[None]:
    """Tracing makes many objects and few cycles: to look for them seldom saves time."""
    usual = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()


def _prepared(chosen: list[Experiment]) -> tuple[list[Experiment], list[str]]:
    """What can run, and the names of scripts that cannot even be imported."""
    runs, failed = [], []
    for x in chosen:
        try:
            x.prepared()
            runs.append(x)
        except ValueError:  # wrong settings: nothing shall start
            raise
        except Exception as error:
            failed.append(x.name)
            print(_reason(x.name, error), file=sys.stderr)
    return runs, failed


def _chosen(names: Sequence[str], known: dict[str, Experiment]) -> list[Experiment]:
    if "all" in names:
        return list(known.values())
    for name in names:
        if name not in known:
            raise ValueError(
                f"experiment {name!r} is not known, expected all or some of: "
                f"{', '.join(known)}."
            )
    return [known[name] for name in dict.fromkeys(names)]


def _run(x: Experiment, results: Path, force: bool) -> list[str]:
    """Runs one experiment and saves its report; what there is to say about it."""
    run, start = x.prepared(), time.perf_counter()
    with io.new_results(results / x.name, force) as folder:
        report = run(folder)
        save_report(folder, report)
    found = report.verdicts
    lines = [f"  {v.finding}: {v.source}: {v.claim}\n    {v.ours}" for v in found]
    seconds = time.perf_counter() - start
    return [*lines, f"  {seconds:.0f} s, report in {results / x.name}/report.md"]


def _reason(name: str, error: Exception) -> str:
    """What is wrong with the input in a sentence, with the program in full."""
    if isinstance(error, ValueError):
        return f"jaxdyn: {name}: {error}"
    return f"{traceback.format_exc()}jaxdyn: {name} failed: {error!r}"
