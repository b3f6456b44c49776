"""Actuators as data: what turns controls into joint forces."""

import equinox as eqx
from jaxtyping import Array, Float


class Actuators(eqx.Module):
    r"""The actuators of a robot, one row each; `jd.actuate` gives their joint forces.

    An actuator with the lever arms r has the length $l = r \cdot q$ and exerts

    $$f = (g_0 + g_1 l + g_2 \dot l)\,u + b_0 + b_1 l + b_2 \dot l,
    \qquad \tau = r f,$$

    where u is its control, or its activation if it has one. Both u and f are clipped to
    their ranges, and so is the sum of all tau of a joint. On a spherical joint the
    length is that of the rotation vector, on a free joint it is zero, and the linear
    part of r there is in world axes.

    Attributes:
        arms: r, joint forces per unit of the force.
        gain, bias: g and b.
        control_range, force_range: of u and of f, infinite where they have no limits.
        joint_range: of the sum of all actuator forces of each joint.
        names: of the actuators.
        controls: the place of each one's control in `ctrl`.
        activations: the place of each one's activation in `act`, -1 for none.
        refused: names of those that are not of this form, each with the reason.
    """

    arms: Float[Array, "k nv"]
    gain: Float[Array, "k 3"]
    bias: Float[Array, "k 3"]
    control_range: Float[Array, "k 2"]
    force_range: Float[Array, "k 2"]
    joint_range: Float[Array, "nv 2"]
    names: tuple[str, ...] = eqx.field(static=True)
    controls: tuple[int, ...] = eqx.field(static=True)
    activations: tuple[int, ...] = eqx.field(static=True)
    refused: tuple[tuple[str, str], ...] = eqx.field(static=True)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def n_ctrl(self) -> int:
        """The number of controls."""
        return 1 + max(self.controls)

    @property
    def n_act(self) -> int:
        """The number of activations."""
        return 1 + max(self.activations)
