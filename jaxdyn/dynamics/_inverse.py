"""Forces and inertia of the tree of bodies; loops are cut."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.algorithms.couplings import along_both, along_rows, of_tree
from jaxdyn.algorithms.derivatives import inverse_slopes
from jaxdyn.algorithms.forces import element_wrenches
from jaxdyn.algorithms.kinematics import integrate
from jaxdyn.algorithms.recursions import (
    coriolis,
    joint_torques,
    newton_euler,
    passive_forces,
    transmitted_wrenches,
)
from jaxdyn.algorithms.steps import Base
from jaxdyn.dynamics._methods import INERTIA, INVERSE, choose
from jaxdyn.model import FExt, Model, Nq, Nv, arguments, coupled_rates, reduced, whole
from jaxdyn.program import compiled


@compiled("method")
@of_tree(along_rows)
def inverse_dynamics(
    model: Model,
    q: Nq,
    qd: Nv,
    qdd: Nv,
    *,
    f_ext: FExt = None,
    base: Base = None,
    method: str = "newton_euler",
) -> Nv:
    r"""Joint forces that produce the accelerations `qdd`.

    $$\tau = M(q)\,\ddot q + h(q, \dot q) - \sum_i J_i^T f_i$$

    Gravity, armature, springs and friction of the joints take part. O(n). The loops of
    the model are cut.

    Args:
        f_ext: force and moment on each body, in world axes, moment about its origin.
        base: motion of the base; by default it rests.
        method: "newton_euler", "gibbs_appell" (Euler's tensor), "denoc" (modules), or
            "parallel" (O(n log n) operations in O(log n) dependent steps).
    """
    given = dict(q=q, qd=qd, qdd=qdd, f_ext=f_ext, base=base)
    model, q, qd, qdd, f_ext, base = arguments(model, **given)
    recursion = choose("inverse_dynamics", method, INVERSE)
    return joint_torques(recursion, model, q, qd, qdd, f_ext, base)


@compiled("method")
def bias_forces(
    model: Model,
    q: Nq,
    qd: Nv,
    *,
    f_ext: FExt = None,
    base: Base = None,
    method: str = "newton_euler",
) -> Nv:
    """Joint forces at which the accelerations are zero: inverse dynamics at qdd = 0."""
    given = dict(q=q, qd=qd, f_ext=f_ext, base=base)
    model, q, qd, f_ext, base = arguments(model, **given)
    recursion = choose("bias_forces", method, INVERSE)
    tree, at, rates, following = whole(model, q, qd)
    if following is None:
        return recursion(model, q, qd, None, f_ext, base) + passive_forces(model, q, qd)
    tau = joint_torques(recursion, tree, at, rates, following, f_ext, base)
    return reduced(model, q, tau)


@compiled()
@of_tree(along_rows)
def gravity_forces(model: Model, q: Nq) -> Nv:
    """Joint forces that hold the bodies against gravity, springs not included."""
    model, q = arguments(model, q=q)
    return newton_euler(model, q, jnp.zeros(model.nv, q.dtype), None)


@compiled()
def coriolis_matrix(model: Model, q: Nq, qd: Nv) -> Float[Array, "nv nv"]:
    """The matrix C(q, qd) of Coriolis and centrifugal forces C qd; O(n²).

    Of the many such matrices one for which Mdot - 2 C is skew; where q are coordinates,
    that of the Christoffel symbols.
    """
    model, q, qd = arguments(model, q=q, qd=qd)
    if not model.couplings:
        return coriolis(model, q, qd)
    tree, joints, rates, _ = whole(model, q, qd)
    at, one = coupled_rates(model, q), jnp.eye(model.nv, dtype=q.dtype)
    turning = jnp.matmul(
        mass_matrix(tree, joints), at.turning(qd, one), precision="highest"
    )
    return along_both(at, coriolis(tree, joints, rates)) + at.forces(turning)


@compiled()
@of_tree()
def joint_reactions(
    model: Model, q: Nq, qd: Nv, qdd: Nv, *, f_ext: FExt = None, base: Base = None
) -> Float[Array, "n 6"]:
    """All six components of the wrench that each body receives through its joint.

    Force and moment about the body origin, in world axes, from the parent on the body.
    Along the directions in which the joint moves they are what drives the body: the
    joint force less armature, springs and friction. The others bear the load.
    """
    given = dict(q=q, qd=qd, qdd=qdd, f_ext=f_ext, base=base)
    model, q, qd, qdd, f_ext, base = arguments(model, **given)
    if model.forces:
        loads = element_wrenches(model, q, qd)
        f_ext = loads if f_ext is None else f_ext + loads
    return transmitted_wrenches(model, q, qd, qdd, f_ext, base)


@compiled("method")
@of_tree(along_both)
def mass_matrix(
    model: Model, q: Nq, *, method: str = "composite"
) -> Float[Array, "nv nv"]:
    r"""The inertia matrix M(q), armature included. The loops of the model are cut.

    Args:
        method: "composite" (composite bodies), "gibbs_appell" (the Hessian of Gibbs'
            function), "noc" (Tᵀ M T), "denoc" (composite masses and N_l N_d) or
            "parallel" (composite bodies in O(log n) dependent steps).
    """
    model, q = arguments(model, q=q)
    M = choose("mass_matrix", method, INERTIA)(model, q)
    return M + jnp.diag(model.armature)


@compiled()
def inverse_dynamics_derivatives(
    model: Model, q: Nq, qd: Nv, qdd: Nv, *, f_ext: FExt = None, base: Base = None
) -> tuple[Float[Array, "nv nv"], Float[Array, "nv nv"], Float[Array, "nv nv"]]:
    """The derivatives of `inverse_dynamics` by q, qd and qdd; the last is M(q).

    Those by q are along tangent steps, as in `integrate`. In closed form, O(n²). The
    external wrenches keep their components in world axes. The loops of the model are
    cut.
    """
    given = dict(q=q, qd=qd, qdd=qdd, f_ext=f_ext, base=base)
    inputs = arguments(model, **given)
    if not model.couplings:
        return inverse_slopes(*inputs)
    model, q, qd, qdd, f_ext, base = inputs

    def forces(d: Nv, rate: Nv, acceleration: Nv) -> Nv:
        at = integrate(model, q, d), qd + rate, qdd + acceleration
        return inverse_dynamics(model, *at, f_ext=f_ext, base=base)

    return jax.jacfwd(forces, (0, 1, 2))(*[jnp.zeros_like(qd)] * 3)
