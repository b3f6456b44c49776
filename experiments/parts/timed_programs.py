"""Programs of the dynamics of chains, compiled side by side and timed in turns."""

import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd

INVERSE = "newton_euler"  # the one method of inverse dynamics among those of forward

# LAPACK comes with SciPy and reads this when it is loaded: its threads can stall each
# other for half a second where one thread needs half a millisecond (n = 300, two cores)
_IS_EARLY = "scipy.linalg" not in sys.modules
_GIVEN = os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
HAS_ONE_THREAD = _IS_EARLY and _GIVEN == "1"
# a call that is waited for anyway needs no thread of its own, which a busy machine
# delays; takes effect before the first computation of a process
jax.config.update("jax_cpu_enable_async_dispatch", False)


def _quick() -> dict[str, Any]:
    """Compiler options for the same operations in half the time of compilation."""
    level = {"xla_backend_optimization_level": 0}
    options = level | {"xla_cpu_use_fusion_emitters": False}
    try:
        jax.jit(lambda: 0, compiler_options=options).lower().compile()
    except RuntimeError:  # newer releases have no such option
        return level
    return options


QUICK = _quick()  # where the speed of the program is no matter


def method_of(name: str) -> Callable:
    """Forward dynamics by a method, or inverse dynamics by Newton-Euler."""
    if name == INVERSE:
        return partial(jd.inverse_dynamics, method=name)
    return partial(jd.forward_dynamics, method=name)


class Program(NamedTuple):
    """A compiled method of one state or of a batch, and what it is timed with."""

    method: str
    call: Callable
    model: jd.Model
    arrays: list[jax.Array]

    @property
    def size(self) -> tuple[str, int]:
        """The method and the number of joints."""
        return self.method, self.model.nv

    def at(self, state: dict[str, Any]) -> np.ndarray:
        """The result at another state, of a program for one."""
        given, dtype = _inputs(self.method, state), self.model.dtype
        return np.asarray(
            self.call(self.model, *(jnp.asarray(x, dtype) for x in given))
        )

    def seconds(self, calls: int = 1) -> float:
        """The time of the fastest of some calls: others had to wait for the machine."""
        times = []
        for _ in range(calls):
            start = time.perf_counter()
            jax.block_until_ready(self.call(self.model, *self.arrays))
            times.append(time.perf_counter() - start)
        return min(times)


def programs(
    methods: Sequence[str],
    model: jd.Model,
    state: dict[str, Any],
    *,
    batch: int | None = None,
    dtype: str = "float64",
    options: dict | None = None,
) -> list[Program]:
    """The methods for one state, or for a batch of states around it."""
    model = model.astype(dtype)

    def program(method: str) -> Program:
        function = method_of(method)
        given, rng = _inputs(method, state), np.random.default_rng(0)
        if batch is not None:
            function = jax.vmap(function, (None, 0, 0, 0))
            given = [x + 1e-3 * rng.normal(size=(batch, len(x))) for x in given]
        arrays = [jnp.asarray(x, dtype) for x in given]
        traced = jax.jit(function, compiler_options=options).lower(model, *arrays)
        return Program(method, traced.compile(), model, arrays)

    with ThreadPoolExecutor(2) as pool:  # compiling is most of the time of a run
        return list(pool.map(program, methods))


def timed(
    chosen: list[Program], turns: int, seconds: float
) -> dict[tuple[str, int], np.ndarray]:
    """Seconds of one call of each program, in each turn.

    In a turn all have their go one after the other, so that all feel the same load.
    """
    calls = []
    for program in chosen:
        program.seconds()  # the first call is no measure
        calls.append(max(1, round(seconds / program.seconds())))
    pairs = list(zip(chosen, calls, strict=True))
    found = np.array([[p.seconds(k) for p, k in pairs] for _ in range(turns)])
    return {p.size: x for p, x in zip(chosen, found.T, strict=True)}


def _inputs(method: str, state: dict[str, Any]) -> list[np.ndarray]:
    keys = ("q", "qd", "qdd" if method == INVERSE else "tau")
    return [np.array(state[key]) for key in keys]
