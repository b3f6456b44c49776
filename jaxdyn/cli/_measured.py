"""Logs of settings, filtered and one after the other."""

from pathlib import Path

import numpy as np

from jaxdyn.cli import _identify_settings as settings
from jaxdyn.identify import filtered
from jaxdyn.io import Log, load_log
from jaxdyn.model import Model


def measured(config: settings.Identification, model: Model) -> Log:
    """What all logs have measured, filtered each by itself.

    Raises:
        ValueError: a log cannot be read, or lacks what a fit needs.
    """
    logs = []
    for given in config.logs:
        log = load_log(
            given.file,
            model,
            columns=given.columns,
            ignore=given.ignore,
            degrees=given.degrees,
        )
        if config.filter is not None:
            log = _filtered(config.filter, model, log, given.file)
        _check(config, log, given.file)
        logs.append(log)
    return logs[0] if len(logs) == 1 else _joined(logs)


def _filtered(given: settings.Filter, model: Model, log: Log, file: Path) -> Log:
    names = ("cutoff", "order", "decimate", "trim", "rate", "forces")
    options = {name: getattr(given, name) for name in names}
    try:
        return filtered(log, model, **options)
    except ValueError as error:
        raise ValueError(f"filter: log {str(file)!r}: {error}") from None


def _check(config: settings.Identification, log: Log, file: Path) -> None:
    needed = ["qd", "qdd", "tau"]
    if isinstance(config.residual, settings.Motion):
        needed = ["qd"]
    for name in needed:
        if getattr(log, name) is None:
            advice = "record the joint forces"
            if name != "tau":
                advice = "add a table filter with a cutoff, which makes it"
            raise ValueError(f"log {str(file)!r} has no {name}: {advice}.")


def _joined(logs: list[Log]) -> Log:
    """One log after the other; times go on where the one before has ended."""
    ts, end = [], 0.0
    for log in logs:
        t = np.asarray(log.ts)
        ts.append(t - t[0] + end)
        end = ts[-1][-1] + (t[-1] - t[0]) / (len(t) - 1)
    parts = {}
    for name in ("q", "qd", "qdd", "tau"):
        arrays = [getattr(log, name) for log in logs]
        if all(x is not None for x in arrays):
            parts[name] = np.concatenate(arrays)
    return Log(np.concatenate(ts), **parts)
