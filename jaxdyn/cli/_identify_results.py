"""Files and words for what an identification found."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

from jaxdyn import io
from jaxdyn.cli import _identify_settings as settings
from jaxdyn.cli._identify_report import LEVEL, Estimate, digits, report_of
from jaxdyn.dynamics import inverse_dynamics
from jaxdyn.identify import Estimates, Fit
from jaxdyn.io import Log, aligned
from jaxdyn.model import Model

ROWS = 30  # parameters that are printed
_CORRELATED = 0.3  # residuals of neighbouring rows that are not taken as independent


@dataclass(frozen=True, eq=False)
class Quality:
    """Measured joint forces beside those of the nominal and the fitted model."""

    joints: tuple[str, ...]
    held: int  # how many of the last rows were held out
    measured: np.ndarray  # [times, nv], as the others
    nominal: np.ndarray
    fitted: np.ndarray

    @property
    def table(self) -> list[dict[str, Any]]:
        """Sizes of forces and residuals of each joint, at rows fitted and held out."""
        tau, count = self.measured, len(self.measured) - self.held
        error, held = tau - self.fitted, [None] * len(self.joints)
        columns = {"joint": self.joints, "measured": _rms(tau)}
        columns |= {"nominal": _rms(tau - self.nominal), "fitted": _rms(error[:count])}
        columns["held_out"] = _rms(error[count:]) if self.held else held
        rows = zip(*columns.values(), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in rows]

    @property
    def correlation(self) -> float:
        """The largest correlation of residuals with those of the next row."""
        error = (self.measured - self.fitted)[: len(self.measured) - self.held]
        power = np.maximum(np.mean(error**2, axis=0), np.finfo(float).tiny)
        return float((np.mean(error[1:] * error[:-1], axis=0) / power).max())


def compared(model: Model, estimate: Estimate, log: Log) -> Quality | None:
    """How well joint forces are explained; None where that cannot be said."""
    if estimate.model is None:
        return None
    nominal, fitted = forces(model, log), forces(estimate.model, log)
    if nominal is None or fitted is None or log.tau is None:
        return None
    tau = np.asarray(log.tau)
    names = (x.removesuffix(".tau") for x in io.column_names(model, "tau"))
    joints = tuple(x.replace(".tau[", "[") for x in names)
    return Quality(joints, estimate.held, tau, nominal, fitted)


def forces(model: Model, log: Log) -> np.ndarray | None:
    """The joint forces of a model at the rows of a log; None if it lacks them."""
    if model.loops or log.qd is None or log.qdd is None or log.tau is None:
        return None
    return np.asarray(_forces(model, log.q, log.qd, log.qdd))


@eqx.filter_jit
def _forces(model: Model, q: Any, qd: Any, qdd: Any) -> Any:
    return jax.vmap(inverse_dynamics, (None, 0, 0, 0))(model, q, qd, qdd)


def write_results(
    folder: Path,
    name: str,
    config: settings.Identification,
    log: Log,
    estimate: Estimate,
    quality: Quality | None,
    seconds: float,
) -> None:
    """Writes tables, the model, plots and the page."""
    for file, numbers in estimate.numbers.items():
        rows = numbers.rows
        io.write_csv(folder / f"{file}.csv", list(rows[0]), map(dict.values, rows))
    notes = _write_model(folder, estimate.model) + _doubts(config, quality)
    table = None if quality is None else quality.table
    statistics = {
        "rows": len(log.ts),
        "message": estimate.message,
        "rms": estimate.found.rms,
        "validation_rms": estimate.held_rms,
        "joints": table,
        estimate.what: estimate.parameters.rows,
        "strongly_correlated": [list(pair) for pair in estimate.strong],
        "notes": notes,
        "seconds": seconds,
    }
    io.save_summary(folder, config=config, dtype="float64", statistics=statistics)
    figures = _draw(folder, log, estimate, quality) if config.output.plots else {}
    if config.output.report:
        page = report_of(name, config, log, estimate, table, notes, figures)
        io.write_page(folder, page)


def print_estimate(estimate: Estimate, quality: Quality | None, seconds: float) -> None:
    """Prints how well the model fits, and its parameters."""
    if quality is not None:
        print("\nroot mean square of joint forces, and of what models leave of them:")
        head = ["joint", "measured", "nominal", "fitted", "held out"]
        keys = ("measured", "nominal", "fitted", "held_out")
        rows = [[x["joint"], *(_number(x[k]) for k in keys)] for x in quality.table]
        print(aligned([head, *rows], indent="  "))
    for file, numbers in estimate.numbers.items():
        what = estimate.what if file == "parameters" else file
        _print_numbers(what, numbers, f"{file}.csv")
    print(f"{estimate.message} {seconds:.1f} s with compilation.")


def _print_numbers(what: str, numbers: Estimates, file: str) -> None:
    """Those that the data determine, and how many there are besides."""
    print(f"\n{what}, with {LEVEL:.0%} intervals:")
    pairs = zip(numbers.rows, numbers.determined, strict=True)
    told = [row for row, is_known in pairs if is_known]
    keys = ("nominal", "fitted", "std", "low", "high")
    rows = [["", *keys[:3], "from", "to"]]
    rows += [[x["name"], *(_number(x[key]) for key in keys)] for x in told[:ROWS]]
    print(aligned(rows, indent="  "))
    if len(told) > ROWS:
        print(f"  and {len(told) - ROWS} more in {file}")
    left = len(numbers.names) - len(told)
    if left > 0:
        print(f"  {left} more are not determined by themselves: see {file}")


def _write_model(folder: Path, model: Model | None) -> list[str]:
    """Writes the model where possible; what could not be written, in words."""
    if model is None:
        return []
    text = json.dumps(io.to_dict(model), indent=1)
    (folder / "model.json").write_text(text + "\n", encoding="utf-8")
    try:
        io.to_urdf(model, folder / "model.urdf")
    except ValueError as error:
        return [f"No model.urdf is written, model.json has everything: {error}"]
    return []


def _doubts(config: settings.Identification, quality: Quality | None) -> list[str]:
    """Whether intervals are too narrow, because rows are not independent."""
    if quality is None or config.lags or isinstance(config.method, settings.Linear):
        return []
    worst = quality.correlation
    if worst < _CORRELATED:
        return []
    return [
        f"Residuals of neighbouring rows are correlated, by {worst:.2f}: intervals are "
        "too narrow. Set lags to the number of rows over which that lasts, or keep "
        "fewer rows with filter.decimate; or the model lacks something, see the plot."
    ]


def _draw(
    folder: Path, log: Log, estimate: Estimate, quality: Quality | None
) -> dict[str, str]:
    """Saves plots; their names with captions."""
    from jaxdyn import view  # matplotlib only where a picture is wanted

    figures = {}
    if quality is not None:
        given = np.asarray(log.ts), quality.measured, quality.fitted
        path, held = folder / "forces.png", quality.held
        view.plot_fit(path, quality.joints, *given, held=held)
        figures["forces.png"] = (
            "Joint forces, measured and of the fitted model, and their difference. "
            "Shaded rows were held out."
        )
    for file, x in estimate.numbers.items():
        known = np.flatnonzero(x.determined)
        names = [_short(x.names[k]) for k in known]
        given = (y[known] for y in (x.nominal, x.fitted, x.std, x.interval))
        view.plot_intervals(folder / f"{file}.png", names, *given)
        figures[f"{file}.png"] = _caption(file, estimate)
    known, found = np.flatnonzero(estimate.parameters.determined), estimate.found
    if len(known) > 1:
        names = [_short(estimate.parameters.names[k]) for k in known]
        shown = found.correlation[np.ix_(known, known)]
        view.plot_correlation(folder / "correlation.png", names, shown)
        figures["correlation.png"] = "Correlations of errors."
    if isinstance(found, Fit) and len(found.losses) > 1:
        view.plot_history(folder / "history.png", found.losses, found.validations)
        figures["history.png"] = "The loss at each step of the search."
    return figures


def _caption(file: str, estimate: Estimate) -> str:
    what = estimate.what if file == "parameters" else file
    return (
        f"Change of {what} from their nominal values, in standard deviations, with "
        f"{LEVEL:.0%} intervals. Those that the motion does not determine are left out."
    )


def _short(name: str) -> str:
    """A combination by its first parameter."""
    first, plus, _ = name.partition(" ")
    return f"{first} ..." if plus else first


def _rms(x: np.ndarray) -> list[float]:
    """The root mean square of each column."""
    return [float(np.sqrt(np.mean(column**2))) for column in x.T]


def _number(x: float | None) -> str:
    return "" if x is None else digits(x)
