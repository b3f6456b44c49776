"""Torques and policies of least cost."""

from jaxdyn.optimize._costs import Cost as Cost
from jaxdyn.optimize._costs import effort as effort
from jaxdyn.optimize._costs import reach as reach
from jaxdyn.optimize._costs import track as track
from jaxdyn.optimize._policies import OptimizedPolicy as OptimizedPolicy
from jaxdyn.optimize._policies import optimize_policy as optimize_policy
from jaxdyn.optimize._torques import OptimizedTorques as OptimizedTorques
from jaxdyn.optimize._torques import optimize_torques as optimize_torques
