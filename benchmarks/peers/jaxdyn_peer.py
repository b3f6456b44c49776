"""jaxdyn through its public functions."""
# pyright: basic

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

import jaxdyn as jd
from benchmarks.peers.base import JaxLibrary
from benchmarks.problem import DT


class Peer(JaxLibrary):
    """The model is a constant of the compiled program, as it is for the peers."""

    body_axes = True
    packages = ("jaxdyn", "jax", "jaxlib")

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self.model = jd.from_dict(self.robot.description, dtype=self.precision)

    def inverse_dynamics(self) -> dict[str, Callable]:
        """Newton-Euler."""
        return {"": partial(jd.inverse_dynamics, self.model)}

    def mass_matrix(self) -> dict[str, Callable]:
        """Composite bodies."""
        return {"": partial(jd.mass_matrix, self.model)}

    def forward_dynamics(self) -> dict[str, Callable]:
        """The default method."""
        return {"": partial(jd.forward_dynamics, self.model)}

    def integrate(self, q: Any, step: Any) -> Any:
        """On the manifold of q."""
        return jd.integrate(self.model, q, step)

    def jacobian(self) -> dict[str, Callable]:
        """`linearize`."""
        nv = self.model.nv

        def derivatives(q: Any, qd: Any, tau: Any) -> Any:
            A, B = jd.linearize(self.model, q, qd, tau)
            return jnp.stack([A[nv:, :nv], A[nv:, nv:], B[nv:]])

        return {"": derivatives}

    def parameter_gradient(self) -> dict[str, Callable]:
        """The gradient by the state and by every parameter of the model."""

        def total(model: jd.Model, *state: Any) -> Any:
            return jd.forward_dynamics(model, *state).sum()

        return {"": partial(jax.grad(total, (0, 1, 2, 3)), self.model)}

    def forward_kinematics(self) -> dict[str, Callable]:
        """`forward_kinematics`."""
        return {"": partial(jd.forward_kinematics, self.model)}

    def body_velocities(self) -> dict[str, Callable]:
        """`body_velocities`."""
        return {"": partial(jd.body_velocities, self.model)}

    def body_accelerations(self) -> dict[str, Callable]:
        """`body_accelerations`."""
        return {"": partial(jd.body_accelerations, self.model)}

    def plain_calls(self) -> dict[str, float]:
        """Seconds of a first and a second forward_dynamics outside of any jit."""
        state = [jnp.asarray(x[0]) for x in self.robot.states(1, "jacobian").values()]
        seconds = {}
        for call in ("first", "second"):
            start = time.perf_counter()
            jax.block_until_ready(jd.forward_dynamics(self.model, *state))
            seconds[call] = time.perf_counter() - start
        return seconds

    def rollout(self) -> dict[str, Callable]:
        """`rollout`."""

        def last(q: Any, qd: Any, taus: Any) -> Any:
            return jd.rollout(self.model, q, qd, taus, DT)[0][-1]

        return {"": last}

    def batched(self, one: Callable, compiled: Callable) -> Callable:
        """`batched`, which uses all cores of the process."""
        return jd.batched(one)
