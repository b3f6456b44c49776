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
from jaxdyn import io
from jaxdyn.cli._identify_settings import Excitation
from jaxdyn.cli._interrupt import interruptible
from jaxdyn.cli._results import animate, errors_of, folder_of, settings_of, written
from jaxdyn.cli._robots import robot_model
from jaxdyn.dynamics import inverse_dynamics
from jaxdyn.model import Model

ROWS = 30  # deviations that are printed


def excite(arguments: argparse.Namespace) -> int:
    """Designs the motion, prints what it will tell and writes its results."""
    path: Path = arguments.config
    config = settings_of(path, Excitation, "an excitation")
    folder = folder_of(arguments)
    io.check_results(folder, arguments.force)
    start = time.perf_counter()
    with errors_of(path):
        model = robot_model(config.robot, path.parent)
        options = _options(config, model)
        text = f"{model.name}: {model.nv} degrees of freedom, {config.duration:g} s"
        print(text, flush=True)
        found, other = interruptible(lambda: _designed(config, model, options))
    log = _sampled(model, found.motion, config)
    seconds = round(time.perf_counter() - start, 3)
    with written(arguments) as new:
        _write(new, folder.name, config, model, log, found, other, seconds)
        _print(found, other, seconds)
    print(f"open {folder}/report.html")
    return 0


def _options(config: Excitation, model: Model) -> dict[str, Any]:
    """The arguments of `excite` but for the search."""
    options: dict[str, Any] = {"noise": _each("noise", config.noise, model.nv)}
    for name, given in vars(config.limits).items():
        size = model.nq if name in ("lower", "upper") else model.nv
        options[name] = _each(f"limits.{name}", given, size)
    if config.degrees:
        for name, array in {"lower": "q", "upper": "q", "velocity": "qd"}.items():
            if options[name] is not None:
                options[name] = io.radians(model, array, options[name])
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
    options = options | dict(key=jax.random.key(config.seed))
    search: dict[str, Any] = dict(steps=config.steps, starts=config.starts)
    bar = sys.stderr.isatty()
    found = identification.excite(model, **options, **search, progress=bar)
    if not config.compare:
        return found, None
    return found, identification.random_excitation(model, **options, each_joint=True)


def _sampled(model: Model, motion: Any, config: Excitation) -> io.Log:
    """The motion as often as a controller wants it, with the forces of the robot."""
    count = round(config.duration * config.rate) + 1
    ts = np.linspace(0, config.duration, count)
    at, tau = _states(model, motion, jnp.asarray(ts))
    return io.Log(ts, *(np.asarray(x) for x in (at.q, at.qd, at.qdd, tau)))


@eqx.filter_jit
def _states(model: Model, motion: Any, ts: Any) -> Any:
    at = jax.vmap(motion)(ts)
    return at, jax.vmap(inverse_dynamics, (None, 0, 0, 0))(model, at.q, at.qd, at.qdd)


def _rows(found: Any, other: Any) -> list[dict[str, Any]]:
    """What is known of each combination after the motion."""
    columns = {"name": found.names, "std": found.std.tolist()}
    columns["scaled_std"] = found.scaled_std.tolist()
    if other is not None:
        columns["random_std"] = other.std.tolist()
    rows = zip(*columns.values(), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _write(
    folder: Path,
    name: str,
    config: Excitation,
    model: Model,
    log: io.Log,
    found: Any,
    other: Any,
    seconds: float,
) -> None:
    io.save_log(folder / "motion.csv", model, log)
    io.save_trajectory(folder, model, log)
    rows = _rows(found, other)
    io.write_csv(folder / "deviations.csv", list(rows[0]), map(dict.values, rows))
    statistics = {
        "result": found.result,
        "condition": found.condition,
        "criterion": [found.before, found.after],
        "used": {key: np.asarray(x) for key, x in found.used.items()},
        "deviations": rows,
        "seconds": seconds,
    }
    io.save_summary(folder, config=config, dtype="float64", statistics=statistics)
    figures = _draw(folder, config, model, log, found, other)
    io.write_page(folder, _report(name, model, found, rows, figures))


def _draw(
    folder: Path, config: Excitation, model: Model, log: io.Log, found: Any, other: Any
) -> list[io.Figure]:
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
        figures.append(io.Figure(path.name, text))
        for path in view.save_plots(model, log, folder):
            if path.stem in ("positions", "rates", "forces"):
                text = f"{path.stem.capitalize()} of the joints."
                figures.append(io.Figure(path.name, text))
    animate(config.output, model, log, folder)
    return figures


def _report(
    name: str, model: Model, found: Any, rows: list[dict[str, Any]], figures: list[Any]
) -> io.Report:
    head = ["combination, by its first parameter", "standard deviation", "scaled"]
    head += ["of a random motion"] if "random_std" in rows[0] else []
    used = []
    for i, joint in enumerate(model.joint_names):
        at = model.v_slice(i)
        if at.start < at.stop:
            most = (np.max(found.used[key][at]) for key in ("velocity", "effort"))
            used.append([joint, *(f"{100 * float(x):.0f} %" for x in most)])
    known = "What will be known, by least squares"
    limits = "How much of its limits each joint uses"
    return io.Report(
        name=name,
        title=f"Excitation of {model.name}",
        text=f"{found.result}\n\nSend `motion.csv` to the robot, log positions and "
        "joint forces, and fit them with `jaxdyn identify`. In a simulation the motion "
        'is `motion = {kind = "log", file = "motion.csv"}`.',
        tables=[
            io.Table(known, head, [list(row.values()) for row in rows]),
            io.Table(limits, ["joint", "rate", "force"], used),
        ],
        figures=figures,
    )


def _print(found: Any, other: Any, seconds: float) -> None:
    print(f"\n{found.result}\n\nstandard deviations, by least squares:")
    rows = _rows(found, other)
    head = ["", "std", "scaled", *(["of a random motion"] if other else [])]
    cells = [
        [name, *(f"{x:.4g}" for x in more)] for name, *more in map(dict.values, rows)
    ]
    print(io.aligned([head, *cells[:ROWS]], indent="  "))
    if len(rows) > ROWS:
        print(f"  and {len(rows) - ROWS} more in deviations.csv")
    if other is not None:
        share = other.scaled_std.max() / found.scaled_std.max()
        print(f"the worst is {share:.3g} times better than that of a random motion")
    print(f"{seconds:.1f} s with compilation")
