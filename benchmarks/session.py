"""The parent's side of a worker: start it, ask it, end it when it takes too long."""

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
_EMITTERS = "--xla_cpu_use_fusion_emitters=false"
_SCHEDULER = "--xla_cpu_scheduler_type=CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"
_SCHEDULER += " --xla_cpu_multi_thread_eigen=false"
FLAGS = {  # of XLA; each library runs under each, and its best one counts
    "default": "",
    "no fusion emitters": _EMITTERS,
    "memory scheduler": _SCHEDULER,
    "both": f"{_EMITTERS} {_SCHEDULER}",
}


def known_flags(flags: str) -> str:
    """Those of some XLA flags that this release knows: others end a process."""
    return " ".join(filter(_is_known, flags.split()))


@cache
def _is_known(flag: str) -> bool:
    environment = os.environ | {"XLA_FLAGS": flag, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", "import jax; jax.devices()"]
    return not subprocess.run(command, env=environment, capture_output=True).returncode


@dataclass(frozen=True)
class Contestant:
    """One library in one precision under one set of XLA flags."""

    peer: str
    precision: str
    flags: str = "default"


class Session:
    """A worker process. Every answer is a dictionary; "failed" in it says why not."""

    def __init__(
        self,
        who: Contestant,
        cores: list[int],
        log: Path,
        is_async: bool = False,
    ):
        self.who, self.cores, self.log = who, cores, log
        self.is_async = is_async
        self.process: subprocess.Popen | None = None
        self.folder: str | None = None
        self.late = 0  # requests over the limit
        self.given_up: str | None = None  # why it is not asked any more

    def start(self) -> None:
        """Start the process; it goes to its cores before it imports anything large."""
        environment = os.environ | {
            "XLA_FLAGS": known_flags(FLAGS[self.who.flags]),
            "JAX_ENABLE_X64": str(int(self.who.precision == "float64")),
            "JAX_PLATFORMS": "cpu",
            "BENCHMARKS_ASYNCHRONOUS": str(int(self.is_async)),
        }
        if len(self.cores) == 1:
            environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "benchmarks.worker"]
        cores = ",".join(map(str, self.cores))
        command += [self.who.peer, self.who.precision, cores]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=ROOT,
                env=environment,
            )

    def ask(self, limit: float, **request: Any) -> dict[str, Any]:
        """Send a request; a worker that does not answer in time is ended."""
        if self.process is None:
            self.start()
            if self.folder and request["do"] != "load":
                answer = self.ask(limit, do="load", folder=self.folder)
                if "failed" in answer:
                    return answer
        if request["do"] == "load":
            self.folder = request["folder"]
        assert self.process and self.process.stdin and self.process.stdout
        line = json.dumps({"cores": self.cores} | request) + "\n"
        try:
            self.process.stdin.write(line.encode())
            self.process.stdin.flush()
            answer = self._read(time.monotonic() + limit)
        except BrokenPipeError:
            answer = b""
        if answer is None:
            self.stop()
            self.late += 1
            return {"failed": f"over the limit of {limit:g} s"}
        if not answer:
            code = self.process.wait()
            self.stop()
            return {"failed": f"the process ended with code {code}"}
        return json.loads(answer)

    def stop(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            with contextlib.suppress(BrokenPipeError):
                self.process.communicate()
            self.process = None

    def _read(self, deadline: float) -> bytes | None:
        """One line, b"" at the end of the stream, None after the deadline."""
        assert self.process and self.process.stdout
        stream, line = self.process.stdout.fileno(), b""
        while not line.endswith(b"\n"):
            wait = max(0.0, deadline - time.monotonic())
            if not select.select([stream], [], [], wait)[0]:
                return None
            part = os.read(stream, 1 << 16)
            if not part:
                return b""
            line += part
        return line
