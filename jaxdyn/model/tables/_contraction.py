"""A tree cut into small pieces, and a schedule that joins them in O(log n) rounds.

Host side and pure NumPy: nothing here is traced.
"""

import heapq
from dataclasses import dataclass

import numpy as np

from jaxdyn.program import Jumps, Lanes, cut_lanes, jump_tables, subtree_sizes

CHUNK = 32  # nodes of a piece along its path


@dataclass(frozen=True, eq=False, repr=False)
class Contraction:
    """Pieces of a tree, and how they are joined two by two.

    A piece is a connected part of the tree. Other pieces hang on one of its nodes, its
    exit, or on none. Rows are the pieces, one empty row, and the result of each join.
    A join takes a row `left`, the row `right` that hangs on its exit, and a row `load`
    that hangs there too but has no exit; in the result that of `right` is the exit. If
    `is_sum`, `left` and `right` hang side by side and the result is their sum.

    Attributes:
        lanes: the nodes of all pieces as lanes; the first level has one for each piece.
        first: [pieces] the first node of each piece.
        exits: [pieces] its exit; the number of nodes if it has none.
        beyond: [nodes] the piece on whose path to its exit each node is; the number of
            pieces for nodes beside it.
        jumps: tables for sums over the tree of the pieces.
        left, right, load: [rounds, width] the rows of the joins; those of no use take
            the empty row.
        is_sum: [rounds, width] whether `left` and `right` are summed.
        ports: [rows] from which end each row gets its motion: 2 k from the left and
            2 k + 1 from the right end of join k, or one more than those from the base.
    """

    lanes: Lanes
    first: np.ndarray
    exits: np.ndarray
    beyond: np.ndarray
    jumps: Jumps
    left: np.ndarray
    right: np.ndarray
    load: np.ndarray
    is_sum: np.ndarray
    ports: np.ndarray

    @property
    def pieces(self) -> int:
        """The number of pieces."""
        return len(self.first)

    @property
    def rounds(self) -> int:
        """The number of rounds of joins."""
        return len(self.left)

    @property
    def length(self) -> int:
        """The number of dependent steps of a walk through all pieces."""
        return sum(len(level.index) for level in self.lanes.levels)

    def __repr__(self) -> str:
        joins = int((self.right != self.pieces).sum())
        return (
            f"{self.lanes.size} steps in {self.pieces} pieces, walked in {self.length};"
            f" {joins} joins in {self.rounds} rounds of {self.left.shape[1]}"
        )


def contract(
    parents: np.ndarray, chunk: int = CHUNK, may_cut: np.ndarray | None = None
) -> Contraction:
    """The pieces and joins of the tree in which node i hangs on `parents[i]` < i.

    Args:
        parents: the parent of each node, -1 for the base.
        chunk: about how many nodes a path through a piece has; 1 for the least depth.
        may_cut: the nodes with which a piece may begin; by default all.
    """
    n = len(parents)
    cuts = _cuts(parents, chunk, np.ones(n, bool) if may_cut is None else may_cut)
    forest = np.where(cuts, -1, parents)
    first = np.flatnonzero(forest < 0)
    piece = np.zeros(n, int)
    for i in range(n):
        piece[i] = np.searchsorted(first, i) if forest[i] < 0 else piece[forest[i]]
    exits, children = np.full(len(first), n), [[] for _ in first]
    hangs = np.full(len(first), -1)
    for k, i in enumerate(first):
        if parents[i] >= 0:
            hangs[k] = piece[parents[i]]
            exits[hangs[k]] = parents[i]
            children[hangs[k]].append(k)
    leads_out = np.isin(np.arange(n), exits)
    for i in range(n - 1, -1, -1):
        if leads_out[i] and forest[i] >= 0:
            leads_out[forest[i]] = True
    beyond = np.where(leads_out, piece, len(first))
    joins = _Joins(children)
    for k, i in enumerate(first):
        if parents[i] < 0:
            joins.complete(k)
    tables = beyond, jump_tables(hangs, 1), *joins.tables(chunk > 1)
    return Contraction(cut_lanes(forest), first, exits, *tables)


def _cuts(parents: np.ndarray, chunk: int, may_cut: np.ndarray) -> np.ndarray:
    """Whether the edge above each node is cut.

    Subtrees of at most a quarter of a chunk stay whole. What is left above them
    branches at few nodes; paths between these are cut into equal parts.
    """
    n = len(parents)
    size = subtree_sizes(parents)
    is_top = size > chunk // 4
    next_top: list[list[int]] = [[] for _ in range(n)]
    next_heavy = np.full(n, -1)
    for i in range(n):
        p = parents[i]
        if p >= 0:
            if is_top[i]:
                next_top[p].append(i)
            if next_heavy[p] < 0 or size[i] > size[next_heavy[p]]:
                next_heavy[p] = i
    cuts = np.zeros(n, bool)
    for head in range(n):
        p = parents[head]
        is_head = p < 0 or (is_top[head] and len(next_top[p]) > 1)
        if not (is_top[head] and is_head):
            continue
        path = [head]
        while len(next_top[path[-1]]) == 1:
            path.append(next_top[path[-1]][0])
        if not next_top[path[-1]]:
            while next_heavy[path[-1]] >= 0:
                path.append(int(next_heavy[path[-1]]))
        cuts[_starts(np.array(path), chunk, may_cut)] = True
    return cuts & (parents >= 0)


