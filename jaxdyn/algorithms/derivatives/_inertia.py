"""The inertia of the coordinates of any model: Gᵀ M G with couplings, M without."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.algorithms.couplings import CoupledFactor, DenseFactor, coupled_factor
from jaxdyn.algorithms.recursions import Factor, composite, denoc_factor, newton_euler
from jaxdyn.model import Model, Nq, coupled_rates, reduced, whole


def inertia_matrix(model: Model, q: Nq) -> Float[Array, "nv nv"]:
    """The inertia matrix, armature included."""
    tree, joints, *_ = whole(model, q)
    M = composite(tree, joints) + jnp.diag(tree.armature)
    return reduced(model, q, reduced(model, q, M).T)


def dense_factor(M: Float[Array, "nv nv"]) -> DenseFactor:
    """Cholesky's factor of an inertia matrix."""
    return DenseFactor(jnp.linalg.cholesky(M), newton_euler)


def inertia_factor(model: Model, q: Nq) -> Factor | CoupledFactor | DenseFactor:
    """A factor of the inertia matrix: O(n) but where M itself has no inverse."""
    if model.couplings and model.couplings.is_dense:
        return dense_factor(inertia_matrix(model, q))
    tree, joints, *_ = whole(model, q)
    factor = denoc_factor(tree, joints)
    if not model.couplings:
        return factor
    return coupled_factor(factor, coupled_rates(model, q))
