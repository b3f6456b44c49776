"""What the gradient of a rollout costs: `python -m benchmarks.rollout_gradient`.

The arm of seven joints, 1000 steps, on one core. Time: the gradient by the first state
and by all torques, beside the rollout itself, for one state and for batches, in both
precisions; the programs take turns, and the ratio is the median of those of all turns.
Seconds are those of the processor, which other processes disturb less. Memory:
what the program of the gradient holds besides its arguments and results, by the number
of steps, as XLA counts it: of the rollout as it is, and with `every` near the root of
the number of steps.
"""

import math
import os
import sys

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import time  # noqa: E402
from collections.abc import Callable  # noqa: E402
from typing import Any  # noqa: E402

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import jaxdyn as jd  # noqa: E402
from benchmarks.robots import make  # noqa: E402

STEPS, DT, LIMIT = 1000, 1e-3, 5.0
TURNS, SECONDS = 15, 0.05  # of each program; a turn takes so long or one call
BATCHES = (0, 64, 1024)  # 0 is one state without a batch
LENGTHS = (250, 1000, 4000, 16000)


def end(model: jd.Model, q: Any, qd: Any, taus: Any) -> Any:
    """A number that depends on all of the last state."""
    qs, qds = jd.rollout(model, q, qd, taus, DT)
    return (qs[-1] ** 2).sum() + (qds[-1] ** 2).sum()


def end_of_pieces(model: jd.Model, q: Any, qd: Any, taus: Any) -> Any:
    """The same number; of the motion only the states between pieces are kept."""
    steps = len(taus)
    every = min(k for k in range(math.isqrt(steps), steps + 1) if steps % k == 0)
    qs, qds = jd.rollout(model, q, qd, taus, DT, every=every)
    return (qs[-1] ** 2).sum() + (qds[-1] ** 2).sum()


def functions(
    model: jd.Model, batch: int, number: Callable = end
) -> tuple[Callable, Callable]:
    """The rollout and its gradient, for one state or a batch."""

    def value(*state: Any) -> Any:
        return number(model, *state)

    gradient = jax.grad(value, (0, 1, 2))
    return (jax.vmap(value), jax.vmap(gradient)) if batch else (value, gradient)


def states(model: jd.Model, batch: int, steps: int) -> list[jax.Array]:
    """Random states at rest and small torques, for motions that stay tame."""
    rng = np.random.default_rng(0)
    lead = (batch,) if batch else ()
    q = rng.normal(size=(*lead, model.nq))
    taus = 0.1 * rng.normal(size=(*lead, steps, model.nv))
    return [jnp.asarray(x, model.dtype) for x in (q, 0 * q, taus)]


def seconds(calls: list[Callable], arrays: Any) -> np.ndarray:
    """The time of a call of each [turns, programs]."""

    def turn(call: Callable, count: int) -> float:
        start = time.process_time()
        for _ in range(count):
            jax.block_until_ready(call(*arrays))
        return (time.process_time() - start) / count

    counts = [max(1, int(SECONDS / min(turn(c, 1), turn(c, 1)))) for c in calls]
    pairs = list(zip(calls, counts, strict=True))
    return np.array([[turn(*pair) for pair in pairs] for _ in range(TURNS)])


def times(model: jd.Model, batch: int, number: Callable = end) -> float:
    """Print the times of a batch; returns the ratio."""
    arrays = states(model, batch, STEPS)
    rollout, _ = functions(model, batch)
    _, gradient = functions(model, batch, number)
    calls = [jax.jit(f).lower(*arrays).compile() for f in (rollout, gradient)]
    found = seconds(calls, arrays)
    one, other = np.median(found, axis=0) * 1e6 / max(batch, 1)
    ratio = float(np.median(found[:, 1] / found[:, 0]))
    kind = f"{model.dtype!s:>8} {batch or 'one':>6}"
    print(f"{kind} {one:12.0f} {other:12.0f} {ratio:6.2f}", flush=True)
    return ratio


def memory(model: jd.Model) -> None:
    """Print the numbers that the gradients keep for each step."""
    size = jnp.dtype(model.dtype).itemsize
    for steps in LENGTHS:
        arrays = states(model, 0, steps)
        cells = []
        for number in (end, end_of_pieces):
            _, gradient = functions(model, 0, number)
            program = jax.jit(gradient).lower(*arrays).compile()
            analysis: Any = program.memory_analysis()
            held = analysis.temp_size_in_bytes
            cells.append(f"{held / 1e3:10.1f} {held / size / steps:8.1f}")
        print(f"{steps:8} {' '.join(cells)}", flush=True)


def main(batches: list[int]) -> None:
    """Both tables; the largest ratio stands beside its limit."""
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    arm = make("arm")
    print(f"rollout of {STEPS} steps, microseconds a state")
    print(f"{'':>8} {'batch':>6} {'rollout':>12} {'gradient':>12} {'ratio':>6}")
    ratios = [
        times(arm.astype(dtype), batch)
        for dtype in (jnp.float64, jnp.float32)
        for batch in batches
    ]
    print(f"largest ratio {max(ratios):.2f}, limit {LIMIT}")
    print("the gradient in pieces, beside the rollout as it is")
    for batch in batches:
        times(arm, batch, end_of_pieces)
    print(f"\nmemory of the gradient, float64; 6 nv + 2 nq = {6 * arm.nv + 2 * arm.nq}")
    print(f"{'steps':>8} {'kB':>10} {'a step':>8} {'pieces: kB':>10} {'a step':>8}")
    memory(arm)


if __name__ == "__main__":
    main([int(x) for x in sys.argv[1:]] or list(BATCHES))
