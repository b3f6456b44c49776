"""A kernel in a program: XLA's own call of PTX."""

import warnings
from collections.abc import Sequence

import jax
import numpy as np
from jaxtyping import Array

from jaxdyn.program._jax import ClosedJaxpr
from jaxdyn.program.cuda._compiling import CompilerError, compiled
from jaxdyn.program.cuda._kernel import BLOCK, MACROS, NAME, print_kernel
from jaxdyn.program.cuda._types import UnknownError

TARGET = "__gpu$xla.gpu.ptx"


def one_launch(
    *args: Array,
    jaxpr: ClosedJaxpr,
    size: int | None,
    batched: Sequence[bool],
    capability: int,
) -> Sequence[Array]:
    """The results for all states, by one launch of a kernel."""
    text = print_kernel(jaxpr, size, batched)
    rows = () if size is None else (size,)
    types = [jax.ShapeDtypeStruct((*rows, *a.shape), a.dtype) for a in jaxpr.out_avals]
    grid = dict(grid_x=-(-(size or 1) // BLOCK), grid_y=1, grid_z=1)
    block = dict(block_x=BLOCK, block_y=1, block_z=1, shared_mem_bytes=0)
    numbers = {k: np.int32(n) for k, n in (grid | block).items()}
    ptx = compiled(MACROS + text, capability)
    call = jax.ffi.ffi_call(TARGET, types)
    return call(*args, name=NAME, kernel_type="ptx", kernel_data=ptx, **numbers)


def warn_plain(error: Exception) -> None:
    """Warn that a program is compiled as written because of an error."""
    is_known = isinstance(error, UnknownError | CompilerError)
    reason = str(error) if is_known else repr(error)
    warnings.warn(
        f"a program of jaxdyn is many launches on the GPU instead of one, with the "
        f"same results: {reason}",
        RuntimeWarning,
        stacklevel=2,
    )
