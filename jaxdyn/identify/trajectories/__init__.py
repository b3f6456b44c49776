"""Torques and policies of least cost."""

from jaxdyn.identify.trajectories._costs import Cost as Cost
from jaxdyn.identify.trajectories._costs import effort as effort
from jaxdyn.identify.trajectories._costs import reach as reach
from jaxdyn.identify.trajectories._costs import track as track
from jaxdyn.identify.trajectories._policies import OptimizedPolicy as OptimizedPolicy
from jaxdyn.identify.trajectories._policies import optimize_policy as optimize_policy
from jaxdyn.identify.trajectories._torques import OptimizedTorques as OptimizedTorques
from jaxdyn.identify.trajectories._torques import optimize_torques as optimize_torques
