"""Chains and trees of any size, for tests and benchmarks."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxdyn.io import rotation_about
from jaxdyn.model import JOINT_TYPES, Inertial, Model, ModelBuilder


def chain(n: int, *, dtype: Any = None) -> Model:
    """A serial chain of `n` equal revolute links with axes z and y in turn."""
    b = ModelBuilder(f"chain{n}")
    link = Inertial.cylinder(1.0, 0.05, 0.3).moved(
        rotation_about(np.array([0.0, 1.0, 0.0]), np.pi / 2), np.array([0.15, 0.0, 0.0])
    )
    for i in range(n):
        b.add_body(
            f"link{i + 1}",
            i - 1 if i else None,
            "revolute",
            axis=(0.0, 1.0, 0.0) if i % 2 else (0.0, 0.0, 1.0),
            p=(0.3 if i else 0.0, 0.0, 0.0),
            inertial=link,
        )
    return b.build(dtype)


def random_tree(
    seed: int,
    n: int = 10,
    *,
    joints: Sequence[str] = ("revolute", "prismatic"),
    branching: float = 0.5,
    floating_base: bool = False,
    dtype: Any = None,
) -> Model:
    """A tree of `n` bodies with random shapes, axes and masses.

    Args:
        seed: same seed, same tree.
        joints: joint types to draw from; those with mass behind them may be any.
        branching: 0 gives a chain, 1 attaches each body to any body before it. Bodies
            are then not numbered depth first.
        floating_base: whether the first body is free and carries all others.
    """
    for joint in joints:
        if joint not in JOINT_TYPES:
            raise ValueError(
                f"joint type {joint!r} is not known, expected some of: "
                f"{', '.join(JOINT_TYPES)}."
            )
    rng = np.random.default_rng(seed)
    b = ModelBuilder(f"random_tree_{seed}_{n}")
    for i in range(n):
        parent = i - 1
        if i and rng.uniform() < branching:
            parent = int(rng.integers(0 if floating_base else -1, i))
        joint = "free" if floating_base and i == 0 else str(rng.choice(list(joints)))
        b.add_body(
            f"b{i:04d}",
            parent,
            joint,
            R=_rotation(rng),
            p=rng.uniform(-0.3, 0.3, 3),
            inertial=_inertial(rng),
            **_options(joint, rng),
        )
    return b.build(dtype)


def _options(joint: str, rng: np.random.Generator) -> dict[str, Any]:
    """Random axes, and a pitch for a helical joint."""
    axis, other = rng.normal(size=(2, 3))
    if joint == "planar":
        other = np.cross(axis, other)
    options = {"axis": axis, "axis2": other}
    options = {k: v for k, v in list(options.items())[: JOINT_TYPES[joint].axes]}
    return options | ({"pitch": rng.uniform(0.02, 0.2)} if joint == "helical" else {})


def _rotation(rng: np.random.Generator) -> np.ndarray:
    axis = rng.normal(size=3)
    return rotation_about(axis / np.linalg.norm(axis), rng.uniform(-np.pi, np.pi))


def _inertial(rng: np.random.Generator) -> Inertial:
    box = Inertial.box(rng.uniform(0.5, 3.0), rng.uniform(0.1, 0.6, 3))
    return box.moved(_rotation(rng), rng.uniform(-0.2, 0.2, 3))
