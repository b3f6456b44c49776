"""Models with couplings: joints that follow others leave the coordinates."""

from collections.abc import Sequence
from dataclasses import replace

import jax.numpy as jnp
import numpy as np

from jaxdyn.model._model import Model, on_host
from jaxdyn.model._singular import singular_joints
from jaxdyn.model.elements import (
    POSITION_LEAVES,
    RATE_LEAVES,
    Couplings,
    Relation,
    resolved,
)


def coupled(tree: Model, relations: Sequence[Relation]) -> Model:
    """The model of a tree of joints, some of which follow others.

    Raises:
        ValueError: see `resolved`; or a joint has more than one coordinate.
    """
    t, found = tree.topology, resolved(relations, tree.joint_names)
    for i in sorted({i for r in found for i in (r.joint, *r.sources)}):
        if t.types[i].nq != 1:
            raise ValueError(
                f"joint {t.joint_names[i]!r} of a coupling is {t.joints[i]}, expected "
                "one with a single coordinate: revolute, prismatic or helical."
            )
    width = max([1, *(len(r.sources) for r in found)])
    rows = np.zeros((2, len(found), width))
    for k, r in enumerate(found):
        for x, values in zip(rows, (r.linear, r.inner), strict=True):
            x[k, : len(r.sources)] = [values.get(i, 0.0) for i in r.sources]
    removed = [r.joint for r in found if not r.is_geared]
    at_q, at_v = (np.array(starts, int)[removed] for starts in (t.q_start, t.v_start))
    places = dict.fromkeys(RATE_LEAVES, at_v) | dict.fromkeys(POSITION_LEAVES, at_q)
    numbers = (*rows, np.reshape([r.polynomial for r in found], (len(found), -1)))
    values = {name: on_host(getattr(tree, name)) for name in places}
    followers = {name: jnp.asarray(values[name][at]) for name, at in places.items()}
    couplings = Couplings(
        *(jnp.asarray(x, tree.dtype) for x in numbers),
        **followers,
        joints=tuple(r.joint for r in found),
        sources=tuple(r.sources for r in found),
        is_geared=tuple(r.is_geared for r in found),
        is_dense=bool(singular_joints(tree)),
        tree=t,
    )
    kinds = {r.joint: "geared" if r.is_geared else "coupled" for r in found}
    joints = tuple(kinds.get(i, joint) for i, joint in enumerate(t.joints))
    kept = {
        name: jnp.asarray(x[np.setdiff1d(np.arange(len(x)), places[name])])
        for name, x in values.items()
    }
    return replace(
        tree, topology=replace(t, joints=joints), couplings=couplings, **kept
    )
