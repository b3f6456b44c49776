"""Equality constraints: connect and weld close loops, the others are not expressed."""

from collections.abc import Iterable

import numpy as np

from jaxdyn.io.mjcf._mujoco import mujoco, names, word
from jaxdyn.io.mjcf._tree import Side, Tree, rotation
from jaxdyn.model import ModelBuilder, Note

_LOOPS = {"connect": "spherical", "weld": "fixed"}
_KINDS = (*_LOOPS, "joint", "tendon", "flex", "distance")


def add_loops(builder: ModelBuilder, tree: Tree, skip: Iterable[str]) -> None:
    """Add a loop for each active constraint that is one, and notes on the others.

    Raises:
        ValueError: a place in `skip` is not known, or constraints that are not loops
            are not skipped; it names all of them.
    """
    m = tree.m
    given = [name or str(k) for k, name in enumerate(names(m, "eq"))]
    words = [word("mjtEq", number) for number in m.eq_type]
    kinds = ["flex" if kind.startswith("flex") else kind for kind in words]
    skipped = {skip} if isinstance(skip, str) else set(skip)
    places = [f"equality/{kind}/{x}" for kind, x in zip(kinds, given, strict=True)]
    known = [*(f"equality/{kind}" for kind in _KINDS), *places]
    if not skipped <= set(known):
        wrong = ", ".join(sorted(map(repr, skipped - set(known))))
        raise ValueError(f"skip has {wrong}, expected some of: {', '.join(known)}.")
    refused = []
    for k, (kind, place) in enumerate(zip(kinds, places, strict=True)):
        note = None
        if not m.eq_active0[k] or tree.off & {"equality", "constraint"}:
            note = Note("equality", place, "not read: inactive in the file")
        elif skipped & {place, f"equality/{kind}"}:
            note = Note("equality", place, "skipped, as was asked", True)
        elif kind not in _LOOPS:
            refused.append(k)
        else:
            (body_a, *a), (body_b, *b) = _sides(tree, kind, k)
            if body_a == body_b:
                note = Note("equality", place, "left out: within one rigid body")
            else:
                name = names(m, "eq")[k] or None
                joint = _LOOPS[kind]
                builder.add_loop(body_a, tuple(a), body_b, tuple(b), joint, name=name)
        if note is not None:
            builder.notes.append(note)
    if refused:
        ways = sorted({f"equality/{kinds[k]}" for k in refused} | skipped)
        raise ValueError(
            f"model {builder.name!r} has equality constraints that cannot be expressed "
            f"yet: {', '.join(places[k] for k in refused)}: load it without them, with "
            f"skip=({', '.join(map(repr, ways))},)."
        )


def _sides(tree: Tree, kind: str, k: int) -> tuple[Side, Side]:
    """The frames a and b of a constraint, on the parts of its two bodies or sites."""
    m = tree.m
    one, two, data = m.eq_obj1id[k], m.eq_obj2id[k], m.eq_data[k]
    if m.eq_objtype[k] == mujoco().mjtObj.mjOBJ_SITE:
        return tree.site(one), tree.site(two)
    if kind == "connect":
        R_a, a, b = np.eye(3), data[:3], data[3:6]
    else:  # the pose in body 1 of the anchor, which has the axes of body 2
        R_a, a, b = rotation(data[6:10]), data[3:6], data[:3]
    return tree.carried(one, R_a, a), tree.carried(two, np.eye(3), b)
