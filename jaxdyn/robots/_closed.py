"""Mechanisms with closed loops: the cut tree and its loops."""

from typing import Any

import numpy as np

from jaxdyn.model import Inertial, Model, ModelBuilder

_PLANE = (0, 1)
_DOWN_Y = (0.0, -9.81, 0.0)


def four_bar(*, dtype: Any = None) -> Model:
    """A planar four-bar linkage, cut between coupler and rocker."""
    b = ModelBuilder("fourbar", gravity=_DOWN_Y)
    _bar(b, "crank", None, 0.0, 0.3, 1.0)
    _bar(b, "coupler", "crank", 0.3, 0.8, 2.0)
    _bar(b, "rocker", None, 0.9, 0.6, 1.5)
    b.add_loop("coupler", (0.8, 0.0, 0.0), "rocker", (0.6, 0.0, 0.0), axes=_PLANE)
    return b.build(dtype)


def five_bar(*, dtype: Any = None) -> Model:
    """A planar five-bar linkage with two cranks, cut between the distal links."""
    b = ModelBuilder("fivebar", gravity=_DOWN_Y)
    for side, place in (("left", 0.0), ("right", 0.5)):
        _bar(b, f"{side}_proximal", None, place, 0.4, 0.8)
        _bar(b, f"{side}_distal", f"{side}_proximal", 0.4, 0.6, 1.0)
    tip = (0.6, 0.0, 0.0)
    b.add_loop("left_distal", tip, "right_distal", tip, axes=_PLANE)
    return b.build(dtype)


def slider_crank(*, dtype: Any = None) -> Model:
    """A slider-crank with an offset of 0.05 m, cut between rod and slider."""
    b = ModelBuilder("slider_crank", gravity=_DOWN_Y)
    _bar(b, "crank", None, 0.0, 0.2, 0.6)
    _bar(b, "rod", "crank", 0.2, 0.7, 1.2)
    b.add_body(
        "slider",
        None,
        "prismatic",
        axis=(1.0, 0.0, 0.0),
        p=(0.0, 0.05, 0.0),
        inertial=Inertial(2.0, np.zeros(3), 0.002 * np.eye(3)),
    )
    b.add_loop("rod", (0.7, 0.0, 0.0), "slider", (0.0, 0.0, 0.0), axes=_PLANE)
    return b.build(dtype)


def three_rrr(*, dtype: Any = None) -> Model:
    """The planar 3-RRR platform; the platform hangs on leg 1, legs 2 and 3 are cut."""
    b = ModelBuilder("planar_3rrr", gravity=_DOWN_Y)
    angles = np.deg2rad([90.0, 210.0, 330.0])
    spokes = np.stack([np.cos(angles), np.sin(angles), np.zeros(3)], axis=1)
    for leg, spoke in enumerate(spokes, start=1):
        _bar(b, f"leg{leg}_proximal", None, 0.6 * spoke, 0.35, 0.8)
        _bar(b, f"leg{leg}_distal", f"leg{leg}_proximal", 0.35, 0.4, 0.9)
    corners = 0.15 * (spokes - spokes[0])
    mass, radius = 1.5, 0.15
    disc = mass * radius**2 * np.diag([0.25, 0.25, 0.5])
    platform = Inertial(mass, -radius * spokes[0], disc)
    tip = (0.4, 0.0, 0.0)
    b.add_body("platform", "leg1_distal", "revolute", p=tip, inertial=platform)
    for leg in (2, 3):
        b.add_loop(f"leg{leg}_distal", tip, "platform", corners[leg - 1], axes=_PLANE)
    return b.build(dtype)


