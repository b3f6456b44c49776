"""How far a model is from data, in standard deviations, one row at a time."""

from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxdyn.algorithms.kinematics import difference, integrate
from jaxdyn.dynamics import forward_dynamics, inverse_dynamics
from jaxdyn.identify._rows import check_positive, check_tree, log_arrays
from jaxdyn.io import Log
from jaxdyn.model import Model
from jaxdyn.simulate import simulate

Std = float | Float[Array | np.ndarray, " nv"]


class Sample(eqx.Module):
    """A state with its acceleration and the joint forces, a row of a log."""

    q: Float[Array, "*rows nq"]
    qd: Float[Array, "*rows nv"]
    qdd: Float[Array, "*rows nv"]
    tau: Float[Array, "*rows nv"]


class Torque(eqx.Module):
    """Joint forces of the model, by inverse dynamics, less those that were measured.

    Attributes:
        std: the noise of the measured forces, one number or one for each joint. Where
            it is not known take 1: intervals are scaled by what is left over. Priors
            are weighed by it: beside them it should be right.
        method: of `inverse_dynamics`.
    """

    std: Std = 1.0
    method: str = eqx.field(static=True, default="newton_euler")

    def rows(self, model: Model, data: Any) -> Sample:
        """The rows of a log."""
        check_tree(model)
        check_positive("std of Torque", self.std, model.nv)
        return samples(model, data)

    def unknowns(self, rows: Sample) -> None:
        """Nothing but parameters is unknown."""

    def __call__(
        self, model: Model, unknowns: None, row: Sample
    ) -> Float[Array, " nv"]:
        """The residual of one row."""
        tau = inverse_dynamics(model, row.q, row.qd, row.qdd, method=self.method)
        return (tau - row.tau) / jnp.asarray(self.std, tau.dtype)


class Acceleration(eqx.Module):
    """Accelerations of the model, by forward dynamics, less those that were measured.

    Loops of the model are respected.

    Attributes:
        std: the noise of the accelerations, one number or one for each joint.
    """

    std: Std = 1.0

    def rows(self, model: Model, data: Any) -> Sample:
        """The rows of a log."""
        check_positive("std of Acceleration", self.std, model.nv)
        return samples(model, data)

    def unknowns(self, rows: Sample) -> None:
        """Nothing but parameters is unknown."""

    def __call__(
        self, model: Model, unknowns: None, row: Sample
    ) -> Float[Array, " nv"]:
        """The residual of one row."""
        qdd = forward_dynamics(model, row.q, row.qd, row.tau)
        return (qdd - row.qdd) / jnp.asarray(self.std, qdd.dtype)


def samples(model: Model, log: Any) -> Sample:
    """The rows of a log that has all parts."""
    parts = log_arrays(model, log, ("q", "qd", "qdd", "tau"))
    return Sample(**{k: jnp.asarray(x, model.dtype) for k, x in parts.items()})


class Window(eqx.Module):
    """A piece of a log, from its first state on."""

    ts: Float[Array, "*rows times"]
    tau: Float[Array, "*rows times nv"] | None  # linear in between; None for no forces
    y: Float[Array, "*rows times m"]  # what was measured at these times
    q0: Float[Array, "*rows nq"]  # the state at its start, as measured
    qd0: Float[Array, "*rows nv"]
    q1: Float[Array, "*rows nq"]  # that at the start of the next window
    qd1: Float[Array, "*rows nv"]
    number: Int[Array, "*rows"]  # its place among the windows


