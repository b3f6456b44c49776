"""Force elements: what acts between bodies, or in joints, by a law of its own."""

from abc import abstractmethod
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from jaxdyn.model._check import Body, Numbers, is_index

if TYPE_CHECKING:
    from jaxdyn.model._model import Model


class BodyState(eqx.Module):
    """What a force element may depend on, relative to the base and in its axes.

    Attributes:
        q, qd: the joint positions and velocities.
        R, p: axes and origin of each body.
        v, w: velocity of each body's origin, and its angular velocity.
    """

    q: Float[Array, " nq"]
    qd: Float[Array, " nv"]
    R: Float[Array, "n 3 3"]
    p: Float[Array, "n 3"]
    v: Float[Array, "n 3"]
    w: Float[Array, "n 3"]

    def point(
        self, body: int, place: Float[Array, "3"]
    ) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
        """Position and velocity of a place in a body's axes; body -1 is the world."""
        if body < 0:
            return place, jnp.zeros_like(place)
        arm = self.arm(body, place)
        return self.p[body] + arm, self.v[body] + jnp.cross(self.w[body], arm)

    def wrench(
        self, body: int, place: Float[Array, "3"], force: Float[Array, "3"]
    ) -> Float[Array, "6"]:
        """The wrench of a force at that place, about the origin of the body."""
        arm = place if body < 0 else self.arm(body, place)
        return jnp.concatenate([force, jnp.cross(arm, force)])

    def arm(self, body: int, place: Float[Array, "3"]) -> Float[Array, "3"]:
        """From the origin of a body to a place in its axes."""
        return jnp.matmul(self.R[body], place, precision="highest")


class Loads(eqx.Module):
    """What a force element exerts.

    Attributes:
        bodies: the bodies it acts on, -1 for the world, which takes any load.
        wrenches: force and moment on each of them, in world axes, about its origin.
        tau: forces along the joint velocities; None for none.
    """

    bodies: tuple[int, ...] = eqx.field(static=True, default=())
    wrenches: Float[Array, "k 6"] | None = None
    tau: Float[Array, " nv"] | None = None


class AbstractForce(eqx.Module):
    """A force element: numbers that may be fitted are leaves, bodies are static.

    `Model.with_force` adds it to a model. All methods are traced and smooth, and
    written for one state.
    """

    @abstractmethod
    def loads(self, model: "Model", at: BodyState) -> Loads:
        """What it exerts in a state."""

    def energy(self, model: "Model", at: BodyState) -> Float[Array, ""]:
        """The energy it stores, a function of the positions alone; zero by default.

        The power that its loads take from the bodies beyond the rate of this energy
        counts as dissipated.
        """
        return jnp.zeros((), model.dtype)

    def joint_slopes(
        self, model: "Model", at: BodyState
    ) -> tuple[Float[Array, " nv"], Float[Array, " nv"]] | None:
        """Damping and stiffness of each joint, if it acts joint by joint.

        Steps of the integrator "implicit" take them at their end. None, the default,
        has them differentiate `loads`, at the cost of a dense matrix.
        """
        return None

    def placed(self, model: "Model") -> "AbstractForce":
        """The element with checked values, and indices for the names of bodies."""
        return self


FORCES: dict[str, type[AbstractForce]] = {}  # by their names in files


def as_leaf(value: ArrayLike | Numbers) -> Array:
    """A number or numbers as an array of floating-point type."""
    x = value if isinstance(value, Array) else np.asarray(value)
    is_floating = jnp.issubdtype(x.dtype, jnp.floating)
    return jnp.asarray(x) if is_floating else jnp.asarray(x, float)


def force_of(element: AbstractForce, model: "Model") -> AbstractForce:
    """The element for a model, its leaves in the type of the model.

    Raises:
        ValueError: it is no force element.
    """
    if not isinstance(element, AbstractForce):
        raise ValueError(
            f"the force is {element!r}, expected an instance of AbstractForce, such as "
            "a SpringDamper."
        )
    placed = element.placed(model)
    return jax.tree.map(lambda x: as_leaf(x).astype(model.dtype), placed)


def body_index(model: "Model", body: Body | None) -> int:
    """The index of a body; -1 for None, -1 and the name of the base: the world."""
    if body is None or (is_index(body) and body == -1):
        return -1
    return -1 if body == model.find("base") else model.body(body)
