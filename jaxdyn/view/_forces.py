"""Forces as arrows on the bodies of a robot that moves."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.algorithms.loops import loop_wrenches
from jaxdyn.model import Model
from jaxdyn.view._samples import Samples


@dataclass(frozen=True)
class Arrows:
    """Forces [times, arrows, 3] in world axes, each at a place of a body."""

    name: str
    bodies: tuple[int, ...]  # n is the world
    places: np.ndarray  # [arrows, 3], in the axes of the bodies
    vectors: np.ndarray


def arrows(
    model: Model, rows: Samples, forces: Mapping[str, Any], loop_forces: Any
) -> list[Arrows]:
    """Forces of wrenches [times, n, 6] on bodies, and of loops [times, nc].

    They have a row for each time that was given, the arrows one for each of `rows`.
    """
    found = []
    for name, given in forces.items():
        wrenches = _checked(f"forces {name!r}", given, rows, (model.n, 6))
        bodies = tuple(range(model.n))
        found.append(Arrows(name, bodies, np.zeros((model.n, 3)), wrenches[..., :3]))
    if loop_forces is not None and model.loops:
        given = rows.q, _checked("loop_forces", loop_forces, rows, (model.nc,))
        given = (jnp.asarray(x, model.dtype) for x in given)
        wrenches = np.asarray(jax.vmap(loop_wrenches, (None, 0, 0))(model, *given))
        bodies = tuple(x.body_a % (model.n + 1) for x in model.loops)
        places = np.stack([np.asarray(x.p_a, float) for x in model.loops])
        found.append(Arrows("loop forces", bodies, places, wrenches[..., :3]))
    return found


def _checked(what: str, given: Any, rows: Samples, each: tuple[int, ...]) -> np.ndarray:
    array, shape = np.asarray(given, float), (rows.count, *each)
    if array.shape != shape:
        raise ValueError(
            f"{what} has shape {array.shape}, expected {shape}: one row for each time."
        )
    return array[rows.index]
