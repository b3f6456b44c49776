"""Trees of some shapes, and the dependent steps of forward dynamics on them."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jaxdyn as jd
from jaxdyn.model import Topology

CHUNK = 32  # what `forward_dynamics` takes by default


def _chain(n: int) -> Sequence[int]:
    return range(-1, n - 1)


def _random(n: int) -> Sequence[int]:
    return jd.robots.random_tree(0, n, branching=1.0).parents


def _comb(n: int) -> Sequence[int]:
    """A spine of the even bodies, each with an odd one as its tooth."""
    return [i - 1 if i % 2 else max(i - 2, -1) for i in range(n)]


def _star(n: int) -> Sequence[int]:
    return [-1] * n


def _binary(n: int) -> Sequence[int]:
    return [(i + 1) // 2 - 1 for i in range(n)]


SHAPES: dict[str, Callable[[int], Sequence[int]]] = {
    "chain": _chain,
    "random tree": _random,
    "comb": _comb,
    "star": _star,
    "binary tree": _binary,
}


class Steps(NamedTuple):
    """Dependent steps of one forward dynamics."""

    sequential: int
    parallel: int
    least: int  # in pieces of one joint


Depths = dict[tuple[str, int], Steps]  # by shape and number of bodies


def steps(shape: str, n: int) -> Steps:
    """The steps on a tree of n bodies, from its schedule."""
    topology = tree(SHAPES[shape](n)).topology
    walk = sum(len(level.index) for level in topology.lanes.levels)
    return Steps(3 * walk, _parallel(topology, CHUNK), _parallel(topology, 1))


def tree(parents: Sequence[int]) -> jd.Model:
    """Equal bodies on revolute joints; the shape alone matters."""
    b, box = jd.ModelBuilder("shape"), jd.Inertial.box(1.0, (0.1, 0.1, 0.1))
    for i, parent in enumerate(parents):
        b.add_body(f"b{i:04d}", parent, "revolute", p=(0.1, 0.0, 0.0), inertial=box)
    return b.build()


def _parallel(topology: Topology, chunk: int) -> int:
    """Two sums along the paths, then inward and outward through pieces and joins."""
    pieces = topology.contraction(chunk)
    sums = topology.jumps_in_blocks(min(chunk, 4)).depth
    return 2 * sums + 2 * (pieces.length + pieces.rounds)
