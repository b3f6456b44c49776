"""Forward dynamics of 7 joints, batch 4096, with the JAX of several environments.

    python -m benchmarks.releases PYTHON [PYTHON ...]

Each interpreter is one process; they are timed in turns, and ratios are to the first.
"""

import subprocess
import sys
from pathlib import Path

TURNS = 9
WORKER = """
import sys, time
import jax
jax.config.update("jax_enable_x64", True)
import jaxdyn as jd
model = jd.robots.chain(7)
keys = jax.random.split(jax.random.key(0), 3)
state = [jax.random.normal(key, (4096, 7)) for key in keys]
run = jax.jit(jax.vmap(jd.forward_dynamics, (None, 0, 0, 0)))
jax.block_until_ready(run(model, *state))
print(sys.version.split()[0], jax.__version__, flush=True)
for line in sys.stdin:
    times = []
    for _ in range(40):
        start = time.perf_counter()
        jax.block_until_ready(run(model, *state))
        times.append(time.perf_counter() - start)
    print(min(times) / 4096, flush=True)
"""


def start(python: str) -> subprocess.Popen:
    """A worker of the jaxdyn of this checkout."""
    pipe, top = subprocess.PIPE, Path(__file__).resolve().parent.parent
    command = [python, "-c", WORKER]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=top)


def main(pythons: list[str]) -> None:
    """Time all interpreters in turns and print a table."""
    workers = [start(python) for python in pythons]
    names = [worker.stdout.readline().strip() for worker in workers]  # type: ignore
    times: list[list[float]] = [[] for _ in workers]
    for _ in range(TURNS):
        for worker, own in zip(workers, times, strict=True):
            worker.stdin.write("\n"), worker.stdin.flush()  # type: ignore
            own.append(float(worker.stdout.readline()))  # type: ignore
    for worker in workers:
        worker.stdin.close()  # type: ignore
    print("Python JAX        best    median  us/state, median to the first")
    for name, own in zip(names, times, strict=True):
        median = sorted(own)[TURNS // 2]
        ratio = median / sorted(times[0])[TURNS // 2]
        print(f"{name:<16}{min(own) * 1e6:7.3f}{median * 1e6:9.3f}{ratio:10.2f}")


if __name__ == "__main__":
    main(sys.argv[1:] or [sys.executable])
