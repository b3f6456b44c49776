"""What must be positive in a physical model: pseudo-inertias and effects of joints."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.identify.linear._columns import parameters_of
from jaxdyn.model import Model, with_inertial_parameters, with_rate_leaves

_EFFECTS = ("armature", "damping", "friction", "stiffness")
_FLAT = 1e-6  # a body with less extent than this, of its largest, is not physical
_THICK = 1e-3  # extent that such a body is given


def _units() -> np.ndarray:
    """The pseudo-inertia for a unit of each of the ten parameters, [10, 4, 4]."""
    J = np.zeros((10, 4, 4))
    J[0, 3, 3] = 1.0
    for k in range(3):
        J[1 + k, k, 3] = J[1 + k, 3, k] = 1.0
    for k, (i, j) in enumerate(zip(*np.triu_indices(3), strict=True)):
        J[4 + k, i, j] -= 1.0
        if i == j:
            J[4 + k, :3, :3] += 0.5 * np.eye(3)
        else:
            J[4 + k, j, i] -= 1.0
    return J


_UNITS = _units()


@dataclass(frozen=True, eq=False)
class Cones:
    """Symmetric matrices J = at_zero + sum_k x_k slopes_k that must be positive."""

    at_zero: np.ndarray  # [cones, d, d]
    slopes: np.ndarray  # by each of the free parameters x, [cones, free, d, d]
    nominal: np.ndarray  # J_0, positive definite, [cones, d, d]

    def factor(self, x: np.ndarray) -> np.ndarray | None:
        """L with J = L Lᵀ, None if a J is not positive definite."""
        J = self.at_zero + np.einsum("k,ckij->cij", x, self.slopes)
        try:
            return np.linalg.cholesky(J)
        except np.linalg.LinAlgError:
            return None

    def divergence(self, L: np.ndarray) -> float:
        """The sum of tr J_0⁻¹ J - log det J_0⁻¹ J - d, zero at J_0 alone."""
        M = np.linalg.solve(np.linalg.cholesky(self.nominal), L)
        diagonal = np.diagonal(M, axis1=1, axis2=2)
        return float(np.sum(M**2) - 2 * np.log(diagonal).sum() - diagonal.size)

    def rows(self, L: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Newton's method as least squares: G d = r has GᵀG = Hessian, Gᵀr = -slope."""
        inverse = np.linalg.inv(L)
        G = inverse[:, None] @ self.slopes @ inverse.mT[:, None]
        r = np.eye(L.shape[-1]) - L.mT @ np.linalg.solve(self.nominal, L)
        return np.moveaxis(G, 1, -1).reshape(-1, G.shape[1]), r.ravel()


