"""The settings of `jaxdyn simulate`: the keys that a TOML file may have."""

from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np

from jaxdyn.io import POSITIVE, Check

Point = tuple[float, float, float]
Method = Literal[
    "denoc", "articulated", "composite", "gibbs_appell", "noc", "parallel", "auto"
]
Scheme = Literal[  # those of diffrax for one ordinary differential equation
    "Bosh3",
    "Dopri5",
    "Dopri8",
    "Euler",
    "Heun",
    "ImplicitEuler",
    "Kvaerno3",
    "Kvaerno4",
    "Kvaerno5",
    "LeapfrogMidpoint",
    "Midpoint",
    "Ralston",
    "ReversibleHeun",
    "Tsit5",
]
MOST_ROWS = 10_000_000  # at most, of a table over time
SEVERAL = Check(f"a whole number from 2 to {MOST_ROWS}", lambda x: 2 <= x <= MOST_ROWS)
SOME = Check("one or more", lambda x: len(x) > 0 if isinstance(x, list) else True)
_GAIN = Check("numbers that are not negative", lambda x: np.min(x, initial=0) >= 0)
_POSITIVE_EACH = Check("numbers above 0", lambda x: np.min(x, initial=np.inf) > 0)


def checked(check: Check, **default: Any) -> Any:
    """A field with a rule for its value."""
    return field(**default, metadata={"check": check})


positive, positive_each = partial(checked, POSITIVE), partial(checked, _POSITIVE_EACH)


