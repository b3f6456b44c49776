"""`jaxdyn bench-gpu`: how fast a device runs the dynamics, and whether it is right."""

import argparse
import json
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.algorithms.kinematics import random_configuration
from jaxdyn.analysis import count_operations
from jaxdyn.dynamics import forward_dynamics, inverse_dynamics, mass_matrix
from jaxdyn.model import Model
from jaxdyn.program import PTX_CALL
from jaxdyn.robots import puma_560, random_tree
from jaxdyn.simulate import rollout

BATCHES = 4096, 65_536, 1_048_576
STATES = 4096  # that differ; larger batches repeat them
STEPS, DT = 100, 1e-3
REPEATS = 20
ALLOWED = 1e-3  # of the largest entry of a result, in float32
# float32 operations and bytes of memory a second, from NVIDIA's data sheets
PEAKS = {
    "V100": (15.7e12, 0.90e12),
    "T4": (8.1e12, 0.32e12),
    "A100": (19.5e12, 2.04e12),
    "RTX 3090": (35.6e12, 0.94e12),
    "L40S": (91.6e12, 0.86e12),
    "L4": (30.3e12, 0.30e12),
    "RTX 4090": (82.6e12, 1.01e12),
    "H100": (66.9e12, 3.35e12),
    "H200": (66.9e12, 4.80e12),
}
ROBOTS: dict[str, Callable[[], Model]] = {
    "arm": puma_560,
    "tree": lambda: random_tree(
        0, 30, joints=("revolute",), branching=0.2, floating_base=True
    ),
}


@dataclass(frozen=True)
class Row:
    """What was measured of one program.

    Attributes:
        robot, program, batch: what ran, for how many states.
        is_kernel: whether the program is a kernel of jaxdyn for GPUs; None elsewhere.
        error: the largest error against float64 on the CPU, relative to the largest
            entry of a result.
        seconds: of one call, the median.
        roofline: the share of what the device could do at most; None where its numbers,
            or those of the program, are not known.
    """

    robot: str
    program: str
    batch: int
    is_kernel: bool | None
    error: float
    seconds: float
    roofline: float | None

    def __str__(self) -> str:
        share = "–" if self.roofline is None else f"{100 * self.roofline:.1f} %"
        kernel = {True: "one kernel", False: "as written", None: "–"}[self.is_kernel]
        rate = self.batch / self.seconds
        return (
            f"{self.robot:<5} {self.program:<17} {self.batch:>8} {kernel:<11}"
            f"{self.error:8.1e} {rate:10.3e} /s {share:>8}"
        )


HEAD = f"{'robot':<5} {'program':<17} {'batch':>8} {'compiled':<11}"
HEAD += f"{'error':>8} {'states':>13} {'roofline':>8}"


def bench_gpu(arguments: argparse.Namespace) -> int:
    """Measures a device, prints a table and may write it as JSON."""
    device = jax.devices(arguments.device)[0]
    if arguments.device is None and device.platform != "gpu":
        raise ValueError(
            f"JAX sees no GPU, its first device is {device.platform}: install "
            "jax[cuda12], or measure another device with --device cpu."
        )
    print(f"{device.platform}: {device.device_kind}\n{HEAD}")
    rows = []
    for row in measured(
        device, arguments.robot, arguments.program, arguments.batch or BATCHES
    ):
        print(row, flush=True)
        rows.append(asdict(row))
    if arguments.output is not None:
        packages = {p: version(p) for p in ("jaxdyn", "jax", "jaxlib")}
        found = {
            "device": f"{device.platform}: {device.device_kind}",
            "versions": {"python": platform.python_version()} | packages,
            "protocol": f"float32, median of {REPEATS} calls, model as an argument",
            "rows": rows,
        }
        arguments.output.write_text(json.dumps(found, indent=1) + "\n")
    return 0


def measured(
    device: Any,
    robots: Sequence[str] = (),
    programs: Sequence[str] = (),
    batches: Sequence[int] = BATCHES,
) -> Iterator[Row]:
    """A row for each robot, program and batch; by default for all.

    In float32, with the model and random states as arguments that are on the device,
    and the median of 20 calls. Results of 4096 states are compared with float64 on the
    CPU; larger batches repeat these states, and all repetitions must have the same
    bits. Batches that may not fit into the device's memory are left out.

    Raises:
        ValueError: for a batch that is not a multiple of the states, and for wrong
            results.
    """
    for robot in robots or ROBOTS:
        model = ROBOTS[robot]()
        for name in programs or PROGRAMS:
            yield from _rows(device, robot, model, name, batches)


def _roll(model: Model, q: Any, qd: Any, taus: Any) -> Any:
    return rollout(model, q, qd, taus, DT)


