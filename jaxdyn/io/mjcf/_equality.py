"""Equality constraints: connect and weld close loops, the others couple joints."""

from collections.abc import Iterable

import numpy as np
from numpy.polynomial import Polynomial

from jaxdyn.io.mjcf._mujoco import mujoco, names, word
from jaxdyn.io.mjcf._tree import Side, Tree, rotation
from jaxdyn.model import ModelBuilder, Note

_LOOPS = {"connect": "spherical", "weld": "fixed"}
_COUPLINGS = ("joint", "tendon")
_KINDS = (*_LOOPS, *_COUPLINGS, "flex", "distance")


def add_equalities(builder: ModelBuilder, tree: Tree, skip: Iterable[str]) -> None:
    """Add a loop or a coupling for each active constraint, and notes on the others.

    Raises:
        ValueError: a place in `skip` is not known, or constraints that are neither are
            not skipped; it names all of them.
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
    refused: list[int] = []
    following: set[str] = set()
    for k, (kind, place) in enumerate(zip(kinds, places, strict=True)):
        if not m.eq_active0[k] or tree.off & {"equality", "constraint"}:
            note = Note("equality", place, "not read: inactive in the file")
            builder.notes.append(note)
        elif skipped & {place, f"equality/{kind}"}:
            note = Note("equality", place, "skipped, as was asked", True)
            builder.notes.append(note)
        elif kind in _LOOPS:
            _close(builder, tree, kind, k, place)
        elif kind not in _COUPLINGS or not _couple(builder, tree, kind, k, following):
            refused.append(k)
    if refused:
        ways = sorted({f"equality/{kinds[k]}" for k in refused} | skipped)
        raise ValueError(
            f"model {builder.name!r} has equality constraints that cannot be expressed "
            f"yet: {', '.join(places[k] for k in refused)}: load it without them, with "
            f"skip=({', '.join(map(repr, ways))},)."
        )


def _close(builder: ModelBuilder, tree: Tree, kind: str, k: int, place: str) -> None:
    """Add a loop, if the constraint is one."""
    (body_a, *a), (body_b, *b) = _sides(tree, kind, k)
    if body_a == body_b:
        note = Note("equality", place, "left out: within one rigid body")
        builder.notes.append(note)
    else:
        name = names(tree.m, "eq")[k] or None
        builder.add_loop(body_a, tuple(a), body_b, tuple(b), _LOOPS[kind], name=name)


def _couple(
    builder: ModelBuilder, tree: Tree, kind: str, k: int, following: set[str]
) -> bool:
    """Add a coupling, unless it cannot be expressed.

    The constraint is y - y0 = P(x - x0), where y and x are joints, or lengths of fixed
    tendons, which are sums over joints. One joint that does not follow others yet has
    to follow.
    """
    m, one, two = tree.m, int(tree.m.eq_obj1id[k]), int(tree.m.eq_obj2id[k])
    y = _length(tree, kind, one)
    x = ({}, 0.0) if two < 0 else _length(tree, kind, two)
    if y is None or x is None:
        return False
    (left, y0), (right, x0) = y, x
    P = Polynomial(m.eq_data[k, :5] if right else m.eq_data[k, :1])
    powers = np.append((P(Polynomial([-x0, 1.0])) + y0).coef.real, np.zeros(5))[:5]
    if not powers[2:].any():  # all on one side
        for joint, arm in right.items():
            left[joint] = left.get(joint, 0.0) - powers[1] * arm
        right, powers[1] = {}, 0.0
    free = [j for j in left if j not in {*following, *right} and left[j]]
    if not free:
        return False
    joint = free[0] if kind == "joint" else max(free, key=lambda j: abs(left[j]))
    arm = left.pop(joint)
    following.add(joint)
    builder.add_coupling(
        joint,
        {other: -value / arm for other, value in left.items()},
        polynomial=[float(c) / arm for c in powers],
        argument=right,
    )
    return True


def _length(tree: Tree, kind: str, i: int) -> tuple[dict[str, float], float] | None:
    """The factors of a joint or fixed tendon by joint, and its length at `qpos0`."""
    m = tree.m
    if kind == "joint":
        return {tree.joints[i]: 1.0}, float(m.qpos0[m.jnt_qposadr[i]])
    arms: dict[str, float] = {}
    for wrap in range(m.tendon_adr[i], m.tendon_adr[i] + m.tendon_num[i]):
        if m.wrap_type[wrap] != mujoco().mjtWrap.mjWRAP_JOINT:
            return None
        joint = tree.joints[m.wrap_objid[wrap]]
        arms[joint] = arms.get(joint, 0.0) + float(m.wrap_prm[wrap])
    return arms, float(m.tendon_length0[i])


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