@dataclass(frozen=True)
class Robot:
    """A robot that comes with jaxdyn, or a file, with options."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Start:
    """The state at time 0; by default where the motion starts, or neutral at rest."""

    q: list[float] | None = None
    qd: list[float] | None = None


@dataclass(frozen=True)
class Time:
    """From 0 to `end`, by default the end of the motion; rows by number or distance."""

    end: float | None = positive(default=None)
    samples: int | None = checked(SEVERAL, default=None)
    dt: float | None = positive(default=None)

    def __post_init__(self) -> None:
        if self.samples is not None and self.dt is not None:
            raise ValueError("samples and dt are both given, expected one of them.")


@dataclass(frozen=True)
class Cycloidal:
    """From q0 to q1, at rest at both ends, without jumps of the acceleration."""

    kind: Literal["cycloidal"]
    q1: list[float]
    duration: float = positive()
    q0: list[float] | None = None


@dataclass(frozen=True)
class Polynomial:
    """From q0 to q1 by a polynomial of fifth degree."""

    kind: Literal["polynomial"]
    q1: list[float]
    duration: float = positive()
    q0: list[float] | None = None
    qd0: list[float] | None = None
    qd1: list[float] | None = None
    qdd0: list[float] | None = None
    qdd1: list[float] | None = None


@dataclass(frozen=True)
class Spline:
    """Through the poses qs at the times, by a cubic spline."""

    kind: Literal["spline"]
    times: list[float]
    qs: list[list[float]]
    qd0: list[float] | None = None
    qd1: list[float] | None = None

    def __post_init__(self) -> None:
        _check_rows("qs", self.qs, self.times, at_least=2)


@dataclass(frozen=True)
class Recorded:
    """Through every so many rows of a log, by a cubic spline; its times start at 0."""

    kind: Literal["log"]
    file: Path
    every: int = positive(default=1)
    degrees: bool = False


@dataclass(frozen=True)
class StraightLine:
    """A frame along a line in space, with the attitude it has at q0, another or any.

    It starts where it is at q0, or at `start`, in the branch that is nearest to q0.
    """

    kind: Literal["straight_line"]
    frame: str
    end: Point
    duration: float = positive()
    start: Point | None = None
    attitude: Literal["start", "free"] | tuple[Point, Point, Point] = "start"
    law: Literal["cycloidal", "quintic", "constant_speed"] = "cycloidal"
    q0: list[float] | None = None


@dataclass(frozen=True)
class NoControl:
    """No joint forces."""

    kind: Literal["none"] = "none"


@dataclass(frozen=True)
class ComputedTorque:
    """Follows the motion; errors decay as those of a spring and damper."""

    kind: Literal["computed_torque"]
    kp: float | list[float] = field(metadata={"check": _GAIN})
    kd: float | list[float] = field(metadata={"check": _GAIN})
    saturate: bool = False


@dataclass(frozen=True)
class PDGravity:
    """Holds the weight and pulls to the target, by default the end of the motion."""

    kind: Literal["pd_gravity"]
    kp: float | list[float] = field(metadata={"check": _GAIN})
    kd: float | list[float] = field(metadata={"check": _GAIN})
    saturate: bool = False
    target: list[float] | None = None


@dataclass(frozen=True)
class Feedforward:
    """The joint forces that the motion needs, whatever the robot does."""

    kind: Literal["feedforward"]
    saturate: bool = False


@dataclass(frozen=True)
class Constant:
    """The same joint forces at all times."""

    kind: Literal["constant"]
    tau: list[float]


@dataclass(frozen=True)
class Samples:
    """Joint forces at some times, linear in between, constant outside."""

    kind: Literal["samples"]
    times: list[float]
    taus: list[list[float]]

    def __post_init__(self) -> None:
        _check_rows("taus", self.taus, self.times, at_least=1)


def _check_rows(name: str, rows: list[Any], times: list[float], at_least: int) -> None:
    """Times increase, and each has its row."""
    if len(times) < at_least or any(a >= b for a, b in pairwise(times)):
        raise ValueError(
            f"times is {times}, expected {at_least} or more increasing numbers."
        )
    if len(rows) != len(times):
        raise ValueError(
            f"{name} has {len(rows)} rows, expected {len(times)}, one for each of "
            "times."
        )


@dataclass(frozen=True)
class External:
    """A constant force and moment on a body at its origin, in world axes."""

    body: str
    force: Point = (0.0, 0.0, 0.0)
    moment: Point = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Solver:
    """How the equations are integrated: adaptive, or with a fixed `step`."""

    method: Method = "denoc"
    name: Scheme = "Dopri5"
    rtol: float | None = positive(default=None)
    atol: float | None = positive(default=None)
    step: float | None = positive(default=None)
    max_steps: int = positive(default=100_000)

    def __post_init__(self) -> None:
        if self.step is not None and not (self.rtol is self.atol is None):
            raise ValueError(
                "step is for steps of one length, rtol and atol for adaptive ones: "
                "remove the one or the others."
            )


@dataclass(frozen=True)
class Output:
    """Which files are written beside trajectory.npz and summary.json."""

    plots: bool = True
    animation: bool = True
    fps: float = positive(default=60.0)


@dataclass(frozen=True)
class Simulation:
    """All settings of a simulation."""

    robot: str | Robot
    dtype: Literal["float64", "float32"] = "float64"
    degrees: bool = False
    stop_at_limits: bool = False
    start: Start = Start()
    time: Time = Time()
    motion: Cycloidal | Polynomial | Spline | Recorded | StraightLine | None = None
    control: (
        NoControl | ComputedTorque | PDGravity | Feedforward | Constant | Samples
    ) = NoControl()
    external: list[External] = field(default_factory=list)
    solver: Solver = Solver()
    output: Output = Output()

    def __post_init__(self) -> None:
        follows = isinstance(self.control, ComputedTorque | Feedforward)
        if follows and self.motion is None:
            raise ValueError(
                f"control.kind is {self.control.kind!r}, but there is no motion to "
                "follow: add a table motion."
            )
        if self.motion is not None and not (
            follows or isinstance(self.control, PDGravity)
        ):
            raise ValueError(
                f"motion is given, but control.kind is {self.control.kind!r}, which "
                "does not use it: choose 'computed_torque', 'feedforward' or "
                "'pd_gravity', or remove motion."
            )
        if self.motion is None and self.time.end is None:
            raise ValueError("time.end is missing, expected a number above 0: add it.")
