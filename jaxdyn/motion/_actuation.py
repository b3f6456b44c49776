"""What stands between a policy and the joints: samples, delay, servo, limits, lag."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from jaxdyn.algorithms.kinematics import difference
from jaxdyn.model import Model, Nq, Nv, arguments, is_index
from jaxdyn.motion._controllers import Gain, Gains, gain_of, gains_of, limited

Values = Float[Array, " controls"]


class Memory(eqx.Module):
    """What a `Driven` policy remembers.

    Attributes:
        count: the steps so far.
        queue: values of the policy: that of the last sample, then older ones.
        output: the last forces.
        inner: the memory of the policy itself.
    """

    count: Int[Array, ""]
    queue: Float[Array, "values controls"]
    output: Values
    inner: Any


class Driven(eqx.Module):
    """A policy through samples, delay, servo, limits and lag; see `driven`."""

    model: Model
    policy: Callable
    dt: Float[Array, ""]
    gains: tuple[Gains, Gains] | None
    lag: Any
    saturate: bool = eqx.field(static=True)
    every: int = eqx.field(static=True)
    delay: int = eqx.field(static=True)

    def start(self, q0: Nq, inner: Any = None) -> Memory:
        """The memory before the first step, with the servos at rest at q0.

        Args:
            inner: that of the policy, if it has one.
        """
        model, q0 = arguments(self.model, q0=q0)
        still = jnp.zeros(model.nv, q0.dtype)
        # the forces of a policy are of its own size: those of actuators may be fewer
        value = jax.eval_shape(lambda: self._sample(still[0], q0, still, inner)[0])
        first = jnp.zeros(value.shape, q0.dtype) if self.gains is None else q0
        output = still if self.gains is not None else jnp.zeros_like(first)
        queue = jnp.broadcast_to(first, (self.delay + 1, *first.shape))
        return Memory(jnp.asarray(0), queue, output, inner)

    def __call__(self, t: Any, q: Nq, qd: Nv, memory: Memory) -> tuple[Values, Memory]:
        """The forces of a step, and the next memory."""
        model, q, qd = arguments(self.model, q=q, qd=qd)

        def asked() -> Any:
            value, inner = self._sample(t, q, qd, memory.inner)
            return value.astype(q.dtype), inner

        due = memory.count % self.every == 0
        held = memory.queue[0], memory.inner
        value, inner = lax.cond(due, asked, lambda: held)
        queue = jnp.concatenate([value[None], memory.queue[:-1]])
        force = queue[-1]
        if self.gains is not None:
            kp, kd = self.gains
            force = kp * difference(model, q, force) - kd * qd
            force = jnp.where(model.actuated, force, 0)
        if self.saturate:
            force = limited(model, force)
        if self.lag is not None:
            share = -jnp.expm1(-self.dt / self.lag)
            force = memory.output + share * (force - memory.output)
        return force, Memory(memory.count + 1, queue, force, inner)

    def _sample(self, t: Any, q: Nq, qd: Nv, inner: Any) -> tuple[Values, Any]:
        if inner is None:
            return jnp.asarray(self.policy(t, q, qd)), None
        return self.policy(t, q, qd, inner)


def driven(
    model: Model,
    policy: Callable,
    dt: Float[Array, ""] | float,
    *,
    every: int = 1,
    delay: int = 0,
    servo: tuple[Gain, Gain] | None = None,
    lag: Gain | None = None,
    saturate: bool = False,
) -> Driven:
    r"""A policy as real actuators carry it out, for `rollout` with a memory.

    The policy is asked at every so many steps and held in between. Its value arrives
    some steps later. With a servo it is a target q*, followed at every step by

    $$u = k_p\, (q^* - q) - k_d\, \dot q,$$

    zero for free joints. Then u is cut at `model.effort` if asked, and the joint
    forces follow it with a lag: $T \dot\tau = u - \tau$, exactly for a u that is held
    during a step.

    In `jd.rollout(model, q0, qd0, law, dt, steps=..., memory=law.start(q0))`.

    Args:
        policy: a function (t, q, qd) or, with a memory, (t, q, qd, memory).
        dt: the length of a step of the rollout.
        every: the steps between two samples of the policy.
        delay: the steps until a sample arrives.
        servo: kp and kd, one number for all joints or nv of them.
        lag: the time constant T in seconds, one number or nv of them; positive.
        saturate: whether u is cut at `model.effort`.

    Raises:
        ValueError: steps that are not whole numbers, or gains of a wrong shape.
    """
    for name, steps, least in (("every", every, 1), ("delay", delay, 0)):
        if not is_index(steps) or steps < least:
            raise ValueError(
                f"driven: {name} is {steps!r}, expected a whole number of steps, "
                f"{least} or more."
            )
    gains = None if servo is None else gains_of(model, *servo)
    lag = None if lag is None else gain_of(model, "lag", lag)
    step = jnp.asarray(dt, model.dtype)
    return Driven(model, policy, step, gains, lag, saturate, int(every), int(delay))
