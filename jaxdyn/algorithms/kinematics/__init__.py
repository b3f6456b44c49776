"""Configurations, and the poses, velocities and accelerations of bodies."""

from jaxdyn.algorithms.kinematics._bodies import Accelerations as Accelerations
from jaxdyn.algorithms.kinematics._bodies import Place as Place
from jaxdyn.algorithms.kinematics._bodies import Poses as Poses
from jaxdyn.algorithms.kinematics._bodies import Velocities as Velocities
from jaxdyn.algorithms.kinematics._bodies import (
    body_accelerations as body_accelerations,
)
from jaxdyn.algorithms.kinematics._bodies import body_motions as body_motions
from jaxdyn.algorithms.kinematics._bodies import body_velocities as body_velocities
from jaxdyn.algorithms.kinematics._bodies import center_of_mass as center_of_mass
from jaxdyn.algorithms.kinematics._bodies import (
    forward_kinematics as forward_kinematics,
)
from jaxdyn.algorithms.kinematics._bodies import frame_poses as frame_poses
from jaxdyn.algorithms.kinematics._bodies import jacobian as jacobian
from jaxdyn.algorithms.kinematics._bodies import jacobian_at as jacobian_at
from jaxdyn.algorithms.kinematics._bodies import jacobian_dot_qd as jacobian_dot_qd
from jaxdyn.algorithms.kinematics._bodies import moving_place as moving_place
from jaxdyn.algorithms.kinematics._configuration import (
    configuration_rate as configuration_rate,
)
from jaxdyn.algorithms.kinematics._configuration import difference as difference
from jaxdyn.algorithms.kinematics._configuration import integrate as integrate
from jaxdyn.algorithms.kinematics._configuration import neutral as neutral
from jaxdyn.algorithms.kinematics._configuration import (
    random_configuration as random_configuration,
)
from jaxdyn.algorithms.kinematics._configuration import turning_rate as turning_rate
from jaxdyn.algorithms.kinematics._configuration import (
    unit_quaternions as unit_quaternions,
)
from jaxdyn.algorithms.kinematics._log_depth import accelerations as accelerations
from jaxdyn.algorithms.kinematics._log_depth import parents_of as parents_of
from jaxdyn.algorithms.kinematics._log_depth import placed as placed
