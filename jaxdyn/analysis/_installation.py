"""Whether the installed releases compute what they should, as fast as they can."""

import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.algorithms.kinematics import random_configuration
from jaxdyn.dynamics import forward_dynamics
from jaxdyn.program import fast_path
from jaxdyn.robots import puma_560

PACKAGES = ("jaxdyn", "jax", "jaxlib", "equinox", "diffrax", "numpy")
SIZES = (16_385, 20_001, 32_769, 65_537)  # just above where results were wrong
SCAN = 5000


@dataclass(frozen=True)
class Installation:
    """What `check_installation` found; printed as a table.

    Attributes:
        versions: of Python and of the packages that programs depend on.
        devices: those that JAX sees, as "1 x cpu: AMD".
        fast_path: why programs are compiled as written on the CPU; empty if they are
            not.
        checks: what was tried, and the problem that was found; empty if none was.
    """

    versions: dict[str, str]
    devices: list[str]
    fast_path: str
    checks: dict[str, str] = field(default_factory=dict)

    @property
    def problems(self) -> list[str]:
        """What is wrong; empty for a sound installation."""
        found = {"fast path": self.fast_path} | self.checks
        return [f"{name}: {problem}" for name, problem in found.items() if problem]

    def __str__(self) -> str:
        state = f"off: {self.fast_path}" if self.fast_path else "on"
        rows = [*self.versions.items(), ("devices", ", ".join(self.devices))]
        rows.append(("fast path on the CPU", state))
        rows += [(name, problem or "right") for name, problem in self.checks.items()]
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def check_installation() -> Installation:
    """The installed versions and devices, and what is wrong with them.

    Runs programs that some releases of JAX got wrong or slow: batched matrix-vector
    products (jax-ml/jax#39103), our own forward dynamics in batches of the same sizes
    against pieces of 1000 states, and a long scan (jax-ml/jax#40101). Takes about ten
    seconds, most of it compilation.
    """
    devices: dict[str, int] = {}
    for device in jax.devices():
        name = f"{device.platform}: {device.device_kind}"
        devices[name] = devices.get(name, 0) + 1
    checks = {}
    for dtype in sorted({jnp.zeros(0).dtype, np.dtype(np.float32)}):
        checks[f"matrix-vector products, {dtype}"] = _products(dtype)
        checks[f"forward dynamics in batches, {dtype}"] = _batches(dtype)
    checks["cost of a long scan"] = _scan_cost()
    return Installation(
        {"python": platform.python_version()} | {p: version(p) for p in PACKAGES},
        [f"{count} x {name}" for name, count in devices.items()],
        fast_path(),
        checks,
    )


def _products(dtype: Any) -> str:
    """A product and a sum for each row, which must be those of NumPy."""
    A = np.arange(9, dtype=dtype).reshape(3, 3) / 8
    program = jax.jit(jax.vmap(lambda x: (jnp.asarray(A) @ x).sum()))
    x = np.linspace(-1, 1, 3 * max(SIZES), dtype=dtype).reshape(-1, 3)
    expected = x.astype(np.float64) @ A.sum(axis=0, dtype=np.float64)
    return _wrong_rows(program, x, expected, 1e-4)


def _batches(dtype: Any) -> str:
    """Accelerations of all states at once, which must be those of pieces of 1000."""
    arm = puma_560(dtype=dtype)
    keys = jax.random.split(jax.random.key(0), max(SIZES))
    qs = jax.jit(jax.vmap(lambda key: random_configuration(arm, key)))(keys)
    still = jnp.zeros(arm.nv, dtype)
    program = jax.jit(jax.vmap(lambda q: forward_dynamics(arm, q, still, still)))
    pieces = [np.asarray(program(qs[k : k + 1000])) for k in range(0, len(qs), 1000)]
    expected = np.concatenate(pieces)
    allowed = 1e4 * np.finfo(dtype).eps * np.abs(expected).max()
    return _wrong_rows(program, qs, expected, float(allowed))


def _wrong_rows(program: Callable, x: Any, expected: Any, allowed: float) -> str:
    for size in SIZES:
        error = np.abs(np.asarray(program(x[:size])) - expected[:size])
        wrong = (error > allowed).reshape(size, -1).any(axis=1)
        if wrong.any():
            return f"{wrong.sum()} of {size} rows are wrong: install another jaxlib."
    return ""


def _scan_cost() -> str:
    """The time of a scan with stacked results, which must grow as its length."""

    def seconds(n: int) -> float:
        program = jax.jit(lambda x: jax.lax.scan(lambda c, r: (c + r, c), x[0], x))
        x = jnp.ones((n, 7))
        jax.block_until_ready(program(x))
        times = []
        for _ in range(5):
            start = time.process_time()
            jax.block_until_ready(program(x))
            times.append(time.process_time() - start)
        return min(times)

    ratio = seconds(8 * SCAN) / seconds(SCAN)
    if ratio < 24:
        return ""
    return (
        f"eight times the steps take {ratio:.0f} times as long: long simulations are "
        "slow with this jaxlib, install another."
    )
