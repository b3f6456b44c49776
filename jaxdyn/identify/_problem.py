"""A fit as a function of its unknowns."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxdyn.identify._choice import Parameters
from jaxdyn.identify._priors import Prior
from jaxdyn.identify._rows import held_out

Residual = Any  # has rows(model, data), unknowns(rows) and (model, unknowns, row)


class Unknowns(eqx.Module):
    """The coordinates of the parameters, and what else a residual leaves open."""

    theta: Float[Array, " k"]
    more: Any


class Problem(eqx.Module):
    """Parameters, a residual and its data: what is least where the model fits.

    Attributes:
        rows: the data, a pytree with one row for each residual.
    """

    parameters: Parameters
    residual: Residual
    priors: tuple[Prior, ...]
    rows: Any

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(jax.tree.leaves(self.rows)[0])

    def start(self) -> Unknowns:
        """Where the search starts."""
        more = self.residual.unknowns(self.rows)
        return Unknowns(self.parameters.theta, more)

    def residuals(self, x: Unknowns, rows: Any = None) -> Float[Array, "rows m"]:
        """The residuals of all rows, or of some."""
        model = self.parameters.model(x.theta)
        each = jax.vmap(self.residual, (None, None, 0))
        return each(model, x.more, self.rows if rows is None else rows)

    def prior(self, x: Unknowns) -> Float[Array, " _"]:
        """The residuals of the priors."""
        parts = [p.residual(self.parameters, x.theta) for p in self.priors]
        return jnp.concatenate([jnp.zeros(0, x.theta.dtype), *parts])

    def vector(self, x: Unknowns) -> Float[Array, " _"]:
        """All residuals, of data and priors."""
        return jnp.concatenate([self.residuals(x).ravel(), self.prior(x)])

    def loss(
        self, x: Unknowns, batch: Int[Array, " batch"] | None = None
    ) -> Float[Array, ""]:
        """Half the sum of squares over the number of rows, estimated from a batch."""
        rows = self.rows
        if batch is not None:
            rows = jax.tree.map(lambda leaf: leaf[batch], rows)
        squares = (self.residuals(x, rows) ** 2).sum(axis=1).mean()
        return (squares + (self.prior(x) ** 2).sum() / self.count) / 2


def size_of(problem: Problem, x: Unknowns, rows: Any) -> Float[Array, ""]:
    """The root mean square of residuals of other rows, which have no unknowns."""
    residuals = problem.residuals(Unknowns(x.theta, None), rows)
    return jnp.sqrt((residuals**2).mean())


held_out_size = eqx.filter_jit(size_of)


def split(rows: Any, share: float | int) -> tuple[Any, Any | None]:
    """The rows to fit, and the last share of them, which is held out; None if empty."""
    count = len(jax.tree.leaves(rows)[0])
    held = held_out(count, share)
    if held == 0:
        return rows, None
    first = jax.tree.map(lambda leaf: leaf[: count - held], rows)
    return first, jax.tree.map(lambda leaf: leaf[count - held :], rows)
