"""Joints that no inertia resists: the zero pivots of M = U D Uᵀ, on the host.

Structure decides which pivots are zero whatever q is, so one random configuration shows
them; at a given q others may vanish too. All matrices are 6 x 6, linear part first, in
the axes of their step.
"""

from collections.abc import Mapping
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.model._arguments import check_leaves
from jaxdyn.model._check import check_finite, unit_vectors
from jaxdyn.model._following import whole
from jaxdyn.model._model import Model
from jaxdyn.model.elements import Couplings
from jaxdyn.model.tables import DIRECTIONS, Topology, directions

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
    at = None if q is None else check_finite(model.name, "q", q, (model.nq,), "model")
    if model.couplings:
        return _singular_coordinates(model, at)
    leaves = {key: np.asarray(getattr(model, key), float) for key in LEAVES}
    eps = float(jnp.finfo(model.dtype).eps)
    zero = _factor(model.topology, leaves, at, eps).zero
    bodies = np.unique(model.topology.steps.body[zero])
    return tuple(model.joint_names[i] for i in bodies)


def _singular_coordinates(model: Model, q: np.ndarray | None) -> tuple[str, ...]:
    """The joints with a coordinate that neither they nor followers make resist."""
    x, names = model.couplings, model.joint_names
    assert isinstance(x, Couplings)
    joints = None if q is None else whole(model, jnp.asarray(q))[1]
    free = set(singular_joints(model.tree, joints))
    resisted = {
        names[i]
        for joint, sources in zip(x.joints, x.sources, strict=True)
        for i in sources
        if names[joint] not in free
    }
    followers = {names[i] for i in x.joints}
    return tuple(name for name in names if name in free - resisted - followers)


def check_resistance(topology: Topology, leaves: Mapping[str, np.ndarray]) -> None:
    """Raise a `ValueError` that names the joints that no inertia resists.

    A model without any mass, inertia and armature is purely kinematic: it may pass.
    """
    if not any(leaves[key].any() for key in ("mass", "inertia", "armature")):
        return
    factor = _factor(topology, leaves, None, float(np.finfo(float).eps))
    if not factor.zero:
        return
    body, *others = dict.fromkeys(topology.steps.body[factor.zero])
    also = ", ".join(repr(topology.joint_names[i]) for i in others)
    raise ValueError(
        f"joint {topology.joint_names[body]!r} of body {topology.names[body]!r}: no "
        f"inertia resists its {_motion(topology, factor)}: give the body mass or "
        "inertia, give the joint an armature, or make it fixed; check_inertia=False "
        "accepts the model as it is."
        + (f" The same holds for joints: {also}." if also else "")
    )


class _Factor(NamedTuple):
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
    topology: Topology,
    leaves: Mapping[str, np.ndarray],
    q: np.ndarray | None,
    eps: float,
) -> _Factor:
    """The factor at `q`, by default a random one, of numbers with the rounding `eps`.

    S is what rounding in M_hat is measured by: the sizes of the blocks from which it
    was formed, handed on as a small change of M_hat is. Unlike the composite body's
    pivot it does not grow along a chain, and it sees the large numbers that cancel.
    """
    steps, moves = topology.steps, topology.steps.v < topology.nv
    armature = np.append(leaves["armature"], 0.0)[steps.v]
    X, p = _geometry(topology, leaves, _random_q(topology, leaves) if q is None else q)
    mass, com = leaves["mass"][:, None, None], _skew(leaves["com"])
    h, I = mass * com, leaves["inertia"] - mass * com @ com
    M_hat, S, psi, zero = np.zeros_like(X), np.zeros_like(X), np.zeros_like(p), []
    M_hat[steps.last] = np.block([[mass * np.eye(3), -h], [h, I]])
    for i in reversed(range(len(p))):
        size = M_hat[i].diagonal().reshape(2, 3).sum(axis=1)  # traces of its blocks
        M_bar, S_bar = M_hat[i], S[i] + np.diag(np.repeat(size, 3))
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
        if steps.parent[i] >= 0:
            M_hat[steps.parent[i]] += X[i].T @ M_bar @ X[i]
            S[steps.parent[i]] += X[i].T @ S_bar @ X[i]
    return _Factor(X, p, psi, zero)


