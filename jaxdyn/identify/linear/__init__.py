"""The linear way: base parameters by least squares, and the nearest physical model."""

from jaxdyn.identify.linear._base import BaseParameters as BaseParameters
from jaxdyn.identify.linear._base import base_parameters as base_parameters
from jaxdyn.identify.linear._columns import FREE as FREE
from jaxdyn.identify.linear._columns import regressor_rows as regressor_rows
from jaxdyn.identify.linear._consistent import Consistent as Consistent
from jaxdyn.identify.linear._consistent import consistent as consistent
from jaxdyn.identify.linear._least_squares import LinearFit as LinearFit
from jaxdyn.identify.linear._least_squares import least_squares as least_squares
