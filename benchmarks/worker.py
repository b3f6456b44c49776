"""One process for one library: JSON lines in, JSON lines out.

`python -m benchmarks.worker LIBRARY PRECISION CORES`, with cores as in 0,1. Requests
are one object on one line with a key "do"; answers are one object on one line. An
answer with "failed" says why a request could not be done. While it waits the process
sleeps.
"""

import importlib
import json
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.base import flat
from benchmarks.plan import COMPILED
from benchmarks.problem import CHECKED, TOLERANCE, Robot, relative_error


class Worker:
    """The library, the robot and the rows that are ready."""

    def __init__(self, library: str, precision: str, threads: int):
        self.precision, self.threads = precision, threads
        if library not in COMPILED:
            import jax

            is_async = os.environ.get("BENCHMARKS_ASYNCHRONOUS") == "1"
            jax.config.update("jax_cpu_enable_async_dispatch", is_async)
        self.kind = importlib.import_module(f"benchmarks.peers.{library}_peer").Peer
        self.peer: Any = None
        self.ready: dict[str, Any] = {}

    def about(self) -> dict[str, Any]:
        """The precisions of the library and the versions of its packages."""
        versions = {}
        for package in self.kind.packages:
            try:
                versions[package] = version(package)
            except PackageNotFoundError:
                versions[package] = "from source"
        return {"precisions": self.kind.precisions, "versions": versions}

    def load(self, folder: str) -> dict[str, Any]:
        """Read a robot; what was ready before is dropped."""
        self.drop()
        self.peer = self.kind(Robot(Path(folder)), self.precision, self.threads)
        return {"note": self.peer.note}

    def ways(self, row: str) -> dict[str, Any]:
        """The ways of a row, or why there are none."""
        reason = self.peer.why_not(row)
        return {"ways": [] if reason else list(self.peer.ways(row)), "absent": reason}

    def refer(self, row: str) -> dict[str, Any]:
        """Write the results of the first states, with which all others are compared."""
        robot = self.peer.robot
        states = robot.states(CHECKED, row)
        way = next(iter(self.peer.ways(row)))
        output = self.peer.prepare(row, way, CHECKED, states).call()
        output = self.peer.result(row, states, flat(output, CHECKED))
        np.save(robot.folder / f"{row}.npy", output)
        return {}

    def prepare(self, row: str, way: str, batch: int) -> dict[str, Any]:
        """Compile a row, compare its results with the reference, time one call."""
        states = self.peer.robot.states(max(batch, 1), row)
        prepared = self.peer.prepare(row, way, batch, states)
        output = self.peer.result(row, states, flat(prepared.call(), batch))
        error = relative_error(output, self.peer.robot.reference(row))
        if error > TOLERANCE[self.precision]:
            return {"failed": f"disagrees: relative error {error:.1e}"}
        self.ready[f"{row} {way}"] = prepared.call
        return {
            "error": error,
            "seconds": shortest(prepared.call),
            "compile_seconds": prepared.compile_seconds,
            "memory": prepared.memory,
        }

    def time(self, row: str, way: str, calls: int) -> dict[str, Any]:
        """The seconds of one call, the mean of some after some that are not timed."""
        call = self.ready[f"{row} {way}"]
        for _ in range(calls // 10):
            call()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        return {"seconds": (time.perf_counter() - start) / calls}

    def compile(self, row: str, way: str, batch: int) -> dict[str, Any]:
        """The seconds to trace and compile a row from scratch, and its memory."""
        import jax

        jax.clear_caches()
        states = self.peer.robot.states(max(batch, 1), row)
        prepared = self.peer.prepare(row, way, batch, states)
        return {"seconds": prepared.compile_seconds, "memory": prepared.memory}

    def plain_calls(self) -> dict[str, Any]:
        """The seconds of calls outside of any jit (of jaxdyn)."""
        return self.peer.plain_calls()

    def drop(self) -> dict[str, Any]:
        """Forget what was ready; tells the largest memory of the process so far."""
        self.ready.clear()
        if "jax" in sys.modules:
            sys.modules["jax"].clear_caches()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return {"peak_memory": peak}


def shortest(call: Callable[[], Any], limit: float = 0.1) -> float:
    """The seconds of the shortest of some calls: others were interrupted."""
    seconds = []
    while not seconds or (len(seconds) < 20 and sum(seconds) < limit):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def pin(cores: list[int]) -> None:
    """Put all threads of this process on some cores."""
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), cores)


def serve(library: str, precision: str, threads: int) -> None:
    """Answer requests until the input ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print must not mix with the answers
    worker: Worker | None = None
    for line in sys.stdin:
        request = json.loads(line)
        action, cores = request.pop("do"), request.pop("cores", None)
        try:
            if cores:
                pin(cores)
            worker = worker or Worker(library, precision, threads)
            answer = getattr(worker, action)(**request)
        except ImportError as error:
            answer = {"failed": f"missing: {error}", "missing": True}
        except Exception as error:
            traceback.print_exc()
            answer = {"failed": f"{type(error).__name__}: {error}"[:500]}
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    CORES = [int(core) for core in sys.argv[3].split(",")]
    pin(CORES)
    serve(sys.argv[1], sys.argv[2], len(CORES))
