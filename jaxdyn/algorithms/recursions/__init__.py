"""The formulations: each an outward and inward walk of a few lines per step."""

from jaxdyn.algorithms.recursions._articulated import articulated as articulated
from jaxdyn.algorithms.recursions._composite import composite as composite
from jaxdyn.algorithms.recursions._coriolis import VelocityMatrix as VelocityMatrix
from jaxdyn.algorithms.recursions._coriolis import coriolis as coriolis
from jaxdyn.algorithms.recursions._coriolis import velocity_matrix as velocity_matrix
from jaxdyn.algorithms.recursions._denoc import denoc as denoc
from jaxdyn.algorithms.recursions._denoc import denoc_forward as denoc_forward
from jaxdyn.algorithms.recursions._denoc import denoc_inertia as denoc_inertia
from jaxdyn.algorithms.recursions._denoc import denoc_matrices as denoc_matrices
from jaxdyn.algorithms.recursions._energy import Momentum as Momentum
from jaxdyn.algorithms.recursions._energy import Power as Power
from jaxdyn.algorithms.recursions._energy import (
    centroidal_momentum_matrix as centroidal_momentum_matrix,
)
from jaxdyn.algorithms.recursions._energy import gibbs_function as gibbs_function
from jaxdyn.algorithms.recursions._energy import kinetic_energy as kinetic_energy
from jaxdyn.algorithms.recursions._energy import lagrangian as lagrangian
from jaxdyn.algorithms.recursions._energy import momentum as momentum
from jaxdyn.algorithms.recursions._energy import potential_energy as potential_energy
from jaxdyn.algorithms.recursions._energy import power as power
from jaxdyn.algorithms.recursions._factor import Factor as Factor
from jaxdyn.algorithms.recursions._factor import denoc_factor as denoc_factor
from jaxdyn.algorithms.recursions._factor import eliminate as eliminate
from jaxdyn.algorithms.recursions._factor import least_pivot as least_pivot
from jaxdyn.algorithms.recursions._factor import pivot_shares as pivot_shares
from jaxdyn.algorithms.recursions._factor import stays as stays
from jaxdyn.algorithms.recursions._gibbs_appell import gibbs_appell as gibbs_appell
from jaxdyn.algorithms.recursions._gibbs_appell import (
    gibbs_appell_inertia as gibbs_appell_inertia,
)
from jaxdyn.algorithms.recursions._joint_forces import (
    armature_forces as armature_forces,
)
from jaxdyn.algorithms.recursions._joint_forces import (
    gyroscopic_forces as gyroscopic_forces,
)
from jaxdyn.algorithms.recursions._joint_forces import (
    joint_resistance as joint_resistance,
)
from jaxdyn.algorithms.recursions._joint_forces import joint_torques as joint_torques
from jaxdyn.algorithms.recursions._joint_forces import passive_forces as passive_forces
from jaxdyn.algorithms.recursions._joint_forces import spring_forces as spring_forces
from jaxdyn.algorithms.recursions._newton_euler import newton_euler as newton_euler
from jaxdyn.algorithms.recursions._newton_euler import (
    transmitted_wrenches as transmitted_wrenches,
)
from jaxdyn.algorithms.recursions._noc import joint_constraints as joint_constraints
from jaxdyn.algorithms.recursions._noc import natural_complement as natural_complement
from jaxdyn.algorithms.recursions._noc import noc as noc
from jaxdyn.algorithms.recursions._regressor import (
    dynamic_parameters as dynamic_parameters,
)
from jaxdyn.algorithms.recursions._regressor import parameter_names as parameter_names
from jaxdyn.algorithms.recursions._regressor import regressor as regressor
