"""A spring and a damper between points of two bodies."""

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from jaxdyn.model import (
    FORCES,
    AbstractForce,
    BodyState,
    Loads,
    Model,
    as_leaf,
    body_index,
)


class SpringDamper(AbstractForce):
    r"""A massless spring and a damper between a point a and a point b.

    With d from a to b, its length l and its direction u = d / l, the force

    $$f = (k\,(l - l_0) + c\,\dot l)\,u, \qquad \dot l = u \cdot \dot d$$

    acts on body a, and its opposite on body b. Where both points coincide u is zero, in
    values and in derivatives: what remains there is the spring without rest length.

    Attributes:
        body_a, body_b: the bodies, by name or index; None is the world.
        p_a, p_b: the points, in the axes of their bodies.
        stiffness: k, in N/m; damping: c, in N s/m.
        rest_length: l_0, in m.
    """

    body_a: str | int | None = eqx.field(static=True)
    p_a: Float[Array, "3"] = eqx.field(converter=as_leaf)
    body_b: str | int | None = eqx.field(static=True)
    p_b: Float[Array, "3"] = eqx.field(converter=as_leaf)
    stiffness: Float[Array, ""] = eqx.field(converter=as_leaf, default=0.0)
    damping: Float[Array, ""] = eqx.field(converter=as_leaf, default=0.0)
    rest_length: Float[Array, ""] = eqx.field(converter=as_leaf, default=0.0)

    def loads(self, model: Model, at: BodyState) -> Loads:
        """The force on body a at its point, the opposite on body b."""
        a, b = self._ends()
        d, rate, _, u = self._span(at)
        dl = (u * rate).sum()
        f = self.stiffness * (d - self.rest_length * u) + self.damping * dl * u
        wrenches = at.wrench(a, self.p_a, f), at.wrench(b, self.p_b, -f)
        return Loads((a, b), jnp.stack(wrenches))

    def energy(self, model: Model, at: BodyState) -> Float[Array, ""]:
        """The energy k (l - l_0)² / 2 of the spring."""
        d, _, l, _ = self._span(at)
        # at l = 0 the second derivative is that of k d² / 2
        square = (l - self.rest_length) ** 2 + jnp.where(l == 0, (d * d).sum(), 0)
        return 0.5 * self.stiffness * square

    def placed(self, model: Model) -> "SpringDamper":
        """The element with indices of its bodies, its values checked."""
        a, b = body_index(model, self.body_a), body_index(model, self.body_b)
        if a == b:
            raise ValueError(
                f"a spring-damper joins body {self.body_a!r} to itself, expected two "
                "bodies."
            )
        for name, shape in {"p_a": (3,), "p_b": (3,)}.items():
            _check(name, getattr(self, name), shape)
        for name in ("stiffness", "damping", "rest_length"):
            _check(name, getattr(self, name), (), least=0.0)
        return replace(self, body_a=a, body_b=b)

    def _ends(self) -> tuple[int, int]:
        if not isinstance(self.body_a, int) or not isinstance(self.body_b, int):
            raise ValueError(
                f"a spring-damper between {self.body_a!r} and {self.body_b!r} is not "
                "part of a model: add it by model.with_force."
            )
        return self.body_a, self.body_b

    def _span(self, at: BodyState) -> tuple[Array, Array, Array, Array]:
        """d, its rate, its length and its direction."""
        a, b = self._ends()
        (x_a, v_a), (x_b, v_b) = at.point(a, self.p_a), at.point(b, self.p_b)
        d = x_b - x_a
        square = (d * d).sum()
        is_zero = square == 0
        l = jnp.sqrt(jnp.where(is_zero, 1, square))
        return d, v_b - v_a, jnp.where(is_zero, 0, l), jnp.where(is_zero, 0, d / l)


FORCES["spring_damper"] = SpringDamper


def _check(name: str, value: Array, shape: tuple, least: float = -np.inf) -> None:
    wanted = f"{shape[0]} finite numbers" if shape else "a finite number, zero or more"
    if jnp.shape(value) == shape:
        if isinstance(value, Tracer):
            return
        if np.isfinite(value).all() and (np.asarray(value) >= least).all():
            return
    raise ValueError(f"a spring-damper has {name} {value!r}, expected {wanted}.")
