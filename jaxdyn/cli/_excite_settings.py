"""The settings of `jaxdyn excite`: the keys that a TOML file may have."""

from dataclasses import dataclass, field
from typing import Any, Literal

from jaxdyn.cli._settings import Output, Robot
from jaxdyn.io import POSITIVE, Check

_SEVERAL = Check("a whole number from 2 on", lambda x: x >= 2)
_POSITIVE_EACH = Check(
    "numbers above 0", lambda x: all(k > 0 for k in (x if isinstance(x, list) else [x]))
)
_SOME = Check("one or more", lambda x: len(x) > 0)


def _positive(**default: Any) -> Any:
    return field(**default, metadata={"check": POSITIVE})


def _positive_each() -> Any:
    return field(default=None, metadata={"check": _POSITIVE_OR_NONE})


_POSITIVE_OR_NONE = Check(
    _POSITIVE_EACH.allowed, lambda x: x is None or _POSITIVE_EACH.holds(x)
)


@dataclass(frozen=True)
class Limits:
    """Limits of q, qd and tau, by default those of the robot; one number or a list."""

    lower: float | list[float] | None = None
    upper: float | list[float] | None = None
    velocity: float | list[float] | None = _positive_each()
    effort: float | list[float] | None = _positive_each()


@dataclass(frozen=True)
class Excitation:
    """All settings of an excitation; see `jaxdyn.identify.excite`."""

    robot: str | Robot
    duration: float = _positive()
    degrees: bool = False
    limits: Limits = Limits()
    parameters: list[str] = field(
        default_factory=lambda: ["*.inertial", "*.damping", "*.friction"],
        metadata={"check": _SOME},
    )
    rate: float = _positive(default=100.0)
    harmonics: int = _positive(default=5)
    form: Literal["fourier", "spline"] = "fourier"
    criterion: Literal["worst", "log_det", "condition"] = "worst"
    noise: float | list[float] | None = _positive_each()
    samples: int = field(default=150, metadata={"check": _SEVERAL})
    steps: int = _positive(default=300)
    starts: int = _positive(default=4)
    seed: int = 0
    compare: bool = True
    output: Output = Output()
