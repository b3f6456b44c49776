"""Mass, mass centre and inertia of bodies, and coordinates for them."""

from jaxdyn.model.inertia._inertial import Inertial as Inertial
from jaxdyn.model.inertia._parameters import from_log_cholesky as from_log_cholesky
from jaxdyn.model.inertia._parameters import from_pi as from_pi
from jaxdyn.model.inertia._parameters import inertial_parameters as inertial_parameters
from jaxdyn.model.inertia._parameters import pseudo_inertia as pseudo_inertia
from jaxdyn.model.inertia._parameters import to_log_cholesky as to_log_cholesky
from jaxdyn.model.inertia._parameters import to_pi as to_pi
from jaxdyn.model.inertia._parameters import (
    with_inertial_parameters as with_inertial_parameters,
)
from jaxdyn.model.inertia._slender import SlenderRods as SlenderRods
