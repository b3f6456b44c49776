"""`jaxdyn excite`: a motion from which the parameters of a robot are known best."""

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn import identify as identification
from jaxdyn.cli._identify_settings import Excitation
from jaxdyn.cli._interrupt import interruptible
from jaxdyn.cli._results import animate, errors_of, folder_of, settings_of, written
from jaxdyn.cli._robots import robot_model
from jaxdyn.dynamics import inverse_dynamics
from jaxdyn.io import (
    Figure,
    Log,
    Report,
    Table,
    aligned,
    check_results,
    radians,
    save_log,
    save_summary,
    save_trajectory,
    write_csv,
    write_page,
)
from jaxdyn.model import Model

ROWS = 30  # deviations that are printed


def excite(arguments: argparse.Namespace) -> int:
    """Designs the motion, prints what it will tell and writes its results."""
    path: Path = arguments.config
    config = settings_of(path, Excitation, "an excitation")
    folder = folder_of(arguments)
    check_results(folder, arguments.force)
    start = time.perf_counter()
    with errors_of(path):
        model = robot_model(config.robot, path.parent)
        options = _options(config, model)
        print(
            f"{model.name}: {model.nv} degrees of freedom, {config.duration:g} s",
            flush=True,
        )
        found, other = interruptible(lambda: _designed(config, model, options))
    log = _sampled(model, found.motion, config)
    seconds = round(time.perf_counter() - start, 3)
    with written(arguments) as new:
        _write(new, folder.name, config, model, log, found, other, seconds)
        _print(found, other, seconds)
    print(f"open {folder}/report.html")
    return 0


def _options(config: Excitation, model: Model) -> dict[str, Any]:
    """The arguments of `excite` but for the search.

    Raises:
        ValueError: a list has not as many numbers as the robot has coordinates.
    """
    limits = config.limits
    poses = {"lower": limits.lower, "upper": limits.upper}
    options: dict[str, Any] = {
        "velocity": _each("limits.velocity", limits.velocity, model.nv),
        "effort": _each("limits.effort", limits.effort, model.nv),
        "noise": _each("noise", config.noise, model.nv),
    }
    options |= {k: _each(f"limits.{k}", x, model.nq) for k, x in poses.items()}
    if config.degrees:
        for name, array in {"lower": "q", "upper": "q", "velocity": "qd"}.items():
            if options[name] is not None:
                options[name] = radians(model, array, options[name])
    names = ("duration", "parameters", "harmonics", "form", "criterion", "samples")
    return options | {name: getattr(config, name) for name in names}


def _each(key: str, given: float | list[float] | None, size: int) -> Any:
    """One number for each coordinate, or None."""
    if given is None:
        return None
    if not isinstance(given, list):
        return [given] * size
    if len(given) != size:
        raise ValueError(
            f"{key} has {len(given)} numbers, expected one, or {size}, one for each "
            "coordinate."
        )
    return given


def _designed(config: Excitation, model: Model, options: dict[str, Any]) -> Any:
    """The best motion and a random one, or None if that is not wanted."""
    key = jax.random.key(config.seed)
    found = identification.excite(
        model,
        **options,
        steps=config.steps,
        starts=config.starts,
        key=key,
        progress=sys.stderr.isatty(),
    )
    if not config.compare:
        return found, None
    return found, identification.random_excitation(
        model, **options, each_joint=True, key=key
    )


def _sampled(model: Model, motion: Any, config: Excitation) -> Log:
    """The motion as often as a controller wants it, with the forces of the robot."""
    count = round(config.duration * config.rate) + 1
    ts = np.linspace(0, config.duration, count)
    at, tau = _states(model, motion, jnp.asarray(ts))
    return Log(ts, *(np.asarray(x) for x in (at.q, at.qd, at.qdd, tau)))


@eqx.filter_jit
def _states(model: Model, motion: Any, ts: Any) -> Any:
    at = jax.vmap(motion)(ts)
    return at, jax.vmap(inverse_dynamics, (None, 0, 0, 0))(model, at.q, at.qd, at.qdd)


