"""Import time, and compile time against the number of bodies."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp

import jaxdyn as jd

SIZES = (10, 100, 1000)
REPEATS = 3


def compile_seconds(function: Callable, model: jd.Model) -> float:
    """Seconds to trace and compile a function of (model, q, qd) from scratch."""
    q, qd = jd.neutral(model), jnp.zeros(model.nv, model.dtype)
    jax.clear_caches()
    start = time.perf_counter()
    jax.jit(function).lower(model, q, qd).compile()
    return time.perf_counter() - start


def import_seconds(package: str) -> float:
    """Median seconds to import a package in a new process, less those of Python."""
    seconds = {"pass": [], f"import {package}": []}
    for _ in range(REPEATS):
        for code, times in seconds.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            times.append(time.perf_counter() - start)
    bare, full = map(statistics.median, seconds.values())
    return full - bare


def call_seconds(function: Callable, model: jd.Model) -> list[float]:
    """Seconds of a first and a second call outside of any `jit`."""
    q, qd, seconds = jd.neutral(model), jnp.zeros(model.nv, model.dtype), []
    for _ in range(2):
        start = time.perf_counter()
        jax.block_until_ready(function(model, q, qd, qd))
        seconds.append(time.perf_counter() - start)
    return seconds


def main() -> None:
    """Print import time, time of plain calls and the tables of compile times."""
    functions: dict[str, Callable] = {
        "forward_kinematics": lambda m, q, qd: jd.forward_kinematics(m, q),
        "body_velocities": jd.body_velocities,
        "body_accelerations": lambda m, q, qd: jd.body_accelerations(m, q, qd, qd),
        "inverse_dynamics": lambda m, q, qd: jd.inverse_dynamics(m, q, qd, qd),
        "forward_dynamics": lambda m, q, qd: jd.forward_dynamics(m, q, qd, qd),
        "its gradient": jax.grad(
            lambda m, q, qd: jd.forward_dynamics(m, q, qd, qd).sum(), (0, 1, 2)
        ),
    }
    for package in ("jax", "jaxdyn"):
        print(f"import {package}: {import_seconds(package):.2f} s")
    ways = {
        "as it is": jd.forward_dynamics,
        "without its own jit": jd.forward_dynamics.__wrapped__,  # type: ignore
    }
    print("\nforward_dynamics outside of jit, seconds of the first and second call")
    for name, function in ways.items():
        first, second = call_seconds(function, jd.robots.puma_560())
        print(f"{name:20}{first:9.2f} {second:9.5f}")
    families: dict[str, Callable[[int], jd.Model]] = {
        "chain": jd.robots.chain,
        "random tree": lambda n: jd.robots.random_tree(0, n),
    }
    for family, make in families.items():
        models = {n: make(n) for n in SIZES}
        levels = ", ".join(str(len(m.topology.lanes.levels)) for m in models.values())
        print(f"\n{family} (levels: {levels}): seconds to compile, ratio to n = 10")
        table(functions, models)


def table(functions: dict[str, Callable], models: dict[int, jd.Model]) -> None:
    """Print medians of interleaved repeats, one row for each function."""
    print(f"{'':20}" + "".join(f"{f'n = {n}':>18}" for n in SIZES))
    for name, function in functions.items():
        seconds = {n: [] for n in SIZES}
        for _ in range(REPEATS):
            for n in SIZES:
                seconds[n].append(compile_seconds(function, models[n]))
        medians = {n: statistics.median(seconds[n]) for n in SIZES}
        cells = (f"{m:.2f} ({m / medians[SIZES[0]]:.2f})" for m in medians.values())
        print(f"{name:20}" + "".join(f"{cell:>18}" for cell in cells))


if __name__ == "__main__":
    main()
