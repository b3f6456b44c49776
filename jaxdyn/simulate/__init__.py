"""From states to motions: diffrax, fixed steps, many states on all cores."""

from jaxdyn.simulate._batched import batched as batched
from jaxdyn.simulate._events import joint_limit_event as joint_limit_event
from jaxdyn.simulate._linearize import linearize as linearize
from jaxdyn.simulate._linearize import stable_step as stable_step
from jaxdyn.simulate._power import PowerBalance as PowerBalance
from jaxdyn.simulate._power import power_balance as power_balance
from jaxdyn.simulate._rollout import rollout as rollout
from jaxdyn.simulate._rollout import step as step
from jaxdyn.simulate._simulate import adaptive_steps as adaptive_steps
from jaxdyn.simulate._simulate import simulate as simulate
from jaxdyn.simulate._trajectory import Outcome as Outcome
from jaxdyn.simulate._trajectory import State as State
from jaxdyn.simulate._trajectory import Trajectory as Trajectory
