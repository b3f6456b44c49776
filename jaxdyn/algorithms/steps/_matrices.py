"""Matrices over pairs of joints, one on the path to the other."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxdyn.model import Topology
from jaxdyn.program import take
from jaxdyn.spatial import Twist, Vec3, Wrench, dot


def pairs(topology: Topology, column: Twist, r: Vec3, wrench: Wrench) -> Array:
    """p_iᵀ A_{ji}ᵀ w_j for all pairs of joints, i on the path to j.

    Args:
        column: the columns p of all joints.
        r: where the joints are.
        wrench: wrenches w at the joints.
    """
    i, j = topology.pairs
    p, r_i = take((column, r), i)
    w, r_j = take((wrench, r), j)
    return dot(p, w.shift(r_j - r_i))


def filled(topology: Topology, upper: Array, lower: Array | None = None) -> Array:
    """The matrix with the entries `upper` at (i, j) and `lower` at (j, i) of all pairs.

    Joints on different branches do not meet: their entries are zero, and so are all
    below the diagonal without `lower`. The diagonal is taken from `upper`.
    """
    i, j = topology.pairs
    place = np.full((topology.nv, topology.nv), 2 * len(i))
    if lower is not None:
        place[j, i] = len(i) + np.arange(len(i))
        upper = jnp.concatenate([upper, lower])
    place[i, j] = np.arange(len(i))
    return take(upper, place, stored=True)


def mirrored(topology: Topology, upper: Array) -> Array:
    """The symmetric matrix with the entries `upper` at (i, j) and (j, i)."""
    i, j = topology.pairs
    place = np.full((topology.nv, topology.nv), len(i))
    place[i, j] = place[j, i] = np.arange(len(i))
    return take(upper, place, stored=True)
