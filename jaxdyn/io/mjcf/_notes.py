"""What a compiled MuJoCo model has and ours does not."""

from collections.abc import Iterator
from typing import Any, SupportsIndex

import numpy as np

from jaxdyn.io.mjcf._mujoco import names, passive_off
from jaxdyn.io.mjcf._tree import Tree
from jaxdyn.model import Note

_COUNTED = {
    "geom": ("ngeom", "only seen: contacts are not modelled"),
    "actuator": ("nactuator", "data: model.actuators, jd.actuate"),
    "sensor": ("nsensor", "not read"),
    "camera": ("ncam", "not read"),
    "light": ("nlight", "not read"),
    "skin": ("nskin", "not read"),
    "key": ("nkey", "not read"),
}
_TENDON = ("stiffness", "damping", "frictionloss", "armature")


def notes_on(tree: Tree) -> Iterator[Note]:
    """Notes on all that is neither a body nor an equality constraint."""
    m = tree.m
    yield from _joints(tree)
    for name, mocap in zip(tree.names, m.body_mocapid, strict=True):
        if mocap >= 0:
            yield Note("mocap", name, "fixed to the world where the file draws it")
    if (m.opt.density or m.opt.viscosity) and not passive_off(tree.off):
        yield Note("option", "density, viscosity", "no fluid forces", True)
    yield from _tendons(tree)
    for name in names(m, "flex"):
        yield Note("flex", name, "rigid bodies without its elastic forces", True)
    for name, body in zip(tree.names, m.body_plugin, strict=True):
        if body >= 0:
            yield Note("plugin", name, "no forces of the plugin", True)
    for element, (size, became) in _COUNTED.items():
        count = getattr(m, size) if hasattr(m, size) else m.nu
        if count:
            yield Note(element, f"{count} in all", became)


def _joints(tree: Tree) -> Iterator[Note]:
    m, given = tree.m, names(tree.m, "jnt")
    limited = int(np.count_nonzero(m.jnt_limited & (m.jnt_type >= 2)))
    if limited:
        yield Note("range", f"{limited} joints", "data: model.lower, model.upper")
    for j, dof in enumerate(m.jnt_dofadr):
        name = given[j] or f"of body {tree.names[m.jnt_bodyid[j]]}"
        if m.jnt_type[j] == 1 and m.jnt_limited[j]:
            yield Note("range", name, "not read: a ball joint has no limits")
        curved = [_any(m, "jnt_stiffnesspoly", j), _any(m, "jnt_springyield", j)]
        if any(curved) or _any(m, "dof_dampingpoly", dof):
            yield Note("joint", name, "linear springs and dampers only", True)
        if m.jnt_actgravcomp[j] and m.body_gravcomp.any():
            # MuJoCo clips it with the forces of actuators, and has none without any
            differs = bool(m.jnt_actfrclimited[j]) or m.nu == 0
            yield Note("actuatorgravcomp", name, "a passive force", differs)
        if m.jnt_type[j] == 0 and m.dof_frictionloss[dof]:
            yield Note("frictionloss", name, "along body axes, not world axes", True)
        if m.jnt_type[j] == 0 and m.dof_armature[dof]:
            yield Note("armature", name, "has gyroscopic forces, as energy asks", True)


def _tendons(tree: Tree) -> Iterator[Note]:
    for k, name in enumerate(names(tree.m, "tendon")):
        acts = [key for key in _TENDON if _any(tree.m, f"tendon_{key}", k)]
        acts += [key for key in _TENDON[:2] if _any(tree.m, f"tendon_{key}poly", k)]
        if _any(tree.m, "tendon_actuatorid", k, -1):
            acts.append("motor inertia and damping")
        if acts:
            yield Note("tendon", name or str(k), f"left out: {', '.join(acts)}", True)
        elif tree.m.tendon_limited[k]:
            yield Note("tendon", name or str(k), "not read: its limits")


def _any(m: Any, field: str, k: SupportsIndex, none: int = 0) -> bool:
    """Whether a field, which older releases may lack, has another entry than `none`."""
    return bool(np.any(getattr(m, field)[k] != none)) if hasattr(m, field) else False
