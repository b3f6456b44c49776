"""Compile a function for a GPU that is not there, and count what was made."""

import re
import subprocess
import sysconfig
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jax
from jax.sharding import SingleDeviceSharding

from benchmarks.gpu_compile.devices import Gpu
from benchmarks.gpu_compile.hlo import Program

LAUNCH = 2.5e-6  # seconds from one kernel to the next where these are short


@dataclass
class Compiled:
    """What was made of a function.

    Attributes:
        kernels: launched by one call; loops: of each loop rounds x kernels.
        moved, least, held: bytes that kernels read and write, of inputs and outputs,
            and of temporaries.
        seconds: an estimate by launches and bytes, good for ratios; arithmetic is left
            out.
        compile_seconds: of the processor, to trace, lower and compile.
        registers, stack, spilled: the largest of all kernels by ptxas, the latter two
            in bytes a thread; None without ptxas.
        kinds: the kernels by the operation that they stem from.
        collectives: operations between devices.
    """

    kernels: int
    loops: list[str]
    moved: int
    least: int
    held: int
    seconds: float
    compile_seconds: float
    registers: int | None
    stack: int | None
    spilled: int | None
    kinds: dict[str, int]
    collectives: int

    @property
    def ratio(self) -> float:
        """Bytes moved over those of inputs and outputs."""
        return self.moved / self.least


def measure(
    function: Callable, types: Sequence[Any], gpu: Gpu, keep: Path | None = None
) -> Compiled:
    """Compile a function of arrays of given types.

    HLO, and PTX that it holds, are written to the folder `keep`, if given. Types that
    say how arrays are split keep that.
    """
    at = SingleDeviceSharding(gpu.devices()[0])

    def placed(x: Any) -> jax.ShapeDtypeStruct:
        where = getattr(x, "sharding", None) or at
        return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=where)

    placed_types = jax.tree.map(placed, types)
    start = time.process_time()
    lowered = jax.jit(function).trace(*placed_types).lower(lowering_platforms=("cuda",))
    made = lowered.compile()
    elapsed = time.process_time() - start
    text = made.as_text() or ""
    sources = embedded(text)
    if keep:
        keep.mkdir(parents=True, exist_ok=True)
        (keep / "program.hlo.txt").write_text(text)
        for k, source in enumerate(sources):
            (keep / f"kernel{k}.ptx").write_text(source)
    found = assembled(sources, gpu.architecture)
    count = Program(text, gpu.bandwidth, LAUNCH).count()
    memory: Any = made.memory_analysis()
    between = r"(all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter)"
    return Compiled(
        kernels=count.kernels,
        loops=count.loops,
        moved=count.moved,
        least=memory.argument_size_in_bytes + memory.output_size_in_bytes,
        held=memory.temp_size_in_bytes,
        seconds=count.seconds,
        compile_seconds=elapsed,
        registers=found and found[0],
        stack=found and found[1],
        spilled=found and found[2],
        kinds=count.kinds,
        collectives=len(re.findall(rf" {between}(?:-start)?\(", text)),
    )


def embedded(text: str) -> list[str]:
    """The PTX that custom calls of a program hold."""

    def character(found: re.Match) -> str:
        code = found[1]
        return chr(int(code, 16)) if len(code) == 2 else code

    quoted = re.findall(r'kernel_data = "((?:[^"\\]|\\.)*)"', text)
    return [re.sub(r"\\([0-9A-F]{2}|.)", character, x) for x in quoted]


def assembled(sources: Sequence[str], architecture: str) -> tuple[int, int, int] | None:
    """Registers, bytes of stack and of spills, the largest of all kernels, by ptxas."""
    ptxas = Path(sysconfig.get_path("purelib")) / "nvidia/cuda_nvcc/bin/ptxas"
    if not ptxas.exists() or not sources:
        return None
    said = ""
    with TemporaryDirectory() as folder:
        for source in sources:
            path = Path(folder) / "kernel.ptx"
            path.write_text(source)
            command = [ptxas, "-v", f"-arch={architecture}", "-o", "/dev/null", path]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            said += done.stderr

    def largest(pattern: str) -> int:
        return max(map(int, re.findall(pattern, said)), default=0)

    spills = r"(\d+) bytes spill stores"
    return (
        largest(r"Used (\d+) registers"),
        largest(r"(\d+) bytes stack"),
        largest(spills),
    )
