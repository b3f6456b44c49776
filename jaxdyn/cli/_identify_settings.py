"""The settings of `jaxdyn identify` and `excite`: the keys of their TOML files."""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from jaxdyn.cli import _settings as settings
from jaxdyn.cli._settings import MOST_ROWS, SOME, checked, positive, positive_each
from jaxdyn.io import NOT_NEGATIVE, Check

_SHARE = Check("a share from 0 to below 1", lambda x: 0 <= x < 1)
_not_negative = partial(checked, NOT_NEGATIVE)
Optimizer = Literal[  # those of optax that need a learning rate and nothing else
    "adabelief",
    "adagrad",
    "adam",
    "adamax",
    "adamw",
    "amsgrad",
    "lamb",
    "lion",
    "nadam",
    "radam",
    "rmsprop",
    "sgd",
    "yogi",
]


@dataclass(frozen=True)
class LogFile:
    """A file with a measured motion; see `jaxdyn.io.load_log`."""

    file: Path
    columns: dict[str, str] = field(default_factory=dict)
    ignore: list[str] | Literal["*"] = field(default_factory=list)
    degrees: bool = False


@dataclass(frozen=True)
class Filter:
    """The low-pass of positions, and of forces if wanted; see `filtered`."""

    cutoff: float = positive()
    order: int = positive(default=4)
    decimate: int = positive(default=1)
    trim: float | None = _not_negative(default=None)
    rate: float | None = positive(default=None)
    forces: bool = False


@dataclass(frozen=True)
class Parameters:
    """What is fitted, by name; see `jaxdyn.identify.choose`."""

    fit: list[str] = field(metadata={"check": SOME})
    without: list[str] = field(default_factory=list)
    tied: list[list[str]] = field(default_factory=list)
    mirrored: list[tuple[str, str, str]] = field(default_factory=list)
    start: dict[str, float] = field(default_factory=dict)
    definite: bool = False


@dataclass(frozen=True)
class GaussianPrior:
    """Values near a mean, by default the nominal one."""

    kind: Literal["gaussian"]
    pattern: str
    std: float = positive()
    mean: float | None = None
    relative: bool = False


@dataclass(frozen=True)
class GeodesicPrior:
    """Bodies like the nominal ones."""

    kind: Literal["geodesic"]
    pattern: str = "*.inertial"
    std: float = positive(default=1.0)


@dataclass(frozen=True)
class Linear:
    """Least squares for the combinations of parameters that the motion tells."""

    kind: Literal["linear"]
    weights: Literal["weighted", "ordinary", "total"] = "weighted"
    covariance: Literal["robust", "classical"] = "robust"


@dataclass(frozen=True)
class LevenbergMarquardt:
    """Damped Gauss-Newton steps; the model stays physically possible."""

    kind: Literal["levenberg_marquardt"] = "levenberg_marquardt"
    steps: int = positive(default=200)
    tolerance: float | None = positive(default=None)
    every: int = positive(default=10)


@dataclass(frozen=True)
class Descent:
    """Steps of an optimiser of optax; the model stays physically possible."""

    kind: Literal["optax"]
    name: Optimizer = "adam"
    steps: int = positive(default=1000)
    learning_rate: float = positive(default=1e-2)
    batch: int | None = positive(default=None)
    patience: int | None = positive(default=None)
    every: int = positive(default=50)


@dataclass(frozen=True)
class Torque:
    """Joint forces of the model less those that were measured."""

    kind: Literal["torque"] = "torque"
    std: float | list[float] = positive_each(default=1.0)


@dataclass(frozen=True)
class Acceleration:
    """Accelerations of the model less those that were measured."""

    kind: Literal["acceleration"]
    std: float | list[float] = positive_each(default=1.0)


@dataclass(frozen=True)
class Motion:
    """Positions of the simulated model less those that were measured."""

    kind: Literal["trajectory"]
    std: float | list[float] = positive_each(default=1.0)
    length: int | None = positive(default=None)
    free_start: bool = False
    continuity: float | None = positive(default=None)


@dataclass(frozen=True)
class Output:
    """Which files are written beside the numbers."""

    plots: bool = True
    report: bool = True


@dataclass(frozen=True)
class Identification:
    """All settings of an identification."""

    robot: str | settings.Robot
    log: LogFile | list[LogFile] = field(metadata={"check": SOME})
    parameters: Parameters
    filter: Filter | None = None
    prior: list[GaussianPrior | GeodesicPrior] = field(default_factory=list)
    method: Linear | LevenbergMarquardt | Descent = LevenbergMarquardt()
    residual: Torque | Acceleration | Motion = Torque()
    validation: float = checked(_SHARE, default=0.2)
    lags: int = _not_negative(default=0)
    output: Output = Output()

    @property
    def logs(self) -> list[LogFile]:
        """All logs."""
        return self.log if isinstance(self.log, list) else [self.log]

    def __post_init__(self) -> None:
        if isinstance(self.method, Linear):
            self._check_linear()
        if isinstance(self.residual, Motion) and len(self.logs) > 1:
            raise ValueError(
                f"residual.kind is 'trajectory' with {len(self.logs)} logs, expected "
                "one: windows must not reach from one log to the next."
            )

    def _check_linear(self) -> None:
        if not isinstance(self.residual, Torque) or self.residual.std != 1.0:
            raise ValueError(
                "method.kind is 'linear', which fits joint forces and finds their "
                "noise by itself: remove the table residual."
            )
        given = ("without", "tied", "mirrored", "start", "definite")
        wrong = [f"parameters.{k}" for k in given if getattr(self.parameters, k)]
        wrong += [k for k in ("prior", "lags") if getattr(self, k)]
        if wrong:
            raise ValueError(
                f"method.kind is 'linear', which has no use for {', '.join(wrong)}: "
                "remove it, or choose 'levenberg_marquardt'."
            )


@dataclass(frozen=True)
class Limits:
    """Limits of q, qd and tau, by default those of the robot; one number or a list."""

    lower: float | list[float] | None = None
    upper: float | list[float] | None = None
    velocity: float | list[float] | None = positive_each(default=None)
    effort: float | list[float] | None = positive_each(default=None)


@dataclass(frozen=True)
class Excitation:
    """All settings of an excitation; see `jaxdyn.identify.excite`."""

    robot: str | settings.Robot
    duration: float = positive()
    degrees: bool = False
    limits: Limits = Limits()
    parameters: list[str] = checked(
        SOME, default_factory=lambda: ["*.inertial", "*.damping", "*.friction"]
    )
    rate: float = positive(default=100.0)
    harmonics: int = positive(default=5)
    form: Literal["fourier", "spline"] = "fourier"
    criterion: Literal["worst", "log_det", "condition"] = "worst"
    noise: float | list[float] | None = positive_each(default=None)
    samples: int = checked(settings.SEVERAL, default=150)
    steps: int = positive(default=300)
    starts: int = positive(default=4)
    seed: int = 0
    compare: bool = True
    output: settings.Output = settings.Output()

    def __post_init__(self) -> None:
        steps = self.duration * self.rate
        if steps > MOST_ROWS:
            raise ValueError(
                f"rate is {self.rate:.6g}, expected {MOST_ROWS / self.duration:.6g} at "
                f"most: {MOST_ROWS} rows in duration = {self.duration:.6g}."
            )
        if round(steps) < 1 or abs(round(steps) - steps) > 1e-6 * steps:
            raise ValueError(
                f"rate is {self.rate:.6g}, expected a whole number of steps in "
                f"duration = {self.duration:.6g}: change one of them."
            )
