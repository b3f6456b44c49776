"""Programs of one state as kernels for NVIDIA GPUs: one launch, one thread a state."""

from jaxdyn.program.cuda._call import PTX_CALL as PTX_CALL
from jaxdyn.program.cuda._call import one_launch as one_launch
from jaxdyn.program.cuda._call import warn_plain as warn_plain
