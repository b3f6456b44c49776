"""Where the rows of loops travel in a recursion over the tree, host side."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from jaxdyn.model.tables._topology import Topology


@dataclass(frozen=True, eq=False)
class LoopPlan:
    """Where the rows of the loops travel; host side.

    Attributes:
        key: the topology and the loops of which it was made: these decide the rest.
        slots: how many rows cross any one step at most.
        slot: of each row.
        sides: of each row the steps that carry its bodies, -1 for the world.
        first: of each row a step that carries one of them.
        closing: [steps, rows] the slots of the rows eliminated at each step, from one.
        at_base: the rows eliminated at the base.
        place: of each row where its multiplier is: [steps * rows], then at the base.
    """

    key: tuple[Topology, tuple[tuple[int, int, int], ...]]
    slots: int
    slot: np.ndarray
    sides: tuple[np.ndarray, np.ndarray]
    first: np.ndarray
    closing: np.ndarray
    at_base: np.ndarray
    place: np.ndarray

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LoopPlan) and self.key == other.key


@lru_cache(maxsize=64)
def loop_plan(topology: Topology, loops: tuple[tuple[int, int, int], ...]) -> LoopPlan:
    """The plan for loops given as bodies a and b and a number of rows."""
    last = np.append(topology.steps.last, -1)  # of the world
    parent = topology.steps.parent
    a, b, counts = np.array(loops, int).T
    paths, closes = _paths(parent, last[a], last[b])
    slot = np.concatenate(_slots(parent, paths, closes, counts))
    owner = np.repeat(np.arange(len(loops)), counts)
    closes = closes[owner]
    at_base = np.flatnonzero(closes < 0)
    members = [np.flatnonzero(closes == step) for step in range(len(parent))]
    width = max(map(len, members))
    closing = np.zeros((len(parent), width), int)
    place = np.zeros(len(owner), int)
    for step, rows in enumerate(members):
        closing[step, : len(rows)] = slot[rows] + 1
        place[rows] = step * width + np.arange(len(rows))
    place[at_base] = closing.size + np.arange(len(at_base))
    sides = last[a][owner], last[b][owner]
    travel = 1 + int(slot.max()), slot, sides, np.maximum(*sides)
    return LoopPlan((topology, loops), *travel, closing, at_base, place)


def _paths(
    parent: np.ndarray, first: np.ndarray, second: np.ndarray
) -> tuple[list[set[int]], np.ndarray]:
    """The steps along each loop, and the one where it closes (-1: the base)."""
    paths, closes = [], []
    for a, b in zip(first, second, strict=True):
        one, other = (set(_support(parent, int(step))) for step in (a, b))
        closes.append(max(one & other, default=-1))  # parents precede their children
        paths.append((one ^ other) | {closes[-1]})
    return paths, np.array(closes)


def _slots(
    parent: np.ndarray, paths: list[set[int]], closes: np.ndarray, counts: np.ndarray
) -> list[list[int]]:
    """Slots for the rows of each loop, others than those it meets on any step.

    Loops are coloured from the base outward, in the order of the step where they close:
    each takes the lowest slots that no loop before it uses on a common step. The paths
    of loops are subtrees of a tree, for which that order needs the fewest slots.
    """
    used: dict[int, set[int]] = {}
    slots = [[] for _ in paths]
    depths = [len(_support(parent, int(step))) for step in closes]
    for k in np.argsort(depths, kind="stable"):
        taken = set().union(*(used.get(step, set()) for step in paths[k]))
        free = [s for s in range(len(taken) + counts[k]) if s not in taken]
        slots[k] = free[: counts[k]]
        for step in paths[k]:
            used.setdefault(step, set()).update(slots[k])
    return slots


def _support(parent: np.ndarray, step: int) -> list[int]:
    steps = []
    while step >= 0:
        steps.append(step)
        step = int(parent[step])
    return steps
