"""Parameters of one kind, all at once: from coordinates to leaves of a model."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.identify import _coordinates as coordinates
from jaxdyn.identify._coordinates import SIZE
from jaxdyn.identify._elements import Element, Path, leaf_of, with_leaf
from jaxdyn.model import Model
from jaxdyn.spatial import Vec3, exp

START = 0.1  # of a positive joint parameter that is zero in the model, in SI units
_SCALES = {"gravity": 1.0, "pitch": 0.01, "rest": 1.0}  # others are lengths
_LENGTH = 0.1
_UPPER = np.triu_indices(3)


class Block(eqx.Module):
    """Some elements of one kind and leaf, with what they need of the nominal model."""

    nominal: tuple[Float[Array, "rows ..."], ...]  # a row for each element
    kind: str = eqx.field(static=True)
    leaf: Path = eqx.field(static=True)
    at: tuple[int, ...] = eqx.field(static=True)

    @property
    def width(self) -> int:
        """The number of coordinates of each element."""
        return WIDTHS[self.kind]

    def put(self, model: Model, theta: Float[Array, "rows k"]) -> Model:
        """The model with the numbers of these coordinates."""
        at = np.array(self.at)
        if self.kind == "body":
            new = jax.vmap(coordinates.moved_body)(theta, *self.nominal)
            pairs = zip((model.mass, model.com, model.inertia), new, strict=True)
            leaves = [leaf.at[at].set(x) for leaf, x in pairs]
            return eqx.tree_at(lambda m: (m.mass, m.com, m.inertia), model, leaves)
        leaf = leaf_of(model, self.leaf)
        if self.kind in ("positive", "free"):
            flat = leaf.ravel().at[at].set(_NUMBERS[self.kind](theta, *self.nominal))
            return with_leaf(model, self.leaf, flat.reshape(leaf.shape))
        rows = jax.vmap(_NUMBERS[self.kind])(theta, *self.nominal)
        # the leaves of a loop have no rows
        new = leaf.at[at].set(rows) if len(self.leaf) == 1 else rows[0]
        return with_leaf(model, self.leaf, new)

    def values(self, model: Model, theta: Float[Array, "rows k"]) -> Float[Array, " m"]:
        """The physical numbers, as `Element.value_names` orders them."""
        at = np.array(self.at)
        if self.kind == "rotation":
            return (_ANGLE * theta).ravel()
        if self.kind == "body":
            inertia = model.inertia[at][:, *_UPPER]
            parts = [model.mass[at, None], model.com[at], inertia]
            return jnp.concatenate(parts, axis=1).ravel()
        leaf = leaf_of(model, self.leaf)
        if self.kind in ("positive", "free"):
            return leaf.ravel()[at]
        rows = leaf[at]
        return (rows[:, *_UPPER] if self.kind == "inertia" else rows).ravel()


WIDTHS = dict(body=10, inertia=6, positive=1, free=1, rotation=3, axis=2)
_ANGLE = 0.1  # radians per unit of a coordinate


def _free(theta: Any, nominal: Any, scale: Any) -> Any:
    return nominal + scale * theta[:, 0]


def _positive(theta: Any, nominal: Any) -> Any:
    return coordinates.positive(theta[:, 0], nominal)


def _rotation(theta: Any, nominal: Any) -> Any:
    return nominal @ exp(Vec3.of(_ANGLE * theta)).matrix().array()


def _axis(theta: Any, nominal: Any, across: Any) -> Any:
    axis = nominal + _ANGLE * theta @ across
    return axis / jnp.linalg.norm(axis)


_NUMBERS: dict[str, Any] = dict(
    inertia=coordinates.moved_inertia,
    positive=_positive,
    free=_free,
    rotation=_rotation,
    axis=_axis,
)


def block(
    model: Model, chosen: list[Element], start: dict[str, float]
) -> tuple[Block, np.ndarray]:
    """The block of some elements of one kind and leaf, and where its search starts."""
    starts, at = [start.get(x.name) for x in chosen], tuple(x.at for x in chosen)
    rows = [_nominal(model, *pair) for pair in zip(chosen, starts, strict=True)]
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    arrays = tuple(jnp.asarray(column, model.dtype) for column in columns)
    firsts = [_first(*each) for each in zip(chosen, rows, starts, strict=True)]
    return Block(arrays, chosen[0].kind, chosen[0].leaf, at), np.array(firsts)


def _nominal(model: Model, x: Element, start: float | None) -> tuple[Any, ...]:
    """What the coordinates of an element need of the model, on the host."""
    if x.kind in ("body", "inertia"):
        leaves = (model.mass, model.com, model.inertia)
        mass, com, inertia = (np.asarray(leaf[x.at], float) for leaf in leaves)
        moments = coordinates.second_moments(inertia)
        factor = coordinates.upper_factor(moments, model.dtype)
        if factor is None or (x.kind == "body" and mass <= 0):
            raise ValueError(
                f"{x.name}: body {model.names[x.at]!r} has mass {mass:g} and principal "
                f"inertias {np.linalg.eigvalsh(inertia)}, expected a mass above 0 and "
                "three inertias of which none reaches the sum of the others: leave it "
                "out (without=), choose its mass or com alone, or begin with "
                "definite(model)."
            )
        return (mass, com, factor) if x.kind == "body" else (factor,)
    if x.kind == "axis":
        axis = np.asarray(leaf_of(model, x.leaf)[x.at], float)
        axis = axis / np.linalg.norm(axis)
        return axis, np.linalg.svd(axis[None])[2][1:]
    leaf = np.asarray(leaf_of(model, x.leaf), float)
    if x.kind == "rotation":
        return (leaf[x.at] if leaf.ndim == 3 else leaf,)
    value = leaf.ravel()[x.at]
    if x.kind == "free":
        return value, _SCALES.get(str(x.leaf[-1]), _LENGTH)
    if value < 0 or (value == 0 and x.leaf == ("mass",)):
        raise ValueError(f"{x.name} is {value:g}, expected a number above 0.")
    return (value or start or START,)


def _first(x: Element, nominal: tuple[Any, ...], start: float | None) -> np.ndarray:
    """The coordinates where the search for an element starts."""
    if start is None:
        return np.zeros(WIDTHS[x.kind])
    if x.kind == "free":
        value, scale = nominal
        return np.array([(start - value) / scale])
    if x.kind != "positive":
        raise ValueError(
            f"start: {x.name} is not one number: change the model it starts from."
        )
    ratio = np.log(start / nominal[0]) if start > 0 else np.inf
    if abs(ratio) >= SIZE:
        raise ValueError(
            f"start: {x.name} is {start:g}, expected a number above 0 near its nominal "
            f"value {nominal[0]:g}."
        )
    return np.array([SIZE * np.arctanh(ratio / SIZE)])
