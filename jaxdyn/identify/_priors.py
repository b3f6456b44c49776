"""What is known of parameters before any data."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.identify._choice import Parameters
from jaxdyn.identify._coordinates import geodesic_step
from jaxdyn.identify._elements import CHOSEN, fits_pattern, is_named, matching


class Gaussian(eqx.Module):
    """Values that are believed to lie near a mean, within a standard deviation.

    Attributes:
        pattern: of names of elements or values, such as "*.mass" or "link2.com_x".
        std: the standard deviation in the units of the value, or a share of its nominal
            value if `relative`.
        mean: by default the nominal value.
    """

    pattern: str = eqx.field(static=True)
    std: float
    mean: float | None = None
    relative: bool = eqx.field(static=True, default=False)

    def __check_init__(self) -> None:
        _check_std(self.pattern, self.std)

    def residual(
        self, parameters: Parameters, theta: Float[Array, " k"]
    ) -> Float[Array, " _"]:
        """The distances from the mean over the standard deviation."""
        at = np.array(_places(parameters, self.pattern))
        nominal = parameters.nominal_values[at]
        mean = nominal if self.mean is None else jnp.full_like(nominal, self.mean)
        std = jnp.abs(nominal) * self.std if self.relative else self.std
        return (parameters.values(theta)[at] - mean) / std

    def check(self, parameters: Parameters) -> None:
        """Raise a `ValueError` if this cannot be a prior of these parameters."""
        at = _places(parameters, self.pattern)
        nominal = np.asarray(parameters.nominal_values)
        for k in at if self.relative else ():
            if nominal[k] == 0:
                raise ValueError(
                    f"prior: {parameters.names[k]} is nominally 0, which has no share "
                    "as a standard deviation: give one in its units, relative=False."
                )


class Geodesic(eqx.Module):
    """Bodies that are believed to be like the nominal ones.

    The distance of two bodies is that of their pseudo-inertias, [Lee]: it is the same
    in all frames and units, and infinite for what no body can be. A distance of 1 is a
    change of all masses by a factor of 2, about.

    Attributes:
        pattern: of elements that are bodies, such as "*.inertial".
        std: the distance that is expected.
    """

    pattern: str = eqx.field(static=True, default="*.inertial")
    std: float = 1.0

    def __check_init__(self) -> None:
        _check_std(self.pattern, self.std)

    def check(self, parameters: Parameters) -> None:
        """Raise a `ValueError` if this cannot be a prior of these parameters."""
        chosen = matching(parameters.chosen, "prior", self.pattern, CHOSEN)
        wrong = [x.name for x in chosen if x.kind != "body"]
        if wrong:
            raise ValueError(
                f"prior: {wrong[0]} has no geodesic distance, expected names that end "
                "with .inertial: use Gaussian."
            )

    def residual(
        self, parameters: Parameters, theta: Float[Array, " k"]
    ) -> Float[Array, " _"]:
        """Ten numbers for each body, whose squares add up to the squared distance."""
        self.check(parameters)
        at = {x.at for x in matching(parameters.chosen, "prior", self.pattern)}
        pairs = zip(parameters.blocks, parameters.parts(theta), strict=True)
        (bodies,) = [(x, part) for x, part in pairs if x.kind == "body"]
        rows = np.array([k for k, i in enumerate(bodies[0].at) if i in at])
        return jax.vmap(geodesic_step)(bodies[1][rows]).ravel() / self.std


Prior = Gaussian | Geodesic


def _check_std(pattern: str, std: float) -> None:
    if isinstance(std, float | int) and not 0 < std < np.inf:
        raise ValueError(f"prior: {pattern!r} has std {std}, expected a number above 0")


def _places(parameters: Parameters, pattern: str) -> list[int]:
    """Where the values stand that a pattern names, by element or by themselves."""
    names = [(x, name) for x in parameters.chosen for name in x.value_names]
    plain = [
        k
        for k, (x, name) in enumerate(names)
        if fits_pattern(x, pattern) or is_named(name, pattern)
    ]
    if not plain:
        raise ValueError(
            f"prior: {pattern!r} fits {CHOSEN}: {', '.join(parameters.names)}."
        )
    return plain
