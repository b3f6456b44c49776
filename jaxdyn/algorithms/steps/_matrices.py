"""Matrices over pairs of joints, one on the path to the other."""

import jax.numpy as jnp
import numpy as np

from jaxdyn.model import Topology
from jaxdyn.program import take
from jaxdyn.spatial import Scalar, Vec3, cross, dot


def pairs(
    topology: Topology, column: tuple[Vec3, Vec3], r: Vec3, f: Vec3, n: Vec3
) -> Scalar:
    """p_iᵀ A_{ji}ᵀ [f_j; n_j] for all pairs of joints, i on the path to j.

    Args:
        column: the columns p of all joints.
        r: where the joints are.
        f, n: wrenches at the joints.
    """
    i, j = topology.pairs
    (p_v, p_w), r_i = take((column, r), i)
    f, n, r_j = take((f, n, r), j)
    return dot(p_v, f) + dot(p_w, n + cross(r_j - r_i, f))


def filled(topology: Topology, upper: Scalar, lower: Scalar | None = None) -> Scalar:
    """The matrix with the entries `upper` at (i, j) and `lower` at (j, i) of all pairs.

    Joints on different branches do not meet: their entries are zero, and so are all
    below the diagonal without `lower`. On the diagonal counts `upper`.
    """
    i, j = topology.pairs
    place = np.full((topology.nv, topology.nv), 2 * len(i))
    if lower is not None:
        place[j, i] = len(i) + np.arange(len(i))
        upper = jnp.concatenate([upper, lower])
    place[i, j] = np.arange(len(i))
    return take(upper, place, stored=True)


def mirrored(topology: Topology, upper: Scalar) -> Scalar:
    """The symmetric matrix with the entries `upper` at (i, j) and (j, i)."""
    i, j = topology.pairs
    place = np.full((topology.nv, topology.nv), len(i))
    place[i, j] = place[j, i] = np.arange(len(i))
    return take(upper, place, stored=True)
