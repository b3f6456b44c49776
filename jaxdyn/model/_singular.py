"""Joints that no inertia resists: the zero pivots of M = U D Uᵀ, on the host.

Structure decides which pivots are zero whatever q is, so one random configuration shows
them; at a given q others may vanish too. All matrices are 6 x 6, linear part first, in
the axes of their step.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.model._arguments import check_leaves
from jaxdyn.model._check import unit_vectors
from jaxdyn.model._model import Model
from jaxdyn.model.tables import DIRECTIONS, Topology

LEAVES = ("R", "p", "axis", "axis2", "pitch", "mass", "com", "inertia", "armature")

# Pivots that ought to be zero come out below 20 roundings of what cancels in them;
# those of the robots of the papers are above 1e11.
_ROUNDINGS = 100
_NAMES = {"plane": "axis2", "axis3": "axis x axis2"}


def singular_joints(
    model: Model, q: Float[Array, " nq"] | None = None
) -> tuple[str, ...]:
    """The names of the joints that can move without resistance.

    At the configuration `q`, or whatever the configuration is.

    With such a joint the inertia matrix has no inverse: forward dynamics are not
    finite. It moves no mass or inertia, or only what other joints can hold still, and
    it has no armature. `ModelBuilder.build` raises an error for it, except in a purely
    kinematic model. Fixed joints do not count. O(n), on the host: the model must have
    values, which is not so inside `jax.jit`.
    """
    check_leaves(model)
    leaves = {key: np.asarray(getattr(model, key), float) for key in LEAVES}
    at = _random_q(model.topology, leaves) if q is None else _checked(model, q)
    factor = _factor(model.topology, leaves, at, float(jnp.finfo(model.dtype).eps))
    bodies = np.unique(model.topology.steps.body[factor.zero])
    return tuple(model.joint_names[i] for i in bodies)


def check_resistance(topology: Topology, leaves: Mapping[str, np.ndarray]) -> None:
    """Raise a `ValueError` that names the joints that no inertia resists.

    A model without any mass, inertia and armature is purely kinematic: it may pass.
    """
    if not any(leaves[key].any() for key in ("mass", "inertia", "armature")):
        return
    at = _random_q(topology, leaves)
    factor = _factor(topology, leaves, at, float(np.finfo(float).eps))
    if not factor.zero:
        return
    step = factor.zero[0]
    body = topology.steps.body[step]
    others = {topology.steps.body[i]: None for i in factor.zero}
    others.pop(body)
    also = ", ".join(repr(topology.joint_names[i]) for i in others)
    raise ValueError(
        f"joint {topology.joint_names[body]!r} of body {topology.names[body]!r}: no "
        f"inertia resists its {_motion(topology, step)}{_why(topology, factor, step)}: "
        "give the body mass or inertia, give the joint an armature, or make it fixed; "
        "check_inertia=False accepts the model as it is."
        + (f" The same holds for joints: {also}." if also else "")
    )


@dataclass(frozen=True, eq=False)
class _Factor:
    """The elimination of all steps, tips to base, at one configuration.

    Attributes:
        X: for each step the map from its parent's twist to its own, at rest.
        p: for each step its twist per unit rate.
        psi: for each step the vector psi of the factor; zero without a pivot.
        zero: the steps whose pivot is zero, tips first.
    """

    X: np.ndarray
    p: np.ndarray
    psi: np.ndarray
    zero: list[int]


def _factor(
    topology: Topology, leaves: Mapping[str, np.ndarray], q: np.ndarray, eps: float
) -> _Factor:
    """The factor of a model whose numbers have the relative rounding `eps`.

    S is what rounding in M_hat is measured by: the sizes of the blocks from which it
    was formed, handed on as a small change of M_hat is. Unlike the composite body's
    pivot it does not grow along a chain, and it sees the large numbers that cancel.
    """
    parent, moves = topology.steps.parent, topology.steps.v < topology.nv
    armature = np.append(leaves["armature"], 0.0)[topology.steps.v]
    X, p = _geometry(topology, leaves, q)
    M_hat, psi, zero = _inertias(topology, leaves), np.zeros_like(p), []
    S = np.zeros_like(M_hat)
    for i in reversed(range(len(parent))):
        M_bar, S_bar = M_hat[i], S[i] + _size(M_hat[i])
        if moves[i]:
            psi_hat = M_bar @ p[i]
            m_hat = p[i] @ psi_hat + armature[i]
            if m_hat <= _ROUNDINGS * eps * (p[i] @ S_bar @ p[i] + armature[i]):
                zero.append(i)
            else:
                psi[i] = psi_hat / m_hat
                P = np.eye(6) - np.outer(p[i], psi[i])
                M_bar = M_bar - np.outer(psi_hat, psi[i])
                S_bar = P.T @ S_bar @ P
        if parent[i] >= 0:
            M_hat[parent[i]] += X[i].T @ M_bar @ X[i]
            S[parent[i]] += X[i].T @ S_bar @ X[i]
    return _Factor(X, p, psi, zero)


def _partners(topology: Topology, factor: _Factor, step: int) -> list[int]:
    """The steps that move when `step` does, in the motion that nothing resists."""
    mu, found = {step: factor.p[step]}, []
    for i in range(step + 1, len(factor.p)):
        parent = int(topology.steps.parent[i])
        if parent in mu:
            twist = factor.X[i] @ mu[parent]
            rate = -factor.psi[i] @ twist
            mu[i] = twist + factor.p[i] * rate
            if abs(rate) > 1e-6:  # far above rounding
                found.append(i)
    return found


def _random_q(topology: Topology, leaves: Mapping[str, np.ndarray]) -> np.ndarray:
    """A configuration like any other, with displacements that do not dwarf the model.

    Quaternions need not be of unit length.
    """
    rng, steps = np.random.default_rng(0), topology.steps
    q = rng.normal(size=topology.nq)
    moved = steps.q < topology.nq
    size = np.where(steps.turn, 1.0, _length(leaves))
    q[steps.q[moved]] = (rng.uniform(-np.pi, np.pi, len(size)) * size)[moved]
    q[topology.position_q] *= _length(leaves)
    return q


def _checked(model: Model, q: Float[Array, " nq"]) -> np.ndarray:
    values = np.asarray(q, float)
    if values.shape != (model.nq,) or not np.isfinite(values).all():
        raise ValueError(
            f"q is {values.tolist()}, expected {model.nq} finite numbers for model "
            f"{model.name!r}."
        )
    return values


def _geometry(
    topology: Topology, leaves: Mapping[str, np.ndarray], q: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The maps X and columns p of all steps at a configuration."""
    steps = topology.steps
    e = _directions(leaves)[steps.direction, steps.body]
    slide = np.where(steps.pitched, leaves["pitch"][steps.body], steps.slide)
    coordinate = np.append(q, 0.0)[steps.q]
    turned, free = topology.quaternion_steps, topology.free_steps
    axis, angle = e.copy(), steps.turn * coordinate
    quaternions = unit_vectors(q[topology.quaternion_q])
    v, w = quaternions[:, :3], quaternions[:, 3]
    axis[turned] = unit_vectors(v)
    angle[turned] = 2 * np.arctan2(np.linalg.norm(v, axis=1), w)
    a = (slide * coordinate)[:, None] * e
    a[free] = q[topology.position_q]

    first = steps.first[:, None]
    R = np.where(first[..., None], leaves["R"][steps.body], np.eye(3))
    a = np.where(first, leaves["p"][steps.body], 0.0) + np.einsum("nij,nj->ni", R, a)
    R_T = np.swapaxes(R @ _rotation(axis, angle), -1, -2)
    X = _blocks(R_T, -R_T @ _skew(a), np.zeros_like(R_T), R_T)
    return X, np.concatenate([slide[:, None] * e, steps.turn[:, None] * e], axis=1)


