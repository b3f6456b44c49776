"""Inertial parameters in three sets of coordinates: (m, c, I_c), pi and log-Cholesky.

All functions are traced, smooth and written for one body; `jax.vmap` serves many.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from jaxdyn.model._model import Model
from jaxdyn.spatial import RigidInertia, Sym3, Vec3, skew_square


def to_pi(
    mass: Float[Array, ""], com: Float[Array, "3"], inertia: Float[Array, "3 3"]
) -> Float[Array, "10"]:
    """The ten parameters in which the dynamics are linear.

    pi = (m, h_x, h_y, h_z, I_xx, I_xy, I_xz, I_yy, I_yz, I_zz), with h = m c and the
    inertia about the body origin.
    """
    shapes = {"mass": (mass, ()), "com": (com, (3,)), "inertia": (inertia, (3, 3))}
    mass, com, inertia = _checked(shapes)
    body = RigidInertia.about_center(mass, Vec3.of(com), Sym3.of(inertia))
    return jnp.stack(jax.tree.leaves(body))


def from_pi(
    pi: Float[Array, "10"],
) -> tuple[Float[Array, ""], Float[Array, "3"], Float[Array, "3 3"]]:
    """Mass, centre of mass, inertia about it; the centre is 0 without mass."""
    (pi,) = _checked({"pi": (pi, (10,))})
    m, h, I = pi[0], Vec3.of(pi[1:4]), Sym3(*pi[4:])
    inverse = jnp.where(m == 0, 0, 1 / jnp.where(m == 0, 1, m))
    com = h * inverse
    return m, com.array(), (I - skew_square(com, m)).array()


def pseudo_inertia(pi: Float[Array, "10"]) -> Float[Array, "4 4"]:
    """The pseudo-inertia [[S, h], [hᵀ, m]] with S = tr(I)/2 1 - I, [Wensing].

    A mass distribution with these parameters exists if and only if this matrix is
    positive semidefinite.
    """
    (pi,) = _checked({"pi": (pi, (10,))})
    m, h, I = pi[0], pi[1:4], Sym3(*pi[4:]).array()
    S = 0.5 * jnp.trace(I) * jnp.eye(3, dtype=pi.dtype) - I
    return jnp.block([[S, h[:, None]], [h[None, :], m[None, None]]])


def to_log_cholesky(pi: Float[Array, "10"]) -> Float[Array, "10"]:
    """The log-Cholesky coordinates of a body whose pseudo-inertia is positive definite.

    J = U Uᵀ, [Rucker], with

    U = e^alpha [[e^d1, s12, s13, t1],
                 [0, e^d2, s23, t2],
                 [0, 0, e^d3, t3],
                 [0, 0, 0, 1]]

    and coordinates (alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3).
    """
    # An upper factor of J is the lower factor of J with its order reversed, reversed.
    L = jnp.linalg.cholesky(pseudo_inertia(pi)[::-1, ::-1])
    U = L[::-1, ::-1]
    alpha = jnp.log(U[3, 3])
    V = U / U[3, 3]
    d = jnp.log(jnp.diagonal(V)[:3])
    s = jnp.stack([V[0, 1], V[1, 2], V[0, 2]])
    return jnp.concatenate([alpha[None], d, s, V[:3, 3]])


def from_log_cholesky(theta: Float[Array, "10"]) -> Float[Array, "10"]:
    """The parameters pi; physically possible for any ten numbers."""
    (theta,) = _checked({"theta": (theta, (10,))})
    alpha, d, s, t = theta[0], theta[1:4], theta[4:7], theta[7:]
    one = jnp.ones((), theta.dtype)
    U = jnp.diag(jnp.concatenate([jnp.exp(d), one[None]]))
    U = U.at[(0, 1, 0), (1, 2, 2)].set(s).at[:3, 3].set(t) * jnp.exp(alpha)
    J = U @ U.T
    S = J[:3, :3]
    I = jnp.trace(S) * jnp.eye(3, dtype=theta.dtype) - S
    return jnp.concatenate([J[3:, 3], J[:3, 3], I[jnp.triu_indices(3)]])


def inertial_parameters(model: Model) -> Float[Array, "n 10"]:
    """The parameters pi of every body, in body axes about the body origin."""
    return jax.vmap(to_pi)(model.mass, model.com, model.inertia)


def with_inertial_parameters(model: Model, pi: Float[Array, "n 10"]) -> Model:
    """The model with the parameters pi of every body replaced."""
    (pi,) = _checked({"pi": (pi, (model.n, 10))})
    leaves = jax.vmap(from_pi)(pi.astype(model.dtype))
    return eqx.tree_at(lambda m: (m.mass, m.com, m.inertia), model, leaves)


def _checked(given: dict[str, tuple[ArrayLike, tuple[int, ...]]]) -> tuple[Array, ...]:
    """The values as floating-point arrays, or a `ValueError` for a wrong shape."""
    values = []
    for name, (value, shape) in given.items():
        value = jnp.asarray(value)
        if value.shape != shape:
            raise ValueError(
                f"{name} has shape {value.shape}, expected {shape}: functions take one "
                "body (or one model); use jax.vmap for many."
            )
        values.append(value)
    floats = [x.dtype for x in values if jnp.issubdtype(x.dtype, jnp.floating)]
    dtype = np.result_type(*floats) if floats else jnp.result_type(float)
    return tuple(value.astype(dtype) for value in values)