def mass_cones(model: Model, columns: np.ndarray) -> tuple[Cones, np.ndarray]:
    """One for each body with free parameters, and nominal free parameters in them."""
    every = parameters_of(model)
    pi, x = every[: 10 * model.n].reshape(-1, 10), every[columns]
    bodies = np.unique(columns[columns < 10 * model.n] // 10)
    slopes = np.zeros((len(bodies), len(columns), 4, 4))
    at_zero, nominal = np.zeros((2, len(bodies), 4, 4))
    lengths = np.linalg.norm(np.concatenate([model.p, model.com]), axis=1)
    size = float(lengths.max()) or 1.0  # the longest offset or distance of a centre
    for c, i in enumerate(bodies):
        places = np.flatnonzero(columns // 10 == i)
        slopes[c, places] = _UNITS[columns[places] - 10 * i]
        J = np.tensordot(pi[i], _UNITS, 1)
        nominal[c] = _repaired(J, size, pi[:, 0].mean())
        if len(places) < 10:
            at_zero[c] = J - np.tensordot(x[places], slopes[c, places], 1)
        if (nominal[c] == J).all():
            continue
        if len(places) < 10:
            raise ValueError(
                f"body {model.names[i]!r} of model {model.name!r} is not physical (its "
                "pseudo-inertia is not positive definite), expected that, or all its "
                f'parameters free: "{model.names[i]}.inertial".'
            )
        x[places] = _parameters(nominal[c])
    return Cones(at_zero, slopes, nominal), x


def effect_cones(count: int, places: np.ndarray, nominal: np.ndarray) -> Cones:
    """Numbers that must be positive, at some places among all free parameters."""
    slopes = np.eye(count)[places][..., None, None]
    return Cones(np.zeros((len(places), 1, 1)), slopes, nominal[:, None, None])


def with_parameters(model: Model, columns: np.ndarray, x: np.ndarray) -> Model:
    """The model with the free parameters replaced."""
    pi = parameters_of(model)
    pi[columns] = x
    bodies, rest = pi[: 10 * model.n].reshape(-1, 10), pi[10 * model.n :]
    touched = np.unique(columns[columns < 10 * model.n] // 10)
    changed = _with_bodies(model, jnp.asarray(bodies, model.dtype))
    for name in ("mass", "com", "inertia"):  # untouched bodies keep every digit
        old, new = getattr(model, name), getattr(changed, name)
        leaf = jnp.asarray(old).at[touched].set(new[touched])
        model = eqx.tree_at(lambda m, name=name: getattr(m, name), model, leaf)
    effects = jnp.asarray(rest.reshape(len(_EFFECTS), -1), model.dtype)
    return with_rate_leaves(model, **dict(zip(_EFFECTS, effects, strict=True)))


@jax.jit
def _with_bodies(model: Model, pi: Any) -> Model:
    return with_inertial_parameters(model, pi)


def is_physical(model: Model, columns: np.ndarray) -> bool:
    """Whether bodies with free parameters are, with a margin for rounding."""
    touched = np.unique(columns[columns < 10 * model.n] // 10)
    leaves = (np.asarray(x, float) for x in (model.mass, model.com, model.inertia))
    m, c, I = (x[touched] for x in leaves)
    S = 0.5 * np.trace(I, axis1=1, axis2=2)[:, None, None] * np.eye(3) - I
    J = np.zeros((len(touched), 4, 4))
    J[:, :3, :3] = S + m[:, None, None] * c[:, :, None] * c[:, None, :]
    J[:, 3, :3] = J[:, :3, 3] = m[:, None] * c
    J[:, 3, 3] = m
    d = np.sqrt(np.maximum(np.diagonal(J, axis1=1, axis2=2), np.finfo(float).tiny))
    scaled = np.linalg.eigvalsh(J / d[:, :, None] / d[:, None, :])[:, 0]
    values = np.linalg.eigvalsh(J)
    clear = values[:, 0] > 100 * np.finfo(float).eps * values[:, -1]
    return bool((clear & (scaled > 100 * float(jnp.finfo(model.dtype).eps))).all())


def _parameters(J: np.ndarray) -> np.ndarray:
    """The ten parameters of a pseudo-inertia."""
    S = J[:3, :3]
    I = np.trace(S) * np.eye(3) - S
    return np.concatenate([J[3:, 3], J[:3, 3], I[np.triu_indices(3)]])


def _repaired(J: np.ndarray, size: float, mean_mass: float) -> np.ndarray:
    """J itself if it is positive definite, otherwise one near to it that is."""
    spread = np.trace(J[:3, :3])
    mass = max(J[3, 3], spread / size**2, _THICK * (mean_mass or 1.0))
    length = np.sqrt(max(spread / mass, (_THICK * size) ** 2))
    T = np.array([length, length, length, 1.0]) * np.sqrt(mass)
    values, vectors = np.linalg.eigh(J / np.outer(T, T))
    if values[0] > _FLAT * values[-1]:
        return J
    thick = (vectors * np.maximum(values, _THICK)) @ vectors.T
    return thick * np.outer(T, T)
