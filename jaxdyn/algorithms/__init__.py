"""The algorithms: outward and inward walks with a few lines of algebra per body."""

from jaxdyn.algorithms._articulated import articulated as articulated
from jaxdyn.algorithms._composite import composite as composite
from jaxdyn.algorithms._configuration import configuration_rate as configuration_rate
from jaxdyn.algorithms._configuration import difference as difference
from jaxdyn.algorithms._configuration import integrate as integrate
from jaxdyn.algorithms._configuration import neutral as neutral
from jaxdyn.algorithms._configuration import (
    random_configuration as random_configuration,
)
from jaxdyn.algorithms._configuration import turning_rate as turning_rate
from jaxdyn.algorithms._configuration import unit_quaternions as unit_quaternions
from jaxdyn.algorithms._constrained import recursive as recursive
from jaxdyn.algorithms._contraction import parallel_forward as parallel_forward
from jaxdyn.algorithms._coriolis import coriolis as coriolis
from jaxdyn.algorithms._denoc import denoc as denoc
from jaxdyn.algorithms._denoc import denoc_forward as denoc_forward
from jaxdyn.algorithms._denoc import denoc_inertia as denoc_inertia
from jaxdyn.algorithms._denoc import denoc_matrices as denoc_matrices
from jaxdyn.algorithms._derivatives import implicit as implicit
from jaxdyn.algorithms._derivatives import refined as refined
from jaxdyn.algorithms._derivatives import solve_inertia as solve_inertia
from jaxdyn.algorithms._derivatives import with_slopes_of as with_slopes_of
from jaxdyn.algorithms._energy import Momentum as Momentum
from jaxdyn.algorithms._energy import Power as Power
from jaxdyn.algorithms._energy import (
    centroidal_momentum_matrix as centroidal_momentum_matrix,
)
from jaxdyn.algorithms._energy import gibbs_function as gibbs_function
from jaxdyn.algorithms._energy import kinetic_energy as kinetic_energy
from jaxdyn.algorithms._energy import lagrangian as lagrangian
from jaxdyn.algorithms._energy import momentum as momentum
from jaxdyn.algorithms._energy import potential_energy as potential_energy
from jaxdyn.algorithms._energy import power as power
from jaxdyn.algorithms._factor import Factor as Factor
from jaxdyn.algorithms._factor import denoc_factor as denoc_factor
from jaxdyn.algorithms._factor import least_pivot as least_pivot
from jaxdyn.algorithms._factor import pivot_shares as pivot_shares
from jaxdyn.algorithms._gibbs_appell import gibbs_appell as gibbs_appell
from jaxdyn.algorithms._gibbs_appell import gibbs_appell_inertia as gibbs_appell_inertia
from jaxdyn.algorithms._gradient import inverse_gradient as inverse_gradient
from jaxdyn.algorithms._joint_forces import passive_forces as passive_forces
from jaxdyn.algorithms._kinematics import Accelerations as Accelerations
from jaxdyn.algorithms._kinematics import Place as Place
from jaxdyn.algorithms._kinematics import Poses as Poses
from jaxdyn.algorithms._kinematics import Velocities as Velocities
from jaxdyn.algorithms._kinematics import body_accelerations as body_accelerations
from jaxdyn.algorithms._kinematics import body_motions as body_motions
from jaxdyn.algorithms._kinematics import body_velocities as body_velocities
from jaxdyn.algorithms._kinematics import center_of_mass as center_of_mass
from jaxdyn.algorithms._kinematics import forward_kinematics as forward_kinematics
from jaxdyn.algorithms._kinematics import frame_poses as frame_poses
from jaxdyn.algorithms._kinematics import jacobian as jacobian
from jaxdyn.algorithms._kinematics import jacobian_at as jacobian_at
from jaxdyn.algorithms._kinematics import jacobian_dot_qd as jacobian_dot_qd
from jaxdyn.algorithms._kinematics import moving_place as moving_place
from jaxdyn.algorithms._log_depth import parallel_composite as parallel_composite
from jaxdyn.algorithms._log_depth import parallel_motions as parallel_motions
from jaxdyn.algorithms._log_depth import parallel_newton_euler as parallel_newton_euler
from jaxdyn.algorithms._log_depth import parallel_poses as parallel_poses
from jaxdyn.algorithms._loops import LoopRows as LoopRows
from jaxdyn.algorithms._loops import loop_bias as loop_bias
from jaxdyn.algorithms._loops import loop_jacobian as loop_jacobian
from jaxdyn.algorithms._loops import loop_matrix as loop_matrix
from jaxdyn.algorithms._loops import loop_residual as loop_residual
from jaxdyn.algorithms._loops import loop_rows as loop_rows
from jaxdyn.algorithms._loops import loop_wrenches as loop_wrenches
from jaxdyn.algorithms._loops import row_forces as row_forces
from jaxdyn.algorithms._loops import row_rates as row_rates
from jaxdyn.algorithms._loops import second_rates as second_rates
from jaxdyn.algorithms._motion import BaseMotion as BaseMotion
from jaxdyn.algorithms._newton_euler import newton_euler as newton_euler
from jaxdyn.algorithms._newton_euler import transmitted_wrenches as transmitted_wrenches
from jaxdyn.algorithms._noc import joint_constraints as joint_constraints
from jaxdyn.algorithms._noc import natural_complement as natural_complement
from jaxdyn.algorithms._noc import noc as noc
from jaxdyn.algorithms._pullback import parallel_pullback as parallel_pullback
from jaxdyn.algorithms._regressor import dynamic_parameters as dynamic_parameters
from jaxdyn.algorithms._regressor import parameter_names as parameter_names
from jaxdyn.algorithms._regressor import regressor as regressor
from jaxdyn.algorithms._saddle import cutoff as cutoff
from jaxdyn.algorithms._saddle import kkt as kkt
from jaxdyn.algorithms._saddle import mobility as mobility
from jaxdyn.algorithms._saddle import range_space as range_space
from jaxdyn.algorithms._saddle import (
    sequential_regularization as sequential_regularization,
)
from jaxdyn.algorithms._saddle import solve_saddle as solve_saddle
from jaxdyn.algorithms._segment_factor import SegmentFactor as SegmentFactor
from jaxdyn.algorithms._slopes import inverse_slopes as inverse_slopes
