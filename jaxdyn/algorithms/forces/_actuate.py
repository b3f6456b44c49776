"""Controls of actuators as joint forces."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.algorithms.couplings import along_rows, of_tree
from jaxdyn.algorithms.kinematics import difference, neutral
from jaxdyn.model import Actuators, Model, arguments
from jaxdyn.program import compiled, exchange, take
from jaxdyn.spatial import Quaternion, Vec3


def actuate(
    model: Model,
    q: Float[Array, " nq"],
    qd: Float[Array, " nv"],
    ctrl: Float[Array, " nu"],
    *,
    act: Float[Array, " na"] | None = None,
) -> Float[Array, " nv"]:
    """The joint torques of the model's actuators, see `Actuators`.

    They are MuJoCo's `qfrc_actuator`, along our rates. O(k nv) for k actuators.

    Args:
        ctrl: one control for each actuator.
        act: the activations of those actuators that have one, such as intvelocity; how
            they change is up to the caller.

    Raises:
        ValueError: the model has no actuators, or one whose force is not of the form of
            `Actuators`; or the number of controls or activations is wrong.
    """
    actuators = model.actuators
    if not isinstance(actuators, Actuators):
        raise ValueError(
            f"model {model.name!r} has no actuators, expected some, as those of MJCF "
            "and of transmissions in URDF: pass joint torques as tau."
        )
    if actuators.refused:
        reasons = ", ".join(f"{name} ({why})" for name, why in actuators.refused)
        raise ValueError(
            f"model {model.name!r} has actuators that cannot be expressed: {reasons}: "
            "compute their forces and pass joint torques as tau."
        )
    if actuators.n_act and act is None:
        moved = zip(actuators.names, actuators.activations, strict=True)
        named = ", ".join(name for name, k in moved if k >= 0)
        raise ValueError(
            f"actuators of model {model.name!r} have activations ({named}): pass act, "
            f"{actuators.n_act} numbers."
        )
    return _actuate(model, q, qd, ctrl, act)


@compiled()
@of_tree(along_rows)
def _actuate(
    model: Model,
    q: Float[Array, " nq"],
    qd: Float[Array, " nv"],
    ctrl: Float[Array, " nu"],
    act: Float[Array, " na"] | None,
) -> Float[Array, " nv"]:
    model, q, qd, ctrl, act = arguments(model, q=q, qd=qd, ctrl=ctrl, act=act)
    t = model.topology
    x: Any = model.actuators  # has leaves
    R = Quaternion.of(take(q, t.free_quaternion_q)).unit().matrix()

    def turned(v: Any, R: Any) -> Any:
        """With other axes for the linear parts of free joints."""
        if not t.free_bodies.size:
            return v
        linear = R @ Vec3.of(take(v, t.position_v))
        return exchange(v, t.position_v, linear.array())

    has_length = np.ones(model.nv)
    has_length[np.concatenate([t.position_v, t.position_v + 3])] = 0
    d = difference(model, neutral(model), q) * has_length.astype(q.dtype)
    length, rate = ((x.arms * v[None]).sum(axis=1) for v in (d, turned(qd, R)))
    state = jnp.stack([jnp.ones_like(length), length, rate], axis=1)
    gain, bias = ((c * state).sum(axis=1) for c in (x.gain, x.bias))
    u = _clip(take(ctrl, np.array(x.controls)), x.control_range)
    if act is not None:
        places = np.array(x.activations)
        u = jnp.where(places < 0, u, take(act, places % (x.n_act + 1)))
    f = _clip(gain * u + bias, x.force_range)
    tau = _clip((x.arms * f[:, None]).sum(axis=0), x.joint_range)
    return turned(tau, R.T)


def _clip(x: Any, span: Any) -> Any:
    return jnp.clip(x, span[:, 0], span[:, 1])
