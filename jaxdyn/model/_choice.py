"""Joints that the user chooses by name or index."""

from collections.abc import Sequence

import numpy as np

from jaxdyn.model._check import is_index
from jaxdyn.model._model import Model

Joint = str | int | np.integer


def chosen_joint(model: Model, what: str, joint: Joint) -> int:
    """The index of a joint, given by its name, or by name or index of its body.

    Raises:
        ValueError: there is none, or the name has two meanings; `what` is the argument
            in which it stands.
    """
    found = []
    if isinstance(joint, str):
        found = [model.find(field, joint) for field in ("joint_names", "names")]
    named = {i for i in found if i is not None}
    if len(named) > 1:
        j, b = found
        raise ValueError(
            f"{what} has {joint!r}, which names a joint (that of body "
            f"{model.names[j]!r}) and another body (its joint is "
            f"{model.joint_names[b]!r}), expected a name with one meaning."
        )
    if named:
        return named.pop()
    if is_index(joint) and 0 <= joint < model.n:
        return int(joint)
    raise ValueError(
        f"{what} has {joint!r}, which model {model.name!r} has not, expected an index "
        f"from 0 to {model.n - 1}, or one of the joints {', '.join(model.joint_names)} "
        f"or bodies {', '.join(model.names)}."
    )


def chosen_joints(
    model: Model, what: str, joints: Joint | Sequence[Joint]
) -> tuple[int, ...]:
    """The indices of some joints, without repetition, in their order in the model."""
    if isinstance(joints, str | int | np.integer):
        joints = (joints,)
    return tuple(sorted({chosen_joint(model, what, joint) for joint in joints}))


def chosen_coordinates(
    model: Model, what: str, given: Joint | Sequence[Joint], rows: int | None = None
) -> tuple[int, ...]:
    """Indices into qd, in ascending order, given as such or by joints or bodies.

    Raises:
        ValueError: there is none, it is listed twice, or the model has more freedoms
            than were chosen where this many independent `rows` of its loops take some.
    """
    if isinstance(given, str | int | np.integer):
        given = (given,)
    chosen: list[int] = []
    for item in given:
        if isinstance(item, str):
            chosen += range(model.nv)[model.v_slice(chosen_joint(model, what, item))]
        elif not is_index(item) or not 0 <= item < model.nv:
            raise ValueError(
                f"{what} has {item!r}, expected the name of a joint or body of model "
                f"{model.name!r}, or an index into qd from 0 to {model.nv - 1}."
            )
        else:
            chosen.append(int(item))
    twice = sorted({k for k in chosen if chosen.count(k) > 1})
    if twice:
        raise ValueError(
            f"{what} lists coordinate {twice[0]} of qd more than once, expected every "
            f"coordinate once: {given!r}."
        )
    if rows is not None and len(chosen) < model.nv - rows:
        loops = ", ".join(loop.name for loop in model.loops) or "no loop"
        raise ValueError(
            f"{what} has {len(chosen)} of the {model.nv} coordinates of model "
            f"{model.name!r}, expected at least {model.nv - rows}: its loops ({loops}) "
            f"take {rows} freedoms and leave the others. Name more joints."
        )
    return tuple(sorted(chosen))