def _random_q(topology: Topology, leaves: Mapping[str, np.ndarray]) -> np.ndarray:
    """A configuration like any other, with displacements that do not dwarf the model.

    Quaternions need not be of unit length.
    """
    steps = topology.steps
    q = np.random.default_rng(0).uniform(-np.pi, np.pi, topology.nq)
    slides = steps.q[(steps.turn == 0) & (steps.q < topology.nq)]
    moved = np.append(slides, topology.position_q)
    q[moved] *= max(np.abs(leaves[key]).max() for key in ("p", "com")) or 1.0
    return q


def _geometry(
    topology: Topology, leaves: Mapping[str, np.ndarray], q: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The maps X and columns p of all steps at a configuration."""
    steps, turned = topology.steps, topology.quaternion_steps
    table = directions(np, *(unit_vectors(leaves[key]) for key in ("axis", "axis2")))
    e = unit_vectors(table[steps.direction * len(topology.parents) + steps.body])
    slide = np.where(steps.pitched, leaves["pitch"][steps.body], steps.slide)
    coordinate = np.append(q, 0.0)[steps.q]
    b = (slide * coordinate)[:, None] * e
    b[topology.free_steps] = q[topology.position_q]
    # rotations 1 + s skew(u) + c skew(u)², about an axis or of a quaternion (u, s / 2)
    angle = (steps.turn * coordinate)[:, None, None]
    u, s, c = e.copy(), np.sin(angle), 1 - np.cos(angle)
    quaternion = unit_vectors(q[topology.quaternion_q])
    u[turned], s[turned, 0, 0], c[turned] = quaternion[:, :3], 2 * quaternion[:, 3], 2
    turn = np.eye(3) + s * _skew(u) + c * (_skew(u) @ _skew(u))

    first = steps.first[:, None]
    R = np.where(first[..., None], leaves["R"][steps.body], np.eye(3))
    a = np.where(first, leaves["p"][steps.body], 0) + np.einsum("nij,nj->ni", R, b)
    R_T = np.swapaxes(R @ turn, -1, -2)
    X = np.block([[R_T, -R_T @ _skew(a)], [np.zeros_like(R_T), R_T]])
    return X, np.concatenate([slide[:, None] * e, steps.turn[:, None] * e], axis=1)


def _motion(topology: Topology, factor: _Factor) -> str:
    """The first degree of freedom with a zero pivot, and what else moves all it moves.

    The others are those that move in the motion that nothing resists.
    """
    steps, step, moved = topology.steps, factor.zero[0], []
    mu = {step: factor.p[step]}
    for i in range(step + 1, len(factor.p)):
        if steps.parent[i] in mu:
            twist = factor.X[i] @ mu[steps.parent[i]]
            rate = -factor.psi[i] @ twist
            mu[i] = twist + factor.p[i] * rate
            if abs(rate) > 1e-6:  # far above rounding
                moved.append(steps.body[i])
    own = {steps.body[step]: "its other degrees of freedom"}
    names = [f"joint {topology.joint_names[i]!r}" for i in moved]
    others = dict.fromkeys(map(own.get, moved, names))
    also = ", which moves nothing but what is also moved by " if others else ""
    direction = DIRECTIONS[steps.direction[step]]
    kind = "slide along" if not steps.turn[step] else "turn about"
    kind = "screw along" if steps.pitched[step] else kind
    motion = f"{kind} {_NAMES.get(direction, direction)}, qd[{steps.v[step]}]"
    return motion + also + ", ".join(others)


def _skew(v: np.ndarray) -> np.ndarray:
    """The matrices with skew(v) x = v x x."""
    return np.cross(np.eye(3), v[:, None])
