"""A kernel in a program: XLA's own call of PTX.

The call is not part of XLA's public interface, and the first kernel of a process is
therefore tried on a small program first.
"""

import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from jaxdyn.program._cpu import TRIAL, trial_error, trial_walk
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
    if reason := distrust():
        raise CompilerError(reason)
    return _launch(
        *args, jaxpr=jaxpr, size=size, batched=batched, capability=capability
    )


def _launch(
    *args: Array,
    jaxpr: ClosedJaxpr,
    size: int | None,
    batched: Sequence[bool],
    capability: int,
) -> Sequence[Array]:
    text = print_kernel(jaxpr, size, batched)
    rows = () if size is None else (size,)
    types = [jax.ShapeDtypeStruct((*rows, *a.shape), a.dtype) for a in jaxpr.out_avals]
    grid = dict(grid_x=-(-(size or 1) // BLOCK), grid_y=1, grid_z=1)
    block = dict(block_x=BLOCK, block_y=1, block_z=1, shared_mem_bytes=0)
    numbers = {k: np.int32(n) for k, n in (grid | block).items()}
    ptx = compiled(MACROS + text, capability)
    call = jax.ffi.ffi_call(TARGET, types)
    return call(*args, name=NAME, kernel_type="ptx", kernel_data=ptx, **numbers)


@cache
def distrust() -> str:
    """Why kernels of this kind are not used on the GPUs of this process.

    Empty without such GPUs: programs may be compiled for others.
    """
    gpus = [d for d in jax.local_devices() if d.platform == "gpu"]
    if not gpus:
        return ""
    with ThreadPoolExecutor(1) as pool:  # outside of what the caller traces or sets
        return pool.submit(_trial, gpus[0]).result()


def _trial(device: Any) -> str:
    """What is wrong with a small kernel on a device; empty if nothing is."""
    batch = [np.stack([x, x, x]) for x in (TRIAL, TRIAL[1])]
    program = jax.make_jaxpr(trial_walk)(TRIAL, TRIAL[1])
    options: Any = dict(jaxpr=program, size=3, batched=[True, True])
    try:
        capability = int(device.compute_capability.replace(".", ""))  # type: ignore
        run = jax.jit(lambda *args: _launch(*args, capability=capability, **options))
        last, rows = jax.device_get(run(*jax.device_put(batch, device)))
    except Exception as error:  # whatever a driver or a release of JAX refuses
        return f"a trial kernel failed with {type(error).__name__}: {error}"
    return trial_error(last[2], rows[2])


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
