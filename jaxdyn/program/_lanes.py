"""A tree cut into the lanes that walks run along.

Host side and pure NumPy: nothing here is traced.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Level:
    """Paths of a tree that run side by side.

    Attributes:
        index: [length, lanes] the node at each place; one more than the last node where
            a lane is shorter than the longest.
        attached: for each lane the place, in the level before and counted row by row,
            of the node to which its first node is attached; None at the first level,
            which hangs on the world.
    """

    index: np.ndarray
    attached: np.ndarray | None


@dataclass(frozen=True, eq=False)
class Lanes:
    """A tree cut into heavy paths, level by level.

    Each node continues into its child with the largest subtree; other children start a
    path of the next level. A step down a level at least halves the subtree, so a tree
    of n nodes has at most 1 + log2(n) levels.

    Attributes:
        levels: the levels, base first.
        size: the number of nodes.
        place: for each node its place in the concatenation of all flattened levels.
    """

    levels: tuple[Level, ...]
    size: int
    place: np.ndarray


def cut_lanes(parents: np.ndarray) -> Lanes:
    """The lanes of the tree in which node i hangs on `parents[i]` < i, or on -1."""
    n = len(parents)
    size = subtree_sizes(parents)
    heavy = np.full(n + 1, -1)
    for i in range(n):  # the last entry of `heavy` stands for the world, which has none
        p = parents[i]
        if p >= 0 and (heavy[p] < 0 or size[i] > size[heavy[p]]):
            heavy[p] = i

    levels: list[Level] = []
    where: dict[int, int] = {}
    heads = [i for i in range(n) if parents[i] < 0]
    while heads:
        paths = [_path(head, heavy) for head in heads]
        index = np.full((max(map(len, paths)), len(paths)), n)
        for lane, path in enumerate(paths):
            index[: len(path), lane] = path
        attached = None
        if levels:
            attached = np.array([where[parents[head]] for head in heads])
        levels.append(Level(index, attached))
        where = {int(i): k for k, i in enumerate(index.ravel()) if i < n}
        heads = [i for i in range(n) if parents[i] in where and heavy[parents[i]] != i]

    flat = np.concatenate([level.index.ravel() for level in levels])
    place = np.zeros(n + 1, int)
    place[flat] = np.arange(flat.size)
    return Lanes(tuple(levels), n, place[:n])


def subtree_sizes(parents: np.ndarray) -> np.ndarray:
    """For each node how many nodes it carries, itself included."""
    size = np.ones(len(parents), int)
    for i in range(len(parents) - 1, -1, -1):
        if parents[i] >= 0:
            size[parents[i]] += size[i]
    return size


def _path(head: int, heavy: np.ndarray) -> list[int]:
    path = [head]
    while heavy[path[-1]] >= 0:
        path.append(int(heavy[path[-1]]))
    return path
