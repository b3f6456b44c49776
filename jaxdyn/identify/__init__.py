"""From measured data to a physical model with error bars."""

from jaxdyn.identify._choice import Parameters as Parameters
from jaxdyn.identify._choice import choose as choose
from jaxdyn.identify._definite import definite as definite
from jaxdyn.identify._filters import filtered as filtered
from jaxdyn.identify._fit import Fit as Fit
from jaxdyn.identify._fit import fit as fit
from jaxdyn.identify._intervals import confidence_interval as confidence_interval
from jaxdyn.identify._priors import Gaussian as Gaussian
from jaxdyn.identify._priors import Geodesic as Geodesic
from jaxdyn.identify._residuals import Acceleration as Acceleration
from jaxdyn.identify._residuals import Torque as Torque
from jaxdyn.identify._simulated import Simulated as Simulated
from jaxdyn.identify._solvers import LevenbergMarquardt as LevenbergMarquardt
from jaxdyn.identify._solvers import Optax as Optax
from jaxdyn.identify.excitation import Excitation as Excitation
from jaxdyn.identify.excitation import excite as excite
from jaxdyn.identify.excitation import random_excitation as random_excitation
from jaxdyn.identify.linear import BaseParameters as BaseParameters
from jaxdyn.identify.linear import Consistent as Consistent
from jaxdyn.identify.linear import LinearFit as LinearFit
from jaxdyn.identify.linear import base_parameters as base_parameters
from jaxdyn.identify.linear import consistent as consistent
from jaxdyn.identify.linear import least_squares as least_squares
