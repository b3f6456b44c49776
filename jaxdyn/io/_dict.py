"""Models as plain dictionaries, the format in which reference data are exchanged."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxdyn.io._dict_elements import (
    actuator_data,
    add_coupling,
    coupling_data,
    force_data,
    known_keys,
    plain,
    with_actuators,
    with_forces,
)
from jaxdyn.io._inertias import built, check_choice, judged
from jaxdyn.io._parts import warn_of_changes
from jaxdyn.model import (
    FRICTION_SPEED,
    Actuators,
    Inertial,
    Loop,
    Model,
    ModelBuilder,
    arguments,
    check_finite,
)

_MODEL_KEYS = {"name", "gravity", "nq", "nv", "bodies", "base", "frames", "loops"}
_ELEMENTS = {"forces", "actuators", "couplings"}
_NOTES = {"dh", "tool_frame", "sequence", "units", "independent", "actuated"}
_BODY_KEYS = {"name", "parent", "joint", "mass", "com", "inertia"}
_PLACES = ("idx_q", "nq", "idx_v", "nv")
_JOINT_KEYS = {"type", "axis", "axis2", "pitch", "placement", "name"}
_EFFECTS = {
    "armature": 0.0,
    "damping": 0.0,
    "friction": 0.0,
    "friction_speed": FRICTION_SPEED,
    "stiffness": 0.0,
    "lower": -np.inf,
    "upper": np.inf,
    "effort": np.inf,
    "velocity": np.inf,
}


def from_dict(
    data: dict[str, Any],
    *,
    inertia: str = "as given",
    strict: bool = False,
    dtype: Any = None,
) -> Model:
    """The model described by a dictionary.

    ```text
    model = {name, gravity, bodies: [...]}
    body  = {name, parent, joint, mass, com, inertia}
    joint = {type, axis, axis2, placement: {R, p}}
    ```

    `parent` is an index, -1 for the world; parents precede their children. Optional: nq
    and nv of the model, idx_q, nq, idx_v, nv of a body (checked); the joint's name,
    pitch, armature, damping, friction, friction_speed, stiffness, rest, limits lower,
    upper, effort, velocity; `base` (the name of the world), `frames`, `loops`,
    `couplings`, `forces` and `actuators` of the model, as `to_dict` writes them; idx_q
    and idx_v count every joint of the tree. Notes that describe where a
    model came from (dh, tool_frame, sequence, units, independent, actuated) are
    accepted and not kept.

    Args:
        inertia: what becomes of inertias that no body has, as in `load_urdf`.
        strict: True makes negative principal inertias, and joints that no inertia
            resists, an error; they are noted in `model.report` else, with a warning.
        dtype: type of the leaves, by default JAX's default floating type.
    """
    model = read_dict(data, inertia, strict, dtype)
    warn_of_changes(model)
    return model


def read_dict(
    data: dict[str, Any],
    inertia: str = "as given",
    strict: bool = False,
    dtype: Any = None,
) -> Model:
    """The model of a dictionary, without warnings."""
    check_choice(inertia)
    known_keys(data, "model", _MODEL_KEYS | _ELEMENTS | _NOTES, required={"bodies"})
    builder = ModelBuilder(
        data.get("name", "robot"),
        gravity=data.get("gravity", (0.0, 0.0, -9.81)),
        base=data.get("base", "base"),
    )
    bodies = _listed(data, "bodies")
    given = dict(_inertial(i, body) for i, body in enumerate(bodies))
    inertials, builder.notes = judged(given, inertia, strict)
    for body in bodies:
        _add_body(builder, body, inertials[body["name"]])
    for frame in _listed(data, "frames"):
        keys = {"name", "body", "R", "p", "joint_name"}
        known_keys(frame, "frame", keys, required={"name", "body"})
        builder.add_frame(**frame)
    for loop in _listed(data, "loops"):
        _add_loop(builder, loop)
    for coupling in _listed(data, "couplings"):
        add_coupling(builder, coupling)
    model = built(builder, dtype, strict)
    _check_places(data, model)
    model = with_forces(model, _listed(data, "forces"))
    return with_actuators(model, data["actuators"]) if "actuators" in data else model


def to_dict(model: Model) -> dict[str, Any]:
    """The model as a dictionary of plain numbers, read back by `from_dict`.

    `json` keeps every digit of it, and infinite numbers. The report of a reader is not
    written.

    Raises:
        ValueError: a leaf has the wrong shape, as in a batch of models, or the model
            has a force element of a class that is not in `FORCES`.
    """
    (model,) = arguments(model)
    tree, others = model.tree, {"topology", "loops", *_ELEMENTS}
    leaves = {
        field.name: np.asarray(getattr(tree, field.name), float)
        for field in dataclasses.fields(tree)
        if field.name not in others
    }
    bodies = [_body(tree, leaves, i) for i in range(model.n)]
    result = {
        "name": model.name,
        "gravity": plain(model.gravity),
        "nq": model.nq,
        "nv": model.nv,
        "bodies": bodies,
    }
    if model.topology.base != "base":
        result["base"] = model.topology.base
    if model.frame_names:
        result["frames"] = [_frame(model, k) for k in range(len(model.frame_names))]
    if model.loops:
        result["loops"] = [_loop(k, loop) for k, loop in enumerate(model.loops)]
    if model.couplings:
        relations = model.couplings.relations()
        result["couplings"] = [coupling_data(model, x) for x in relations]
    if model.forces:
        result["forces"] = [force_data(k, x) for k, x in enumerate(model.forces)]
    if isinstance(model.actuators, Actuators):
        result["actuators"] = actuator_data(model.actuators)
    return result


def _listed(data: dict[str, Any], key: str) -> Sequence[Any]:
    found = data.get(key, ())
    if not isinstance(found, list | tuple):
        raise ValueError(f"{key} is {found!r}, expected a list of {key}.")
    return found


def _inertial(i: int, body: Any) -> tuple[str, Inertial]:
    """Name and inertial data of the i-th body."""
    named = isinstance(body, dict) and "name" in body
    what = f"body {body['name']!r}" if named else f"body {i}"
    known_keys(body, what, _BODY_KEYS.union(_PLACES), required=_BODY_KEYS)
    name = body["name"]
    if not isinstance(name, str):
        raise ValueError(f"a body has the name {name!r}, expected a text.")
    inertial = Inertial(
        float(check_finite(name, "mass", body["mass"], ())),
        check_finite(name, "com", body["com"], (3,)),
        check_finite(name, "inertia", body["inertia"], (3, 3)),
    )
    return name, inertial.check(name, triangle=False, positive=False)


def _add_body(builder: ModelBuilder, body: Any, inertial: Inertial) -> None:
    what, joint = f"body {body['name']!r}", body["joint"]
    keys = _JOINT_KEYS | {*_EFFECTS, "rest"}
    known_keys(joint, f"joint of {what}", keys, required={"type", "placement"})
    placement = joint["placement"]
    known_keys(placement, f"placement of {what}", {"R", "p"}, required={"R", "p"})
    if isinstance(body["parent"], bool) or not isinstance(
        body["parent"], int | np.integer
    ):
        raise ValueError(
            f"{what} has parent {body['parent']!r}, expected an index: "
            "-1 for the world."
        )
    options = {k: v for k, v in joint.items() if k not in {"type", "placement", "name"}}
    builder.add_body(
        body["name"],
        int(body["parent"]),
        joint["type"],
        R=placement["R"],
        p=placement["p"],
        inertial=inertial,
        joint_name=joint.get("name"),
        check_inertia=False,
        **options,
    )


def _add_loop(builder: ModelBuilder, loop: Any) -> None:
    required = {"body_a", "p_a", "body_b", "p_b"}
    known_keys(
        loop, "loop", required | {"R_a", "R_b", "joint", "axes", "name"}, required
    )
    a, b = ((loop.get(f"R_{side}"), loop[f"p_{side}"]) for side in "ab")
    options = {key: loop.get(key) for key in ("joint", "axes", "name")}
    builder.add_loop(loop["body_a"], a, loop["body_b"], b, **options)


def _loop(k: int, loop: Loop) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for side in "ab":
        R = np.asarray(getattr(loop, f"R_{side}"), float)
        result[f"body_{side}"] = getattr(loop, f"body_{side}")
        result[f"p_{side}"] = plain(getattr(loop, f"p_{side}"))
        if (np.eye(3) != R).any():
            result[f"R_{side}"] = plain(R)
    if loop.joint in ("point", "spherical"):
        result["axes"] = list(loop.axes or (0, 1, 2))
    else:
        result["joint"] = loop.joint
    return result if loop.name == f"loop {k}" else result | {"name": loop.name}


def _body(model: Model, leaves: dict[str, np.ndarray], i: int) -> dict[str, Any]:
    t = model.topology
    kind = t.types[i]
    q, v = (slice(*s[i : i + 2]) for s in (t.q_start, t.v_start))
    joint: dict[str, Any] = {
        "type": model.joints[i],
        "placement": {"R": plain(leaves["R"][i]), "p": plain(leaves["p"][i])},
    }
    if kind.axes >= 1:
        joint["axis"] = plain(leaves["axis"][i])
    if kind.axes == 2:
        joint["axis2"] = plain(leaves["axis2"][i])
    if model.joints[i] == "helical":
        joint["pitch"] = float(leaves["pitch"][i])
    if model.joint_names[i] != f"j_{model.names[i]}":
        joint["name"] = model.joint_names[i]
    for key, default in _EFFECTS.items():
        values = leaves[key][q if key in ("lower", "upper") else v]
        if (values != model.dtype.type(default)).any():
            joint[key] = plain(values)
    if (leaves["rest"][q] != kind.neutral).any():
        joint["rest"] = plain(leaves["rest"][q])
    return {
        "name": model.names[i],
        "parent": model.parents[i],
        "joint": joint,
        "mass": float(leaves["mass"][i]),
        "com": plain(leaves["com"][i]),
        "inertia": plain(leaves["inertia"][i]),
        "idx_q": q.start,
        "nq": kind.nq,
        "idx_v": v.start,
        "nv": kind.nv,
    }


def _frame(model: Model, k: int) -> dict[str, Any]:
    name, joint_name = model.frame_names[k], model.topology.frame_joint_names[k]
    frame = {
        "name": name,
        "body": model.frame_bodies[k],
        "R": plain(model.frame_R[k]),
        "p": plain(model.frame_p[k]),
    }
    return frame if joint_name == f"j_{name}" else frame | {"joint_name": joint_name}


def _check_places(data: dict[str, Any], model: Model) -> None:
    """Counts and places are redundant: where they are given they must agree."""
    t = model.tree.topology
    pairs = [("model", key, data.get(key), getattr(model, key)) for key in ("nq", "nv")]
    for i, body in enumerate(data["bodies"]):
        kind, what = t.types[i], f"body {t.names[i]!r}"
        places = (t.q_start[i], kind.nq, t.v_start[i], kind.nv)
        for key, value in zip(_PLACES, places, strict=True):
            pairs.append((what, key, body.get(key), value))
    for what, key, given, value in pairs:
        if given is not None and not np.array_equal(given, value):
            raise ValueError(
                f"{what}: {key} is {given}, expected {value} from the joint types: "
                "correct it or leave it out."
            )
