"""The algorithms: outward and inward walks with a few lines of algebra per body."""

from jaxdyn.algorithms._articulated import articulated as articulated
from jaxdyn.algorithms._composite import composite as composite
from jaxdyn.algorithms._configuration import difference as difference
from jaxdyn.algorithms._configuration import integrate as integrate
from jaxdyn.algorithms._configuration import neutral as neutral
from jaxdyn.algorithms._configuration import (
    random_configuration as random_configuration,
)
from jaxdyn.algorithms._denoc import Factor as Factor
from jaxdyn.algorithms._denoc import denoc_factor as denoc_factor
from jaxdyn.algorithms._derivatives import implicit as implicit
from jaxdyn.algorithms._derivatives import solve_inertia as solve_inertia
from jaxdyn.algorithms._joint_forces import passive_forces as passive_forces
from jaxdyn.algorithms._kinematics import Accelerations as Accelerations
from jaxdyn.algorithms._kinematics import BaseMotion as BaseMotion
from jaxdyn.algorithms._kinematics import Poses as Poses
from jaxdyn.algorithms._kinematics import Velocities as Velocities
from jaxdyn.algorithms._kinematics import body_accelerations as body_accelerations
from jaxdyn.algorithms._kinematics import body_velocities as body_velocities
from jaxdyn.algorithms._kinematics import center_of_mass as center_of_mass
from jaxdyn.algorithms._kinematics import forward_kinematics as forward_kinematics
from jaxdyn.algorithms._kinematics import frame_poses as frame_poses
from jaxdyn.algorithms._kinematics import jacobian as jacobian
from jaxdyn.algorithms._kinematics import jacobian_dot_qd as jacobian_dot_qd
from jaxdyn.algorithms._newton_euler import newton_euler as newton_euler
