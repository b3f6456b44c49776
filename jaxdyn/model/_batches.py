"""Many models of one robot."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from jaxdyn.model._model import Model

# what grows with a leaf, so that a body stays one that can exist
WITH = {"mass": ("mass", "inertia")}
SHIFTED = ("com", "p", "frame_p", "rest")  # by so much, in their units
SCALED = tuple(x for x in Model.leaf_names() if x not in (*SHIFTED, "R", "frame_R"))


def axes(model: Model, *leaves: str) -> Model:
    """The `in_axes` of `jax.vmap` for models that differ in some leaves alone.

    Without names for models that differ in all of them. As in
    `jax.vmap(jd.mass_matrix, (jd.axes(models, "mass", "inertia"), None))(models, q)`.
    """
    if not leaves:
        return jax.tree.map(lambda _: 0, model)
    _check(model, leaves, Model.leaf_names())
    along = jax.tree.map(lambda _: None, model)
    return jax.tree_util.tree_map_with_path(
        lambda path, _: 0 if getattr(path[0], "name", "") in leaves else None,
        along,
        is_leaf=lambda x: x is None,
    )


def randomize(
    model: Model, key: Any, spread: Mapping[str, Any], count: int | None = None
) -> Model:
    """Models whose leaves vary at random, each entry by itself and uniformly.

    Bodies stay ones that can exist: `mass` takes the inertia with it, and factors are
    not negative.

    Args:
        key: of `jax.random`.
        spread: by the name of a leaf. A number s stands for factors from 1 - s to
            1 + s, a pair for factors from the first to the second; for `com`, `p`,
            `frame_p` and `rest` both are shifts in their units instead of factors, a
            number s from -s to s.
        count: how many models, along a first axis of the leaves that vary: give
            `jax.vmap` the in_axes `jd.axes(models, *spread)`, with "inertia" if there
            is "mass". By default one model.

    Raises:
        ValueError: a name that is not a leaf, or not one that can vary so; a range that
            ends before it begins, or factors below zero.
    """
    _check(model, spread, (*SCALED, *SHIFTED))
    lead = () if count is None else (count,)
    values: dict[str, Any] = {}
    keys = jax.random.split(key, max(1, len(spread)))
    for own, (name, given) in zip(keys, spread.items(), strict=False):
        low, high = _range(name, given)
        shape = (*lead, *getattr(model, name).shape)
        drawn = jax.random.uniform(own, shape, model.dtype, low, high)
        for leaf in WITH.get(name, (name,)):
            old = getattr(model, leaf)
            x = drawn.reshape(*shape, *[1] * (old.ndim + len(lead) - drawn.ndim))
            old = values.get(leaf, jnp.broadcast_to(old, (*lead, *old.shape)))
            values[leaf] = old + x if name in SHIFTED else old * x
    return model.replace(**values)


def _range(name: str, given: Any) -> tuple[float, float]:
    centre = 0.0 if name in SHIFTED else 1.0
    pair = jnp.asarray(given, float)
    if pair.ndim == 0:
        pair = jnp.stack([centre - pair, centre + pair])
    if pair.shape != (2,) or not pair[0] <= pair[1] or (centre and pair[0] < 0):
        raise ValueError(
            f"spread[{name!r}] is {given!r}, expected a number or a range"
            + (" of factors that are not negative." if centre else " of shifts.")
        )
    return float(pair[0]), float(pair[1])


def _check(model: Model, names: Any, known: tuple[str, ...]) -> None:
    for name in names:
        if name not in known:
            raise ValueError(
                f"{name!r} of model {model.name!r} cannot vary, expected one of: "
                f"{', '.join(known)}."
            )
