"""The same calls with several releases of JAX or of jaxdyn, timed in turns.

    python -m benchmarks.turns PYTHON[@CHECKOUT] [PYTHON[@CHECKOUT] ...] [--only NAME]

Each interpreter runs the jaxdyn of its checkout, by default of this one, in a process
of its own. Ratios are to the first. "trace" and "compile" are of one call with nothing
in a cache, the rest are run times.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

TURNS = 7
TOP = Path(__file__).resolve().parent.parent


def calls() -> dict[str, tuple[Callable, tuple]]:
    """What is timed: a function and its arguments, by name."""
    import jax
    import jax.numpy as jnp

    import jaxdyn as jd

    def states(model: Any, rows: int, dtype: str = "float64") -> list:
        keys = jax.random.split(jax.random.key(0), 3)
        return [jax.random.normal(key, (rows, model.nv), dtype) for key in keys]

    def batched(function: Callable) -> Callable:
        return jax.vmap(function, (None, 0, 0, 0))

    def gradient(model: Any, q: Any, qd: Any, tau: Any) -> Any:
        def loss(*state: Any) -> Any:
            return jnp.sum(jd.forward_dynamics(model, *state) ** 2)

        return jax.grad(loss, (0, 1, 2))(q, qd, tau)

    def motion(model: Any, q: Any, qd: Any, tau: Any) -> Any:
        return jd.rollout(model, q, qd, jnp.tile(tau, (100, 1)), 1e-3)

    def motion_gradient(model: Any, q: Any, qd: Any, tau: Any) -> Any:
        return jax.grad(lambda tau: jnp.sum(motion(model, q, qd, tau)[0][-1] ** 2))(tau)

    def inertia(model: Any, q: Any, qd: Any, tau: Any) -> Any:
        return jd.mass_matrix(model, q)

    def closed_gradient(model: Any, q: Any, qd: Any, tau: Any) -> Any:
        def loss(tau: Any) -> Any:
            return jnp.sum(jd.constrained_dynamics(model, q, qd, tau)[0] ** 2)

        return jax.grad(loss)(tau)

    arm, tree, loop = jd.robots.chain(7), jd.robots.lecture_tree(), jd.robots.four_bar()
    single = jax.tree.map(lambda x: x.astype("float32"), arm)
    one = [x[0] for x in states(arm, 1)]
    many = states(arm, 4096)
    closed = [x[0] for x in states(loop, 1)]
    return {
        "FD, batch 4096": (batched(jd.forward_dynamics), (arm, *many)),
        "FD, batch 4096, float32": (
            batched(jd.forward_dynamics),
            (single, *states(arm, 4096, "float32")),
        ),
        "ID, batch 4096": (batched(jd.inverse_dynamics), (arm, *many)),
        "M, batch 4096": (batched(inertia), (arm, *many)),
        "FD, one state": (jd.forward_dynamics, (arm, *one)),
        "ID, one state": (jd.inverse_dynamics, (arm, *one)),
        "M, one state": (inertia, (arm, *one)),
        "FD of a tree, batch 512": (
            batched(jd.forward_dynamics),
            (tree, *states(tree, 512)),
        ),
        "gradient of FD, batch 1024": (batched(gradient), (arm, *states(arm, 1024))),
        "rollout, batch 64": (batched(motion), (arm, *states(arm, 64))),
        "gradient of rollout, batch 64": (
            batched(motion_gradient),
            (arm, *states(arm, 64)),
        ),
        "loops, one state": (jd.constrained_dynamics, (loop, *closed)),
        "gradient of loops, one state": (closed_gradient, (loop, *closed)),
    }


COMPILED = ("FD, one state", "gradient of FD, batch 1024", "gradient of loops, one")


def worker(only: str) -> None:
    """Answer each line of the input with the times of all calls."""
    import jax

    jax.config.update("jax_enable_x64", True)
    chosen = {name: call for name, call in calls().items() if only in name}
    programs = {name: jax.jit(function) for name, (function, _) in chosen.items()}

    def run(name: str) -> float:
        start = time.perf_counter()
        jax.block_until_ready(programs[name](*chosen[name][1]))
        return time.perf_counter() - start

    def compiled(function: Callable, args: tuple) -> tuple[float, float]:
        jax.clear_caches()
        start = time.perf_counter()
        lowered = jax.jit(lambda *args: function(*args)).lower(*args)
        middle = time.perf_counter()
        lowered.compile()
        return middle - start, time.perf_counter() - middle

    for name in chosen:
        run(name)
    counts = {name: max(3, int(0.15 / max(run(name), 1e-5))) for name in chosen}
    print(sys.version.split()[0], jax.__version__, flush=True)
    for line in sys.stdin:
        found = {}
        for name, call in chosen.items():
            if line.strip() == "run":
                found[name] = min(run(name) for _ in range(counts[name]))
            elif name.startswith(COMPILED):
                traced, built = compiled(*call)
                found |= {f"trace: {name}": traced, f"compile: {name}": built}
        print(json.dumps(found), flush=True)


def start(side: str, only: str) -> subprocess.Popen:
    """A worker of an interpreter with the jaxdyn of a checkout."""
    python, _, checkout = side.partition("@")
    code = (
        f"import runpy, sys; sys.path.insert(0, {checkout or str(TOP)!r}); "
        f"runpy.run_path({__file__!r})['worker']({only!r})"
    )
    pipe = subprocess.PIPE
    return subprocess.Popen([python, "-c", code], stdin=pipe, stdout=pipe, text=True)


def main() -> None:
    """Time all sides in turns and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sides", nargs="*", default=[sys.executable])
    parser.add_argument("--only", default="", help="calls whose name has this text")
    given = parser.parse_args()
    workers = [start(side, given.only) for side in given.sides]
    for side, process in zip(given.sides, workers, strict=True):
        print(f"{side}: {process.stdout.readline().strip()}")  # type: ignore
    times: list[dict[str, list[float]]] = [{} for _ in workers]
    for what in ["run"] * TURNS + ["compile"] * 3:
        for process, own in zip(workers, times, strict=True):
            process.stdin.write(f"{what}\n"), process.stdin.flush()  # type: ignore
            for name, found in json.loads(process.stdout.readline()).items():  # type: ignore
                own.setdefault(name, []).append(found)
    for process in workers:
        process.stdin.close()  # type: ignore
    print(f"{'':<44}first, us   median of each to the first")
    for name in times[0]:
        medians = [median(own[name]) for own in times]
        ratios = "".join(f"{x / medians[0]:8.2f}" for x in medians[1:])
        print(f"{name:<44}{medians[0] * 1e6:9.1f}{ratios}")


if __name__ == "__main__":
    main()
