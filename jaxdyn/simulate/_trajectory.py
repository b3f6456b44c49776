"""What a simulation returns."""

from typing import Any

import diffrax
import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jaxdyn.algorithms.kinematics import unit_quaternions
from jaxdyn.model import Model, Topology
from jaxdyn.simulate._drift import closed

_AT_LIMIT = 1e-4  # radians or metres; root finders are more exact


class State(eqx.Module):
    """Where the joints are, `q`, and how fast they move, `qd`."""

    q: Float[Array, " nq"]
    qd: Float[Array, " nv"]


class Outcome(diffrax.RESULTS):  # pyright: ignore[reportGeneralTypeIssues]
    """How a simulation ended: a sentence, empty where it reached its last time."""

    not_finite = (
        "The motion is not finite: look for forces, a state or a model that are not "
        "numbers, for a body without inertia, or for a step that is too long."
    )
    starts_beyond_limit = (
        "The motion starts beyond a joint limit that joint_limit_event watches."
    )


class Trajectory(eqx.Module):
    """A motion at the times `ts`.

    Rows after the end of a simulation that stopped early are NaN.

    Attributes:
        ts: the times that were asked for.
        q, qd, qdd, tau: positions, rates, accelerations, joint forces.
        f_ext: wrench on each body in world axes, None if there was none.
        loop_forces: what the cut joints of the loops transmit, as in
            `constrained_dynamics`; None for a model without loops.
        loop_residual: how far the loops are open; None for a model without loops.
        kinetic_energy, potential_energy: of all bodies and springs.
        end_time, end: when the simulation ended, and in which state.
        event_mask: which event ended it, in the structure of the event's conditions.
        stats: the steps that the solver took, accepted and rejected.
        result: how it ended, an `Outcome`.
        interpolation: what `at` needs, None unless `dense=True` was asked for.
        closing: the model whose loops `at` closes, None unless they are projected.
    """

    ts: Float[Array, " times"]
    q: Float[Array, "times nq"]
    qd: Float[Array, "times nv"]
    qdd: Float[Array, "times nv"]
    tau: Float[Array, "times nv"]
    f_ext: Float[Array, "times n 6"] | None
    loop_forces: Float[Array, "times nc"] | None
    loop_residual: Float[Array, "times nc"] | None
    kinetic_energy: Float[Array, " times"]
    potential_energy: Float[Array, " times"]
    end_time: Float[Array, ""]
    end: State
    event_mask: Any
    stats: dict[str, Any]
    result: Any
    interpolation: diffrax.DenseInterpolation | None
    closing: Model | None
    topology: Topology = eqx.field(static=True)

    @property
    def energy(self) -> Float[Array, " times"]:
        """Kinetic plus potential energy."""
        return self.kinetic_energy + self.potential_energy

    @property
    def is_successful(self) -> Bool[Array, "..."]:
        """Whether the simulation reached its last time or an event."""
        ended = (Outcome.successful, Outcome.event_occurred)
        return (self.result == ended[0]) | (self.result == ended[1])

    def reached_limits(self, model: Model) -> tuple[str, ...]:
        """The names of the joints that an event stopped as they left their range.

        These are the joints at a limit in the last state, or beyond it, that move
        outward; joints that rest on a limit are not among them. Outside of `jit`.

        Args:
            model: the one that was simulated.
        """
        q, qd = np.asarray(self.end.q), np.asarray(self.end.qd)
        if q.ndim != 1:
            raise ValueError(
                f"reached_limits: the end q has shape {q.shape}, expected one "
                "trajectory: pick one of the batch with jax.tree.map."
            )
        if self.result != Outcome.event_occurred:
            return ()
        lower, upper = np.asarray(model.lower), np.asarray(model.upper)
        t, rate = model.topology, np.full(q.shape, np.nan)
        rate[t.plain_q] = qd[t.plain_v]  # those of quaternions are not needed
        is_outward = np.where(q - lower < upper - q, rate < 0, rate > 0)
        inside = np.minimum(q - lower, upper - q)
        inside = np.where((lower < upper) & is_outward, inside, np.inf)
        nearest = max(inside.min(initial=np.inf), 0)  # where a root finder ended
        reached = np.flatnonzero(inside <= min(nearest, _AT_LIMIT))
        bodies = np.searchsorted(t.q_start, reached, side="right") - 1
        return tuple(model.joint_names[k] for k in dict.fromkeys(bodies))

    def at(self, t: Float[Array, ""] | float) -> State:
        """The state at any time up to the end, by the solver's own interpolation.

        Loops are closed there too, if they are projected.
        """
        if self.interpolation is None:
            raise ValueError(
                "the trajectory holds its rows alone: call simulate with dense=True."
            )
        y = self.interpolation.evaluate(jnp.asarray(t, self.ts.dtype))
        if self.closing is not None:
            return State(*closed(self.closing, y.q, y.qd))
        return State(unit_quaternions(self.topology, y.q), y.qd)
