"""Laws for the joint forces: functions (t, q, qd) -> tau with parameters."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.algorithms.kinematics import difference, integrate
from jaxdyn.dynamics import bias_forces, inverse_dynamics
from jaxdyn.model import Model, Nq, Nv, arguments
from jaxdyn.motion._inputs import expect, inputs
from jaxdyn.motion._motion import JointMotion, Time, along, osculating
from jaxdyn.program import alone

Gains = Float[Array, ""] | Float[Array, " nv"]
Gain = Gains | float
Motion = Callable[..., JointMotion]


class ComputedTorque(eqx.Module):
    """Inverse dynamics of the reference and of its error; see `computed_torque`."""

    model: Model
    motion: Motion
    kp: Gains
    kd: Gains
    saturate: bool = eqx.field(static=True)

    def __call__(self, t: Time, q: Nq, qd: Nv) -> Nv:
        """The joint forces at time t in a state."""
        model, q, qd = arguments(self.model, q=q, qd=qd)
        qdd = _tracking(model, self.motion(t), self.kp, self.kd, q, qd)
        tau = inverse_dynamics(model, q, qd, qdd)
        return limited(model, tau) if self.saturate else tau


class PDGravity(eqx.Module):
    """A spring and a damper around a configuration that is held; see `pd_gravity`."""

    model: Model
    target: Float[Array, " nq"]
    kp: Gains
    kd: Gains
    saturate: bool = eqx.field(static=True)
    free_joints: bool = eqx.field(static=True)

    def __call__(self, t: Time, q: Nq, qd: Nv) -> Nv:
        """The joint forces in a state; the time does not matter."""
        model, q, qd = arguments(self.model, q=q, qd=qd)

        def error(d: Any) -> Any:
            return difference(model, self.target, integrate(model, q, d))

        e, transposed = jax.vjp(error, jnp.zeros_like(qd))
        (spring,) = transposed(self.kp * e)
        held = bias_forces(model, q, jnp.zeros_like(qd))
        tau: Any = held - spring - self.kd * qd
        if not self.free_joints:
            tau = jnp.where(model.actuated, tau, 0)
        return limited(model, tau) if self.saturate else tau


class Feedforward(eqx.Module):
    """Inverse dynamics along a motion, open loop; see `feedforward`."""

    model: Model
    motion: Motion
    saturate: bool = eqx.field(static=True)

    def __call__(self, t: Time, q: Nq | None = None, qd: Nv | None = None) -> Nv:
        """The joint forces at time t; the state does not matter."""
        at = self.motion(t)
        tau = inverse_dynamics(self.model, at.q, at.qd, at.qdd)
        return limited(self.model, tau) if self.saturate else tau


def computed_torque(
    model: Model,
    motion: Motion,
    kp: Gain,
    kd: Gain,
    *,
    saturate: bool = False,
    free_joints: bool = False,
) -> ComputedTorque:
    r"""The law that makes the error of each joint a damped oscillation of its own.

    $$\tau = \mathrm{ID}(q, \dot q, \ddot q^*), \quad
      \ddot e + k_d\, \dot e + k_p\, e = 0, \quad
      e = \mathrm{difference}(q_r, q)$$

    $\ddot q^*$ is the acceleration at which that holds: for coordinates
    $\ddot q_r - k_d\, \dot e - k_p\, e$; for quaternions and free joints the same in
    the axes of the reference, for errors of less than half a turn.

    Args:
        motion: function t -> `JointMotion`, such as the motions of this module.
        kp, kd: one number for all joints or nv of them, in 1/s² and 1/s; not negative.
        saturate: whether forces are cut at `model.effort`.
        free_joints: whether the law also pushes free joints, as thrusters do.

    Raises:
        ValueError: gains of a wrong shape or sign, a model with loops or free joints.
    """
    check_driven("computed_torque", model, free_joints)
    return ComputedTorque(model, motion, *gains_of(model, kp, kd), saturate)


def pd_gravity(
    model: Model,
    target: Nq,
    kp: Gain,
    kd: Gain,
    *,
    saturate: bool = False,
    free_joints: bool = False,
) -> PDGravity:
    r"""The law that pulls the joints to a configuration and carries their weight.

    $$\tau = h(q, 0) - \frac{\partial}{\partial d} \tfrac12 \sum k_p e^2
      - k_d\, \dot q, \quad e = \mathrm{difference}(q^*, \mathrm{integrate}(q, d))$$

    h are the forces of gravity and of the springs of the model. For coordinates the
    second term is $k_p (q^* - q)$; for all joints it is the gradient of an energy, so
    that, with kd, the target attracts.

    Args:
        kp, kd: one number for all joints or nv of them, force by position and by
            velocity; not negative.
        saturate: whether forces are cut at `model.effort`.
        free_joints: whether the law also pushes free joints, as thrusters do; by
            default their forces are zero.

    Raises:
        ValueError: gains of a wrong shape or sign, a model with loops.
    """
    check_driven("pd_gravity", model, True)
    model, target = inputs(model, target=(target, (model.nq,)))
    return PDGravity(model, target, *gains_of(model, kp, kd), saturate, free_joints)


def feedforward(
    model: Model, motion: Motion, *, saturate: bool = False, free_joints: bool = False
) -> Feedforward:
    r"""The joint forces of a motion by inverse dynamics, open loop.

    $$\tau = \mathrm{ID}(q_r, \dot q_r, \ddot q_r)$$

    Args:
        motion: function t -> `JointMotion`, such as the motions of this module.
        saturate: whether forces are cut at `model.effort`.
        free_joints: whether the law also pushes free joints, as thrusters do.

    Raises:
        ValueError: a model with loops or free joints.
    """
    check_driven("feedforward", model, free_joints)
    return Feedforward(model, motion, saturate)


@alone()
def _tracking(
    model: Model, reference: JointMotion, kp: Any, kd: Any, q: Any, qd: Any
) -> Any:
    """The joint accelerations at which the error is a damped oscillation."""
    path = osculating(model, reference)

    def error(t: Any) -> Any:
        return difference(model, path(t), integrate(model, q, t * qd))

    zero = jnp.zeros((), q.dtype)
    e, de = jax.jvp(error, (zero,), (jnp.ones_like(zero),))
    dde = -kd * de - kp * e

    def wanted(t: Any) -> Any:
        return integrate(model, path(t), e + t * de + t * t / 2 * dde)

    return along(model, wanted, zero).qdd


def check_driven(name: str, model: Model, free_joints: bool) -> None:
    """Raise a `ValueError` for a model with loops, or with free joints if not meant."""
    if model.loops:
        raise ValueError(
            f"{name}: model {model.name!r} has loops (first: {model.loops[0].name!r}), "
            "expected a tree: the law drives all joints by the inverse dynamics of the "
            "tree. Give simulate a law of your own, a function (t, q, qd)."
        )
    if not (free_joints or model.actuated.all()):
        joint = model.joint_names[model.topology.free_bodies[0]]
        raise ValueError(
            f"{name}: joint {joint!r} of model {model.name!r} is free, expected joints "
            "that motors drive: use pd_gravity, which leaves free joints alone, or "
            "pass free_joints=True if thrusters push the body."
        )


def gains_of(model: Model, kp: Any, kd: Any) -> tuple[Any, Any]:
    return gain_of(model, "kp", kp), gain_of(model, "kd", kd)


def gain_of(model: Model, name: str, value: Any) -> Any:
    value = jnp.asarray(value)
    if value.shape not in ((), (model.nv,)):
        raise ValueError(
            f"{name} has shape {value.shape}, expected one number or {(model.nv,)} "
            f"for model {model.name!r}."
        )
    is_right = (value >= 0) & jnp.isfinite(value)
    value = expect(name, value, is_right, "numbers that are not negative")
    return value.astype(model.dtype)


def limited(model: Model, tau: Any) -> Any:
    """The forces cut at the limits of the joints."""
    tau = jnp.where(tau > model.effort, model.effort, tau)
    return jnp.where(tau < -model.effort, -model.effort, tau)