def _starts(path: np.ndarray, chunk: int, may_cut: np.ndarray) -> np.ndarray:
    """The nodes of a path with which its parts begin."""
    parts = np.array_split(path, -(-len(path) // chunk))
    wanted = np.cumsum([0, *(len(part) for part in parts[:-1])])
    allowed = np.flatnonzero(may_cut[path])
    nearest = np.abs(allowed[None] - wanted[:, None]).argmin(axis=1)
    return path[np.unique(allowed[nearest])]


class _Joins:
    """Joins of pieces, each as early as its rows are there."""

    def __init__(self, children: list[list[int]]):
        self.children, self.empty = children, len(children)  # the empty row
        self.weight = np.ones(len(children))
        for k in range(len(children) - 1, -1, -1):
            self.weight[k] += sum(self.weight[c] for c in children[k])
        self.ready = dict.fromkeys(range(self.empty + 1), 0)
        self.joins: list[tuple[int, int, int, bool]] = []  # left, right, load, is_sum

    def complete(self, root: int) -> int:
        """The row of a piece with all that hangs on it."""
        path, loads = [root], []
        while self.children[path[-1]]:
            hanging = self.children[path[-1]]
            heavy = max(hanging, key=lambda c: self.weight[c])
            loads.append(self._sum([self.complete(c) for c in hanging if c != heavy]))
            path.append(heavy)
        weights = [2.0 ** self.ready[load] for load in loads] + [1.0]
        return self._path(path, loads, np.cumsum([0.0, *weights]), 0, len(path))

    def _sum(self, rows: list[int]) -> int:
        heap = [(self.ready[row], row) for row in rows]
        heapq.heapify(heap)
        while len(heap) > 1:  # those that are ready first
            (_, a), (_, b) = heapq.heappop(heap), heapq.heappop(heap)
            row = self._join(a, b, self.empty, True)
            heapq.heappush(heap, (self.ready[row], row))
        return heap[0][1] if heap else self.empty

    def _path(self, path: list, loads: list, sums: np.ndarray, i: int, j: int) -> int:
        """Pieces i to j of a path, split where both halves are ready together."""
        if j == i + 1:
            return path[i]
        middle = (sums[i] + sums[j]) / 2
        k = int(np.clip(np.searchsorted(sums[i + 1 : j], middle), 0, j - i - 2)) + i + 1
        if k > i + 1 and abs(sums[k - 1] - middle) < abs(sums[k] - middle):
            k -= 1
        left = self._path(path, loads, sums, i, k)
        right = self._path(path, loads, sums, k, j)
        return self._join(left, right, loads[k - 1], False)

    def _join(self, left: int, right: int, load: int, is_sum: bool) -> int:
        row = self.empty + 1 + len(self.joins)
        self.joins.append((left, right, load, is_sum))
        self.ready[row] = 1 + max(self.ready[x] for x in (left, right, load))
        return row

    def tables(self, is_narrow: bool) -> tuple[np.ndarray, ...]:
        """left, right, load, is_sum and ports of a `Contraction`.

        All rounds are as wide as the widest. If `is_narrow`, that is about the mean
        number of joins in a round: most rounds have fewer, and there are at most twice
        as many rounds.
        """
        count, start = len(self.joins), self.empty + 1
        joins = np.bincount([self.ready[start + k] for k in range(count)] or [0])
        width = int(joins[1:].max(initial=1))
        if is_narrow:
            mean = count / max(len(joins) - 1, 1)
            width = min(width, 1 << int(np.ceil(np.log2(max(1, mean)))))
        place, used = {}, []  # of each join its round and lane; lanes used in rounds
        for k in sorted(range(count), key=lambda k: self.ready[start + k]):
            before = [place[x - start][0] for x in self.joins[k][:3] if x >= start]
            now = max(before, default=-1) + 1
            while now < len(used) and used[now] == width:
                now += 1
            used += [0] * (now + 1 - len(used))
            place[k] = now, used[now]
            used[now] += 1
        return self._laid_out(place, len(used), width)

    def _laid_out(self, place: dict, rounds: int, width: int) -> tuple:
        start = self.empty + 1
        rows = np.full((3, rounds, width), self.empty)
        is_sum = np.zeros((rounds, width), bool)
        ports = np.full(start + rounds * width, 2 * rounds * width)

        def row(x: int) -> int:
            if x < start:
                return x
            t, lane = place[x - start]
            return start + t * width + lane

        for k, (left, right, load, summed) in enumerate(self.joins):
            t, lane = place[k]
            rows[:, t, lane] = row(left), row(right), row(load)
            is_sum[t, lane] = summed
            port = 2 * (t * width + lane)
            ports[row(left)] = port
            ports[[row(right), row(load)]] = port + 1
        return (*rows, is_sum, ports)
