"""Inertias that no body has, and joints that no inertia resists, in robot files."""

from collections.abc import Mapping
from typing import Any

from jaxdyn.model import (
    UNRESISTED,
    Inertial,
    Model,
    ModelBuilder,
    Note,
    Notes,
    singular_joints,
)

_INERTIAS = ("as given", "nearest", "error")


def check_choice(inertia: str) -> None:
    """Raise a `ValueError` unless readers know the option."""
    if inertia not in _INERTIAS:
        raise ValueError(
            f"inertia is {inertia!r}, expected one of: {', '.join(_INERTIAS)}."
        )


def judged(
    inertials: Mapping[str, Inertial], inertia: str, strict: bool, kind: str = "body"
) -> tuple[dict[str, Inertial], list[Note]]:
    """What a model gets for the inertial data of bodies, with notes on impossible ones.

    Args:
        inertials: by name.
        inertia: the option of the reader.
        strict: whether negative principal inertias are an error.
        kind: what bodies are called in the file.

    Raises:
        ValueError: no body has such inertias, and that is an error; it names all.
    """
    doubts = {name: x.doubt() for name, x in inertials.items()}
    found = {name: doubt for name, doubt in doubts.items() if doubt}
    wrong = [
        f"{kind} {name!r}: {doubt}"
        for name, doubt in found.items()
        if inertia == "error" or (strict and "negative" in doubt)
    ]
    if wrong:
        raise ValueError(
            f"{'; '.join(wrong)}: correct the inertia, or load the robot with "
            "inertia='nearest'."
        )
    if inertia == "nearest":
        became, changes = "nearest possible one", True
        inertials = {**inertials, **{name: inertials[name].nearest() for name in found}}
    else:
        became, changes = "kept as given", False
    notes = [
        Note("inertia", name, f"{became}: {doubt}", changes)
        for name, doubt in found.items()
    ]
    return dict(inertials), notes


def built(builder: ModelBuilder, dtype: Any, strict: bool) -> Model:
    """The model, with notes on joints that no inertia resists.

    Raises:
        ValueError: there are such joints and the reader is strict.
    """
    try:
        return builder.build(dtype)
    except ValueError:
        model = builder.build(dtype, check_inertia=False)
    note_singular(model, strict)
    return model


def note_singular(model: Model, strict: bool) -> None:
    """Note joints that no inertia resists; in a model with mass they may be an error.

    A model without any mass is meant for kinematics.
    """
    joints = singular_joints(model)
    is_kinematic = not model.mass.any() and not model.inertia.any()
    if joints and strict and not is_kinematic:
        raise ValueError(
            f"no inertia resists joint {', '.join(map(repr, joints))}: give the bodies "
            "that it moves mass or inertia, or make it fixed; strict=False loads the "
            "robot as it is."
        )
    notes = [
        Note("joint", name, f"{UNRESISTED} it: its acceleration is undefined")
        for name in joints
    ]
    if joints and is_kinematic:
        notes = [Note("robot", model.name, f"{UNRESISTED} its joints: no mass")]
    model.topology.report = Notes([*model.report, *notes])
