"""One elementary step of a joint: its terms, its place in the world, its motion."""

from jaxdyn.algorithms.steps._local import Link as Link
from jaxdyn.algorithms.steps._local import at_last_steps as at_last_steps
from jaxdyn.algorithms.steps._local import inertias as inertias
from jaxdyn.algorithms.steps._local import inner_bias as inner_bias
from jaxdyn.algorithms.steps._local import joint_terms as joint_terms
from jaxdyn.algorithms.steps._local import less_external as less_external
from jaxdyn.algorithms.steps._local import links as links
from jaxdyn.algorithms.steps._local import product as product
from jaxdyn.algorithms.steps._local import rates as rates
from jaxdyn.algorithms.steps._local import screw as screw
from jaxdyn.algorithms.steps._local import step_frames as step_frames
from jaxdyn.algorithms.steps._local import wrenches as wrenches
from jaxdyn.algorithms.steps._matrices import filled as filled
from jaxdyn.algorithms.steps._matrices import mirrored as mirrored
from jaxdyn.algorithms.steps._matrices import pairs as pairs
from jaxdyn.algorithms.steps._motion import BaseMotion as BaseMotion
from jaxdyn.algorithms.steps._motion import Motion as Motion
from jaxdyn.algorithms.steps._motion import accelerate as accelerate
from jaxdyn.algorithms.steps._motion import accelerated as accelerated
from jaxdyn.algorithms.steps._motion import base_state as base_state
from jaxdyn.algorithms.steps._motion import motions as motions
from jaxdyn.algorithms.steps._motion import move as move
from jaxdyn.algorithms.steps._motion import poses as poses
from jaxdyn.algorithms.steps._world import Joint as Joint
from jaxdyn.algorithms.steps._world import joints as joints
