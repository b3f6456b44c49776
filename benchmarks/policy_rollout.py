"""Rollouts under a network: `python -m benchmarks.policy_rollout PEER ...`.

The arm of seven joints, 100 semi-implicit steps, a batch of 1024, float64, on one core.
The network has two layers of 64 and sees q and qd; the gradient is that of a mean cost
by its weights. Each peer runs under each set of XLA options that may suit it, and its
best one counts; programs take turns. Seconds are those of the processor, which other
processes disturb less; tracing and compilation are those of the clock and of it.
"""

import os
import sys
import tempfile

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import importlib  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402

import jaxdyn as jd  # noqa: E402
from benchmarks.problem import DT, STEPS, Robot  # noqa: E402
from benchmarks.robots import make, write  # noqa: E402

BATCH, WIDTHS, TURNS = 1024, (14, 64, 64, 7), 5
OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "no fusion emitters": {"xla_cpu_use_fusion_emitters": False},
}


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


def main(peers: list[str]) -> None:
    """Print microseconds for a step and a state, ratios, and compile times."""
    rng = np.random.default_rng(0)
    shapes = zip(WIDTHS[1:], WIDTHS[:-1], strict=True)
    weights = [(0.3 * rng.normal(size=s) / s[1] ** 0.5, np.zeros(s[0])) for s in shapes]
    arguments = jax.device_put((weights, *rng.normal(size=(2, BATCH, 7))))
    with tempfile.TemporaryDirectory() as folder:
        robot = write(make("arm"), Path(folder))
        lasts = {("jaxdyn", "default"): ours(robot)}
        for peer in peers:
            kind = importlib.import_module(f"benchmarks.peers.{peer}_peer").Peer
            forward = next(iter(kind(robot, "float64").forward_dynamics().values()))
            lasts |= {(peer, flags): theirs(forward) for flags in OPTIONS}

    def cost(last: Callable) -> Callable:
        return lambda w, q, qd: (jax.vmap(last, (None, 0, 0))(w, q, qd) ** 2).mean()

    for row in ("rollout", "gradient"):
        calls: dict[Any, Callable] = {}
        values = {}
        for who, last in lasts.items():
            f = (
                jax.vmap(last, (None, 0, 0))
                if row == "rollout"
                else jax.grad(cost(last))
            )
            start = time.perf_counter(), time.process_time()
            options = OPTIONS[who[1]]
            calls[who] = jax.jit(f).lower(*arguments).compile(compiler_options=options)
            spent = time.perf_counter() - start[0], time.process_time() - start[1]
            values[who] = jax.tree.leaves(calls[who](*arguments))[0]
            apart = float(jnp.abs(values[who] - values["jaxdyn", "default"]).max())
            note = f"{spent[0]:.1f} s ({spent[1]:.1f} s of the processor)"
            print(f"{row} {who}: compiled in {note}, apart {apart:.1e}", flush=True)
        times: dict[Any, list[float]] = {who: [] for who in calls}
        for _ in range(TURNS):
            for who, call in calls.items():
                start = time.process_time()
                jax.block_until_ready(call(*arguments))
                times[who].append(time.process_time() - start)
        best = np.array(times["jaxdyn", "default"])
        for who, turns in times.items():
            each = 1e6 * np.median(turns) / BATCH / STEPS
            ratio = np.median(np.array(turns) / best)
            print(f"{row} {who}: {each:.3f} us, {ratio:.2f} times jaxdyn's", flush=True)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main(sys.argv[1:])