def _rows(found: Any, other: Any) -> list[dict[str, Any]]:
    """What is known of each combination after the motion."""
    rows = []
    for k, name in enumerate(found.names):
        row = {"name": name, "std": float(found.std[k])}
        row["scaled_std"] = float(found.scaled_std[k])
        if other is not None:
            row["random_std"] = float(other.std[k])
        rows.append(row)
    return rows


def _write(
    folder: Path,
    name: str,
    config: Excitation,
    model: Model,
    log: Log,
    found: Any,
    other: Any,
    seconds: float,
) -> None:
    save_log(folder / "motion.csv", model, log)
    save_trajectory(folder, model, log)
    rows = _rows(found, other)
    write_csv(folder / "deviations.csv", list(rows[0]), map(dict.values, rows))
    statistics = {
        "result": found.result,
        "condition": found.condition,
        "criterion": [found.before, found.after],
        "used": {key: np.asarray(x) for key, x in found.used.items()},
        "deviations": rows,
        "seconds": seconds,
    }
    save_summary(folder, config=config, dtype="float64", statistics=statistics)
    figures = _draw(folder, config, model, log, found, other)
    write_page(folder, _report(name, model, found, rows, figures))


def _draw(
    folder: Path, config: Excitation, model: Model, log: Log, found: Any, other: Any
) -> list[Figure]:
    """Plots and the page of the motion; what they need is loaded only here."""
    figures = []
    if config.output.plots:
        from jaxdyn import view

        motions = {"this motion": found.scaled_std}
        if other is not None:
            motions["random motion"] = other.std / found.scale
        path = folder / "deviations.png"
        view.plot_deviations(path, found.names, motions, unit="scaled")
        text = "Standard deviations, in units in which all parameters matter alike."
        figures.append(Figure(path.name, text))
        titles = {"positions": "Positions", "rates": "Rates", "forces": "Forces"}
        for path in view.save_plots(model, log, folder):
            if path.stem in titles:
                figures.append(Figure(path.name, f"{titles[path.stem]} of the joints."))
    animate(config.output, model, log, folder)
    return figures


def _report(
    name: str,
    model: Model,
    found: Any,
    rows: list[dict[str, Any]],
    figures: list[Figure],
) -> Report:
    head = ["combination, by its first parameter", "standard deviation", "scaled"]
    head += ["of a random motion"] if "random_std" in rows[0] else []
    used = [
        [joint, *(f"{100 * float(x):.0f} %" for x in values)]
        for joint, *values in _used(model, found)
    ]
    return Report(
        name=name,
        title=f"Excitation of {model.name}",
        text=f"{found.result}\n\nSend `motion.csv` to the robot, log positions and "
        "joint forces, and fit them with `jaxdyn identify`. In a simulation the motion "
        'is `motion = {kind = "log", file = "motion.csv"}`.',
        tables=[
            Table(
                "What will be known, by least squares",
                head,
                [[row["name"], *list(row.values())[1:]] for row in rows],
            ),
            Table(
                "How much of its limits each joint uses",
                ["joint", "rate", "force"],
                used,
            ),
        ],
        figures=figures,
    )


def _used(model: Model, found: Any) -> list[tuple[Any, ...]]:
    rows = []
    for i, joint in enumerate(model.joint_names):
        at = model.v_slice(i)
        if at.start < at.stop:
            parts = (np.max(found.used[key][at]) for key in ("velocity", "effort"))
            rows.append((joint, *parts))
    return rows


def _print(found: Any, other: Any, seconds: float) -> None:
    print(f"\n{found.result}\n\nstandard deviations, by least squares:")
    rows = _rows(found, other)
    head = ["", "std", "scaled", *(["of a random motion"] if other else [])]
    cells = [
        [row["name"], *(f"{x:.4g}" for x in list(row.values())[1:])] for row in rows
    ]
    print(aligned([head, *cells[:ROWS]], indent="  "))
    if len(rows) > ROWS:
        print(f"  and {len(rows) - ROWS} more in deviations.csv")
    if other is not None:
        share = other.scaled_std.max() / found.scaled_std.max()
        print(f"the worst is {share:.3g} times better than that of a random motion")
    print(f"{seconds:.1f} s with compilation")
