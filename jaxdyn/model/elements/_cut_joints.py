"""Cut joints: what closes the loops of a mechanism whose bodies form a tree."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from jaxdyn.model._check import (
    Numbers,
    as_numbers,
    check_finite,
    check_rotation,
    is_index,
)
from jaxdyn.model.elements._rows import CUT_JOINTS

Placement = Numbers | tuple[Numbers, Numbers]  # an origin, or a rotation and an origin


class Loop(eqx.Module):
    """A cut joint between two bodies: the frame a on one and the frame b on the other.

    Attributes:
        R_a, p_a: pose of frame a in body a.
        R_b, p_b: pose of frame b in body b.
        name: of the loop.
        body_a, body_b: the two bodies, as indices; -1 is the world.
        joint: one of `CUT_JOINTS`.
        axes: of a "point": the world axes (0, 1, 2) along which the origins of both
            frames are held together.
    """

    R_a: Float[Array, "3 3"]
    p_a: Float[Array, "3"]
    R_b: Float[Array, "3 3"]
    p_b: Float[Array, "3"]
    name: str = eqx.field(static=True)
    body_a: int = eqx.field(static=True)
    body_b: int = eqx.field(static=True)
    joint: str = eqx.field(static=True)
    axes: tuple[int, ...] = eqx.field(static=True)

    @property
    def rows(self) -> tuple[str, ...]:
        """What the cut joint holds, see `ROWS`; one multiplier for each."""
        held = CUT_JOINTS[self.joint]
        return tuple(held[k] for k in self.axes) if self.joint == "point" else held


def check_loop(
    names: Sequence[str],
    taken: Sequence[str],
    bodies: Callable[[str], tuple[int, int]],
    placements: tuple[Placement, Placement],
    joint: str | None,
    axes: Sequence[int] | None,
    name: str | None,
) -> dict[str, Any]:
    """The data of a `Loop`, checked; `axes` alone mean a "point".

    `names` are those of all bodies, `taken` those of the loops so far; `bodies` gives
    the indices of both bodies, and is called with the name of the loop, for its errors.
    """
    name = f"loop {len(taken)}" if name is None else name
    if not isinstance(name, str) or not name or name in taken:
        raise ValueError(
            f"a loop has the name {name!r}, expected a text that no other loop has."
        )
    body_a, body_b = bodies(name)
    if body_a == body_b:
        what = "the world" if body_a < 0 else f"body {names[body_a]!r}"
        raise ValueError(f"{name} joins {what} to itself, expected two bodies.")
    axes = None if axes is None else _indices(name, axes)
    if joint is None:
        joint = "spherical" if axes is None else "point"
    if joint == "point" and axes == (0, 1, 2):
        joint, axes = "spherical", None  # the same
    if not isinstance(joint, str) or joint not in CUT_JOINTS:
        raise ValueError(
            f"{name}: a cut joint of type {joint!r} is not known, expected one of: "
            f"{', '.join(CUT_JOINTS)}. Cut the loop at another of its joints."
        )
    (R_a, p_a), (R_b, p_b) = (
        _placement(name, f"frame {side} of loop", placement)
        for side, placement in zip("ab", placements, strict=True)
    )
    poses = dict(R_a=R_a, p_a=p_a, R_b=R_b, p_b=p_b)
    chosen = _axes(name, joint, axes)
    held = dict(name=name, body_a=body_a, body_b=body_b, joint=joint, axes=chosen)
    return poses | held


def loop_of(data: dict[str, Any], dtype: DTypeLike) -> Loop:
    """The loop with checked data, its leaves in `dtype`."""
    poses = {key: jnp.asarray(data[key], dtype) for key in ("R_a", "p_a", "R_b", "p_b")}
    fields: dict[str, Any] = data | poses
    return Loop(**fields)


def _indices(name: str, axes: Sequence[int]) -> tuple[int, ...]:
    given = axes.tolist() if isinstance(axes, np.ndarray) else axes
    chosen = given if isinstance(given, Sequence) else ()
    are_indices = all(is_index(i) and 0 <= i < 3 for i in chosen)
    if not chosen or not are_indices or len(set(chosen)) != len(chosen):
        raise ValueError(
            f"{name}: axes are {axes!r}, expected some of 0, 1, 2, once each."
        )
    return tuple(map(int, chosen))


def _axes(name: str, joint: str, axes: tuple[int, ...] | None) -> tuple[int, ...]:
    if joint == "point":
        return (0, 1, 2) if axes is None else axes
    if axes is not None:
        raise ValueError(
            f"{name}: axes are {axes} for a {joint} joint, expected none: only a "
            '"point" has axes.'
        )
    return ()


def _placement(
    name: str, side: str, placement: Placement
) -> tuple[np.ndarray, np.ndarray]:
    """Rotation and origin from an origin alone, or from a pair of both."""
    array = as_numbers(placement)
    if array is not None and array.shape == (3,):
        return np.eye(3), check_finite(name, "placement p", array, (3,), side)
    if not isinstance(placement, tuple | list) or len(placement) != 2:
        raise ValueError(
            f"{side} {name!r}: the placement is {placement!r}, expected three numbers, "
            "or a pair of a 3 x 3 rotation and three numbers."
        )
    R, p = placement
    return check_rotation(name, R, side), check_finite(
        name, "placement p", p, (3,), side
    )
