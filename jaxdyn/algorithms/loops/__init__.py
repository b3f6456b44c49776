"""Closed loops: constraint rows of cut joints, and solvers for their forces."""

from jaxdyn.algorithms.loops._recursive import recursive as recursive
from jaxdyn.algorithms.loops._rows import LoopRows as LoopRows
from jaxdyn.algorithms.loops._rows import loop_bias as loop_bias
from jaxdyn.algorithms.loops._rows import loop_frames as loop_frames
from jaxdyn.algorithms.loops._rows import loop_jacobian as loop_jacobian
from jaxdyn.algorithms.loops._rows import loop_residual as loop_residual
from jaxdyn.algorithms.loops._rows import loop_rows as loop_rows
from jaxdyn.algorithms.loops._rows import loop_wrenches as loop_wrenches
from jaxdyn.algorithms.loops._rows import row_forces as row_forces
from jaxdyn.algorithms.loops._rows import row_rates as row_rates
from jaxdyn.algorithms.loops._rows import second_rates as second_rates
from jaxdyn.algorithms.loops._solvers import cutoff as cutoff
from jaxdyn.algorithms.loops._solvers import kkt as kkt
from jaxdyn.algorithms.loops._solvers import mobility as mobility
from jaxdyn.algorithms.loops._solvers import range_space as range_space
from jaxdyn.algorithms.loops._solvers import (
    sequential_regularization as sequential_regularization,
)
from jaxdyn.algorithms.loops._solvers import solve_saddle as solve_saddle