def ladder(m: int = 3, *, local: bool = True, dtype: Any = None) -> Model:
    """A planar ladder of m four-bar cells that hangs from the base; closed at q = 0.

    A cell has two rails and a rung, and one degree of freedom. It is cut between the
    rung and the right rail. Cells differ a little from each other, and none is singular
    at q = 0, where the axes of all bodies are those of the world.

    Args:
        m: number of cells, each a loop of two rows.
        local: whether rails hang on the rung above, so that a loop closes there; or on
            the rails above, so that all loops close at the base. The mechanism is the
            same.
    """
    if m < 1:
        raise ValueError(f"a ladder of {m} cells, expected 1 or more.")
    k, none = np.arange(m + 1.0), np.zeros(m + 1)
    left = 0.03 * np.sin(2.0 * k), -0.3 * k + 0.02 * np.sin(3.0 * k), none
    right = 0.4 + 0.03 * np.sin(2.5 * k), -0.3 * k - 0.02 * np.sin(2.0 * k), none
    L, R = np.stack(left, axis=1), np.stack(right, axis=1)
    b = ModelBuilder("ladder", gravity=_DOWN_Y)
    start: dict[str | None, np.ndarray] = {None: np.zeros(3)}

    def bar(name: str, parent: str | None, ends: tuple[Any, Any]) -> None:
        start[name], tip = ends[0], ends[1] - ends[0]
        mass = 2.0 * float(np.linalg.norm(tip))
        rod = Inertial.rod(mass, np.zeros(3), tip)
        rod = Inertial(mass, rod.com, rod.inertia + 1e-6 * mass * np.eye(3))
        b.add_body(name, parent, "revolute", p=ends[0] - start[parent], inertial=rod)

    for i in range(1, m + 1):
        rung = None if i == 1 else f"rung{i - 1}"
        rails = (rung, rung) if local or i == 1 else (f"left{i - 1}", f"right{i - 1}")
        bar(f"left{i}", rails[0], (L[i - 1], L[i]))
        bar(f"right{i}", rails[1], (R[i - 1], R[i]))
        bar(f"rung{i}", f"left{i}", (L[i], R[i]))
        tips = R[i] - L[i], R[i] - R[i - 1]
        b.add_loop(f"rung{i}", tips[0], f"right{i}", tips[1], axes=_PLANE)
    return b.build(dtype)


def stewart_gough(*, dtype: Any = None) -> Model:
    """The 6-UPS Stewart-Gough platform; each leg is cut from the platform.

    The platform is a free body. The joint frame of each leg points to its place on the
    platform when that is level, 1 m above the base.
    """
    b = ModelBuilder("stewart_gough")
    disc = Inertial(10.0, np.array([0.0, 0.0, 0.05]), np.diag([0.9, 0.9, 1.8]))
    b.add_body("platform", None, "free", inertial=disc)
    base = np.deg2rad([-12.0, 12.0, 108.0, 132.0, 228.0, 252.0])
    top = np.deg2rad([-48.0, 48.0, 72.0, 168.0, 192.0, 288.0])
    for leg, (foot, head) in enumerate(zip(base, top, strict=True), start=1):
        foot = np.array([np.cos(foot), np.sin(foot), 0.0])
        head = 0.6 * np.array([np.cos(head), np.sin(head), 0.0])
        cylinder, rod = f"leg{leg}_cylinder", f"leg{leg}_rod"
        b.add_body(
            cylinder,
            None,
            "universal",
            axis=(1.0, 0.0, 0.0),
            axis2=(0.0, 1.0, 0.0),
            R=_pointing(head + np.array([0.0, 0.0, 1.0]) - foot),
            p=foot,
            inertial=_leg(1.0, 0.3, 0.03, 0.00045),
        )
        rod_data = _leg(0.6, -0.3, 0.018, 0.00012)
        b.add_body(rod, cylinder, "prismatic", inertial=rod_data)
        b.add_loop(rod, (0.0, 0.0, 0.0), "platform", head)
    return b.build(dtype)


def _bar(
    b: ModelBuilder, name: str, parent: str | None, at: Any, length: float, mass: float
) -> None:
    """A slender bar along x on a revolute joint, with a trace of inertia about x."""
    rod = Inertial.rod(mass, (0.0, 0.0, 0.0), (length, 0.0, 0.0))
    rod = Inertial(mass, rod.com, rod.inertia + np.diag([1e-6 * mass, 0.0, 0.0]))
    p = at if isinstance(at, np.ndarray) else (at, 0.0, 0.0)
    b.add_body(name, parent, "revolute", p=p, inertial=rod)


def _leg(mass: float, center: float, side: float, axial: float) -> Inertial:
    return Inertial(mass, np.array([0.0, 0.0, center]), np.diag([side, side, axial]))


def _pointing(z: np.ndarray) -> np.ndarray:
    """Axes with z along a direction and x horizontal."""
    z = z / np.linalg.norm(z)
    x = np.cross([0.0, 0.0, 1.0], z)
    x = x / np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], axis=1)
