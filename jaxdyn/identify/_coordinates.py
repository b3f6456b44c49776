"""Coordinates of parameters in which every number is physically possible.

All are zero at the nominal value and of order one for a change of its own size.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.model import Inertial, Model

SPREAD = 4.0  # of logarithms of lengths: second moments by e^8 each way
SHEAR = 4.0  # of slopes between axes
SIZE = 12.0  # of logarithms of positive numbers
_ROOTS = 7  # square roots before the series of the logarithm
_NEWTON = 24  # steps for each of them
_SERIES = 7  # terms of it


def bounded(x: Float[Array, "..."], limit: float) -> Float[Array, "..."]:
    """A number near x that stays within the limit, so that exponentials stay finite."""
    return limit * jnp.tanh(x / limit)


def positive(
    theta: Float[Array, "..."], nominal: Float[Array, "..."]
) -> Float[Array, "..."]:
    """A positive number, by the logarithm of its ratio to the nominal one."""
    return nominal * jnp.exp(bounded(theta, SIZE))


def shape_factor(theta: Float[Array, "6"]) -> Float[Array, "3 3"]:
    """The upper triangle W of the coordinates (d1, d2, d3, s12, s23, s13).

    It has e^d on its diagonal, as log-Cholesky coordinates have, [Rucker], and above it
    s times the e^d of the column. All six are bounded so that W Wᵀ stays definite in
    floating-point numbers too, whatever the coordinates.
    """
    d, s = bounded(theta[:3], SPREAD), bounded(theta[3:], SHEAR)
    slopes = jnp.eye(3, dtype=theta.dtype).at[(0, 1, 0), (1, 2, 2)].set(s)
    return slopes * jnp.exp(d)[None, :]


def body_factor(theta: Float[Array, "10"]) -> Float[Array, "4 4"]:
    r"""The factor W of log-Cholesky coordinates, as in `to_log_cholesky`.

    $$W = e^\alpha \begin{bmatrix} W_3 & t \\ 0 & 1 \end{bmatrix}$$
    """
    alpha, t = bounded(theta[0], SIZE / 2), theta[7:]
    W = jnp.eye(4, dtype=theta.dtype)
    W = W.at[:3, :3].set(shape_factor(theta[1:7])).at[:3, 3].set(t)
    return jnp.exp(alpha) * W


def second_moments(inertia: np.ndarray) -> np.ndarray:
    """The second moments tr(I)/2 1 - I of mass about the point of I, on the host."""
    return np.trace(inertia) / 2 * np.eye(3) - inertia


def inertia_of(moments: Float[Array, "3 3"]) -> Float[Array, "3 3"]:
    """The inertia of second moments."""
    return jnp.trace(moments) * jnp.eye(3, dtype=moments.dtype) - moments


def moved_inertia(
    theta: Float[Array, "6"], factor: Float[Array, "3 3"]
) -> Float[Array, "3 3"]:
    """The inertia about the mass centre, with `factor` that of the nominal one.

    Second moments are V W Wᵀ Vᵀ with the nominal V Vᵀ: positive definite.
    """
    root = factor @ shape_factor(theta)
    return inertia_of(root @ root.T)


def moved_body(
    theta: Float[Array, "10"],
    mass: Float[Array, ""],
    com: Float[Array, "3"],
    factor: Float[Array, "3 3"],
) -> tuple[Float[Array, ""], Float[Array, "3"], Float[Array, "3 3"]]:
    """Mass, centre and inertia of a body, by log-Cholesky coordinates seen from it.

    The pseudo-inertia is U0 W Wᵀ U0ᵀ with the nominal U0 U0ᵀ and the `body_factor` W:
    positive definite for any ten numbers. It is taken apart into centre and inertia
    about it before products are formed, so that nothing cancels. `factor` is the upper
    V with the nominal second moments V Vᵀ about the centre.
    """
    scale = jnp.exp(2 * bounded(theta[0], SIZE / 2))
    # U0 = sqrt(m) [[V / sqrt(m), c], [0, 1]], so that t shifts the centre by V t
    new_com = com + factor @ theta[7:] / jnp.sqrt(mass)
    return mass * scale, new_com, scale * moved_inertia(theta[1:7], factor)


def least_moment(moments: np.ndarray, dtype: Any) -> float:
    """What a second moment must exceed to be more than the rounding of a type."""
    share = max(1e-12, 100 * float(jnp.finfo(dtype).eps))
    return share * float(np.abs(moments).max())


def upper_factor(moments: np.ndarray, dtype: Any) -> np.ndarray | None:
    """The upper V with V Vᵀ = moments, stored in `dtype`; None if not definite."""
    if np.linalg.eigvalsh(moments)[0] <= least_moment(moments, dtype):
        return None
    return np.linalg.cholesky(moments[::-1, ::-1])[::-1, ::-1]


def geodesic_step(theta: Float[Array, "10"]) -> Float[Array, "10"]:
    r"""The logarithm of a body seen from the nominal one, as ten numbers.

    Their squares add up to the squared distance of two pseudo-inertias,
    $d^2 = \frac12 \|\log(U_0^{-1} P U_0^{-T})\|^2$, [Lee], which does not depend on
    the frame or the units in which bodies are described.
    """
    W = body_factor(theta)
    L = log_definite(W @ W.T)
    i, j = np.triu_indices(4, 1)
    return jnp.concatenate([jnp.diagonal(L) / np.sqrt(2).astype(L.dtype), L[i, j]])


def log_definite(A: Float[Array, "k k"]) -> Float[Array, "k k"]:
    """The logarithm of a positive definite matrix.

    By inverse scaling and squaring: a root of A near the identity is found by Newton's
    method, its logarithm is 2 artanh(Z). Unlike eigenvectors, all of this is
    smooth where eigenvalues are equal, as at the nominal body.
    """
    one, size = jnp.eye(len(A), dtype=A.dtype), jnp.trace(A) / len(A)

    def refine(carried: Any, _: None) -> Any:
        X, M = carried  # X -> A^1/2, M -> 1, in product form
        inverse = jnp.linalg.inv(M)
        X = X @ (one + inverse) / 2
        return (X, (one + (M + inverse) / 2) / 2), None

    def root(A: Any, _: None) -> Any:
        (X, _), _ = jax.lax.scan(refine, (A, A), None, length=_NEWTON)
        return (X + X.T) / 2, None

    B, _ = jax.lax.scan(root, A / size, None, length=_ROOTS)
    Z = jnp.linalg.solve(B + one, B - one)
    square, total = Z @ Z, one / (2 * _SERIES - 1)
    for k in range(_SERIES - 2, -1, -1):
        total = square @ total + one / (2 * k + 1)
    L = 2.0 ** (_ROOTS + 1) * Z @ total
    return (L + L.T) / 2 + jnp.log(size) * one


def definite(
    model: Model, *, mass: float | None = None, radius: float | None = None
) -> Model:
    """The model with a small ball added to each body that has no definite inertia.

    Bodies without mass, points, rods and discs then have log-Cholesky coordinates.

    Args:
        mass, radius: of the ball, at the centre of the body; by default a thousandth of
            the mean mass of the bodies, and a tenth of the mean distance of joints.
    """
    leaves = (model.mass, model.com, model.inertia)
    bodies = [
        Inertial(float(m), c, I)
        for m, c, I in zip(*(np.asarray(x, float) for x in leaves), strict=True)
    ]
    weight = mass or 1e-3 * float(np.mean([x.mass for x in bodies]) or 1.0)
    lengths = np.linalg.norm(np.asarray(model.p, float), axis=1)
    moment = weight * (radius or 0.1 * (lengths.mean() or 1.0)) ** 2 / 5
    for i, body in enumerate(bodies):
        moments = second_moments(body.inertia)
        if body.mass > 0 and upper_factor(moments, model.dtype) is not None:
            continue
        # one that is lost in rounding needs a larger ball, and so does an inertia that
        # no body has, such as that of a hub
        more = max(moment, 2 * least_moment(moments, model.dtype))
        more += 2 * max(0.0, -np.linalg.eigvalsh(moments)[0])
        bodies[i] = body + Inertial(weight, body.com, 2 * more * np.eye(3))
    new = zip(*((x.mass, x.com, x.inertia) for x in bodies), strict=True)
    arrays = [jnp.asarray(np.array(x), model.dtype) for x in new]
    return eqx.tree_at(lambda m: (m.mass, m.com, m.inertia), model, arrays)
