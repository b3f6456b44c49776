"""What a computation costs and needs: operation counts, link frames, the check of an
installation."""

from jaxdyn.analysis._installation import Installation as Installation
from jaxdyn.analysis._installation import check_installation as check_installation
from jaxdyn.analysis._link_forward import link_forward_dynamics as link_forward_dynamics
from jaxdyn.analysis._link_forward import link_solve as link_solve
from jaxdyn.analysis._link_frames import LinkFrames as LinkFrames
from jaxdyn.analysis._link_frames import link_frames as link_frames
from jaxdyn.analysis._link_frames import regrouped as regrouped
from jaxdyn.analysis._link_inertia import (
    link_inertia_composite as link_inertia_composite,
)
from jaxdyn.analysis._link_inertia import (
    link_inertia_gibbs_appell as link_inertia_gibbs_appell,
)
from jaxdyn.analysis._link_inverse import link_gibbs_appell as link_gibbs_appell
from jaxdyn.analysis._link_inverse import link_kinematics as link_kinematics
from jaxdyn.analysis._link_inverse import link_newton_euler as link_newton_euler
from jaxdyn.analysis._operations import OperationCount as OperationCount
from jaxdyn.analysis._operations import count_operations as count_operations
from jaxdyn.analysis._polynomials import OperationPolynomials as OperationPolynomials
from jaxdyn.analysis._polynomials import Polynomial as Polynomial
from jaxdyn.analysis._polynomials import operation_polynomials as operation_polynomials
