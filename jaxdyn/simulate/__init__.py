"""From states to motions: many steps, many states, all cores."""

from jaxdyn.simulate._batched import batched as batched
from jaxdyn.simulate._rollout import rollout as rollout
