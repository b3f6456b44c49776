"""The regressor: joint forces as a linear function of the dynamic parameters."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.algorithms.couplings import along_rows, of_tree
from jaxdyn.algorithms.kinematics import body_motions
from jaxdyn.algorithms.recursions._joint_forces import (
    friction_direction,
    gyroscopic_forces,
    spring_forces,
)
from jaxdyn.algorithms.recursions._noc import layout, natural
from jaxdyn.algorithms.steps import Base, Motion
from jaxdyn.model import Model, Nq, Nv, arguments, inertial_parameters
from jaxdyn.program import compiled
from jaxdyn.spatial import RigidInertia, Vec3

_BODY = ("m", "h_x", "h_y", "h_z", "I_xx", "I_xy", "I_xz", "I_yy", "I_yz", "I_zz")
_JOINT = ("armature", "damping", "friction", "stiffness")


@compiled()
@of_tree(along_rows)
def regressor(
    model: Model, q: Nq, qd: Nv, qdd: Nv, *, base: Base = None
) -> Float[Array, "nv parameters"]:
    r"""The matrix Y with $\tau = Y(q, \dot q, \ddot q)\, \pi$.

    pi are the `dynamic_parameters` of the model: ten for each body, then armature,
    damping, friction and stiffness of each joint. The wrench of a body is linear in its
    ten parameters, and N maps wrenches to joint forces: Y = [Nᵀ W, joint columns]. The
    force elements of the model are left out.
    """
    given = dict(q=q, qd=qd, qdd=qdd, base=base)
    model, q, qd, qdd, base = arguments(model, **given)
    at = body_motions(model, q, qd, qdd, base)
    g = jax.tree.map(lambda g: g[None], Vec3.of(model.gravity))
    at = replace(at, rate=replace(at.rate, v=at.dv - g))
    where = layout(model, q)
    W, N = _wrench_columns(at, q.dtype), natural(model, where, where.origin)
    bodies = jnp.einsum("icv,ick->vik", N, W, precision="highest")
    joints = [_armature_columns(model, qd, qdd)]
    joints += [jnp.diag(qd), jnp.diag(friction_direction(model, qd))]
    joints.append(_spring_columns(model, q))
    return jnp.concatenate([bodies.reshape(model.nv, 10 * model.n), *joints], axis=1)


def dynamic_parameters(model: Model) -> Float[Array, " parameters"]:
    """The parameters pi in which the dynamics are linear, as `regressor` orders them.

    Ten for each body (m, h, I about its origin, in body axes), then armature, damping,
    friction and stiffness of each velocity coordinate.
    """
    joints = [getattr(model.tree, name) for name in _JOINT]
    return jnp.concatenate([inertial_parameters(model).ravel(), *joints])


def parameter_names(model: Model) -> tuple[str, ...]:
    """The names of `dynamic_parameters`, such as "link1.h_x" or "j_link1.damping"."""
    t = model.tree.topology
    names = [f"{body}.{key}" for body in model.names for key in _BODY]
    for key in _JOINT:
        for i, joint in enumerate(model.joint_names):
            width = t.v_start[i + 1] - t.v_start[i]
            ends = [""] if width == 1 else [f"[{k}]" for k in range(width)]
            names += [f"{joint}.{key}{end}" for end in ends[:width]]
    return tuple(names)


def _wrench_columns(at: Motion, dtype: jnp.dtype) -> Float[Array, "n 6 10"]:
    """The wrench of each body, about its origin in world axes, per unit parameter."""

    def wrench(at: Motion, pi: Float[Array, "10"]) -> Float[Array, "6"]:
        return RigidInertia.of(pi).rotate(at.R).wrench(at.w, at.rate).array()

    each = jax.vmap(jax.vmap(wrench, (None, 0), 1), (0, None))
    return each(at, jnp.eye(10, dtype=dtype))


def _armature_columns(model: Model, qd: Nv, qdd: Nv) -> Float[Array, "nv nv"]:
    if not model.topology.quaternion_bodies.size:
        return jnp.diag(qdd)

    def forces(armature: Nv) -> Nv:
        return armature * qdd + gyroscopic_forces(model, armature * qd, qd)

    return jax.jacfwd(forces)(model.armature)


def _spring_columns(model: Model, q: Nq) -> Float[Array, "nv nv"]:
    def forces(stiffness: Nv) -> Nv:
        stiff = eqx.tree_at(lambda m: m.stiffness, model, stiffness)
        return spring_forces(stiff, q)

    return jax.jacfwd(forces)(jnp.zeros_like(model.stiffness))
