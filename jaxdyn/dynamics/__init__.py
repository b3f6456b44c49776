"""The front door: one function for each quantity; `method` chooses the formulation."""

from jaxdyn.dynamics._constrained import Baumgarte as Baumgarte
from jaxdyn.dynamics._constrained import constrained_dynamics as constrained_dynamics
from jaxdyn.dynamics._constrained import loop_iterations as loop_iterations
from jaxdyn.dynamics._constrained_inverse import LoopTorques as LoopTorques
from jaxdyn.dynamics._constrained_inverse import (
    constrained_inverse_dynamics as constrained_inverse_dynamics,
)
from jaxdyn.dynamics._forward import CheckedDynamics as CheckedDynamics
from jaxdyn.dynamics._forward import checked_dynamics as checked_dynamics
from jaxdyn.dynamics._forward import factor as factor
from jaxdyn.dynamics._forward import forward_dynamics as forward_dynamics
from jaxdyn.dynamics._forward import tangent_dynamics as tangent_dynamics
from jaxdyn.dynamics._implicit import implicit_dynamics as implicit_dynamics
from jaxdyn.dynamics._independent import loop_complement as loop_complement
from jaxdyn.dynamics._independent import reduced_mass_matrix as reduced_mass_matrix
from jaxdyn.dynamics._inverse import bias_forces as bias_forces
from jaxdyn.dynamics._inverse import coriolis_matrix as coriolis_matrix
from jaxdyn.dynamics._inverse import gravity_forces as gravity_forces
from jaxdyn.dynamics._inverse import inverse_dynamics as inverse_dynamics
from jaxdyn.dynamics._inverse import (
    inverse_dynamics_derivatives as inverse_dynamics_derivatives,
)
from jaxdyn.dynamics._inverse import joint_reactions as joint_reactions
from jaxdyn.dynamics._inverse import mass_matrix as mass_matrix
from jaxdyn.dynamics._methods import FORWARD as FORWARD
from jaxdyn.dynamics._methods import INERTIA as INERTIA
from jaxdyn.dynamics._methods import INVERSE as INVERSE
from jaxdyn.dynamics._methods import SOLVERS as SOLVERS
from jaxdyn.dynamics._projection import LoopCondition as LoopCondition
from jaxdyn.dynamics._projection import loop_condition as loop_condition
from jaxdyn.dynamics._projection import project_configuration as project_configuration
from jaxdyn.dynamics._projection import project_velocity as project_velocity
from jaxdyn.dynamics._resisted import check_resisted as check_resisted
from jaxdyn.dynamics._stops import joint_stops as joint_stops

rnea, crba, aba = inverse_dynamics, mass_matrix, forward_dynamics  # names peers use
