"""Where coordinates of a model with couplings stand in those of its tree."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from jaxdyn.model.tables._topology import Topology


@dataclass(frozen=True, eq=False)
class CoupledPlaces:
    """Index tables between the coordinates z of a model and those of its tree.

    Attributes:
        q, v: for each coordinate of the tree where it stands in z with the coupled
            joints behind it.
        own_q, own_v: the same for the joints' leaves, with those behind them that have
            no coordinate in z.
        source_q, source_v: [m, k] where the sources of each coupled joint stand in z;
            its length where there are fewer than k.
        kept: for each velocity of z the place of its joint in the tree.
        removed: of the joints without a coordinate the places in the tree, and the rows
            in the couplings.
        geared: of those with another one their places in z, and the rows.
    """

    q: np.ndarray
    v: np.ndarray
    own_q: np.ndarray
    own_v: np.ndarray
    source_q: np.ndarray
    source_v: np.ndarray
    kept: np.ndarray
    removed: tuple[np.ndarray, np.ndarray]
    geared: tuple[np.ndarray, np.ndarray]


@cache
def coupled_places(
    topology: Topology,
    tree: Topology,
    joints: tuple[int, ...],
    sources: tuple[tuple[int, ...], ...],
) -> CoupledPlaces:
    """The tables of `Couplings` of a model with this topology."""
    width = max([1, *map(len, sources)])
    is_removed = np.array([topology.joints[i] == "coupled" for i in joints])
    removed, geared = np.flatnonzero(is_removed), np.flatnonzero(~is_removed)
    at = np.array(joints, int)

    def whole(starts: tuple[int, ...], own: tuple[int, ...]) -> tuple:
        """The tables of positions or of velocities."""
        size, z = starts[-1], np.full(own[-1], -1)
        for i in range(len(starts) - 1):
            if starts[i + 1] > starts[i]:
                z[own[i] : own[i + 1]] = np.arange(starts[i], starts[i + 1])
        leaves, values, places = z.copy(), z.copy(), np.array(own)[at]
        leaves[places[removed]] = size + np.arange(len(removed))
        values[places] = size + np.arange(len(at))
        source = np.full((len(at), width), size)
        for k, bodies in enumerate(sources):
            source[k, : len(bodies)] = [starts[i] for i in bodies]
        return values, leaves, source

    q, own_q, source_q = whole(topology.q_start, tree.q_start)
    v, own_v, source_v = whole(topology.v_start, tree.v_start)
    kept = np.flatnonzero(own_v < topology.nv)
    places, in_z = np.array(tree.v_start)[at], np.array(topology.v_start)[at]
    return CoupledPlaces(
        *(q, v, own_q, own_v, source_q, source_v, kept),
        removed=(places[removed], removed),
        geared=(in_z[geared], geared),
    )
