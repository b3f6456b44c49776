"""Compile time of the kinematics against the number of bodies: it must not grow."""

import statistics
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp

import jaxdyn as jd

SIZES = (10, 100, 1000)
REPEATS = 7


def compile_seconds(function: Callable, model: jd.Model) -> float:
    """Seconds to trace and compile a function of (model, q, qd) from scratch."""
    q, qd = jd.neutral(model), jnp.zeros(model.nv, model.dtype)
    jax.clear_caches()
    start = time.perf_counter()
    jax.jit(function).lower(model, q, qd).compile()
    return time.perf_counter() - start


def main() -> None:
    """Print medians of interleaved repeats and their ratios to the smallest model."""
    functions: dict[str, Callable] = {
        "forward_kinematics": lambda m, q, qd: jd.forward_kinematics(m, q),
        "body_velocities": jd.body_velocities,
        "body_accelerations": lambda m, q, qd: jd.body_accelerations(m, q, qd, qd),
    }
    models = {n: jd.robots.chain(n) for n in SIZES}
    print("compile time in seconds, and its ratio to n = 10")
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
