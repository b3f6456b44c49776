"""`jaxdyn identify`: from measured motions to a model with error bars."""

import argparse
import contextlib
import hashlib
import json
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax

from jaxdyn import identify as identification
from jaxdyn.cli import _identify_settings as settings
from jaxdyn.cli._estimates import Estimate, linear_starts, of_fit, of_linear
from jaxdyn.cli._identify_results import compared, print_estimate, write_results
from jaxdyn.cli._interrupt import interruptible
from jaxdyn.cli._measured import measured
from jaxdyn.cli._problem import robot_model
from jaxdyn.cli._simulate import settings_of
from jaxdyn.io import Log, check_results, config_dict, new_results, to_dict
from jaxdyn.model import Model


@dataclass(frozen=True)
class _Task:
    """A fit that is ready to run."""

    config: settings.Identification
    model: Model
    log: Log
    parameters: Any
    residual: Any
    priors: list[Any]
    solver: Any


def identify(arguments: argparse.Namespace) -> int:
    """Fits the model, prints a table and writes its results."""
    path: Path = arguments.config
    config = settings_of(path, settings.Identification, "an identification")
    folder: Path = arguments.output or Path("results") / path.stem
    check_results(folder, arguments.force)
    start = time.perf_counter()
    try:
        task = _prepared(config, path.parent)
        print(_opening(task), flush=True)
        kept = _checkpoint(folder, task)
        estimate = interruptible(lambda: _estimate(task, kept))
    except (ValueError, OSError) as error:
        raise ValueError(f"{path}: {error}") from None
    quality = compared(task.model, estimate, task.log)
    seconds = round(time.perf_counter() - start, 3)
    with new_results(folder, arguments.force) as new:
        write_results(new, folder.name, config, task.log, estimate, quality, seconds)
        files = sorted(p.name for p in new.iterdir() if p.name[0] != ".")
    with contextlib.suppress(OSError):  # it is not there, or has something else
        _states(folder).rmdir()
    print_estimate(estimate, quality, seconds)
    print(f"\nwritten to {folder}/: {', '.join(files)}")
    if config.output.report:
        print(f"open {folder}/report.html")
    return 0


def _prepared(config: settings.Identification, folder: Path) -> _Task:
    """The fit that the settings describe.

    Raises:
        ValueError: settings do not fit the robot, the logs or each other.
    """
    model = robot_model(config.robot, folder)
    std = config.residual.std
    if isinstance(std, list) and len(std) != model.nv:
        raise ValueError(
            f"residual.std has {len(std)} numbers, expected one, or nv = {model.nv} "
            f"for robot {model.name!r}."
        )
    log = measured(config, model)
    if isinstance(config.method, settings.Linear):
        return _Task(config, model, log, None, None, [], None)
    given = config.parameters
    if given.definite:
        model = identification.definite(model)
    chosen = _chosen(given, model, given.start)
    if isinstance(config.residual, settings.Torque):
        start = linear_starts(model, log, chosen)
        start = {k: x for k, x in start.items() if k not in given.start}
        chosen = _chosen(given, model, start | given.start)  # later ones win
    residual, priors = _residual(config.residual, model), _priors(config.prior)
    for k, prior in enumerate(priors):
        try:  # what it names is looked at before anything runs
            prior.check(chosen)
        except ValueError as error:
            raise ValueError(f"prior[{k}]: {error}") from None
    return _Task(config, model, log, chosen, residual, priors, _solver(config.method))


def _chosen(given: settings.Parameters, model: Model, start: dict[str, float]) -> Any:
    return identification.choose(
        model,
        given.fit,
        without=given.without,
        tied=given.tied,
        mirrored=given.mirrored,
        start=start,
    )


def _residual(given: Any, model: Model) -> Any:
    std = given.std
    if isinstance(std, list):
        std = jnp.asarray(std, model.dtype)
    if isinstance(given, settings.Torque):
        return identification.Torque(std)
    if isinstance(given, settings.Acceleration):
        return identification.Acceleration(std)
    options = {k: getattr(given, k) for k in ("length", "free_start", "continuity")}
    return identification.Simulated(std, **options)


def _priors(given: list[Any]) -> list[Any]:
    made = []
    for x in given:
        if isinstance(x, settings.GeodesicPrior):
            made.append(identification.Geodesic(x.pattern, x.std))
        else:
            made.append(identification.Gaussian(x.pattern, x.std, x.mean, x.relative))
    return made


def _solver(given: Any) -> Any:
    if isinstance(given, settings.Descent):
        return identification.Optax(
            getattr(optax, given.name)(given.learning_rate),
            steps=given.steps,
            batch=given.batch,
            every=given.every,
            patience=given.patience,
        )
    return identification.LevenbergMarquardt(
        rtol=given.tolerance,
        atol=given.tolerance,
        steps=given.steps,
        every=given.every,
    )


def _estimate(task: _Task, kept: Path) -> Estimate:
    """Runs the fit.

    Raises:
        ValueError: it failed; the message says why.
    """
    config = task.config
    if isinstance(config.method, settings.Linear):
        return _linear(task, config.method)
    try:
        fit = identification.fit(
            task.parameters,
            task.residual,
            task.log,
            solver=task.solver,
            priors=task.priors,
            validation=config.validation,
            lags=config.lags,
            checkpoint=kept,
            progress=sys.stderr.isatty(),
        )
    except RuntimeError as error:
        raise ValueError(str(error).partition(" throw=False")[0]) from None
    is_force = isinstance(config.residual, settings.Torque)
    std = np.asarray(config.residual.std) if is_force else None
    return of_fit(fit, task.log, _held(task, fit), std)


def _held(task: _Task, fit: Any) -> int:
    """How many of the last rows were held out."""
    if np.isnan(fit.validation_rms):
        return 0
    rows = len(fit.residuals)
    if isinstance(task.residual, identification.Simulated):  # rows are windows
        rows = rows * (task.residual.length or 0) + 1
    return len(task.log.ts) - rows


def _linear(task: _Task, method: settings.Linear) -> Estimate:
    found = identification.least_squares(
        task.model,
        task.log,
        parameters=task.config.parameters.fit,
        method=method.weights,
        covariance=method.covariance,
        validation=task.config.validation,
    )
    return of_linear(found)


def _states(folder: Path) -> Path:
    """Where the states of a fit are kept until it is complete."""
    return folder.with_name(f"{folder.name}.checkpoint")


def _checkpoint(folder: Path, task: _Task) -> Path:
    """The folder for states of this fit; those of another, or of other data, go."""
    config = json.dumps(config_dict(task.config), sort_keys=True)
    mark = hashlib.sha256(config.encode())
    mark.update(json.dumps(to_dict(task.model)).encode())
    for log in task.config.logs:
        mark.update(log.file.read_bytes())
    states = _states(folder)
    kept = states / mark.hexdigest()[:16]
    if states.is_dir():
        for other in states.glob("*/problem.json"):
            if other.parent != kept:
                shutil.rmtree(other.parent)
        if kept.exists():
            print(f"goes on from {kept}", flush=True)
    return kept


def _opening(task: _Task) -> str:
    log, count = task.log, len(task.config.logs)
    what = "combinations" if task.parameters is None else "parameters"
    fitted = "" if task.parameters is None else f"{len(task.parameters.names)} "
    return (
        f"{task.model.name}: {task.model.nv} degrees of freedom, {fitted}{what}, "
        f"{len(log.ts)} rows of {count} log{'s' if count > 1 else ''}"
    )
