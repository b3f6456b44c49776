"""The interface of a library, and what all libraries on JAX share."""
# pyright: basic, reportMissingImports=false

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from benchmarks.peers import floating
from benchmarks.problem import DT, INPUTS, Robot

MEMORY_LIMIT = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2


@dataclass
class Prepared:
    """A row that is ready to be timed.

    Attributes:
        call: does the work once and waits for the result.
        compile_seconds: tracing and compilation; zero for compiled libraries.
        memory: bytes of temporaries and outputs, where the compiler tells.
    """

    call: Callable[[], Any]
    compile_seconds: float = 0.0
    memory: int | None = None


@dataclass
class Library:
    """One library with one robot loaded, in one precision.

    A row may have several ways (algorithms, modes of differentiation, bindings): all
    are timed and the fastest counts. States arrive in jaxdyn's conventions; `inputs`
    and `result` convert outside of the timed region.
    """

    robot: Robot
    precision: str
    threads: int = 1
    absent: ClassVar[dict[str, str]] = {}  # rows the library does not offer, with why
    precisions: ClassVar[tuple[str, ...]] = ("float32", "float64")
    packages: ClassVar[tuple[str, ...]] = ()  # whose versions are reported
    modes: ClassVar[tuple[str, ...]] = ("reverse mode", "forward mode")  # best first
    body_axes: ClassVar[bool] = False  # whether a floating base is in jaxdyn's axes

    note = ""  # what is called, in a few words

    def why_not(self, row: str) -> str | None:
        """Why a row cannot be done, or None."""
        if self.robot.is_floating and row.startswith("rollout"):
            return "rollouts are compared with a fixed base only"
        if self.robot.is_floating and row == "jacobian" and not self.body_axes:
            return "its derivatives by a floating base are in other coordinates"
        if row in self.absent:
            return self.absent[row]
        return None if self.ways(row) else "not offered"

    def ways(self, row: str) -> dict[str, Callable]:
        """The functions that do a row, by name, the preferred one first."""
        raise NotImplementedError

    def prepare(
        self, row: str, way: str, batch: int, states: dict[str, np.ndarray]
    ) -> Prepared:
        """Compile a row for a batch; batch 0 is one state without a batch axis."""
        raise NotImplementedError

    def inputs(self, states: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The states in the library's own conventions."""
        return states

    def result(self, row: str, states: dict[str, np.ndarray], output: Any) -> Any:
        """What the call returned, with a batch axis, in jaxdyn's conventions."""
        return output


class JaxLibrary(Library):
    """A library on JAX: functions of one state, to be compiled for a batch."""

    def inverse_dynamics(self) -> dict[str, Callable]:
        """Ways of tau(q, qd, qdd)."""
        raise NotImplementedError

    def mass_matrix(self) -> dict[str, Callable]:
        """Ways of M(q)."""
        raise NotImplementedError

    def forward_dynamics(self) -> dict[str, Callable]:
        """Ways of qdd(q, qd, tau)."""
        raise NotImplementedError

    def integrate(self, q: Any, step: Any) -> Any:
        """The configuration after a tangent step."""
        return q + step

    def jacobian(self) -> dict[str, Callable]:
        """Ways of the derivatives of qdd by q, qd and tau: [3, nv, nv]."""
        import jax
        import jax.numpy as jnp

        def full(forward: Callable, differentiate: Callable) -> Callable:
            def derivatives(q: Any, qd: Any, tau: Any) -> Any:
                def moved(d: Any, qd: Any, tau: Any) -> Any:
                    return forward(self.integrate(q, d), qd, tau)

                step = jnp.zeros_like(qd)
                return jnp.stack(differentiate(moved, (0, 1, 2))(step, qd, tau))

            return derivatives

        modes = {"forward mode": jax.jacfwd, "reverse mode": jax.jacrev}
        return {
            _joined(name, mode): full(forward, modes[mode])
            for name, forward in self.forward_dynamics().items()
            for mode in self.modes
        }

    def forward_gradient(self) -> dict[str, Callable]:
        """Ways of the gradient of the sum of qdd by (q, qd, tau)."""
        import jax

        def gradient(forward: Callable) -> Callable:
            return jax.grad(lambda *state: forward(*state).sum(), (0, 1, 2))

        return {k: gradient(forward) for k, forward in self.forward_dynamics().items()}

    def rollout(self) -> dict[str, Callable]:
        """Ways of the last q after semi-implicit Euler steps from (q, qd, taus)."""
        import jax

        def roll(forward: Callable) -> Callable:
            def last(q: Any, qd: Any, taus: Any) -> Any:
                def step(state: Any, tau: Any) -> Any:
                    q, qd = state
                    qd = qd + DT * forward(q, qd, tau)
                    return (self.integrate(q, DT * qd), qd), None

                return jax.lax.scan(step, (q, qd), taus)[0][0]

            return last

        return {k: roll(forward) for k, forward in self.forward_dynamics().items()}

    def rollout_gradient(self) -> dict[str, Callable]:
        """Ways of the gradient of the square of the last q by (q, qd, taus)."""
        import jax

        def gradient(last: Callable) -> Callable:
            return jax.grad(lambda *state: (last(*state) ** 2).sum(), (0, 1, 2))

        return {name: gradient(last) for name, last in self.rollout().items()}

    def ways(self, row: str) -> dict[str, Callable]:
        """The functions of one state that do a row."""
        return getattr(self, row, dict)()

    def batched(self, one: Callable, compiled: Callable) -> Callable:
        """How a user calls a function of one state for a batch; by default `vmap`."""
        return compiled

    def prepare(
        self, row: str, way: str, batch: int, states: dict[str, np.ndarray]
    ) -> Prepared:
        """Compile a row; its arguments wait on the device."""
        import jax

        states = self.inputs(states)
        arrays = [states[name].astype(self.precision) for name in INPUTS[row]]
        arguments = [jax.device_put(a if batch else a[0]) for a in arrays]
        one = self.ways(row)[way]
        function = jax.jit(jax.vmap(one) if batch else one)
        start = time.perf_counter()
        compiled = function.lower(*arguments).compile()
        seconds = time.perf_counter() - start
        memory: Any = compiled.memory_analysis()
        size = memory.temp_size_in_bytes + memory.output_size_in_bytes
        if size > MEMORY_LIMIT:
            raise MemoryError(f"needs {size / 2**30:.0f} GB")
        if batch:
            function = self.batched(one, function)

        def call() -> Any:
            return jax.block_until_ready(function(*arguments))

        return Prepared(call, seconds, size)


class MujocoAxes(Library):
    """A library whose floating base follows MuJoCo's conventions."""

    def inputs(self, states: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """States in MuJoCo's conventions."""
        return floating.to_mujoco(states) if self.robot.is_floating else states

    def result(self, row: str, states: dict[str, np.ndarray], output: Any) -> Any:
        """Results in jaxdyn's conventions."""
        if not self.robot.is_floating:
            return output
        return floating.from_mujoco(row, states, output)


def flat(output: Any, batch: int) -> np.ndarray:
    """Results as one array with a batch axis: gradients are put behind each other."""
    if not isinstance(output, tuple | list):
        output = np.asarray(output, float)
        return output if batch else output[None]
    parts = [np.asarray(part, float).reshape(max(batch, 1), -1) for part in output]
    return np.concatenate(parts, 1)


def _joined(*names: str) -> str:
    return ", ".join(name for name in names if name)
