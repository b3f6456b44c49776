"""The bars that jaxdyn is held to, each as a ratio from one run."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.plan import BASIC, BATCHES, GROWTH, JAX_PEERS
from benchmarks.results import Best, best, select

US, PINOCCHIO, MUJOCO = ("jaxdyn",), ("pinocchio",), ("mujoco",)
SHORT = {"inverse_dynamics": "ID", "mass_matrix": "M", "forward_dynamics": "FD"}


@dataclass(frozen=True)
class Bar:
    """One bar: what is compared, the limit, and what was measured.

    Attributes:
        at_least: whether the ratio must reach the limit, or stay within it.
        measured: the ratio, or None where the run has no numbers for it.
        against: the library it is compared with, and how it was called.
    """

    what: str
    limit: float
    at_least: bool
    measured: float | None
    against: str = ""

    @property
    def is_met(self) -> bool | None:
        """Whether the bar is met; None if it was not measured."""
        if self.measured is None:
            return None
        if self.at_least:
            return self.measured >= self.limit
        return self.measured <= self.limit


def bars(results: dict[str, Any]) -> list[Bar]:
    """All bars, measured or not."""
    records = results["records"]
    found = _batch_of_arm(records) + _batch_sizes(records) + _jacobian(records)
    found += _rollouts(records) + _latency(records) + _humanoid(records)
    return found + _compile(results.get("compile", [])) + _growth(records)


def _batch_of_arm(records: list) -> list[Bar]:
    """The 7-dof arm, batch 4096, one core."""
    limits = {  # by Pinocchio in double and in single precision, by the best JAX peer
        "forward_dynamics": (1.5, 2.5, 3.5),
        "inverse_dynamics": (1.2, 2.0, 4.0),
        "mass_matrix": (1.0, 2.0, 4.0),
    }
    found = []
    for row, (double, single, peer) in limits.items():
        compare = _comparison(records, "arm", row, 4096)
        name = f"{SHORT[row]}, 7 dof, batch 4096, one core"
        found.append(compare(f"{name}, float64 / Pinocchio", double, PINOCCHIO))
        found.append(
            compare(f"{name}, float32 / Pinocchio float64", single, PINOCCHIO, "32/64")
        )
        if row == "forward_dynamics":
            found.append(compare(f"{name}, float64 / MuJoCo", 1.0, MUJOCO))
        found.append(compare(f"{name}, float64 / best JAX peer", peer, JAX_PEERS))
        found.append(
            compare(f"{name}, float32 / best JAX peer", peer, JAX_PEERS, "32/32")
        )
    return found


def _batch_sizes(records: list) -> list[Bar]:
    """The time of one state in large batches over that in the best batch."""
    found = []
    for row in BASIC:
        times = {}
        for batch in BATCHES:
            ours = _ours(records, "arm", row, batch)
            if ours:
                times[batch] = ours.seconds / batch
        for batch in (16384, 65536):
            ratio = times[batch] / min(times.values()) if batch in times else None
            what = f"{SHORT[row]}, 7 dof, time per state at batch {batch} / best batch"
            found.append(Bar(what, 1.2, False, ratio))
    return found


def _jacobian(records: list) -> list[Bar]:
    what = "Jacobian of FD, 7 dof, batch 1024"
    return _two(_comparison(records, "arm", "jacobian", 1024), what, 0.5, 10.0)


def _humanoid(records: list) -> list[Bar]:
    compare = _comparison(records, "humanoid", "forward_dynamics", 4096)
    return _two(compare, "FD, humanoid of 35 dof, batch 4096, float64", 1.0, 2.0)


def _two(compare: Callable, what: str, pinocchio: float, jax_peer: float) -> list[Bar]:
    return [
        compare(f"{what} / Pinocchio", pinocchio, PINOCCHIO),
        compare(f"{what} / best JAX peer", jax_peer, JAX_PEERS),
    ]


def _rollouts(records: list) -> list[Bar]:
    found = []
    for row in ("rollout", "rollout_gradient"):
        compare = _comparison(records, "arm", row, 0, time=True)
        what = f"{row.replace('_', ' ')} of one state, 100 steps, 7 dof: time"
        found.append(compare(f"{what} / best JAX peer", 0.8, JAX_PEERS))
    for batch, limit in ((64, 2.0), (1024, 4.0)):
        compare = _comparison(records, "arm", "rollout_gradient", batch)
        what = f"rollout gradient, 100 steps, 7 dof, batch {batch}"
        found.append(compare(f"{what} / best JAX peer", limit, JAX_PEERS))
    return found


def _latency(records: list) -> list[Bar]:
    found = []
    for row in BASIC:
        compare = _comparison(records, "arm", row, 0, time=True)
        what = f"{SHORT[row]}, 7 dof, one state: time / best JAX peer"
        found.append(compare(what, 0.8, JAX_PEERS))
    return found


def _compile(records: list) -> list[Bar]:
    def seconds(robot: str, row: str, peer: tuple[str, ...] = US) -> Best | None:
        return best(records, peer, robot=robot, row=row, precision="float64")

    forward = "forward_dynamics"
    short, middle, long = (seconds(f"chain{n}", forward) for n in (10, 50, 1000))
    gradient = seconds("chain50", "forward_gradient")
    of_all = seconds("chain50", "parameter_gradient")
    theirs = seconds("chain50", forward, ("jaxsim",))
    what = "compile time of FD's gradient"
    return [
        _quotient("compile time of FD, n = 1000 / n = 10", 1.3, long, short),
        _quotient("compile time of FD, n = 50 / JaxSim", 1.0, middle, theirs),
        _quotient(f"{what} by the state / FD's, n = 50", 2.5, gradient, middle),
        _quotient(f"{what} by all parameters / FD's, n = 50", 2.5, of_all, middle),
    ]


def _growth(records: list) -> list[Bar]:
    row = "forward_dynamics"
    ends = {n: _ours(records, f"chain{n}", row, GROWTH) for n in (50, 1000)}
    times = {n: e.seconds / n for n, e in ends.items() if e}
    memory = {n: e.record["memory"] / n for n, e in ends.items() if e}
    found = []
    for name, each in (("time per state", times), ("memory", memory)):
        ratio = each[1000] / each[50] if len(each) == 2 else None
        found.append(Bar(f"FD, {name} and dof, n = 1000 / n = 50", 1.3, False, ratio))
    return found


def _ours(
    records: list, robot: str, row: str, batch: int, precision: str = "float64"
) -> Best | None:
    case = {"robot": robot, "row": row, "batch": batch, "all_cores": False}
    return best(records, US, **case, precision=precision, flags="default")


def _comparison(
    records: list, robot: str, row: str, batch: int, time: bool = False
) -> Callable[..., Bar]:
    """Comparisons of a case: throughput by default, at least the limit, or time.

    The ratio is the median over the turns of the ratios within each turn.
    """
    case = {"robot": robot, "row": row, "batch": batch, "all_cores": False}

    def compare(what: str, limit: float, peers: tuple, bits: str = "64/64") -> Bar:
        our_bits, their_bits = bits.split("/")
        ours = _ours(records, robot, row, batch, f"float{our_bits}")
        theirs = best(records, peers, **case, precision=f"float{their_bits}")
        if ours is None or theirs is None:
            return Bar(what, limit, not time, None)
        turns = zip(theirs.record["turns"], ours.record["turns"], strict=False)
        speed = statistics.median(their / our for their, our in turns)
        return Bar(what, limit, not time, 1 / speed if time else speed, theirs.name)

    return compare


def _quotient(what: str, limit: float, one: Best | None, other: Best | None) -> Bar:
    if one is None or other is None:
        return Bar(what, limit, False, None)
    name = other.name if other.record["peer"] not in US else ""
    return Bar(what, limit, False, one.seconds / other.seconds, name)


def without_numbers(records: list) -> list[str]:
    """Libraries of a run that have no number at all."""
    peers = {record["peer"] for record in records}
    return sorted(
        p for p in peers if not any(r["turns"] for r in select(records, peer=p))
    )
