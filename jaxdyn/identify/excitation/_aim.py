"""What a motion tells about base parameters, as one number to make small."""

from functools import partial
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.algorithms.recursions import dynamic_parameters, regressor
from jaxdyn.identify.excitation._plan import Plan, Shape
from jaxdyn.model import Model

Criterion = Literal["log_det", "condition", "worst"]
POWER = 8  # of the mean that stands for the largest standard deviation
_ROUNDED = 0.02  # of the largest rate, over which friction changes its sign at least
_ROOM = 0.005  # part of all limits that is left free, for what lies between samples
_RIDGE = 1e-12  # beside the mean eigenvalue: no motion makes the criterion infinite


class Aim(eqx.Module):
    """What shall be known."""

    noise: Float[Array, " nv"]  # the standard deviation of measured joint forces
    scale: Float[Array, " base"]  # the unit in which each base parameter is told
    columns: tuple[int, ...] = eqx.field(static=True)  # of base parameters
    criterion: Criterion = eqx.field(static=True)

    def information(self, Y: Any) -> Float[Array, "base base"]:
        """The information of regressors [times, nv, parameters], in these units."""
        at = jnp.asarray(self.columns)
        A = Y[..., at] * self.scale[None, None] / self.noise[None, :, None]
        A = A.reshape(-1, len(self.columns))
        return A.T @ A

    def value(self, information: Any) -> Float[Array, ""]:
        """The criterion, smaller is better: the logarithm of a standard deviation.

        That of the geometric mean over the axes of the ellipsoid of errors for
        "log_det", of the ratio of its longest to its shortest for "condition", and of a
        mean of high power, close to the largest, for "worst".
        """
        k = len(information)
        ridge = _RIDGE * jnp.trace(information) / k
        return _value(self.criterion, information + ridge * jnp.eye(k))


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _value(criterion: Criterion, M: Any) -> Any:
    return _value_and_slope(criterion, M)[0]


@_value.defjvp
def _value_jvp(criterion: Criterion, primals: Any, tangents: Any) -> Any:
    value, slope = _value_and_slope(criterion, *primals)
    return value, jnp.vdot(slope, tangents[0])


def _value_and_slope(criterion: Criterion, M: Any) -> tuple[Any, Any]:
    """The criterion and its derivative by M, in closed form.

    Both from one symmetric decomposition: on a CPU the derivatives of a Cholesky factor
    take longer than all else.
    """
    sizes, V = jnp.linalg.eigh(M)
    if criterion == "condition":
        ends = V[:, jnp.array([0, -1])]
        signs = jnp.array([-0.5, 0.5]) / sizes[jnp.array([0, -1])]
        slope = (ends * signs[None]) @ ends.T
        return jnp.log(sizes[-1] / sizes[0]) / 2, slope
    C = (V / sizes[None]) @ V.T
    if criterion == "log_det":
        return -jnp.log(sizes).mean() / 2, -C / (2 * len(M))
    logs = POWER / 2 * jnp.log(jnp.diagonal(C))
    weights = jax.nn.softmax(logs) / jnp.diagonal(C)
    slope = -(C * weights[None]) @ C / 2  # dC = -C dM C
    return jax.nn.logsumexp(logs) / POWER, slope


def rounded(model: Model, velocity: Any) -> Model:
    """The model with a friction whose change of sign a gradient can see."""
    speed = jnp.maximum(model.friction_speed, _ROUNDED * velocity)
    return eqx.tree_at(lambda m: m.friction_speed, model, speed)


def loss(plan: Plan, aim: Aim, shape: Shape, samples: int, weight: Any) -> Any:
    """The criterion and the weighted squares of what is beyond the limits."""
    m = plan.states(shape, samples)
    Y = jax.vmap(regressor, (None, 0, 0, 0))(plan.model, m.q, m.qd, m.qdd)
    tau = Y @ dynamic_parameters(plan.model)
    used = jax.vmap(plan.limits.used)(m.q, m.qd, tau)
    beyond = [jax.nn.relu(x - (1 - _ROOM)) for x in jax.tree.leaves(used)]
    penalty = sum((x**2).sum() for x in beyond)
    value = aim.value(aim.information(Y))
    return value + weight * penalty, value
