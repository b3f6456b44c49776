"""Couplings, force elements and actuators as plain dictionaries."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxdyn.model import (
    FORCES,
    AbstractForce,
    Actuators,
    Model,
    ModelBuilder,
    Relation,
    check_finite,
    is_index,
)

_LEAVES = ("arms", "gain", "bias", "control_range", "force_range", "joint_range")


def known_keys(data: Any, what: str, keys: set[str], required: set[str]) -> None:
    """Raise a `ValueError` unless data is a dictionary with the right keys."""
    if not isinstance(data, dict):
        raise ValueError(f"{what} is {data!r}, expected a dictionary.")
    for key in data:
        if key not in keys:
            raise ValueError(
                f"{what} has the key {key!r}, expected only: "
                f"{', '.join(sorted(keys))}: remove it, or correct its spelling."
            )
    for key in sorted(required):
        if key not in data:
            raise ValueError(f"{what} has no {key!r}: add it.")


def plain(x: Any) -> Any:
    """Arrays and tuples as lists of numbers, other values as they are."""
    if isinstance(x, tuple):
        return [plain(entry) for entry in x]
    return x if x is None or isinstance(x, str | int) else np.asarray(x, float).tolist()


def force_data(k: int, element: AbstractForce) -> dict[str, Any]:
    """The k-th force element with the name of its class.

    Raises:
        ValueError: the class has no name.
    """
    names = [name for name, kind in FORCES.items() if kind is type(element)]
    if not names:
        raise ValueError(
            f"force {k} is a {type(element).__name__}, which has no name in files, "
            f"expected one of: {', '.join(FORCES)}: write the model without it and add "
            "it again by with_force, or name its class in jaxdyn.model.FORCES."
        )
    fields = dataclasses.fields(element)
    values = {field.name: plain(getattr(element, field.name)) for field in fields}
    return {"type": names[0], **values}


def with_forces(model: Model, forces: Any) -> Model:
    """The model with the force elements that dictionaries describe."""
    for k, data in enumerate(forces):
        kind = data.get("type") if isinstance(data, dict) else None
        if not isinstance(kind, str) or kind not in FORCES:
            raise ValueError(
                f"force {k} is {data!r}, expected a dictionary with a type, one of: "
                f"{', '.join(FORCES)}."
            )
        fields = {field.name: field for field in dataclasses.fields(FORCES[kind])}
        needed = {x for x, f in fields.items() if f.default is dataclasses.MISSING}
        known_keys(data, f"force {k}", {"type", *fields}, {"type", *needed})
        values = {
            name: _value(k, fields[name], data[name]) for name in data if name != "type"
        }
        try:
            model = model.with_force(FORCES[kind](**values))
        except ValueError as error:
            raise ValueError(f"force {k}: {error}") from None
    return model


def _value(k: int, field: dataclasses.Field, value: Any) -> Any:
    """What a field of a force element takes: finite numbers, or static data."""
    if field.metadata.get("static"):
        return tuple(value) if isinstance(value, list) else value
    array = np.zeros(0)
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        pass
    return check_finite(str(k), field.name, value, array.shape, "force")


def coupling_data(model: Model, x: Relation) -> dict[str, Any]:
    """One coupling by the names of its joints, as `ModelBuilder.add_coupling`."""
    names = model.joint_names
    return {
        "joint": names[x.joint],
        "ratios": {names[i]: value for i, value in x.linear.items()},
        "polynomial": list(x.polynomial),
        "argument": {names[i]: value for i, value in x.inner.items()},
        "is_geared": x.is_geared,
    }


def add_coupling(builder: ModelBuilder, data: Any) -> None:
    """Let a joint follow others, as a dictionary says."""
    keys = {"joint", "ratios", "offset", "polynomial", "argument", "is_geared"}
    known_keys(data, "coupling", keys, {"joint"})
    for key, kind in (("ratios", dict), ("argument", dict), ("polynomial", list)):
        if not isinstance(data.get(key, kind()), kind | tuple):
            raise ValueError(
                f"coupling of joint {data['joint']!r}: {key} is {data[key]!r}, "
                f"expected a {kind.__name__}."
            )
    builder.add_coupling(**data)


def actuator_data(actuators: Actuators) -> dict[str, Any]:
    """The actuators, all fields."""
    fields = dataclasses.fields(actuators)
    return {field.name: plain(getattr(actuators, field.name)) for field in fields}


def with_actuators(model: Model, data: Any) -> Model:
    """The model with the actuators that a dictionary describes."""
    keys = {field.name for field in dataclasses.fields(Actuators)}
    known_keys(data, "actuators", keys, keys)
    for problem in _problems(data):
        raise ValueError(f"actuators: {problem}.")
    k = len(data["names"])
    shapes = {key: (k, 3) for key in ("gain", "bias")}
    nv = model.tree.nv
    shapes |= {"arms": (k, nv), "joint_range": (nv, 2)}
    leaves: dict[str, Any] = {
        key: _numbers(key, data[key], shapes.get(key, (k, 2))) for key in _LEAVES
    }
    static: dict[str, Any] = {
        key: tuple(data[key]) for key in ("names", "controls", "activations")
    }
    actuators = Actuators(
        **{key: jnp.asarray(leaf, model.dtype) for key, leaf in leaves.items()},
        refused=tuple(map(tuple, data["refused"])),
        **static,
    )
    return dataclasses.replace(model, actuators=actuators)


def _problems(data: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the fields that are not numbers."""
    for key in ("names", "controls", "activations", "refused"):
        if not isinstance(data[key], list | tuple):
            yield f"{key} is {data[key]!r}, expected a list"
    names, refused = data["names"], data["refused"]
    if not names or not all(isinstance(name, str) for name in names):
        yield f"names is {names!r}, expected one text for each actuator"
    for key, least in (("controls", 0), ("activations", -1)):
        places = [x for x in data[key] if is_index(x) and x >= least]
        if len(places) != len(data[key]) or len(places) != len(names):
            yield (
                f"{key} is {data[key]!r}, expected {len(names)} indices from {least} on"
            )
    pairs = [x for x in refused if isinstance(x, list | tuple) and len(x) == 2]
    if len(pairs) != len(refused) or not all(
        isinstance(text, str) for pair in pairs for text in pair
    ):
        yield f"refused is {refused!r}, expected pairs of a name and a reason"


def _numbers(key: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """The numbers of a leaf; ranges may be infinite."""
    if not key.endswith("range"):
        return check_finite(key, "value", value, shape, "actuators:")
    array = None
    try:
        array = np.asarray(value, float)
    except (TypeError, ValueError, OverflowError):  # texts, rows of different lengths
        pass
    if array is None or array.shape != shape or not (array[:, 0] <= array[:, 1]).all():
        raise ValueError(
            f"actuators: {key} is {value!r}, expected {shape[0]} pairs of a lower and "
            "an upper end."
        )
    return array
