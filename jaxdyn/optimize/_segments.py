"""Rounds of descents until all pieces of a motion meet."""

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from jaxdyn.optimize._descent import FLAT, NOT_FINITE, Descent, descend, with_options
from jaxdyn.optimize._shooting import MultipleShooting, SingleShooting, Unknowns

ROUNDS = 12  # at most
PENALTY = 0.1  # the first one, by the cost of the start
GROWTH = 10.0  # of the penalty, where a round leaves more than a quarter of a defect


class Solution(NamedTuple):
    """Coordinates of torques, how they were found, and the pieces' own motion."""

    u: Any
    descents: list[Descent]
    motion: tuple[Any, Any] | None = None
    defect: float = 0.0
    is_met: bool = True
    words: str = ""

    @property
    def message(self) -> str:
        """How it ended, in words."""
        return self.descents[-1].sentence + self.words

    @property
    def is_finite(self) -> bool:
        """Whether all costs are numbers."""
        return self.descents[-1].status != NOT_FINITE

    @property
    def is_converged(self) -> bool:
        """Whether there was nothing more to gain, with all pieces met."""
        return self.is_met and self.descents[-1].is_converged


def in_pieces(
    whole: SingleShooting,
    u: Any,
    nodes: tuple[Any, Any],
    value: Any,
    optimizer: Any,
    steps: int,
    tolerance: float,
    options: dict[str, Any],
    bar: tqdm,
) -> Solution:
    """Rounds of descents on the augmented Lagrangian, until all pieces meet.

    Args:
        nodes: (q, qd) in which pieces after the first start.
        value: what the motion costs at the start.
        tolerance: the largest defect of pieces that meet.
    """
    problem, x = _start(whole, u, nodes, value)
    pieces = with_options(MultipleShooting.pieces, options["compiler_options"])
    descents: list[Descent] = []
    states = nodes
    defect, first, exact = np.inf, -1.0, options["gradient_tolerance"]
    for k in range(ROUNDS):
        bar.reset()
        # early rounds need not be exact: their multipliers are not
        loose = max(exact, 10.0 ** (-2 - k))
        given = options | dict(gradient_tolerance=loose)
        found = descend(problem, x, optimizer, steps, **given, first=first, bar=bar)
        descents.append(found)
        problem, x = problem.around(found.x)
        first = found.first
        *states, _, c = pieces(problem, x)
        before, defect = defect, float(jnp.abs(c).max())
        is_exact = loose == exact or found.status != FLAT
        if found.status == NOT_FINITE or (defect <= tolerance and is_exact):
            break
        problem = _stricter(problem, c, defect > before / 4)
    is_met, rounds = defect <= tolerance, len(descents)
    words = f" It was round {rounds}, and segments met to {defect:.1e}."
    if not is_met:
        words = (
            f" After {rounds} rounds segments miss each other by {defect:.1e}, "
            f"expected {tolerance:.1e}: give more steps, or fewer segments."
        )
    return Solution(x.u, descents, tuple(states), defect, is_met, words)


def _start(
    whole: SingleShooting, u: Any, nodes: tuple[Any, Any], value: Any
) -> tuple[MultipleShooting, Unknowns]:
    """The problem without multipliers, with a penalty of the size of the cost."""
    q, qd = nodes
    size = jnp.where(jnp.isfinite(value) & (value != 0), jnp.abs(value), 1)
    multipliers = jnp.zeros((len(q), 2, whole.model.nv), u.dtype)
    T = whole.dt * (len(u) // (len(q) + 1))
    problem = MultipleShooting(whole, q, T, multipliers, PENALTY * size)
    return problem, Unknowns(u, jnp.zeros_like(qd), T * qd)


def _stricter(
    problem: MultipleShooting, c: Any, has_slow_defects: bool
) -> MultipleShooting:
    """The problem of the next round."""
    c = jnp.stack([c[:, 0], problem.duration * c[:, 1]], axis=1)
    growth = GROWTH if has_slow_defects else 1.0
    new = problem.multipliers + problem.penalty * c, problem.penalty * growth
    return eqx.tree_at(lambda p: (p.multipliers, p.penalty), problem, new)
