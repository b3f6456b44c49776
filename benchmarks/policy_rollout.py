"""Rollouts under a network: `python -m benchmarks.policy_rollout PEER ...`.

The arm of seven joints, 100 semi-implicit steps, a batch of 1024, float64, on one core.
The network has two layers of 64 and sees q and qd; the gradient is that of a mean cost
by its weights. Each peer runs under each set of XLA options that may suit it, and its
best one counts. Each library runs in a process of its own, and programs take turns.
Seconds are those of the processor, which other processes disturb less; tracing and
compilation are those of the clock and of it.
"""

import os
import sys
import tempfile

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import importlib  # noqa: E402
import itertools  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable  # noqa: E402
from multiprocessing import get_context  # noqa: E402
from multiprocessing.connection import Connection  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402

import jaxdyn as jd  # noqa: E402
from benchmarks.problem import DT, STEPS, Robot  # noqa: E402
from benchmarks.robots import make, write  # noqa: E402

BATCH, WIDTHS, TURNS = 1024, (14, 64, 64, 7), 9
ROWS = "rollout", "gradient"
OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "no fusion emitters": {"xla_cpu_use_fusion_emitters": False},
}
ENDLESS = {"mjx"}  # not compiled in four minutes by default


def control(weights: list, q: Any, qd: Any) -> Any:
    """The joint forces of the network."""
    x = jnp.concatenate([q, qd])
    for A, b in weights[:-1]:
        x = jnp.tanh(A @ x + b)
    A, b = weights[-1]
    return A @ x + b


def ours(robot: Robot) -> Callable:
    """The last q after a rollout of jaxdyn."""
    model = jd.from_dict(robot.description, dtype=float)

    def last(weights: list, q: Any, qd: Any) -> Any:
        policy = jax.tree_util.Partial(lambda w, t, q, qd: control(w, q, qd), weights)
        return jd.rollout(model, q, qd, policy, DT, steps=STEPS)[0][-1]

    return last


def theirs(forward: Callable) -> Callable:
    """The same by the forward dynamics of a peer, in a scan."""

    def last(weights: list, q: Any, qd: Any) -> Any:
        def step(state: Any, _: None) -> Any:
            q, qd = state
            qd = qd + DT * forward(q, qd, control(weights, q, qd))
            return (q + DT * qd, qd), None

        return lax.scan(step, (q, qd), None, length=STEPS)[0][0]

    return last


def cost(last: Callable) -> Callable:
    """The mean of the squares of the last states of a batch."""
    return lambda w, q, qd: (jax.vmap(last, (None, 0, 0))(w, q, qd) ** 2).mean()


def work(library: str, pipe: Connection) -> None:
    """Compiles the programs of a library, and then runs those that are asked for.

    Sends for each option and row the seconds to compile and the first result, and the
    seconds of each call.
    """
    jax.config.update("jax_enable_x64", True)
    rng = np.random.default_rng(0)
    shapes = zip(WIDTHS[1:], WIDTHS[:-1], strict=True)
    weights = [(0.3 * rng.normal(size=s) / s[1] ** 0.5, np.zeros(s[0])) for s in shapes]
    arguments = jax.device_put((weights, *rng.normal(size=(2, BATCH, 7))))
    with tempfile.TemporaryDirectory() as folder:
        robot = write(make("arm"), Path(folder))
        if library == "jaxdyn":
            last = ours(robot)
        else:
            kind = importlib.import_module(f"benchmarks.peers.{library}_peer").Peer
            forward = next(iter(kind(robot, "float64").forward_dynamics().values()))
            last = theirs(forward)
    rows = {"rollout": jax.vmap(last, (None, 0, 0)), "gradient": jax.grad(cost(last))}
    calls = {}
    for key in itertools.product(rows, options(library)):
        start = time.perf_counter(), time.process_time()
        made = jax.jit(rows[key[0]]).lower(*arguments)
        calls[key] = made.compile(compiler_options=OPTIONS[key[1]])
        spent = time.perf_counter() - start[0], time.process_time() - start[1]
        pipe.send((spent, np.asarray(jax.tree.leaves(calls[key](*arguments))[0])))
    while key := pipe.recv():
        seconds = time.process_time()
        jax.block_until_ready(calls[key](*arguments))
        pipe.send(time.process_time() - seconds)


def options(library: str) -> list[str]:
    """The options that a library is compiled with."""
    if library == "jaxdyn":
        return ["default"]
    return [x for x in OPTIONS if x != "default" or library not in ENDLESS]


def main(peers: list[str]) -> None:
    """Print microseconds for a step and a state, ratios, and compile times."""
    context = get_context("spawn")
    pipes = {}
    for library in ("jaxdyn", *peers):
        pipes[library], other = context.Pipe()
        context.Process(target=work, args=(library, other), daemon=True).start()
    keys = [(who, flags) for who in pipes for flags in options(who)]
    expected = {}
    for row in ROWS:
        for who, flags in keys:
            spent, value = pipes[who].recv()
            apart = np.abs(value - expected.setdefault(row, value)).max()
            note = f"{spent[0]:.1f} s ({spent[1]:.1f} s of the processor)"
            print(f"{row} {who}, {flags}: compiled in {note}, apart {apart:.1e}")
    for row in ROWS:
        times: dict[tuple, list[float]] = {key: [] for key in keys}
        for _ in range(TURNS):
            for who, flags in keys:
                pipes[who].send((row, flags))
                times[who, flags].append(pipes[who].recv())
        best = np.array(times[keys[0]])
        for (who, flags), turns in times.items():
            each = 1e6 * np.median(turns) / BATCH / STEPS
            ratio = np.median(np.array(turns) / best)
            print(f"{row} {who}, {flags}: {each:.3f} us, {ratio:.2f} times jaxdyn's")
    for pipe in pipes.values():
        pipe.send(None)


if __name__ == "__main__":
    main(sys.argv[1:])
