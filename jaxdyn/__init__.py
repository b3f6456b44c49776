"""Differentiable rigid multibody dynamics on JAX.

Functions are pure, take `model, state, inputs, *, options` and are written for one
state: `jax.jit`, `jax.vmap` and `jax.grad` do the rest.
"""

import importlib
from typing import TYPE_CHECKING, Any

from jaxdyn import analysis as analysis
from jaxdyn import motion as motion
from jaxdyn import robots as robots
from jaxdyn.algorithms.forces import JointStops as JointStops
from jaxdyn.algorithms.forces import SpringDamper as SpringDamper
from jaxdyn.algorithms.forces import actuate as actuate
from jaxdyn.algorithms.kinematics import Accelerations as Accelerations
from jaxdyn.algorithms.kinematics import Poses as Poses
from jaxdyn.algorithms.kinematics import Velocities as Velocities
from jaxdyn.algorithms.kinematics import (
    body_accelerations as body_accelerations,
)
from jaxdyn.algorithms.kinematics import body_velocities as body_velocities
from jaxdyn.algorithms.kinematics import center_of_mass as center_of_mass
from jaxdyn.algorithms.kinematics import (
    configuration_rate as configuration_rate,
)
from jaxdyn.algorithms.kinematics import difference as difference
from jaxdyn.algorithms.kinematics import (
    forward_kinematics as forward_kinematics,
)
from jaxdyn.algorithms.kinematics import frame_poses as frame_poses
from jaxdyn.algorithms.kinematics import integrate as integrate
from jaxdyn.algorithms.kinematics import jacobian as jacobian
from jaxdyn.algorithms.kinematics import jacobian_dot_qd as jacobian_dot_qd
from jaxdyn.algorithms.kinematics import neutral as neutral
from jaxdyn.algorithms.kinematics import (
    random_configuration as random_configuration,
)
from jaxdyn.algorithms.loops import loop_bias as loop_bias
from jaxdyn.algorithms.loops import loop_jacobian as loop_jacobian
from jaxdyn.algorithms.loops import loop_residual as loop_residual
from jaxdyn.algorithms.loops import loop_wrenches as loop_wrenches
from jaxdyn.algorithms.recursions import Factor as Factor
from jaxdyn.algorithms.recursions import Momentum as Momentum
from jaxdyn.algorithms.recursions import Power as Power
from jaxdyn.algorithms.recursions import (
    centroidal_momentum_matrix as centroidal_momentum_matrix,
)
from jaxdyn.algorithms.recursions import denoc_matrices as denoc_matrices
from jaxdyn.algorithms.recursions import (
    dynamic_parameters as dynamic_parameters,
)
from jaxdyn.algorithms.recursions import gibbs_function as gibbs_function
from jaxdyn.algorithms.recursions import (
    joint_constraints as joint_constraints,
)
from jaxdyn.algorithms.recursions import kinetic_energy as kinetic_energy
from jaxdyn.algorithms.recursions import lagrangian as lagrangian
from jaxdyn.algorithms.recursions import momentum as momentum
from jaxdyn.algorithms.recursions import (
    natural_complement as natural_complement,
)
from jaxdyn.algorithms.recursions import parameter_names as parameter_names
from jaxdyn.algorithms.recursions import potential_energy as potential_energy
from jaxdyn.algorithms.recursions import power as power
from jaxdyn.algorithms.recursions import regressor as regressor
from jaxdyn.algorithms.steps import BaseMotion as BaseMotion
from jaxdyn.analysis import check_installation as check_installation
from jaxdyn.dynamics import Baumgarte as Baumgarte
from jaxdyn.dynamics import CheckedDynamics as CheckedDynamics
from jaxdyn.dynamics import LoopCondition as LoopCondition
from jaxdyn.dynamics import LoopTorques as LoopTorques
from jaxdyn.dynamics import aba as aba
from jaxdyn.dynamics import bias_forces as bias_forces
from jaxdyn.dynamics import checked_dynamics as checked_dynamics
from jaxdyn.dynamics import constrained_dynamics as constrained_dynamics
from jaxdyn.dynamics import (
    constrained_inverse_dynamics as constrained_inverse_dynamics,
)
from jaxdyn.dynamics import coriolis_matrix as coriolis_matrix
from jaxdyn.dynamics import crba as crba
from jaxdyn.dynamics import factor as factor
from jaxdyn.dynamics import forward_dynamics as forward_dynamics
from jaxdyn.dynamics import gravity_forces as gravity_forces
from jaxdyn.dynamics import inverse_dynamics as inverse_dynamics
from jaxdyn.dynamics import (
    inverse_dynamics_derivatives as inverse_dynamics_derivatives,
)
from jaxdyn.dynamics import joint_reactions as joint_reactions
from jaxdyn.dynamics import joint_stops as joint_stops
from jaxdyn.dynamics import loop_complement as loop_complement
from jaxdyn.dynamics import loop_condition as loop_condition
from jaxdyn.dynamics import loop_iterations as loop_iterations
from jaxdyn.dynamics import mass_matrix as mass_matrix
from jaxdyn.dynamics import project_configuration as project_configuration
from jaxdyn.dynamics import project_velocity as project_velocity
from jaxdyn.dynamics import reduced_mass_matrix as reduced_mass_matrix
from jaxdyn.dynamics import rnea as rnea
from jaxdyn.io import DHLink as DHLink
from jaxdyn.io import from_dh as from_dh
from jaxdyn.io import from_dict as from_dict
from jaxdyn.io import from_mujoco as from_mujoco
from jaxdyn.io import from_mujoco_model as from_mujoco_model
from jaxdyn.io import load as load
from jaxdyn.io import load_mjcf as load_mjcf
from jaxdyn.io import load_urdf as load_urdf
from jaxdyn.io import to_dict as to_dict
from jaxdyn.io import to_mjcf as to_mjcf
from jaxdyn.io import to_mujoco as to_mujoco
from jaxdyn.io import to_urdf as to_urdf
from jaxdyn.model import AbstractForce as AbstractForce
from jaxdyn.model import Actuators as Actuators
from jaxdyn.model import BodyState as BodyState
from jaxdyn.model import GravityCompensation as GravityCompensation
from jaxdyn.model import Inertial as Inertial
from jaxdyn.model import Loads as Loads
from jaxdyn.model import Loop as Loop
from jaxdyn.model import Model as Model
from jaxdyn.model import ModelBuilder as ModelBuilder
from jaxdyn.model import Note as Note
from jaxdyn.model import Notes as Notes
from jaxdyn.model import SlenderRods as SlenderRods
from jaxdyn.model import TriangleMesh as TriangleMesh
from jaxdyn.model import Visual as Visual
from jaxdyn.model import axes as axes
from jaxdyn.model import from_log_cholesky as from_log_cholesky
from jaxdyn.model import from_pi as from_pi
from jaxdyn.model import inertial_parameters as inertial_parameters
from jaxdyn.model import pseudo_inertia as pseudo_inertia
from jaxdyn.model import randomize as randomize
from jaxdyn.model import singular_joints as singular_joints
from jaxdyn.model import to_log_cholesky as to_log_cholesky
from jaxdyn.model import to_pi as to_pi
from jaxdyn.model import with_inertial_parameters as with_inertial_parameters
from jaxdyn.motion import check_loops as check_loops
from jaxdyn.motion import close_loops as close_loops
from jaxdyn.motion import dependent_rows as dependent_rows
from jaxdyn.motion import frame_acceleration as frame_acceleration
from jaxdyn.motion import frame_pose as frame_pose
from jaxdyn.motion import frame_velocity as frame_velocity
from jaxdyn.motion import inverse_kinematics as inverse_kinematics
from jaxdyn.motion import point_wrench as point_wrench
from jaxdyn.motion import pose_error as pose_error
from jaxdyn.motion import rotation_vector as rotation_vector
from jaxdyn.motion import task_space as task_space
from jaxdyn.simulate import Outcome as Outcome
from jaxdyn.simulate import PowerBalance as PowerBalance
from jaxdyn.simulate import State as State
from jaxdyn.simulate import Trajectory as Trajectory
from jaxdyn.simulate import batched as batched
from jaxdyn.simulate import joint_limit_event as joint_limit_event
from jaxdyn.simulate import linearize as linearize
from jaxdyn.simulate import power_balance as power_balance
from jaxdyn.simulate import rollout as rollout
from jaxdyn.simulate import simulate as simulate
from jaxdyn.simulate import stable_step as stable_step
from jaxdyn.simulate import step as step

if TYPE_CHECKING:
    from jaxdyn import identify as identify
    from jaxdyn import optimize as optimize


def __getattr__(name: str) -> Any:
    """Packages that are loaded where they are used: optax and SciPy take a second."""
    if name in ("identify", "optimize"):
        return importlib.import_module(f"jaxdyn.{name}")
    raise AttributeError(f"module 'jaxdyn' has no attribute {name!r}")
