"""Tables for sums along all paths and over all subtrees of a tree in few rounds.

Host side and pure NumPy: nothing here is traced.
"""

from dataclasses import dataclass

import numpy as np

from jaxdyn.program._lanes import subtree_sizes

BLOCK = 4  # 1 has the least depth, 4 less work


@dataclass(frozen=True, eq=False)
class Jumps:
    """Where to look in each round; the number of nodes stands for "nowhere".

    Attributes:
        parents: [nodes] the parent of each node, -1 for the base.
        ancestors: [rounds, nodes] the 2^k-th ancestor of each node in round k.
        order: [nodes] the nodes in preorder: a subtree is a range of them.
        blocks: [rounds, nodes] for the node at each place in that order, where in the
            order the block of 2^k nodes begins that its subtree takes in round k.
        is_chain: whether each node hangs on the one before it.
        block: how many nodes of such a chain are summed one after the other.
    """

    parents: np.ndarray
    ancestors: np.ndarray
    order: np.ndarray
    blocks: np.ndarray
    is_chain: bool
    block: int

    @property
    def rounds(self) -> int:
        """How many rounds sums along paths take, without those within blocks."""
        if not self.is_chain:
            return len(self.ancestors)
        return int(np.ceil(np.log2(-(-len(self.order) // self.block))))

    @property
    def depth(self) -> int:
        """The number of dependent steps of a sum along all paths."""
        is_blocked = self.is_chain and self.block > 1
        return self.rounds + (2 * self.block if is_blocked else 0)


def jump_tables(parents: np.ndarray, block: int = BLOCK) -> Jumps:
    """The tables of the tree in which node i hangs on `parents[i]` < i, or on -1."""
    is_chain = np.array_equal(parents, np.arange(len(parents)) - 1)
    return Jumps(parents, _ancestors(parents), *_ranges(parents), is_chain, block)


def _ancestors(parents: np.ndarray) -> np.ndarray:
    n = len(parents)
    step = np.append(np.where(parents < 0, n, parents), n)  # nowhere leads nowhere
    rounds = []
    while (step < n).any():
        rounds.append(step[:n])
        step = step[step]
    return np.array(rounds, int).reshape(len(rounds), n)


def _ranges(parents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The preorder, and the binary digits of each subtree's size as blocks of it."""
    n, size = len(parents), subtree_sizes(parents)
    place, free = np.zeros(n, int), np.zeros(n + 1, int)  # free[-1]: of the world
    for i in range(n):
        p = parents[i]
        place[i] = free[p]
        free[p] += size[i]
        free[i] = place[i] + 1
    order = np.empty(n, int)
    order[place] = np.arange(n)
    start, left, rounds = np.arange(n), size[order], []
    while left.any():
        is_taken = left % 2 == 1
        rounds.append(np.where(is_taken, start, n))
        start = start + (is_taken << (len(rounds) - 1))
        left = left // 2
    return order, np.array(rounds, int)
