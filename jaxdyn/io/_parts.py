"""From the links of a robot file to a model: fixed links are merged on the way."""

import sys
import warnings
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jaxdyn.model import UNRESISTED, Inertial, Model, ModelBuilder, Visual

_SHOWN = 5  # notes in a warning
# what is warned of although the motion is that of the file
_TOLD = ("left out", "kept as given", f"{UNRESISTED} it:")


@dataclass
class Part:
    """One link of a robot file with the joint to its parent.

    Attributes:
        name: the name of the link.
        parent: the name of its parent link.
        joint: a joint type of jaxdyn.
        R, p: pose of the joint frame in the parent link's frame.
        inertial: in the link's frame.
        options: further arguments of `ModelBuilder.add_body`.
    """

    name: str
    parent: str
    joint: str
    R: np.ndarray = field(default_factory=lambda: np.eye(3))
    p: np.ndarray = field(default_factory=lambda: np.zeros(3))
    inertial: Inertial = field(default_factory=Inertial)
    options: dict[str, Any] = field(default_factory=dict)


def free_name(name: str, taken: Container[str | None]) -> str:
    """The name with as many underscores behind it as make it differ from others."""
    while name in taken:
        name += "_"
    return name


def warn_of_changes(model: Model) -> None:
    """Warn once of what a reader left out of a model that moves differently for it."""
    report = model.report
    found = [x for x in report if x.changes_motion or x.became.startswith(_TOLD)]
    if found:
        shown = [f"  {x.element} {x.place}: {x.became}" for x in found[:_SHOWN]]
        if len(found) > _SHOWN:
            shown.append(f"  ... and {len(found) - _SHOWN} more")
        moves = "not move" if report.changing_motion else "move"
        warn_caller(
            f"model {model.name!r} will {moves} as its file says; print(model.report) "
            "lists all notes:\n" + "\n".join(shown)
        )


def warn_caller(text: str) -> None:
    """Warn the code that has called jaxdyn."""
    frame, depth, level = sys._getframe(), 1, 1
    while frame:
        depth += 1
        if frame.f_globals.get("__name__", "").startswith("jaxdyn."):
            level = depth
        frame = frame.f_back
    warnings.warn(text, stacklevel=level)


def assemble(
    builder: ModelBuilder,
    parts: list[Part],
    merge_fixed: bool,
    visuals: Mapping[str, list[Visual]] | None = None,
) -> None:
    """Add all parts to the builder, parents first as given, and what they show.

    With `merge_fixed` a part on a fixed joint becomes a frame of the body that carries
    it and gives that body its mass; fixed to the world, its mass plays no role. The
    inertial data of each part are checked, since a sum could hide what is wrong; the
    reader judges inertias that no body has.
    """
    carrier: dict[str, tuple[str, np.ndarray, np.ndarray]] = {
        builder.base: (builder.base, np.eye(3), np.zeros(3))
    }  # for each part the body that carries it and its pose there
    inertials: dict[str, Inertial] = {}
    for part in parts:
        part.inertial.check(part.name, triangle=False, positive=False)
        body, R, p = carrier[part.parent]
        if merge_fixed and part.joint == "fixed":
            R, p = R @ part.R, p + R @ part.p
            carrier[part.name] = (body, R, p)
            inertial = part.inertial.moved(R, p)
            inertials[body] = inertials.get(body, Inertial()) + inertial
        else:
            carrier[part.name] = (part.name, np.eye(3), np.zeros(3))
            inertials[part.name] = part.inertial

    for part in parts:
        body, R, p = carrier[part.parent]
        if carrier[part.name][0] == part.name:
            builder.add_body(
                part.name,
                body,
                part.joint,
                R=R @ part.R,
                p=p + R @ part.p,
                inertial=inertials[part.name],
                check_inertia=False,
                **part.options,
            )
    for part in parts:
        body, R, p = carrier[part.name]
        if body != part.name:
            joint_name = part.options.get("joint_name")
            builder.add_frame(part.name, body, R=R, p=p, joint_name=joint_name)
    for name, shown in (visuals or {}).items():
        body, R, p = carrier[name]
        for visual in shown:
            builder.add_visual(body, visual.moved(R, p))
