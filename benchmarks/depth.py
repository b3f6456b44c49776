"""Sequential beside parallel methods on long chains, one state: ratios from one run.

    python -m benchmarks.depth [n ...]

All programs of a size take turns; a turn counts the fastest of three calls. Printed are
medians over the turns, in microseconds, the time to compile, and the median of the
ratio to the sequential method within a turn.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd

TURNS, CALLS = 41, 3


def programs(n: int) -> dict[str, tuple[Callable, Callable]]:
    """Of each quantity the sequential and the parallel function of q, qd, tau."""
    model = jd.robots.protein_chain("A" * (n // 2))

    def forward(method: str, refine: int = 0) -> Callable:
        return lambda *x: jd.forward_dynamics(model, *x, method=method, refine=refine)

    def gradient(method: str) -> Callable:
        return jax.grad(lambda *x: forward(method)(*x).sum(), (0, 1, 2))

    def inverse(method: str) -> Callable:
        return lambda *x: jd.inverse_dynamics(model, *x, method=method)

    return {
        "forward dynamics": (forward("denoc"), forward("parallel")),
        "the same, refined": (forward("denoc", 1), forward("parallel", 1)),
        "gradient": (gradient("denoc"), gradient("parallel")),
        "inverse dynamics": (inverse("newton_euler"), inverse("parallel")),
    }


def timed(calls: list[Callable], arrays: Any) -> np.ndarray:
    """Seconds [turns, programs]."""

    def once(call: Callable) -> float:
        start = time.perf_counter()
        jax.block_until_ready(call(*arrays))
        return time.perf_counter() - start

    turn = lambda call: min(once(call) for _ in range(CALLS))  # noqa: E731
    for call in calls:
        turn(call)
    return np.array([[turn(call) for call in calls] for _ in range(TURNS)])


def main(sizes: list[int]) -> None:
    """One table, a row for each quantity and size."""
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    print(f"{'n':>5} {'quantity':20} {'sequential':>10} {'parallel':>10} {'ratio':>6}")
    for n in sizes:
        rng = np.random.default_rng(0)
        arrays = [jnp.asarray(x) for x in rng.normal(size=(3, n))]
        for name, pair in programs(n).items():
            calls, seconds = [], []
            for function in pair:
                start = time.perf_counter()
                calls.append(jax.jit(function).lower(*arrays).compile())
                seconds.append(time.perf_counter() - start)
            found = timed(calls, arrays)
            a, b = np.median(found, axis=0) * 1e6
            ratio = np.median(found[:, 1] / found[:, 0])
            print(
                f"{n:5} {name:20} {a:10.0f} {b:10.0f} {ratio:6.2f}   compiled in "
                f"{seconds[0]:.1f} and {seconds[1]:.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main([int(n) for n in sys.argv[1:]] or [256, 1024, 4096])
