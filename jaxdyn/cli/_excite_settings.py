"""The settings of `jaxdyn excite`: the keys that a TOML file may have."""

from dataclasses import dataclass, field
from typing import Literal

from jaxdyn.cli._settings import (
    MOST_ROWS,
    SEVERAL,
    SOME,
    Output,
    Robot,
    positive,
    positive_each,
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

    robot: str | Robot
    duration: float = positive()
    degrees: bool = False
    limits: Limits = Limits()
    parameters: list[str] = field(
        default_factory=lambda: ["*.inertial", "*.damping", "*.friction"],
        metadata={"check": SOME},
    )
    rate: float = positive(default=100.0)
    harmonics: int = positive(default=5)
    form: Literal["fourier", "spline"] = "fourier"
    criterion: Literal["worst", "log_det", "condition"] = "worst"
    noise: float | list[float] | None = positive_each(default=None)
    samples: int = field(default=150, metadata={"check": SEVERAL})
    steps: int = positive(default=300)
    starts: int = positive(default=4)
    seed: int = 0
    compare: bool = True
    output: Output = Output()

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
