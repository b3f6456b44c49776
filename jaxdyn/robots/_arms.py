"""The arms, grippers and sliders of the papers."""

import json
from importlib import resources
from typing import Any

import numpy as np

from jaxdyn.io import DHLink, from_dh, from_dict
from jaxdyn.model import Inertial, Model, ModelBuilder, SlenderRods

_HALF_TURN = np.pi / 2
_ORIGIN = (0.0, 0.0, 0.0)


def puma_mohan_saha(*, dtype: Any = None) -> Model:
    """The 6R PUMA of bent slender rods, [Mohan] Table 2; links 4 to 6 are hubs."""
    table = [  # a, alpha, b, mass, hub
        (0.0, -_HALF_TURN, 0.2, 10.521, 0.0),
        (0.432, 0.0, 0.149, 15.7612, 0.0),
        (0.02, _HALF_TURN, 0.0, 8.767, 0.0),
        (0.0, -_HALF_TURN, 0.432, 0.0, 0.181),
        (0.0, _HALF_TURN, 0.0, 0.0, 0.0735),
        (0.0, 0.0, 0.056, 0.0, 0.0141),
    ]
    rows = [
        DHLink(a=a, alpha=alpha, d=b, inertial=SlenderRods(mass, hub=hub))
        for a, alpha, b, mass, hub in table
    ]
    return from_dh(rows, name="puma_mohan_saha", tool="tool", dtype=dtype)


def puma_560(*, rotors: bool = False, dtype: Any = None) -> Model:
    """The PUMA 560 with its classical parameters, base frame at the shoulder.

    The parameters are those of the robotics toolboxes, after [Armstrong]; the inertia
    of link 3 violates the triangle inequality as published.

    Args:
        rotors: whether the inertia of the geared motors is added as armature.
    """
    table = [  # a, alpha, d, mass, com and diagonal of the inertia in the link frame
        (0.0, 90, 0.0, 0.0, (0, 0, 0), (0, 0.35, 0)),
        (0.4318, 0, 0.0, 17.4, (-0.3638, 0.006, 0.2275), (0.13, 0.524, 0.539)),
        (0.0203, -90, 0.15005, 4.8, (-0.0203, -0.0141, 0.07), (0.066, 0.086, 0.0125)),
        (0.0, 90, 0.4318, 0.82, (0, 0.019, 0), (0.0018, 0.0013, 0.0018)),
        (0.0, -90, 0.0, 0.34, (0, 0, 0), (0.0003, 0.0004, 0.0003)),
        (0.0, 0, 0.0, 0.09, (0, 0, 0.032), (0.00015, 0.00015, 0.00004)),
    ]
    motors = (200e-6, 200e-6, 200e-6, 33e-6, 33e-6, 33e-6)
    gears = (-62.6111, 107.815, -53.7063, 76.0364, 71.923, 76.686)
    rows = []
    for (a, alpha, d, mass, com, diagonal), motor, gear in zip(
        table, motors, gears, strict=True
    ):
        inertia = np.diag(np.array(diagonal, float))
        inertial = Inertial(mass, np.array(com, float), inertia)
        effects = {"armature": motor * gear**2} if rotors else {}
        alpha = np.deg2rad(alpha)
        rows.append(DHLink(a=a, alpha=alpha, d=d, inertial=inertial, effects=effects))
    return from_dh(rows, name="puma560", tool="tool", check_inertia=False, dtype=dtype)


def mata_two_link(*, slender: bool = False, dtype: Any = None) -> Model:
    """The badly scaled 2R arm of [Mata] section 5.1, links along x, gravity along -y.

    Args:
        slender: slender rods instead of bars with a section of 0.02 m x 0.02 m.
    """
    b = ModelBuilder("mata_two_link", gravity=(0.0, -9.81, 0.0))
    reach, parent = 0.0, None
    for name, length, mass in (("link1", 0.02, 0.1), ("link2", 2.0, 10.0)):
        if slender:
            inertial = Inertial.rod(mass, _ORIGIN, (length, 0.0, 0.0))
        else:
            bar = Inertial.box(mass, (length, 0.02, 0.02))
            inertial = bar.moved(np.eye(3), np.array([length / 2, 0.0, 0.0]))
        b.add_body(name, parent, "revolute", p=(reach, 0.0, 0.0), inertial=inertial)
        reach, parent = length, name
    return b.build(dtype)


def gripper(*, at_tip: bool = False, dtype: Any = None) -> Model:
    """The planar 4-DOF gripper of [Shah] section 3: a link, fingers of two and one.

    Slender rods along x, gravity along -y.

    Args:
        at_tip: both fingers at the end of link 1; by default the second at its middle.
    """
    title = "gripper_both_at_tip" if at_tip else "gripper"
    b = ModelBuilder(title, gravity=(0.0, -9.81, 0.0))
    for name, parent, place, length, mass in (
        ("link1_1", None, 0.0, 0.1, 0.4),
        ("link1_2", "link1_1", 0.1, 0.05, 0.2),
        ("link2_2", "link1_2", 0.05, 0.05, 0.2),
        ("link1_3", "link1_1", 0.1 if at_tip else 0.05, 0.05, 0.2),
    ):
        rod = Inertial.rod(mass, _ORIGIN, (length, 0.0, 0.0))
        b.add_body(name, parent, "revolute", p=(place, 0.0, 0.0), inertial=rod)
    return b.build(dtype)


def rope(n: int = 50, *, dtype: Any = None) -> Model:
    """A rope of `n` cylinders on universal joints, 2 n DOF, [Shah] section 4.

    Each cylinder is 50 mm long with a radius of 5 mm and a mass of 4 g, along x of its
    frame; the joint turns about z, then y. Gravity along -z.
    """
    length, radius, mass = 0.05, 0.005, 0.004
    side = mass * (3 * radius**2 + length**2) / 12
    inertia = np.diag([mass * radius**2 / 2, side, side])
    cylinder = Inertial(mass, np.array([length / 2, 0.0, 0.0]), inertia)
    b = ModelBuilder(f"rope{n}")
    for i in range(n):
        b.add_body(
            f"b{i:04d}",
            i - 1 if i else None,
            "universal",
            axis=(0.0, 0.0, 1.0),
            axis2=(0.0, 1.0, 0.0),
            p=(length if i else 0.0, 0.0, 0.0),
            inertial=cylinder,
        )
    return b.build(dtype)


def lecture_tree(*, dtype: Any = None) -> Model:
    """The tree of [Ghosal]: two arms with branches, 11 revolute bodies.

    The lecture draws the tree; its numbers are random ones, kept with the package.
    """
    data = resources.files("jaxdyn.robots").joinpath("lecture_tree.json")
    return from_dict(json.loads(data.read_text(encoding="utf-8")), dtype=dtype)


def featherstone_2p(*, dtype: Any = None) -> Model:
    """Two orthogonal sliders without gravity, [Ghosal]: x1'', y2'' in closed form."""
    b = ModelBuilder("planar_2p", gravity=_ORIGIN)
    for name, parent, axis, mass in (
        ("body1", None, (1.0, 0.0, 0.0), 2.0),
        ("body2", "body1", (0.0, 1.0, 0.0), 3.0),
    ):
        inertial = Inertial(mass, np.zeros(3), 1e-3 * mass * np.eye(3))
        b.add_body(name, parent, "prismatic", axis=axis, inertial=inertial)
    return b.build(dtype)
