"""The dynamics in O(log n) dependent steps."""

from jaxdyn.algorithms.log_depth._adjoint import parallel_pullback as parallel_pullback
from jaxdyn.algorithms.log_depth._factor import SegmentFactor as SegmentFactor
from jaxdyn.algorithms.log_depth._forward import parallel_forward as parallel_forward
from jaxdyn.algorithms.log_depth._recursions import (
    parallel_composite as parallel_composite,
)
from jaxdyn.algorithms.log_depth._recursions import (
    parallel_newton_euler as parallel_newton_euler,
)