def _gradient(model: Model, q: Any, qd: Any, taus: Any) -> Any:
    def loss(taus: Any) -> Any:
        qs, qds = _roll(model, q, qd, taus)
        return (qs[-1] ** 2).sum() + (qds[-1] ** 2).sum()

    return jax.grad(loss)(taus)


# a function of a model and a state, the columns of its state, and steps of dynamics
PROGRAMS: dict[str, tuple[Callable, str, int | None]] = {
    "forward_dynamics": (forward_dynamics, "qvv", 1),
    "inverse_dynamics": (inverse_dynamics, "qvv", 1),
    "mass_matrix": (mass_matrix, "q", 1),
    "rollout": (_roll, "qvt", STEPS),
    "rollout_gradient": (_gradient, "qvt", None),
}


def _rows(
    device: Any, robot: str, model: Model, name: str, batches: Sequence[int]
) -> Iterator[Row]:
    function, columns, steps = PROGRAMS[name]
    states = min(STATES, *batches)
    exact = _states(model, columns, states)
    host = jax.local_devices(backend="cpu")[0]
    with jax.enable_x64(True):
        expected = jax.tree.leaves(_run(function, host, model, exact)[0])
    results = sum(x[0].nbytes // 2 for x in expected)
    operations = steps and _operations(function, model, exact, steps)
    for batch in batches:
        if batch % states:
            raise ValueError(f"--batch {batch}, expected a multiple of {states}.")
        copies = batch // states
        given = [np.tile(x, (copies, *[1] * (x.ndim - 1))) for x in exact]
        given = [x.astype(np.float32) for x in given]
        moved = sum(x.nbytes for x in given) + batch * results
        if moved > _memory(device) / 4:
            continue
        single = model.astype("float32")
        found, text, seconds = _run(function, device, single, given, REPEATS)
        where = f"{name} of {robot!r}, batch {batch}, on {device.device_kind}"
        error = _error(jax.tree.leaves(found), expected, where)
        least = operations and _least(device, batch * operations, moved)
        share = least and least / seconds
        is_kernel = PTX_CALL in text if device.platform == "gpu" else None
        yield Row(robot, name, batch, is_kernel, error, seconds, share)


def _states(model: Model, columns: str, count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    keys = jax.random.split(jax.random.key(0), count)
    q = jax.vmap(lambda key: random_configuration(model, key))(keys)
    shapes = {"v": (count, model.nv), "t": (count, STEPS, model.nv)}
    return [
        np.asarray(q, np.float64) if c == "q" else rng.normal(size=shapes[c])
        for c in columns
    ]


def _run(
    function: Callable, device: Any, model: Model, arrays: Sequence, repeats: int = 1
) -> tuple[Any, str, float]:
    """The results on a device, the compiled program and the median time of a call."""
    given = jax.device_put((model, *arrays), device)
    along = jax.vmap(function, (None, *[0] * len(arrays)))
    made = jax.jit(along).lower(*given).compile()
    found, times = jax.block_until_ready(made(*given)), []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(made(*given))
        times.append(time.perf_counter() - start)
    return found, made.as_text() or "", float(np.median(times))


def _error(found: Sequence, expected: Sequence, where: str) -> float:
    """The largest relative error of the first states, which all others repeat."""
    worst = 0.0
    for x, y in zip(found, expected, strict=True):
        pieces = jnp.reshape(x, (-1, *y.shape))
        first, exact = np.asarray(pieces[0], np.float64), np.asarray(y)
        error = float(np.abs(first - exact).max() / np.abs(exact).max())
        reason = "" if error <= ALLOWED else f"wrong by {error:.1e}"
        if not (pieces == pieces[:1]).all():
            reason = "not the same for the same states"
        if reason:
            raise ValueError(
                f"results of {where}, are {reason}: please report this, with what "
                "`jaxdyn info --check` prints."
            )
        worst = max(worst, error)
    return worst


def _memory(device: Any) -> float:
    return (device.memory_stats() or {}).get("bytes_limit", 4e9)


def _operations(
    function: Callable, model: Model, arrays: Sequence[np.ndarray], steps: int
) -> int:
    """The operations for one state; of a rollout those of its forward dynamics."""
    if steps > 1:
        function, arrays = forward_dynamics, [*arrays[:2], arrays[2][:, 0]]
    count = count_operations(function, model, *(x[0] for x in arrays))
    return steps * sum(asdict(count).values())


def _least(device: Any, operations: int, moved: int) -> float | None:
    """The time at the device's peak, if that is known."""
    known = [peak for name, peak in PEAKS.items() if name in device.device_kind]
    return max(operations / known[0][0], moved / known[0][1]) if known else None
