"""What a cut joint can hold: one record for each kind of row, and the cut joints.

A cut joint joins the frames a and b of two bodies. A row of it is a length or an angle
phi that must stay zero. With the multiplier lambda it acts on body a with a force and a
moment, and on body b with others, that do the work lambda phi.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn.spatial import Mat3, Scalar, Vec3, cross, dot

Load = tuple[Vec3, Vec3]  # force and moment


class Side(eqx.Module):
    """The frames of all loops on one of their bodies, in the world.

    Attributes:
        A: axes; x: origins.
        arm: from the origin of the body to that of the frame.
    """

    A: Mat3
    x: Vec3
    arm: Vec3

    @property
    def axes(self) -> tuple[Vec3, Vec3, Vec3]:
        """The three axes."""
        return self.A.x, self.A.y, self.A.z


class Row(ABC):
    """One kind of row.

    Attributes:
        is_length: whether it is a length; otherwise it is the sine of an angle.
        aligned: the axes x, y, z (0, 1, 2) of a and b that the row holds together, with
            the other rows of its cut joint; `close_loops` then tells them from opposite
            ones, for which the row is zero too.
    """

    is_length: ClassVar[bool] = True
    aligned: tuple[int, ...] = ()

    @abstractmethod
    def opening(self, a: Side, b: Side) -> Scalar:
        """The length or sine phi."""

    @abstractmethod
    def loads(self, a: Side, b: Side) -> tuple[Load, Load]:
        """Force and moment on a and on b for a multiplier of one.

        That is the gradient of the opening by the motion of each frame; moments are
        about the origins of the frames.
        """


@dataclass(frozen=True)
class AlongWorld(Row):
    """The distance x_a - x_b along an axis of the world."""

    axis: int

    def opening(self, a: Side, b: Side) -> Scalar:
        """One component of x_a - x_b."""
        s = a.x - b.x
        return (s.x, s.y, s.z)[self.axis]

    def loads(self, a: Side, b: Side) -> tuple[Load, Load]:
        """A force along the axis at the origin of each frame."""
        o, zero = jnp.zeros_like(a.x.x), _zero(a)
        f = Vec3(*(jnp.ones_like(o) if k == self.axis else o for k in range(3)))
        return (f, zero), (-f, zero)


@dataclass(frozen=True)
class AlongFrame(Row):
    """The distance x_a - x_b along an axis of frame a."""

    axis: int

    def opening(self, a: Side, b: Side) -> Scalar:
        """The product of that axis with x_a - x_b."""
        return dot(a.axes[self.axis], a.x - b.x)

    def loads(self, a: Side, b: Side) -> tuple[Load, Load]:
        """A force along the axis at the origin of b, also on body a."""
        f = a.axes[self.axis]
        return (f, cross(f, a.x - b.x)), (-f, _zero(a))


@dataclass(frozen=True)
class Right(Row):
    """The angle between an axis u of frame a and an axis v of frame b is right."""

    u: int
    v: int
    sign: int = 1
    aligned: tuple[int, ...] = ()
    is_length: ClassVar[bool] = False

    def opening(self, a: Side, b: Side) -> Scalar:
        """The product u . v, or its opposite."""
        phi = dot(a.axes[self.u], b.axes[self.v])
        return phi if self.sign > 0 else -phi

    def loads(self, a: Side, b: Side) -> tuple[Load, Load]:
        """A moment about u x v."""
        n = cross(a.axes[self.u], b.axes[self.v])
        n = n if self.sign > 0 else -n
        return (_zero(a), n), (_zero(a), -n)


def _zero(side: Side) -> Vec3:
    return jax.tree.map(jnp.zeros_like, side.x)


ROWS: dict[str, Row] = {
    **{name: AlongWorld(axis) for axis, name in enumerate("XYZ")},
    **{name: AlongFrame(axis) for axis, name in enumerate("xyz")},
    # turning of a about its axes relative to b
    "rx": Right(1, 2, aligned=(2,)),
    "ry": Right(0, 2, sign=-1, aligned=(2,)),
    "rz": Right(0, 1, aligned=(0, 1, 2)),
    "cross": Right(2, 0),
}

CUT_JOINTS: dict[str, tuple[str, ...]] = {
    "revolute": ("X", "Y", "Z", "rx", "ry"),  # turns about z
    "prismatic": ("x", "y", "rx", "ry", "rz"),  # slides along z
    "cylindrical": ("x", "y", "rx", "ry"),  # turns about z and slides along it
    "universal": ("X", "Y", "Z", "cross"),  # turns about z of a, then about x of b
    "planar": ("z", "rx", "ry"),  # moves in the plane with the normal z
    "spherical": ("X", "Y", "Z"),
    "fixed": ("X", "Y", "Z", "rx", "ry", "rz"),
    "point": ("X", "Y", "Z"),  # some of them
}
