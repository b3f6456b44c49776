"""The programs that are compiled: of jaxdyn, and the same of its peers."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

import jaxdyn as jd
from benchmarks.problem import DT, STEPS
from benchmarks.robots import make, write

WIDTH, DEPTH = 64, 2  # of the layers of a policy
Programs = dict[str, tuple[Callable, tuple[Any, ...]]]


def own(robot: str, batch: int, dtype: str = "float32") -> Programs:
    """Functions of batches of arrays with their types; the model is a constant."""
    model = make(robot).astype(dtype)

    def roll(*state: Any) -> Any:
        q, qd, taus = state
        return jd.rollout(model, q, qd, taus, DT)

    def in_loop(policy: Any, q: Any, qd: Any) -> Any:
        def control(t: Any, q: Any, qd: Any) -> Any:
            return policy(jnp.concatenate([q, qd]))

        return jd.rollout(model, q, qd, control, DT, steps=STEPS)

    def acceleration(*state: Any) -> Any:
        return jd.forward_dynamics(model, *state)

    size = model.nq + model.nv
    policy = eqx.nn.MLP(size, model.nv, WIDTH, DEPTH, key=jax.random.key(0))
    weights, rest = eqx.partition(policy, eqx.is_array)

    def with_policy(weights: Any, q: Any, qd: Any) -> Any:
        return in_loop(eqx.combine(weights, rest), q, qd)

    x = _types(model.nq, model.nv, batch, dtype)
    network = jax.tree.map(lambda w: jax.ShapeDtypeStruct(w.shape, dtype), weights)
    along = jax.vmap(with_policy, (None, 0, 0))
    return {
        "fd": (jax.vmap(acceleration), (x["q"], x["v"], x["v"])),
        "id": (
            jax.vmap(lambda *state: jd.inverse_dynamics(model, *state)),
            (x["q"], x["v"], x["v"]),
        ),
        "m": (jax.vmap(lambda q: jd.mass_matrix(model, q)), (x["q"],)),
        "rollout": (jax.vmap(roll), (x["q"], x["v"], x["taus"])),
        "rollout_gradient": (_gradient(roll), (x["q"], x["v"], x["taus"])),
        "linearize": (
            jax.vmap(lambda *state: jd.linearize(model, *state)),
            (x["q"], x["v"], x["v"]),
        ),
        "rollout_policy": (along, (network, x["q"], x["v"])),
    }


def of_peer(name: str, robot: str, batch: int, folder: Path) -> Programs:
    """The same of another library on JAX, as far as it offers them."""
    module = importlib.import_module(f"benchmarks.peers.{name}_peer")
    written = write(make(robot), folder / robot)
    peer = module.Peer(written, "float32")
    forward = next(iter(peer.forward_dynamics().values()))

    def roll(q: Any, qd: Any, taus: Any) -> Any:
        def step(state: Any, tau: Any) -> Any:
            q, qd = state
            qd = qd + DT * forward(q, qd, tau)
            q = peer.integrate(q, DT * qd)
            return (q, qd), (q, qd)

        return lax.scan(step, (q, qd), taus)[1]

    x = _types(written.nq, written.nv, batch, "float32")
    programs: Programs = {"fd": (jax.vmap(forward), (x["q"], x["v"], x["v"]))}
    if "inverse_dynamics" not in peer.absent:
        inverse = next(iter(peer.inverse_dynamics().values()))
        programs["id"] = jax.vmap(inverse), (x["q"], x["v"], x["v"])
    matrix = next(iter(peer.mass_matrix().values()))
    programs["m"] = jax.vmap(matrix), (x["q"],)
    if not written.is_floating:  # their quaternions take other steps
        programs["rollout"] = jax.vmap(roll), (x["q"], x["v"], x["taus"])
        programs["rollout_gradient"] = _gradient(roll), programs["rollout"][1]
    return programs


def _types(nq: int, nv: int, batch: int, dtype: str) -> dict[str, Any]:
    shapes = {"q": (nq,), "v": (nv,), "taus": (STEPS, nv)}
    return {
        name: jax.ShapeDtypeStruct((batch, *shape), dtype)
        for name, shape in shapes.items()
    }


def _gradient(roll: Callable) -> Callable:
    """The gradient by all torques of the squares of the last states."""

    def loss(q: Any, qd: Any, taus: Any) -> Any:
        qs, qds = jax.vmap(roll)(q, qd, taus)
        return (qs[:, -1] ** 2).sum() + (qds[:, -1] ** 2).sum()

    return jax.grad(loss, 2)
