"""Stops for the joints of a model."""

import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn.algorithms.derivatives import inertia_matrix
from jaxdyn.algorithms.forces import JointStops
from jaxdyn.algorithms.kinematics import neutral
from jaxdyn.model import Model, as_leaf


def joint_stops(
    model: Model,
    *,
    stiffness: ArrayLike | None = None,
    damping: ArrayLike | None = None,
    time: float = 0.02,
    width: float = 1e-3,
) -> JointStops:
    """Stops at the joint limits of a model, for `Model.with_force`.

    By default each of them brings the inertia m that its joint has in the neutral
    configuration to rest without rebound within a few times `time`: stiffness m / time²
    and damping 2 m / time.

    Args:
        stiffness, damping: in N m/rad and N m s/rad, or N/m and N s/m: one number, or
            one for each joint velocity (of all joints, with couplings).
        width: of `JointStops`.

    Raises:
        ValueError: a number that is not finite, is negative, or has a wrong shape.
    """
    if not time > 0:
        raise ValueError(f"joint_stops: time is {time!r}, expected a positive number.")
    tree = model.tree
    inertia = jnp.diagonal(inertia_matrix(tree, neutral(tree)))
    k = inertia / time**2 if stiffness is None else jnp.asarray(stiffness)
    c = 2 * inertia / time if damping is None else jnp.asarray(damping)
    k, c = (jnp.broadcast_to(x.astype(model.dtype), tree.nv) for x in (k, c))
    return JointStops(stiffness=k, damping=c, width=as_leaf(width)).placed(model)
