"""A kernel in a program: XLA's own call of PTX.

The call is not part of XLA's public interface. On a GPU of this process a small program
is therefore tried first, and each kernel is compared with its program as written, but
where `JAXDYN_GPU_KERNELS` is "unchecked"; "off" compiles programs as on other devices.
"""

import os
import re
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from jaxdyn.program._cpu import (
    TRIAL,
    as_written,
    in_few_kernels,
    trial_error,
    trial_walk,
)
from jaxdyn.program._jax import ClosedJaxpr, ShapedArray
from jaxdyn.program.cuda._checking import COUNT, difference
from jaxdyn.program.cuda._compiling import CompilerError, compiled
from jaxdyn.program.cuda._kernel import BLOCK, MACROS, NAME, STATES, print_kernel
from jaxdyn.program.cuda._types import UnknownError

PTX_CALL = "__gpu$xla.gpu.ptx"
SETTING = "JAXDYN_GPU_KERNELS"  # a variable of the environment
SETTINGS = "checked", "unchecked", "off"  # the first by default
LOCAL = 2**15  # bytes of a thread's own memory, which a GPU sets aside for all
ROOM = 2**31  # bytes for all threads of a kernel that needs more


def one_launch(
    *args: Array,
    jaxpr: ClosedJaxpr,
    size: int | None,
    batched: Sequence[bool],
    capability: int,
) -> Sequence[ArrayLike]:
    """The results for all states, by one launch of a kernel."""
    setting = _setting()
    if setting == "off":
        return in_few_kernels(*args, jaxpr=jaxpr, size=size, batched=batched)
    gpu = local_gpu()
    if reason := gpu and distrust(gpu):
        raise CompilerError(reason)
    binary = assembled(jaxpr, batched, capability)
    few = None if size is None else COUNT
    if setting == "checked" and gpu:
        if reason := wrong_on(gpu, binary, jaxpr, few, batched):
            raise CompilerError(reason)
    return launch(*args, binary=binary, results=jaxpr.out_avals, size=size)


def _setting() -> str:
    setting = os.environ.get(SETTING) or SETTINGS[0]
    if setting not in SETTINGS:
        raise CompilerError(f"{SETTING}={setting}, expected one of {SETTINGS}")
    return setting


class Binary(NamedTuple):
    """A kernel as PTX, and the bytes outside of its own memory that a thread needs."""

    ptx: str
    room: int


def assembled(jaxpr: ClosedJaxpr, batched: Sequence[bool], capability: int) -> Binary:
    """The kernel of a program for a compute capability.

    Only the compiler knows how much memory arrays need, as many share it. If that is
    too much the largest are taken outside, more than enough as these share it too.
    """
    kernel, outside = print_kernel(jaxpr, batched), 0
    while True:
        source = kernel.source(outside)
        ptx = compiled(MACROS + source.text, capability)
        depot = re.search(r"__local_depot0\[(\d+)\]", ptx)
        excess = int(depot[1]) - LOCAL if depot else 0
        if excess <= 0 or source.room < outside:
            return Binary(ptx, source.room)
        outside = 2 * max(excess, source.room)


def launch(
    *args: ArrayLike, binary: Binary, results: Sequence[ShapedArray], size: int | None
) -> Sequence[Array]:
    """One launch of a kernel that returns a row of results for each state."""
    rows = () if size is None else (size,)
    types = [jax.ShapeDtypeStruct((*rows, *a.shape), a.dtype) for a in results]
    count = 1 if size is None else size
    blocks = max(1, -(-count // BLOCK))
    if binary.room:
        blocks = max(1, min(blocks, ROOM // (binary.room * BLOCK)))
        types.append(jax.ShapeDtypeStruct((blocks * BLOCK * binary.room,), np.uint8))
    grid = dict(grid_x=blocks, grid_y=1, grid_z=1)
    block = dict(block_x=BLOCK, block_y=1, block_z=1, shared_mem_bytes=0)
    numbers = {k: np.int32(n) for k, n in (grid | block).items()}
    data = binary.ptx.replace(STATES, str(count))
    call = jax.ffi.ffi_call(PTX_CALL, types)
    out = call(*args, name=NAME, kernel_type="ptx", kernel_data=data, **numbers)
    return out[: len(results)]


def local_gpu() -> Any:
    """A GPU of this process, None without one: programs may be compiled for others."""
    return next((d for d in jax.local_devices() if d.platform == "gpu"), None)


@cache
def distrust(gpu: Any) -> str:
    """Why kernels of this kind are not used on a GPU; empty if they are."""
    return _apart(partial(_trial, gpu))


def _trial(gpu: Any) -> str:
    """What is wrong with a small kernel on a device; empty if nothing is."""
    batch = [np.stack([x, x, x]) for x in (TRIAL, TRIAL[1])]
    program = jax.make_jaxpr(trial_walk)(TRIAL, TRIAL[1])
    try:
        capability = int(gpu.compute_capability.replace(".", ""))
        binary = assembled(program, [True, True], capability)
        last, rows = on_device(gpu, binary, program.out_avals, len(batch[0]))(*batch)
    except Exception as error:  # whatever a driver or a release of JAX refuses
        return f"a trial kernel failed with {type(error).__name__}: {error}"
    return trial_error(last[2], rows[2])


VERDICTS: dict[Binary, str] = {}  # what is wrong with a kernel


def wrong_on(
    gpu: Any,
    binary: Binary,
    jaxpr: ClosedJaxpr,
    size: int | None,
    batched: Sequence[bool],
) -> str:
    """What is wrong with a kernel on a GPU, for a few states; empty if nothing is.

    It is compared with the program as written on the CPU, or on the GPU where JAX has
    no CPU, once in a process.
    """
    if binary not in VERDICTS:
        options: Any = dict(jaxpr=jaxpr, size=size, batched=tuple(batched))
        kernel = on_device(gpu, binary, jaxpr.out_avals, size)
        plain = _at(_host() or gpu, partial(as_written, **options))
        given = kernel, plain, jaxpr.in_avals, batched, size
        found = _apart(partial(_compared, *given))
        advice = "please report this with what `jaxdyn bench-gpu` prints"
        VERDICTS[binary] = found and f"{found} on {gpu.device_kind}: {advice}"
    return VERDICTS[binary]


def _compared(*given: Any) -> str:
    try:
        return difference(*given)
    except Exception as error:  # whatever a driver or a release of JAX refuses
        return f"a kernel failed with {type(error).__name__}: {error}"


def on_device(
    gpu: Any, binary: Binary, results: Sequence[ShapedArray], size: int | None
) -> Callable:
    """A function of arrays that launches a kernel on a GPU."""
    return _at(gpu, partial(launch, binary=binary, results=results, size=size))


def _at(device: Any, function: Callable) -> Callable:
    run = jax.jit(function)
    return lambda *args: jax.device_get(run(*jax.device_put(args, device)))


def _host() -> Any:
    try:
        return jax.local_devices(backend="cpu")[0]
    except RuntimeError:  # JAX_PLATFORMS leaves it out
        return None


def _apart(function: Callable[[], str]) -> str:
    """The result of a function that is outside of what the caller traces or sets."""
    wide = jax.config.jax_enable_x64  # type: ignore

    def run() -> str:
        with jax.enable_x64(wide):
            return function()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run).result()


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
