"""`jaxdyn identify`: from measured motions to a model with error bars."""

import argparse
import contextlib
import dataclasses
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
from jaxdyn.cli._identify_report import LEVEL, Estimate
from jaxdyn.cli._identify_results import compared, print_estimate, write_results
from jaxdyn.cli._interrupt import interruptible
from jaxdyn.cli._results import errors_of, folder_of, settings_of, written
from jaxdyn.cli._robots import robot_model
from jaxdyn.io import Log, check_results, config_dict, join_logs, load_log, to_dict
from jaxdyn.model import Model


@dataclass(frozen=True)
class _Task:
    """A fit that is ready to run."""

    config: settings.Identification
    model: Model
    log: Log
    parameters: Any = None
    residual: Any = None
    priors: Any = ()
    solver: Any = None


def identify(arguments: argparse.Namespace) -> int:
    """Fits the model, prints a table and writes its results."""
    path: Path = arguments.config
    config = settings_of(path, settings.Identification, "an identification")
    folder = folder_of(arguments)
    check_results(folder, arguments.force)
    start = time.perf_counter()
    with errors_of(path):
        task = _prepared(config, path.parent)
        print(_opening(task), flush=True)
        kept = _checkpoint(folder, task)
        estimate = interruptible(lambda: _estimate(task, kept))
    quality = compared(task.model, estimate, task.log)
    seconds = round(time.perf_counter() - start, 3)
    with written(arguments) as new:
        write_results(new, folder.name, config, task.log, estimate, quality, seconds)
        print_estimate(estimate, quality, seconds)
    with contextlib.suppress(OSError):  # it is not there, or has something else
        _states(folder).rmdir()
    if config.output.report:
        print(f"open {folder}/report.html")
    return 0


def _prepared(config: settings.Identification, folder: Path) -> _Task:
    """The fit that the settings describe."""
    model = robot_model(config.robot, folder)
    std = config.residual.std
    if isinstance(std, list) and len(std) != model.nv:
        raise ValueError(
            f"residual.std has {len(std)} numbers, expected one, or nv = {model.nv} "
            f"for robot {model.name!r}."
        )
    log = measured(config, model)
    if isinstance(config.method, settings.Linear):
        return _Task(config, model, log)
    given = config.parameters
    if given.definite:
        model = identification.definite(model)
    chosen = _chosen(given, model, given.start)
    if isinstance(config.residual, settings.Torque):
        start = identification.linear_starts(chosen, log)
        start = {k: x for k, x in start.items() if k not in given.start}
        chosen = _chosen(given, model, start | given.start)  # later ones win
    residual, *priors = (
        _made(x, model.dtype) for x in (config.residual, *config.prior)
    )
    for k, prior in enumerate(priors):
        try:  # what it names is looked at before anything runs
            prior.check(chosen)
        except ValueError as error:
            raise ValueError(f"prior[{k}]: {error}") from None
    return _Task(config, model, log, chosen, residual, priors, _solver(config.method))


def measured(config: settings.Identification, model: Model) -> Log:
    """What all logs have measured, filtered each by itself."""
    logs = []
    for given in config.logs:
        options = dataclasses.asdict(given)
        log = load_log(options.pop("file"), model, **options)
        if config.filter is not None:
            options = dataclasses.asdict(config.filter)
            try:
                log = identification.filtered(log, model, **options)
            except ValueError as error:
                raise ValueError(f"filter: log {str(given.file)!r}: {error}") from None
        _check(config, log, given.file)
        logs.append(log)
    return logs[0] if len(logs) == 1 else join_logs(logs)


def _check(config: settings.Identification, log: Log, file: Path) -> None:
    is_motion = isinstance(config.residual, settings.Motion)
    for name in ("qd",) if is_motion else ("qd", "qdd", "tau"):
        if getattr(log, name) is None:
            advice = "record the joint forces"
            if name != "tau":
                advice = "add a table filter with a cutoff, which makes it"
            raise ValueError(f"log {str(file)!r} has no {name}: {advice}.")


def _chosen(given: settings.Parameters, model: Model, start: dict[str, float]) -> Any:
    options = {k: getattr(given, k) for k in ("without", "tied", "mirrored")}
    return identification.choose(model, given.fit, **options, start=start)


_KINDS = {
    "torque": identification.Torque,
    "acceleration": identification.Acceleration,
    "trajectory": identification.Simulated,
    "gaussian": identification.Gaussian,
    "geodesic": identification.Geodesic,
}


def _made(given: Any, dtype: Any) -> Any:
    """The residual or prior whose arguments are the keys of a table."""
    options = dataclasses.asdict(given)
    if isinstance(options["std"], list):
        options["std"] = jnp.asarray(options["std"], dtype)
    return _KINDS[options.pop("kind")](**options)


def _solver(given: Any) -> Any:
    options = dataclasses.asdict(given)
    if options.pop("kind") == "optax":
        rule = getattr(optax, options.pop("name"))(options.pop("learning_rate"))
        return identification.Optax(rule, **options)
    tolerance = options.pop("tolerance")
    return identification.LevenbergMarquardt(tolerance, tolerance, **options)


def _estimate(task: _Task, kept: Path) -> Estimate:
    """Runs the fit."""
    if isinstance(task.config.method, settings.Linear):
        return _linear(task, task.config.method)
    config, options = task.config, {"solver": task.solver, "priors": task.priors}
    options |= dict(validation=config.validation, lags=config.lags)
    options |= dict(checkpoint=kept, progress=sys.stderr.isatty())
    try:
        fit = identification.fit(task.parameters, task.residual, task.log, **options)
    except RuntimeError as error:
        raise ValueError(str(error).partition(" throw=False")[0]) from None
    try:
        combinations = identification.fitted_combinations(fit, task.log, level=LEVEL)
    except ValueError:  # forces are not linear in what was fitted
        combinations = None
    return Estimate(fit, fit.model, fit.message, _held(task, fit), combinations)


def _held(task: _Task, fit: Any) -> int:
    """How many of the last rows were held out."""
    if np.isnan(fit.validation_rms):
        return 0
    rows = len(fit.residuals)
    if isinstance(task.residual, identification.Simulated):  # rows are windows
        rows = rows * (task.residual.length or 0) + 1
    return len(task.log.ts) - rows


def _linear(task: _Task, method: settings.Linear) -> Estimate:
    options: dict[str, Any] = dict(method=method.weights, covariance=method.covariance)
    options |= dict(validation=task.config.validation)
    options |= dict(parameters=task.config.parameters.fit)
    found = identification.least_squares(task.model, task.log, **options)
    try:
        near = identification.consistent(found)
        model, distance = near.model, np.sqrt(near.misfit / found.rank)
        more = (
            f"The nearest possible model is {distance:.3g} standard deviations from "
            "them, in the mean."
        )
    except ValueError as error:
        model, more = None, f"There is no model: {error}"
    message = f"Condition of the regressor {found.condition:.3g}. {more}"
    return Estimate(found, model, message, len(found.validation_residuals))


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
