"""The equations of motion as a solver sees them."""

from typing import Any

import equinox as eqx

from jaxdyn.algorithms.forces import actuate
from jaxdyn.algorithms.kinematics import configuration_rate, unit_quaternions
from jaxdyn.dynamics import (
    SOLVERS,
    Baumgarte,
    constrained_dynamics,
    forward_dynamics,
)
from jaxdyn.model import Model
from jaxdyn.simulate._drift import Drift, closed
from jaxdyn.simulate._signals import Law
from jaxdyn.simulate._trajectory import State


class Equations(eqx.Module):
    """A model, what drives it, and how its accelerations are found.

    Attributes:
        torque, f_ext: laws (t, q, qd) for joint forces and wrenches.
        actuated: whether the first are controls of the model's actuators.
        drift: as in `simulate`; None for a model without loops.
        method, loop_method: of `forward_dynamics` and of `constrained_dynamics`.
    """

    model: Model
    torque: Law
    f_ext: Law | None
    drift: Drift
    method: str = eqx.field(static=True)
    loop_method: str = eqx.field(static=True)
    actuated: bool = eqx.field(static=True, default=False)

    @property
    def is_projected(self) -> bool:
        """Whether loops are closed by projection."""
        return isinstance(self.drift, str)

    def __call__(self, t: Any, y: State) -> tuple[Any, ...]:
        """Unit q, joint forces, wrenches, accelerations and loop forces in a state.

        Without loops the last are None.
        """
        q = unit_quaternions(self.model.topology, y.q)
        tau = self.torque(t, q, y.qd)
        if self.actuated:
            tau = actuate(self.model, q, y.qd, tau)
        f_ext = None if self.f_ext is None else self.f_ext(t, q, y.qd)
        inputs = self.model, q, y.qd, tau
        if not self.model.loops:
            qdd = forward_dynamics(*inputs, f_ext=f_ext, method=self.method)
            return q, tau, f_ext, qdd, None
        baumgarte = self.drift if isinstance(self.drift, Baumgarte) else None
        qdd, loop_forces = constrained_dynamics(
            *inputs, f_ext=f_ext, baumgarte=baumgarte, method=self.loop_method
        )
        return q, tau, f_ext, qdd, loop_forces

    def slope(self, t: Any, y: State) -> State:
        """The rate of a state."""
        qdd = self(t, y)[3]
        return State(configuration_rate(self.model, y.q, y.qd), qdd)

    def on_constraints(self, y: State) -> State:
        """The state near y with unit quaternions, and loops closed if projected."""
        if self.is_projected:
            return State(*closed(self.model, y.q, y.qd))
        return State(unit_quaternions(self.model.topology, y.q), y.qd)


def control_size(model: Model, actuated: bool) -> int:
    """How many numbers a control has: joint forces, or controls of the actuators."""
    if not actuated:
        return model.nv
    if not model.actuators:
        raise ValueError(
            f"actuated is {actuated!r} for model {model.name!r} without actuators, "
            "expected False: give joint forces."
        )
    return model.actuators.n_ctrl


def check_method(method: str, loop_method: str, model: Model) -> None:
    """Raise a `ValueError` for a method that is not known or not for loops."""
    if loop_method not in SOLVERS:
        raise ValueError(
            f"loop_method is {loop_method!r}, expected one of: {', '.join(SOLVERS)}."
        )
    if model.loops and method != "denoc":
        raise ValueError(
            f"method is {method!r} for model {model.name!r} with loops, expected "
            "'denoc': loop_method chooses how loops are closed."
        )
