"""What each choice in the core is worth: `python -m benchmarks.choices`.

Ratios of medians of turns taken one after the other, on one core, in this process, of
what the code can do in two ways. Smaller is faster.
"""

import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import jaxdyn as jd  # noqa: E402
from benchmarks.robots import make  # noqa: E402
from jaxdyn.algorithms.derivatives import _implicit  # noqa: E402
from jaxdyn.algorithms.recursions import _factor  # noqa: E402
from jaxdyn.program import _cpu, _kernel  # noqa: E402
from jaxdyn.program import compiled as kernel  # noqa: E402
from jaxdyn.spatial import cos_sin  # noqa: E402

TURNS = 9
Run = Callable[[], Any]


@contextmanager
def changed(module: Any, **values: Any) -> Iterator[None]:
    """Other values of names in a module, for what is compiled meanwhile."""
    jax.clear_caches()
    with mock.patch.multiple(module, **values):
        yield
    jax.clear_caches()


def compiled(function: Callable, *args: Any) -> Run:
    """A call that is compiled as things are now."""
    program = jax.jit(function).lower(*args).compile()
    return lambda: jax.block_until_ready(program(*args))


def seconds(runs: dict[str, Run]) -> dict[str, float]:
    """The median of each, in turns of about 20 ms."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    counts = {}
    for name, run in runs.items():
        run()
        start = time.perf_counter()
        run()
        counts[name] = max(1, int(0.02 / (time.perf_counter() - start)))
    for _ in range(TURNS):
        for name, run in runs.items():
            start = time.perf_counter()
            for _ in range(counts[name]):
                run()
            times[name].append((time.perf_counter() - start) / counts[name])
    return {name: statistics.median(values) for name, values in times.items()}


def report(title: str, runs: dict[str, Run]) -> None:
    """One line: the ratio of each to the first."""
    times = seconds(runs)
    first = next(iter(times.values()))
    cells = (f"{name} {value / first:.2f}" for name, value in times.items())
    print(f"{title} [{first * 1e6:.3g} us]: {', '.join(cells)}", flush=True)


def states(model: jd.Model, batch: int) -> list[jax.Array]:
    """Random q, qd and tau of a model without quaternions."""
    rng = np.random.default_rng(0)
    return [jnp.asarray(rng.normal(size=(batch, model.nv))) for _ in range(3)]


def kernels(arm: jd.Model) -> None:
    """One kernel, or XLA's many."""

    def forward(q: Any, qd: Any, tau: Any) -> Any:
        return jd.forward_dynamics(arm, q, qd, tau)

    def gradient(*state: Any) -> Any:
        return jax.grad(lambda *state: forward(*state).sum(), (0, 1, 2))(*state)

    many = states(arm, 4096)
    one = [x[0] for x in many]
    rows: dict[str, tuple[Callable, list]] = {
        "forward dynamics, batch 4096": (jax.vmap(forward), many),
        "forward dynamics, one state": (forward, one),
        "its gradient, batch 4096": (jax.vmap(gradient), many),
        "its gradient, one state": (gradient, one),
    }
    for title, (function, args) in rows.items():
        runs = {"one kernel": compiled(function, *args)}
        with changed(_cpu, fast_path=lambda: "off"):
            runs["XLA's kernels"] = compiled(function, *args)
        report(title, runs)
    given = compiled(jd.forward_dynamics, arm, *one)
    closed = {"model a constant": compiled(forward, *one)}
    report("forward dynamics, one state", closed | {"an argument": given})


def adjoints(arm: jd.Model) -> None:
    """Reverse mode in closed form, or the program transposed by JAX."""
    many = states(arm, 4096)

    def gradient(*state: Any) -> Any:
        total = lambda *x: jd.forward_dynamics(arm, *x).sum()  # noqa: E731
        return jax.grad(total, (0, 1, 2))(*state)

    def plain(function: Callable, _: Callable, fixed: Any, x: list, like: Any) -> Any:
        return function(fixed, x)

    runs = {"closed form": compiled(jax.vmap(gradient), *many)}
    with changed(_implicit, linear_map=plain):
        runs["the program transposed"] = compiled(jax.vmap(gradient), *many)
    report("gradient of forward dynamics, batch 4096", runs)


def constants(arm: jd.Model) -> None:
    """A model that is a constant of the program, folded or not."""
    many = states(arm, 4096)
    forward = jax.vmap(lambda *x: jd.forward_dynamics(arm, *x))
    runs = {"folded": compiled(forward, *many)}
    with changed(_kernel, _constant=lambda x: None):
        runs["not folded"] = compiled(forward, *many)
    report("forward dynamics, batch 4096, the model a constant", runs)


def chunks(name: str, batch: int, sizes: tuple[int, ...]) -> None:
    """States at a time."""
    model, runs = make(name), {}
    args = states(model, batch)
    for size in sizes:
        with changed(_cpu, _chunk=lambda jaxpr, size=size: size):
            many = jax.vmap(jd.forward_dynamics, (None, 0, 0, 0))
            runs[str(size)] = compiled(many, model, *args)
    report(f"{name}, forward dynamics, states at a time", runs)


def parts(arm: jd.Model) -> None:
    """Cosine and sine, and the two ways to whole Jacobians."""
    q, qd, tau = states(arm, 4096)
    for dtype in (jnp.float64, jnp.float32):
        x = q.astype(dtype)
        series = jax.vmap(kernel()(lambda x: cos_sin(x)))
        library = jax.vmap(kernel()(lambda x: (jnp.cos(x), jnp.sin(x))))
        runs = {"series": compiled(series, x), "C library": compiled(library, x)}
        report(f"cosine and sine, {x.dtype}", runs)

    def differentiated(*state: Any) -> Any:
        def forward(*state: Any) -> Any:
            return jd.forward_dynamics(arm, *state)

        return jax.jacfwd(forward, (0, 1, 2))(*state)

    def linearized(*state: Any) -> Any:
        return jd.linearize(arm, *state)

    few = [x[:1024] for x in (q, qd, tau)]
    runs = {"closed form": compiled(jax.vmap(linearized), *few)}
    with changed(_factor, DENSE=0):
        runs["closed form, columns one by one"] = compiled(jax.vmap(linearized), *few)
    runs["tangents"] = compiled(jax.vmap(differentiated), *few)
    report("Jacobian of forward dynamics, batch 1024", runs)


def main() -> None:
    """Print all rows."""
    jax.config.update("jax_enable_x64", True)
    arm = make("arm")
    kernels(arm)
    constants(arm)
    adjoints(arm)
    chunks("arm", 4096, (64, 16, 32, 128, 256))
    chunks("chain50", 1024, (32, 16, 64, 128))
    chunks("chain1000", 64, (16, 8, 32, 64))
    parts(arm)


if __name__ == "__main__":
    main()