def _length(leaves: Mapping[str, np.ndarray]) -> float:
    """The size of the model, for displacements that do not dwarf it."""
    return float(max(np.abs(leaves[key]).max() for key in ("p", "com"))) or 1.0


def _directions(leaves: Mapping[str, np.ndarray]) -> np.ndarray:
    """The unit vectors of `DIRECTIONS` for each body; zero where it has none."""
    axis, axis2 = unit_vectors(leaves["axis"]), unit_vectors(leaves["axis2"])
    axis3 = unit_vectors(np.cross(axis, axis2))
    table = {"axis": axis, "axis2": axis2, "axis3": axis3}
    table["plane"] = np.cross(axis3, axis)
    for name, row in zip("xyz", np.eye(3), strict=True):
        table[name] = np.broadcast_to(row, axis.shape)
    return np.stack([table[name] for name in DIRECTIONS])


def _inertias(topology: Topology, leaves: Mapping[str, np.ndarray]) -> np.ndarray:
    """The inertia of what each step carries itself, about its origin."""
    mass, com = leaves["mass"][:, None, None], _skew(leaves["com"])
    h, one = mass * com, np.eye(3)
    M = np.zeros((len(topology.steps.body), 6, 6))
    M[topology.steps.last] = _blocks(mass * one, -h, h, leaves["inertia"] - h @ com)
    return M


def _size(M: np.ndarray) -> np.ndarray:
    """The traces of the diagonal blocks of M as multiples of the identity."""
    return np.diag(np.repeat(M.diagonal().reshape(2, 3).sum(axis=1), 3))


def _motion(topology: Topology, step: int) -> str:
    """A degree of freedom in words."""
    steps = topology.steps
    direction = DIRECTIONS[steps.direction[step]]
    kind = "slide along" if not steps.turn[step] else "turn about"
    kind = "screw along" if steps.pitched[step] else kind
    return f"{kind} {_NAMES.get(direction, direction)}, qd[{steps.v[step]}]"


def _why(topology: Topology, factor: _Factor, step: int) -> str:
    """What else moves all that a step with a zero pivot moves, if there is such."""
    body = topology.steps.body[step]
    partners = {topology.steps.body[i]: None for i in _partners(topology, factor, step)}
    texts = [
        f"joint {topology.joint_names[i]!r}"
        if i != body
        else "its other degrees of freedom"
        for i in partners
    ]
    also = f", which moves nothing but what is also moved by {', '.join(texts)}"
    return also if texts else ""


def _blocks(A: np.ndarray, B: np.ndarray, C: np.ndarray, D: np.ndarray) -> np.ndarray:
    return np.block([[A, B], [C, D]])


def _skew(v: np.ndarray) -> np.ndarray:
    """The matrices with skew(v) x = v x x."""
    return np.cross(v[:, None, :], np.eye(3), axisb=-1).swapaxes(-1, -2)


def _rotation(axis: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """The rotations by angles about unit vectors."""
    K, angle = _skew(axis), angle[:, None, None]
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * (K @ K)
