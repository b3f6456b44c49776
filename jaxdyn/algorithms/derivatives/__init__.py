"""Derivatives of the dynamics: implicit, in closed form, and adjoint."""

from jaxdyn.algorithms.derivatives._adjoint import PowerGradient as PowerGradient
from jaxdyn.algorithms.derivatives._adjoint import StepAdjoint as StepAdjoint
from jaxdyn.algorithms.derivatives._adjoint import StepGradient as StepGradient
from jaxdyn.algorithms.derivatives._adjoint import by_spin as by_spin
from jaxdyn.algorithms.derivatives._adjoint import by_state as by_state
from jaxdyn.algorithms.derivatives._adjoint import by_turn as by_turn
from jaxdyn.algorithms.derivatives._adjoint import inverse_gradient as inverse_gradient
from jaxdyn.algorithms.derivatives._adjoint import sum_step as sum_step
from jaxdyn.algorithms.derivatives._implicit import InertiaFactor as InertiaFactor
from jaxdyn.algorithms.derivatives._implicit import implicit as implicit
from jaxdyn.algorithms.derivatives._implicit import refined as refined
from jaxdyn.algorithms.derivatives._implicit import solve_inertia as solve_inertia
from jaxdyn.algorithms.derivatives._implicit import with_slopes_of as with_slopes_of
from jaxdyn.algorithms.derivatives._inertia import dense_factor as dense_factor
from jaxdyn.algorithms.derivatives._inertia import inertia_factor as inertia_factor
from jaxdyn.algorithms.derivatives._inertia import inertia_matrix as inertia_matrix
from jaxdyn.algorithms.derivatives._jacobians import inverse_slopes as inverse_slopes
