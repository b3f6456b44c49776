"""What the writers of robot files share: values of joints, what is lost, numbers."""

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxdyn.model import FRICTION_SPEED, JOINT_TYPES, Model, Relation, arguments

Lost = tuple[str, str]  # what a language cannot hold, and which element has it


def on_host(model: Model) -> Model:
    """The tree of the model with leaves in NumPy and double precision.

    Raises:
        ValueError: a leaf has the wrong shape, as in a batch of models.
    """
    (model,) = arguments(model)
    return jax.tree.map(lambda leaf: np.asarray(leaf, float), model.tree)


def relations_of(model: Model) -> list[Relation]:
    """The couplings of a model as numbers."""
    return model.couplings.relations() if model.couplings else []


def text(values: Any) -> str:
    """The numbers with every digit of a double."""
    return " ".join(repr(float(value) + 0.0) for value in values)


def values_of(model: Model, key: str, i: int) -> np.ndarray:
    """The entries of one body's joint in a leaf."""
    t = model.topology
    start = t.q_start if key in ("lower", "upper", "rest") else t.v_start
    return getattr(model, key)[start[i] : start[i + 1]]


def is_uniform(values: np.ndarray) -> bool:
    """Whether all entries are equal."""
    return bool((values == values[:1]).all())


def pieces(model: Model, i: int) -> list[str]:
    """The names of the joints that a joint is written as, one for each axis."""
    name, kind = model.joint_names[i], JOINT_TYPES[model.joints[i]]
    count = kind.nv if kind.axes else 1
    return [name] if count == 1 else [f"{name}_{k + 1}" for k in range(count)]


def rates(model: Model) -> list[tuple[str, bool]]:
    """For each rate the name of its piece, and whether that has no other rates."""
    result = []
    for i, kind in enumerate(model.topology.types):
        names = pieces(model, i) if kind.axes else pieces(model, i) * kind.nv
        result += [(name, kind.axes > 0) for name in names]
    return result


def direction(model: Model, i: int, k: int) -> np.ndarray:
    """The axis of the k-th piece of a joint."""
    axis, axis2 = model.axis[i], model.axis2[i]
    axis3 = np.cross(axis, axis2)
    lines = {"axis": axis, "axis2": axis2, "axis3": axis3}
    lines["plane"] = np.cross(axis3, axis)
    return lines[JOINT_TYPES[model.joints[i]].steps[k].direction]


def loses_friction_speed(model: Model, i: int) -> bool:
    """Whether a joint has friction with another speed than the default."""
    speed = values_of(model, "friction_speed", i)[values_of(model, "friction", i) > 0]
    # to the digits of single precision
    return not np.allclose(speed, FRICTION_SPEED, rtol=1e-6, atol=0)


def check_lost(
    language: str, lost: Iterable[Lost], drop: Iterable[str], known: tuple[str, ...]
) -> set[str]:
    """What the user drops; a `ValueError` names what would be lost beside it."""
    dropped = {drop} if isinstance(drop, str) else set(drop)
    if not dropped <= set(known):
        raise ValueError(
            f"drop names {', '.join(sorted(dropped - set(known)))}, expected some of: "
            f"{', '.join(known)}."
        )
    for what, where in lost:
        if what not in dropped:
            raise ValueError(
                f"{where} has {what}, which {language} cannot hold: keep it with "
                f"to_dict, or write the robot without it with drop=({what!r},)."
            )
    return dropped


def check_names(language: str, kind: str, names: Iterable[str]) -> None:
    """Raise a `ValueError` if two elements of a kind would have the same name."""
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise ValueError(
            f"two {kind}s of the {language} would have the name {name!r}: rename one "
            "of the bodies, joints or frames; a split joint takes names that end in "
            "_1, _2."
        )


def save(path: str | os.PathLike[str] | None, content: str) -> None:
    """Write a file, if there is a path: it appears complete or not at all."""
    if path is None:
        return
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(content, encoding="utf-8")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
