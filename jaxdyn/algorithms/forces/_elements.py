"""What all force elements of a model do together, in the joints and on the bodies."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from jaxdyn.algorithms.kinematics import body_motions, configuration_rate
from jaxdyn.algorithms.steps import WorldStep, at_last_steps, motions, screw
from jaxdyn.model import AbstractForce, BodyState, Loads, Model, Nq, Nv
from jaxdyn.program import collect, from_parents, inward, put, spread
from jaxdyn.spatial import Vec3, Wrench


def element_forces(model: Model, q: Nq, qd: Nv) -> Nv:
    r"""The joint forces $\sum_i J_i^T f_i + \tau$ of the force elements; O(n).

    One walk outward for the state of the bodies, one inward for the sums of wrenches.
    """
    wrenches, tau = _sums(model, q, qd)
    return _projected(model, q, qd, wrenches) + tau


def element_wrenches(model: Model, q: Nq, qd: Nv) -> Float[Array, "n 6"]:
    """The wrenches of the force elements on all bodies, as `f_ext`."""
    return _sums(model, q, qd)[0]


class JointSlopes(eqx.Module):
    """How force elements resist: joint by joint, and those that join several."""

    damping: Nv
    stiffness: Nv
    others: tuple[AbstractForce, ...]


def joint_slopes(model: Model, q: Nq, qd: Nv) -> JointSlopes:
    """What the elements that act joint by joint add to damping and stiffness."""
    at, others = _state(model, q, qd), []
    damping = stiffness = jnp.zeros_like(qd)
    for element in model.forces:
        slopes = element.joint_slopes(model, at)
        if slopes is None:
            others.append(element)
        else:
            damping, stiffness = damping + slopes[0], stiffness + slopes[1]
    return JointSlopes(damping, stiffness, tuple(others))


def element_energy(model: Model, q: Nq) -> Float[Array, ""]:
    """The energy that the force elements store."""
    at = _state(model, q, jnp.zeros(model.nv, q.dtype))
    total = jnp.zeros((), q.dtype)
    for k, element in enumerate(model.forces):
        energy = element.energy(model, at)
        _check(k, element, "an energy", energy, ())
        total = total + energy
    return total


def element_losses(model: Model, q: Nq, qd: Nv) -> Float[Array, ""]:
    """The power that the elements take and do not store."""
    along = configuration_rate(model, q, qd)
    stored = jax.jvp(lambda q: element_energy(model, q), (q,), (along,))[1]
    return -(element_forces(model, q, qd) * qd).sum() - stored


def _state(model: Model, q: Array, qd: Array) -> BodyState:
    at = body_motions(model, q, qd)
    return BodyState(q, qd, *(x.array() for x in (at.R, at.p, at.v, at.w)))


def _sums(model: Model, q: Array, qd: Array) -> tuple[Array, Array]:
    """Wrenches on the bodies, and joint forces given as such, of all elements."""
    at = _state(model, q, qd)
    wrenches, tau = jnp.zeros((model.n, 6), q.dtype), jnp.zeros(model.nv, q.dtype)
    for k, element in enumerate(model.forces):
        loads: Loads = element.loads(model, at)
        if loads.wrenches is not None:
            _check(k, element, "wrenches", loads.wrenches, (len(loads.bodies), 6))
            # the share of the world is put beyond the end, and dropped
            places = np.array(loads.bodies, int) % (model.n + 1)
            wrenches = wrenches + put(loads.wrenches, places, model.n)
        if loads.tau is not None:
            _check(k, element, "tau", loads.tau, (model.nv,))
            tau = tau + loads.tau
    return wrenches, tau


def _projected(model: Model, q: Array, qd: Array, wrenches: Array) -> Array:
    """Wrenches on the bodies as joint forces, by the principle of virtual power."""
    t, o = model.topology, Vec3.zero(q.dtype)
    at, external = motions(model, q, qd), at_last_steps(model, wrenches)
    a = at.p - from_parents(t.steps.parent, at.p, o)

    def transmit(children, x):
        step, wrench = x[0], x[1] + children
        return step.to_parent(wrench), step.along(wrench)

    rows = spread(t.lanes, (WorldStep(at.R.z, *screw(model), a), Wrench.of(external)))
    _, tau = inward(t.lanes, transmit, Wrench.zero(q.dtype), rows)
    return collect(t.lanes, tau, t.dof_steps)


def _check(
    k: int, element: AbstractForce, what: str, x: ArrayLike, shape: tuple[int, ...]
) -> None:
    if jnp.shape(x) != shape:
        raise ValueError(
            f"force {k} ({type(element).__name__}) returns {what} of shape "
            f"{jnp.shape(x)}, expected {shape}: methods are written for one state; use "
            "jax.vmap for many."
        )
