"""Closed loops over time: what integration errors open is closed again."""

from collections.abc import Callable
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxdyn.algorithms.kinematics import configuration_rate, unit_quaternions
from jaxdyn.algorithms.loops import loop_residual
from jaxdyn.dynamics import Baumgarte, project_configuration, project_velocity
from jaxdyn.model import Model, Nq, Nv

Drift = str | Baumgarte | None


class Projected(diffrax.AbstractWrappedSolver):
    """A solver whose steps end where the loops are closed.

    Error estimates and the interpolation between steps are those of the solver.

    Attributes:
        solver: any of diffrax for one ordinary differential equation.
        project: function (y, args) of a state on or off the constraints.
    """

    solver: diffrax.AbstractSolver  # type: ignore
    project: Callable[[Any, Any], Any]

    @property
    def term_structure(self) -> Any:  # type: ignore
        """What the solver integrates."""
        return self.solver.term_structure

    @property
    def interpolation_cls(self) -> Any:  # type: ignore[override]
        """The interpolation of the solver."""
        return self.solver.interpolation_cls

    @property
    def term_compatible_contr_kwargs(self) -> Any:  # type: ignore
        """As the solver's own."""
        return self.solver.term_compatible_contr_kwargs

    @property
    def scan_kind(self) -> Any:
        """Of Runge-Kutta solvers; adjoints for forward mode set it."""
        return self.solver.scan_kind  # type: ignore[attr-defined]

    @property
    def root_finder(self) -> Any:
        """Of implicit solvers; its tolerances become those of the controller."""
        return self.solver.root_finder  # type: ignore[attr-defined]

    def order(self, terms: Any) -> Any:
        """The order of the solver."""
        return self.solver.order(terms)

    def strong_order(self, terms: Any) -> Any:
        """The strong order of the solver."""
        return self.solver.strong_order(terms)

    def error_order(self, terms: Any) -> Any:
        """The order of its error estimate."""
        return self.solver.error_order(terms)

    def init(self, terms: Any, t0: Any, t1: Any, y0: Any, args: Any) -> Any:
        """The state of the solver before its first step."""
        return self.solver.init(terms, t0, t1, y0, args)

    def step(
        self,
        terms: Any,
        t0: Any,
        t1: Any,
        y0: Any,
        args: Any,
        solver_state: Any,
        made_jump: Any,
    ) -> Any:
        """A step of the solver, projected."""
        # as after a jump: slopes that the solver keeps are those before projection
        y1, *others = self.solver.step(
            terms, t0, t1, y0, args, solver_state, made_jump=True
        )
        return self.project(y1, args), *others

    def func(self, terms: Any, t0: Any, y0: Any, args: Any) -> Any:
        """The slope at a state."""
        return self.solver.func(terms, t0, y0, args)


def closed(model: Model, q: Nq, qd: Nv) -> tuple[Nq, Nv]:
    """A state near the given one, with quaternions of unit length and closed loops."""
    q = project_configuration(model, unit_quaternions(model.topology, q))
    return q, project_velocity(model, q, qd)


def check_drift(drift: Drift, model: Model) -> Drift:
    """What was given for the drift, its numbers as arrays; None without loops."""
    if not (isinstance(drift, Baumgarte | None) or drift == "projection"):
        raise ValueError(
            f"drift is {drift!r}, expected 'projection', a jaxdyn.Baumgarte(frequency, "
            "damping), or None."
        )
    if not isinstance(drift, Baumgarte):
        return drift if model.loops else None
    numbers = jax.tree.map(lambda x: jnp.asarray(x, model.dtype), drift)
    return numbers if model.loops else None


def check_closed(model: Model, q: Any, qd: Any) -> None:
    """Raise a `ValueError` if a state opens the loops; known only outside `jax.jit`."""
    given = jax.tree.leaves((model, q, qd))
    if not model.loops or any(isinstance(x, Tracer) for x in given):
        return
    tolerance = 1e-6 if q.dtype == np.float64 else 1e-4
    residual, rates = (np.abs(np.asarray(x)) for x in _openings(model, q, qd))
    names = [loop.name for loop in model.loops for _ in loop.rows]
    worst = int(residual.argmax())
    if residual[worst] > tolerance:
        raise ValueError(
            f"{names[worst]} of model {model.name!r} is open by {residual[worst]:.3g} "
            f"at q0, expected less than {tolerance:g}: close it with close_loops."
        )
    worst = int(rates.argmax())
    fastest = max(1.0, float(np.abs(np.asarray(qd)).max()))
    if rates[worst] > tolerance * fastest:
        raise ValueError(
            f"{names[worst]} of model {model.name!r} opens with {rates[worst]:.3g} a "
            f"second at qd0, expected less than {tolerance * fastest:g}: use "
            "project_velocity(model, q0, qd0)."
        )


@jax.jit
def _openings(model: Model, q: Any, qd: Any) -> tuple[Any, Any]:
    """How far the rows of the loops are open, and how fast they open."""
    q = unit_quaternions(model.topology, q)
    rate = configuration_rate(model, q, qd)
    return jax.jvp(lambda q: loop_residual(model, q), (q,), (rate,))
