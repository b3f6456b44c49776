"""Robots from MuJoCo: MJCF files, and models that MuJoCo has compiled."""

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxdyn.io._inertias import built, check_choice, judged
from jaxdyn.io._parts import assemble, warn_of_changes
from jaxdyn.io.mjcf._actuators import actuator_data
from jaxdyn.io.mjcf._compile import compiled
from jaxdyn.io.mjcf._equality import add_equalities
from jaxdyn.io.mjcf._mujoco import passive_off
from jaxdyn.io.mjcf._notes import notes_on
from jaxdyn.io.mjcf._tree import WORLD, Tree
from jaxdyn.io.mjcf._visuals import add_visuals
from jaxdyn.model import Actuators, GravityCompensation, Model, ModelBuilder, Note


def load_mjcf(
    source: str | os.PathLike[str],
    *,
    merge_fixed: bool = True,
    inertia: str = "as given",
    skip: Iterable[str] = (),
    strict: bool = False,
    dtype: Any = None,
) -> Model:
    """The model of a robot described in MJCF, compiled by MuJoCo itself.

    MuJoCo reads the file, with its defaults, included and attached files, meshes and
    settings of the compiler; `from_mujoco_model` translates the result, and says what
    the model has. A mesh, texture or height field whose file is missing is left out if
    no moving body takes its inertia from it. MuJoCo refuses inertias that no body has,
    unless they are replaced (`inertia="nearest"`).

    Args:
        source: a path, or the MJCF text itself (a str whose first character, after
            white space, is "<").
        merge_fixed, inertia, skip, strict, dtype: as in `from_mujoco_model`.

    Raises:
        ValueError: MuJoCo cannot read or compile it, with its reason and where it gives
            it the line; or `from_mujoco_model` raises it.
    """
    mj_model, name, notes = compiled(source, inertia)
    return _translated(mj_model, name, notes, merge_fixed, inertia, skip, strict, dtype)


def from_mujoco_model(
    mj_model: Any,
    *,
    merge_fixed: bool = True,
    inertia: str = "as given",
    skip: Iterable[str] = (),
    strict: bool = False,
    dtype: Any = None,
) -> Model:
    """The model of a compiled `mujoco.MjModel`.

    Bodies and coordinates keep MuJoCo's order; `to_mujoco` and `from_mujoco` convert
    states. The base is "world". Joint types: hinge (revolute), slide (prismatic), ball
    (spherical) and free. A body without joint is fixed.

    A body with several joints becomes a chain: each joint but the last moves a massless
    body `<body>_<joint>`, or `<body>_1`, `<body>_2`, ... where the joint has no name.
    The origin of a body is the anchor (`pos`) of its last joint, if that is a hinge or
    a ball; where it differs from MuJoCo's origin, MuJoCo's body frame is the frame
    `<body>_frame`. Named sites are frames too, called `<site>_site` if a body has the
    same name. A body without name is `body_<number>`, counted from 1 as in MuJoCo; a
    joint without name is `j_<body>`. Where such a name is taken, underscores follow it.

    Joints keep ref, range, damping, armature, stiffness and springref, frictionloss (as
    smooth friction) and actuatorfrcrange (its larger end is the effort limit). Gravity
    compensation is a force element, `GravityCompensation`.

    The equality constraints connect and weld become loops, "spherical" and "fixed",
    between bodies or sites; those of joints and of fixed tendons become couplings (see
    `Model.with_coupling`), so that the joint that follows has no coordinate. They are
    exact: solref, solimp and torquescale, which soften them in MuJoCo, play no role.
    Inactive ones are left out.

    Geoms of the groups 0 to 2, which MuJoCo's viewer shows, are in `model.visuals`.
    Contacts and limits are not modelled: limits are data. `model.report` lists what is
    left out or kept as data, and a warning names what changes the motion.

    Args:
        mj_model: a `mujoco.MjModel`.
        merge_fixed: bodies without joint become frames of the body that carries them
            and give it their mass. Otherwise they are bodies.
        inertia: what becomes of inertias that no body has, as in `load_urdf`.
        skip: equality constraints to leave out, by kind as "equality/joint" or by name
            as "equality/joint/finger".
        strict: True makes everything that changes the motion an error, negative
            principal inertias, and joints that no inertia resists; they are noted else.
        dtype: floating-point type of the leaves, by default JAX's.

    Raises:
        ValueError: it has no bodies, equality constraints that are not skipped and
            cannot be expressed, or what the options make an error.
    """
    if type(mj_model).__name__ != "MjModel":
        raise ValueError(
            f"the model is a {type(mj_model).__name__}, expected a mujoco.MjModel: "
            "compile an MjSpec first, and load a file by load_mjcf."
        )
    name = mj_model.names.split(b"\0")[0].decode(errors="replace") or "robot"
    return _translated(mj_model, name, [], merge_fixed, inertia, skip, strict, dtype)


def _translated(
    m: Any,
    name: str,
    notes: list[Note],
    merge_fixed: bool,
    inertia: str,
    skip: Iterable[str],
    strict: bool,
    dtype: Any,
) -> Model:
    if m.nbody == 1 or (merge_fixed and not m.njnt):
        raise ValueError(
            f"model {name!r}: nothing moves, expected a body with a joint: add one, or "
            "load bodies without joints with merge_fixed=False."
        )
    check_choice(inertia)
    tree = Tree(m, merge_fixed)
    inertials = {part.name: part.inertial for part in tree.parts}
    inertials, doubts = judged(inertials, inertia, strict)
    for part in tree.parts:
        part.inertial = inertials[part.name]
    gravity = np.zeros(3) if "gravity" in tree.off else m.opt.gravity.copy()
    builder = ModelBuilder(name, gravity=gravity, base=WORLD)
    assemble(builder, tree.parts, merge_fixed)
    for frame, (body, R, p), joint_name in tree.frames():
        builder.add_frame(frame, body, R=R, p=p, joint_name=joint_name)
    add_equalities(builder, tree, skip)
    add_visuals(builder, tree)
    numbers, fixed = actuator_data(tree)
    builder.notes += [*notes, *doubts, *notes_on(tree)]
    builder.notes += [
        Note("actuator", actuator, f"jd.actuate refuses it: {reason}")
        for actuator, reason in fixed.get("refused", ())
    ]
    model = _compensated(built(builder, dtype, strict), tree)
    if numbers:
        leaves = {key: jnp.asarray(x, model.dtype) for key, x in numbers.items()}
        model = replace(model, actuators=Actuators(**leaves, **fixed))
    if strict and model.report.changing_motion:
        raise ValueError(
            f"model {name!r} would not move as in MuJoCo (strict=True):\n"
            f"{model.report.changing_motion}"
        )
    warn_of_changes(model)
    return model


def _compensated(model: Model, tree: Tree) -> Model:
    """The model with the gravity compensation of its moving bodies."""
    m, one = tree.m, np.eye(3)
    if "gravity" in tree.off or passive_off(tree.off):
        return model
    sides = [
        (tree.carried(i, one, m.body_ipos[i]), m.body_gravcomp[i] * m.body_mass[i])
        for i in np.flatnonzero(m.body_gravcomp)
    ]
    moving = [(body, p, mass) for (body, _, p), mass in sides if body != WORLD]
    if not moving:
        return model
    bodies, points, masses = zip(*moving, strict=True)
    element = GravityCompensation(bodies, np.array(points), np.array(masses))
    return model.with_force(element)