class Simulated(eqx.Module):
    """Motions of the model, by `simulate`, less those that were measured.

    The log is cut into windows; what is left at its end and does not fill one is not
    used. Each starts in the measured state, or in one that is fitted too
    (`free_start`). With `continuity` the end of a window must be the start of the next:
    multiple shooting, which finds its way where a single long motion is too sensitive
    to its start; what was measured where two meet then counts once.

    Attributes:
        std: the noise of what was measured, one number or one for each.
        length: the steps in a window; None for one window, single shooting.
        measure: what was measured in a state, as a function (model, q, qd), such as the
            place of a tool; by default the positions of the joints.
        y: what it gave, a row for each time of the log; by default the positions.
        free_start: whether the first state of each window is fitted.
        continuity: the gap between windows that counts as much as one standard
            deviation; None if they are independent.
        options: further arguments of `simulate`.
        forward: whether derivatives are taken in forward mode; `fit` sets it.
    """

    std: float | Float[Array | np.ndarray, " m"] = 1.0
    length: int | None = eqx.field(static=True, default=None)
    measure: Callable | None = None
    y: Float[Array | np.ndarray, "times m"] | None = None
    free_start: bool = eqx.field(static=True, default=False)
    continuity: float | None = None
    options: dict[str, Any] = eqx.field(default_factory=dict)
    forward: bool = eqx.field(static=True, default=False)

    def __check_init__(self) -> None:
        if (self.measure is None) != (self.y is None):
            raise ValueError(
                "measure and y belong together: what is measured in a state, and what "
                "was measured at each time."
            )
        if self.continuity is not None and not self.free_start:
            raise ValueError(
                "continuity joins windows by their starts: give free_start=True."
            )

    def rows(self, model: Model, data: Any) -> Window:
        """The windows of a log.

        Raises:
            ValueError: it has no rates, or not as many times as a window; a standard
                deviation is not positive.
        """
        if not isinstance(data, Log) or data.qd is None:
            raise ValueError(
                "data has no rates qd, expected a Log with them: call "
                "filtered(log, model, cutoff=...) first."
            )
        times = len(data.ts)
        if self.y is not None and len(self.y) != times:
            raise ValueError(
                f"y has {len(self.y)} rows, expected {times}, one for each time."
            )
        width = model.nv if self.y is None else self.y.shape[-1]
        check_positive("std of Simulated", self.std, width)
        if self.continuity is not None:
            check_positive("continuity", self.continuity, 1)
        length = times - 1 if self.length is None else self.length
        if not 1 <= length < times:
            raise ValueError(
                f"length is {length}, expected 1 to {times - 1}, the steps of the log."
            )
        starts = np.arange(0, times - length, length)
        at = starts[:, None] + np.arange(length + 1)
        then = starts + length

        def of(x: Any, where: np.ndarray) -> Any:
            return None if x is None else jnp.asarray(np.asarray(x)[where], model.dtype)

        q, qd = data.q, data.qd
        return Window(
            ts=of(data.ts, at),
            tau=of(data.tau, at),
            y=of(q if self.y is None else self.y, at),
            q0=of(q, starts),
            qd0=of(qd, starts),
            q1=of(q, then),
            qd1=of(qd, then),
            number=jnp.arange(len(starts)),
        )

    def unknowns(self, rows: Window) -> Float[Array, "windows 2 nv"] | None:
        """Steps from the measured states to those in which windows start."""
        if not self.free_start:
            return None
        return jnp.zeros((*rows.qd0.shape[:1], 2, rows.qd0.shape[1]), rows.qd0.dtype)

    def __call__(
        self, model: Model, unknowns: Float[Array, "windows 2 nv"] | None, row: Window
    ) -> Float[Array, " _"]:
        """The residual of one window, and its gap to the next."""
        q, qd = row.q0, row.qd0
        if unknowns is not None:
            q, qd = _moved(model, q, qd, unknowns[row.number])
        run = simulate(model, q, qd, row.ts, torque=row.tau, **self._options())
        if self.measure is None:
            apart = jax.vmap(difference, (None, 0, 0))(model, row.y, run.q)
        else:
            apart = jax.vmap(self.measure, (None, 0, 0))(model, run.q, run.qd) - row.y
        residual = apart / jnp.asarray(self.std, apart.dtype)
        if unknowns is None and self.measure is None:
            return residual[1:].ravel()  # it starts where it was measured
        if unknowns is None or self.continuity is None:
            return residual.ravel()
        first = jnp.where(row.number == 0, residual[0], 0)
        residual = residual.at[0].set(first).ravel()
        then = jnp.minimum(row.number + 1, len(unknowns) - 1)
        q1, qd1 = _moved(model, row.q1, row.qd1, unknowns[then])
        gap = jnp.concatenate([difference(model, q1, run.q[-1]), run.qd[-1] - qd1])
        gap = jnp.where(row.number < len(unknowns) - 1, gap, 0) / self.continuity
        return jnp.concatenate([residual, gap])

    def _options(self) -> dict[str, Any]:
        adjoint = diffrax.ForwardMode() if self.forward else None
        return {"adjoint": adjoint, "throw": False} | self.options


def _moved(model: Model, q: Any, qd: Any, step: Any) -> tuple[Any, Any]:
    return integrate(model, q, step[0]), qd + step[1]
