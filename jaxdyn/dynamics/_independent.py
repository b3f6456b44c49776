"""Mechanisms with loops in the coordinates that the loops leave independent."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.algorithms.derivatives import inertia_matrix
from jaxdyn.algorithms.loops import cutoff, loop_jacobian
from jaxdyn.model import Model, Nq, arguments, chosen_coordinates
from jaxdyn.program import compiled

Coordinates = str | int | Sequence[str | int]


def loop_complement(
    model: Model, q: Nq, independent: Coordinates
) -> Float[Array, "nv k"]:
    r"""The matrix G with $\dot q = G\, \dot q_i$: an orthogonal complement, Psi G = 0.

    Rates of the other joints follow from the independent ones; where these leave any
    free, by the least norm.

    Args:
        independent: names of joints or bodies, or indices into qd.

    Raises:
        ValueError: fewer coordinates than the loops leave freedoms whatever q is.
    """
    return _complement(model, q, _independent(model, independent))


def reduced_mass_matrix(
    model: Model, q: Nq, independent: Coordinates
) -> Float[Array, "k k"]:
    r"""The inertia matrix $G^T M G$ of independent coordinates, `loop_complement`."""
    return _reduced(model, q, _independent(model, independent))


@compiled("independent")
def _complement(model: Model, q: Array, independent: tuple[int, ...]) -> Array:
    model, q = arguments(model, q=q)
    Psi, k = loop_jacobian(model, q), np.array(independent, int)
    others = np.setdiff1d(np.arange(model.nv), k)
    back = jnp.linalg.pinv(Psi[:, others], rtol=cutoff(Psi))
    follow = -jnp.matmul(back, Psi[:, k], precision="highest")
    rows = jnp.concatenate([jnp.eye(len(k), dtype=q.dtype), follow])
    return rows[np.argsort(np.concatenate([k, others]))]


@compiled("independent")
def _reduced(model: Model, q: Array, independent: tuple[int, ...]) -> Array:
    model, q = arguments(model, q=q)
    G = _complement(model, q, independent)
    M = inertia_matrix(model, q)
    return jnp.einsum("ij,ik,kl->jl", G, M, G, precision="highest")


def _independent(model: Model, given: Coordinates) -> tuple[int, ...]:
    return chosen_coordinates(model, "independent", given, model.nc)
