"""Forces that act in the joints by themselves: springs, friction, spinning rotors."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.algorithms.forces import element_forces
from jaxdyn.algorithms.kinematics import difference, integrate
from jaxdyn.algorithms.steps import Base
from jaxdyn.model import FExt, Model, Nq, Nv
from jaxdyn.program import compiled, put, take
from jaxdyn.spatial import Vec3, cross


def passive_forces(model: Model, q: Nq, qd: Nv) -> Nv:
    """What tau must overcome in the joints at qdd = 0.

    Springs, viscous and Coulomb friction, gyroscopic forces of the armature, and the
    force elements of the model.
    """
    forces = spring_forces(model, q) + dissipative_forces(model, qd)
    if model.forces:
        forces = forces - element_forces(model, q, qd)
    if not model.topology.quaternion_bodies.size:
        return forces
    return forces + gyroscopic_forces(model, model.armature * qd, qd)


@compiled("recursion")
def joint_torques(
    recursion: Callable, model: Model, q: Nq, qd: Nv, qdd: Nv, f_ext: FExt, base: Base
) -> Nv:
    """Inverse dynamics: a recursion for the bodies, and the joints' own forces."""
    tau = recursion(model, q, qd, qdd, f_ext, base)
    return tau + model.armature * qdd + passive_forces(model, q, qd)


def gyroscopic_forces(model: Model, momentum: Nv, qd: Nv) -> Nv:
    r"""The velocity forces of momenta along rates that turn with the body.

    With momenta p and L along the linear and angular velocities v and omega of a joint
    with a quaternion these are

    $$\omega \times p, \qquad \omega \times L + v \times p,$$

    the Boltzmann-Hamel terms of the kinetic energy whose gradient by qd is `momentum`;
    zero for all other joints. They do no work.
    """
    t = model.topology
    L, w = (Vec3.of(take(x, t.quaternion_v)) for x in (momentum, qd))
    forces = put(cross(w, L).array(), t.quaternion_v, model.nv)
    if not t.free_bodies.size:
        return forces
    p, v = (Vec3.of(take(x, t.position_v)) for x in (momentum, qd))
    w = Vec3.of(take(qd, t.position_v + 3))
    forces = forces + put(cross(w, p).array(), t.position_v, model.nv)
    return forces + put(cross(v, p).array(), t.position_v + 3, model.nv)


def armature_forces(model: Model, armature: Nv, qd: Nv, qdd: Nv) -> Nv:
    """What tau must overcome of an armature: its inertia and gyroscopic forces."""
    forces = armature * qdd
    if not model.topology.quaternion_bodies.size:
        return forces
    return forces + gyroscopic_forces(model, armature * qd, qd)


def elastic_energy(model: Model, q: Nq) -> Float[Array, ""]:
    """The energy of the springs, 1/2 k d², d the shortest step from their rest."""
    d = difference(model, model.rest, q)
    return 0.5 * (model.stiffness * d**2).sum()


def spring_forces(model: Model, q: Nq) -> Nv:
    """The gradient of the elastic energy along tangent steps."""
    if not model.topology.quaternion_bodies.size:
        return model.stiffness * difference(model, model.rest, q)

    def energy(d: Nv) -> Float[Array, ""]:
        return elastic_energy(model, integrate(model, q, d))

    return jax.grad(energy)(jnp.zeros(model.nv, q.dtype))


def dissipative_forces(model: Model, qd: Nv) -> Nv:
    """Viscous and Coulomb friction, which always takes energy."""
    return model.damping * qd + model.friction * friction_direction(model, qd)


def friction_direction(model: Model, qd: Nv) -> Nv:
    """The smooth sign qd / sqrt(qd² + s²) of Coulomb friction, s = friction_speed."""
    return qd / jnp.sqrt(qd**2 + model.friction_speed**2)


def joint_resistance(model: Model, qd: Nv) -> tuple[Nv, Nv]:
    """Damping and stiffness of each joint; of Coulomb friction the secant force / qd.

    The stiffness of springs at joints with quaternions is that of small deflections.
    """
    secant = model.friction / jnp.sqrt(qd**2 + model.friction_speed**2)
    return model.damping + secant, model.stiffness
