"""Energies, momenta and the principles of mechanics as scalar functions."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.algorithms.couplings import along_columns, of_tree
from jaxdyn.algorithms.forces import element_energy, element_losses
from jaxdyn.algorithms.kinematics import body_motions, forward_kinematics
from jaxdyn.algorithms.recursions._gibbs_appell import gibbs_terms
from jaxdyn.algorithms.recursions._joint_forces import (
    dissipative_forces,
    elastic_energy,
)
from jaxdyn.algorithms.recursions._noc import center_inertias, layout, natural
from jaxdyn.algorithms.steps import Base, product
from jaxdyn.model import FExt, Model, Nq, Nv, arguments
from jaxdyn.program import compiled
from jaxdyn.spatial import Sym3, Vec3, cross, dot, similarity


class Momentum(eqx.Module):
    """Momentum of all bodies: `linear`, and `angular` about the centre of mass."""

    linear: Float[Array, "3"]
    angular: Float[Array, "3"]


class Power(eqx.Module):
    """Where the energy of the robot comes from and goes to.

    The rate of kinetic and potential energy is actuators + external - dissipated.

    Attributes:
        actuators: power of the joint forces tau.
        external: power of the external wrenches.
        dissipated: power lost in viscous and Coulomb friction and in force
            elements.
    """

    actuators: Float[Array, ""]
    external: Float[Array, ""]
    dissipated: Float[Array, ""]


@compiled()
@of_tree()
def kinetic_energy(
    model: Model, q: Nq, qd: Nv, *, base: Base = None
) -> Float[Array, ""]:
    r"""The kinetic energy of the bodies and rotors.

    $$T = \tfrac12 \sum_i (m_i v_i^2 + \omega_i^T I_i \omega_i) + \tfrac12
      \dot q^T \mathrm{diag}(\text{armature})\, \dot q$$

    O(n): [Mohan] eq. 10 for rigid bodies, with v_i at the centres of mass.
    """
    model, q, qd, base = arguments(model, q=q, qd=qd, base=base)
    at = body_motions(model, q, qd, base=base)
    v = at.twist.shift(at.R @ Vec3.of(model.com)).v
    I = similarity(at.R, Sym3.of(model.inertia))
    bodies = model.mass * dot(v, v) + dot(at.w, I @ at.w)
    return 0.5 * (bodies.sum() + (model.armature * qd**2).sum())


@compiled()
@of_tree()
def potential_energy(model: Model, q: Nq) -> Float[Array, ""]:
    r"""The energy of gravity, of the springs in the joints and of force elements.

    $$V = -\sum_i m_i\, g \cdot c_i + \tfrac12 \sum_k \text{stiffness}_k\, d_k^2$$

    Zero with all centres of mass in the world origin and all joints at rest.
    """
    model, q = arguments(model, q=q)
    at = forward_kinematics(model, q)
    centers = at.p + product(at.R, model.com[..., None])[..., 0]
    lifted = (model.mass[:, None] * centers * model.gravity[None]).sum()
    energy = elastic_energy(model, q) - lifted
    return energy + element_energy(model, q) if model.forces else energy


@compiled()
def lagrangian(model: Model, q: Nq, qd: Nv) -> Float[Array, ""]:
    """Kinetic less potential energy: its Euler-Lagrange expression is tau."""
    return kinetic_energy(model, q, qd) - potential_energy(model, q)


@compiled()
@of_tree()
def gibbs_function(
    model: Model, q: Nq, qd: Nv, qdd: Nv, *, base: Base = None
) -> Float[Array, ""]:
    r"""Gibbs' function, the "energy of acceleration" of the bodies.

    $$G = \sum_i \tfrac12 m_i \ddot r_i^2 + \tfrac12 \dot\omega_i^T I_i \dot\omega_i +
      \dot\omega_i \cdot (\omega_i \times I_i \omega_i)$$

    [Mata] eqs. 1 to 4, without terms that do not depend on qdd. Its gradient in qdd are
    the joint forces less those of gravity, its Hessian is the inertia matrix (both
    without joint effects such as armature).
    """
    given = dict(q=q, qd=qd, qdd=qdd, base=base)
    model, q, qd, qdd, base = arguments(model, **given)
    at = body_motions(model, q, qd, qdd, base)
    r = at.R @ Vec3.of(model.com)
    ddr = at.rate.shift(r).v + cross(at.w, cross(at.w, r))
    I = similarity(at.R, Sym3.of(model.inertia))
    return gibbs_terms(model.mass, I, ddr, at.w, at.dw).sum()


@compiled()
@of_tree()
def power(model: Model, q: Nq, qd: Nv, tau: Nv, *, f_ext: FExt = None) -> Power:
    """The power that flows into and out of the robot, base at rest."""
    model, q, qd, tau, f_ext = arguments(model, q=q, qd=qd, tau=tau, f_ext=f_ext)
    external = jnp.zeros((), q.dtype)
    if f_ext is not None:
        external = (f_ext * body_motions(model, q, qd).twist.array()).sum()
    lost = (dissipative_forces(model, qd) * qd).sum()
    if model.forces:
        lost = lost + element_losses(model, q, qd)
    return Power((tau * qd).sum(), external, lost)


@compiled()
@of_tree()
def momentum(model: Model, q: Nq, qd: Nv, *, base: Base = None) -> Momentum:
    """Linear momentum, and angular momentum about the centre of mass, world axes."""
    model, q, qd, base = arguments(model, q=q, qd=qd, base=base)
    at = body_motions(model, q, qd, base=base)
    c = at.R @ Vec3.of(model.com)
    linear = at.twist.shift(c).v * model.mass
    I = similarity(at.R, Sym3.of(model.inertia))
    spin = I @ at.w + cross(_from_center(model, at.p + c), linear)
    return Momentum(linear.array().sum(axis=0), spin.array().sum(axis=0))


@compiled()
@of_tree(along_columns)
def centroidal_momentum_matrix(model: Model, q: Nq) -> Float[Array, "6 nv"]:
    """The matrix that maps qd to [linear; angular] momentum, as in `momentum`."""
    model, q = arguments(model, q=q)
    at = layout(model, q)
    T = natural(model, at, at.center)
    linear = model.mass[:, None, None] * T[:, :3]
    arms = jax.tree.map(lambda x: x[:, None], _from_center(model, at.center))
    orbital = cross(arms, Vec3.of(linear.swapaxes(1, 2))).array().swapaxes(1, 2)
    spin = jnp.matmul(center_inertias(model, at), T[:, 3:], precision="highest")
    return jnp.concatenate([linear.sum(axis=0), (spin + orbital).sum(axis=0)])


def _from_center(model: Model, places: Vec3) -> Vec3:
    """Vectors from the common centre of mass to places of the bodies."""
    total = model.mass.sum()
    share = model.mass / jnp.where(total == 0, 1, total)
    center = jax.tree.map(lambda x: (share * x).sum(keepdims=True), places)
    return places - center
