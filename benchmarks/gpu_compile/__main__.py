"""What programs become on an NVIDIA GPU: `python -m benchmarks.gpu_compile`.

Compiled for a device that is described and not there; nothing runs. For each program:
kernels launched in one call (those in loops times the rounds), bytes that they move
and those of inputs and outputs, temporaries, registers and spills by ptxas, and the
time of the processor to compile. `us` is an estimate of launches and bytes, good for
ratios: each kernel takes 2.5 us or the time for its bytes at the device's bandwidth,
whichever is longer.
"""

import argparse
import json
import os
import re
import sys
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

from benchmarks.gpu_compile.devices import GPUS  # noqa: E402
from benchmarks.gpu_compile.measure import Compiled, measure  # noqa: E402
from benchmarks.gpu_compile.programs import of_peer, own  # noqa: E402

COLUMNS = (
    "program",
    "kernels",
    "loops",
    "MB moved",
    "MB in and out",
    "ratio",
    "MB temporary",
    "us",
    "registers",
    "bytes of stack, spilled",
    "CPU s to compile",
)


def row(name: str, made: Compiled) -> str:
    """A line of the table."""
    cells = (
        name,
        made.kernels,
        " ".join(made.loops) or "–",
        f"{made.moved / 1e6:.1f}",
        f"{made.least / 1e6:.1f}",
        f"{made.ratio:.2f}",
        f"{made.held / 1e6:.0f}",
        f"{1e6 * made.seconds:.0f}",
        "–" if made.registers is None else made.registers,
        "–" if made.stack is None else f"{made.stack}, {made.spilled}",
        f"{made.compile_seconds:.1f}",
    )
    return f"| {' | '.join(map(str, cells))} |"


def parse(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser("benchmarks.gpu_compile", description=__doc__)
    add = parser.add_argument
    add("--gpu", choices=GPUS, default="a100")
    add("--batch", type=int, default=65536)
    add("--robot", nargs="*", default=["arm", "humanoid", "chain50"])
    add("--program", nargs="*", help="names; by default all")
    add("--library", nargs="*", default=["jaxdyn"], help="jaxdyn, mjx, brax, frax")
    add("--keep", type=Path, help="a folder for HLO and PTX")
    add("--json", type=Path, help="a file for all that was counted")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> None:
    """Print the table, a line as soon as it is known."""
    given = parse(arguments)
    gpu, results = GPUS[given.gpu], []
    print(f"{gpu.name}, batch {given.batch}, float32: compiled, never run.\n")
    print(f"| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}", flush=True)
    with TemporaryDirectory() as folder:
        for robot in given.robot:
            for library in given.library:
                if library == "jaxdyn":
                    programs = own(robot, given.batch)
                else:
                    programs = of_peer(library, robot, given.batch, Path(folder))
                for what, (function, types) in programs.items():
                    if given.program and what not in given.program:
                        continue
                    name = f"{robot} {what}, {library}"
                    keep = given.keep and given.keep / re.sub(r"\W+", "_", name)
                    made = measure(function, types, gpu, keep)
                    print(row(name, made), flush=True)
                    results.append({"program": name, **asdict(made)})
    if given.json:
        head: dict[str, Any] = {"gpu": gpu.name, "batch": given.batch}
        given.json.write_text(json.dumps({**head, "programs": results}, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
