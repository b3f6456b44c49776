"""What an identification found, in one form for all methods, and the page about it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxdyn.cli import _identify_settings as settings
from jaxdyn.identify import Estimates, Fit, LinearFit
from jaxdyn.io import Figure, Log, Report, Table
from jaxdyn.model import Model

LEVEL = 0.95  # of intervals
_STRONG = 0.95  # correlations from which on two parameters are hardly told apart
_ROUNDING = 1e-13
_PAIRS = 30  # correlated pairs that are listed
_METHODS = {
    "linear": "linear least squares",
    "levenberg_marquardt": "the method of Levenberg and Marquardt",
}
_RESIDUALS = {
    "torque": "joint forces (inverse dynamics)",
    "acceleration": "joint accelerations (forward dynamics)",
    "trajectory": "simulated motions",
}


@dataclass(frozen=True, eq=False)
class Estimate:
    """Parameters with intervals, and the model they make."""

    found: Fit | LinearFit  # what the method itself returned
    model: Model | None  # None where there is none that could exist
    message: str
    held: int  # how many of the last rows were held out
    combinations: Estimates | None = None  # that the motion tells, if known

    @property
    def what(self) -> str:
        """What the parameters are, in words."""
        return "parameters" if isinstance(self.found, Fit) else "combinations"

    @property
    def parameters(self) -> Estimates:
        """The parameters."""
        return self.found.estimates(LEVEL)

    @property
    def numbers(self) -> dict[str, Estimates]:
        """The parameters, and the combinations if there are any, by file."""
        more = {} if self.combinations is None else {"combinations": self.combinations}
        return {"parameters": self.parameters, **more}

    @property
    def held_rms(self) -> Any:
        """The size of residuals of rows that were held out, None if there are none."""
        return self.found.validation_rms if self.held else None

    @property
    def strong(self) -> list[tuple[str, str, float]]:
        """Pairs of parameters with strongly correlated errors."""
        return self.found.correlated(_STRONG)


def report_of(
    name: str,
    config: settings.Identification,
    log: Log,
    estimate: Estimate,
    joints: list[dict[str, Any]] | None,
    notes: list[str],
    figures: dict[str, str],
) -> Report:
    """What was fitted to what, how well, and how sure it is."""
    tables = [] if joints is None else [_quality(joints)]
    title = f"{estimate.what.capitalize()} with {LEVEL:.0%} intervals, in SI units"
    tables.append(_numbers(title, estimate.parameters))
    if estimate.combinations is not None:
        count = len(estimate.combinations.names)
        title = (
            f"What the motion tells of these parameters: {count} "
            "combinations (m mass, h mass times centre, I inertia about the origin of "
            f"the body), with {LEVEL:.0%} intervals from the data alone"
        )
        tables.append(_numbers(title, estimate.combinations))
    if estimate.strong:
        tables.append(_pairs(estimate))
    return Report(
        name=name,
        title=f"Identification of {estimate.found.model.name}",
        text=_text(config, log, estimate, notes),
        tables=tables,
        figures=[Figure(file, caption) for file, caption in figures.items()],
    )


def _text(
    config: settings.Identification, log: Log, estimate: Estimate, notes: list[str]
) -> str:
    method = config.method.kind
    way = _METHODS.get(method, f"the optimiser {getattr(config.method, 'name', '')}")
    files = ", ".join(f"`{x.file.name}`" for x in config.logs)
    held = f" (the last {estimate.held} of them held out)" if estimate.held else ""
    parts = [
        f"{len(estimate.parameters.names)} {estimate.what} of the robot were fitted to "
        f"{len(log.ts)} rows of {files}{held}, by {way}, comparing "
        f"{_RESIDUALS[config.residual.kind]}. {estimate.message}"
    ]
    if isinstance(estimate.found, Fit):
        rms = estimate.found.rms
        text = f"The residuals have a size of {rms:.4g} standard deviations"
        if estimate.held_rms is not None:
            text += f", {estimate.held_rms:.4g} on rows that were held out"
        parts.append(
            f"{text}. Near 1 the noise that was assumed explains them; intervals are "
            "scaled by it."
        )
    hidden = np.flatnonzero(~estimate.parameters.determined)
    if hidden.size:
        names = ", ".join(f"`{estimate.parameters.names[k]}`" for k in hidden)
        parts.append(
            f"The motion does not determine {hidden.size} of the {estimate.what} by "
            f"themselves: {names}. Their standard deviations exceed their size. They "
            "matter in combinations with others, or not at all; as far as combinations "
            "leave them free, their values are those of the nominal robot and of "
            "priors."
        )
    return "\n\n".join([*parts, *notes])


def _quality(joints: list[dict[str, Any]]) -> Table:
    keys = ("joint", "measured", "nominal", "fitted", "held_out")
    return Table(
        "Joint forces (N m, N): root mean square of what was measured, and of what the "
        "nominal and the fitted model leave of it",
        ["joint", "measured", "nominal", "fitted", "held out"],
        [[_digits(x[k]) for k in keys] for x in joints],
    )


def _numbers(title: str, numbers: Estimates) -> Table:
    rows = []
    for row, is_known in zip(numbers.rows, numbers.determined, strict=True):
        cells = [_digits(x) for x in row.values()]
        rows.append(cells if is_known else [*cells[:3], "not determined", "", ""])
    head = ["", "nominal", "fitted", "standard deviation", "from", "to"]
    return Table(title, head, rows)


def _pairs(estimate: Estimate) -> Table:
    pairs = estimate.strong
    text = f", the worst {_PAIRS} of {len(pairs)}" if len(pairs) > _PAIRS else ""
    return Table(
        f"Strongly correlated pairs: their sums or differences are known better than "
        f"they are by themselves{text}",
        ["", "", "correlation"],
        [[a, b, f"{r:.4f}"] for a, b, r in pairs[:_PAIRS]],
    )


def _digits(x: Any) -> Any:
    return x if x is None or isinstance(x, str) else digits(float(x))


def digits(x: float) -> str:
    """A number in five digits; what rounding leaves of zero is zero."""
    return f"{x:.5g}" if abs(x) > _ROUNDING else "0"
