"""Transmissions of URDF files: motors with a gear, each on one joint."""

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxdyn.io._parts import free_name
from jaxdyn.io._writing import Lost, rates, text
from jaxdyn.io.urdf._findings import Findings
from jaxdyn.io.urdf._xml import numbers
from jaxdyn.model import Actuators, Model, Note, Notes

_PLACE = "robot/transmission"
_REDUCTIONS = ("mechanicalReduction", "mechanical_reduction")
_MOVED = ("revolute", "continuous", "prismatic")


class Motor(NamedTuple):
    """A motor whose effort, times the gear ratio, is that of a joint."""

    name: str
    joint: str
    gear: float


def take_motors(
    robot: ET.Element, joints: Mapping[str, ET.Element], found: Findings
) -> list[Motor]:
    """Take the transmissions out of a robot; the motors of those that are simple.

    Others are noted.
    """
    motors: list[Motor] = []
    for k, element in enumerate(robot.findall("transmission")):
        robot.remove(element)
        name = element.get("name") or f"transmission_{k}"
        if found.skips(_PLACE, name):
            found.note(_PLACE, name, "skipped, as was asked")
            continue
        other = next(_other_laws(element), None)
        if other:
            found.note(_PLACE, name, f"not read: {other}")
            continue
        try:
            motor = _motor(name, element, joints)
        except ValueError as error:
            reason = str(error).removeprefix(f"transmission {name!r}").strip(" :.")
            found.repaired(str(error), _PLACE, name, f"not read: {reason}")
            continue
        taken = [x.name for x in motors]
        motors.append(motor._replace(name=free_name(motor.name, taken)))
        found.note(_PLACE, name, "data: model.actuators, jd.actuate")
    return motors


def _other_laws(element: ET.Element) -> Iterator[str]:
    """Why a transmission is no motor with a gear on one joint."""
    words = [element.get("type", ""), element.findtext("type", "")]
    words.append(element.findtext("plugin", ""))
    kind = next((word.strip() for word in words if word.strip()), "of no type")
    if kind.split("/")[-1] != "SimpleTransmission":
        yield kind.split("/")[-1]
    found = [x.text or "" for x in element.iter("hardwareInterface")]
    interfaces = dict.fromkeys(word.strip().split("/")[-1] for word in found)
    if interfaces and "EffortJointInterface" not in interfaces:
        yield ", ".join(interfaces)


def _motor(name: str, element: ET.Element, joints: Mapping[str, ET.Element]) -> Motor:
    ends = {tag: element.findall(tag) for tag in ("joint", "actuator")}
    for tag, those in ends.items():
        if len(those) != 1:
            raise ValueError(
                f"transmission {name!r} has {len(those)} <{tag}>, expected one."
            )
    joint, actuator = (ends[tag][0].get("name", "") for tag in ("joint", "actuator"))
    kind = joints[joint].get("type") if joint in joints else "missing"
    if kind not in _MOVED:
        raise ValueError(
            f"transmission {name!r}: joint {joint!r} is {kind}, expected one that is "
            f"{', '.join(_MOVED)}."
        )
    given = [x for tag in _REDUCTIONS for x in element.iter(tag)]
    gear = 1.0
    if given:
        given[0].set("text", (given[0].text or "").strip())
        gear = float(numbers(f"transmission {name!r}", given[0], "text", 1)[0])
    if len(given) > 1 or not gear:
        raise ValueError(
            f"transmission {name!r} has the reductions "
            f"{', '.join(str(x.text) for x in given)}, expected one that is not zero."
        )
    return Motor(actuator or name, joint, gear)


def with_motors(model: Model, motors: list[Motor]) -> Model:
    """The model with motors as actuators, whose force keeps the effort limits."""
    if not motors:
        return model
    one, k, tree = np.ones((len(motors), 1)), range(len(motors)), model.tree
    joints = [model.joint_names.index(motor.joint) for motor in motors]
    at = [tree.topology.v_start[i] for i in joints]
    arms, gear = np.zeros((len(motors), tree.nv)), np.array([x.gear for x in motors])
    arms[k, at] = gear
    effort = np.asarray(tree.effort)
    leaves = {
        "arms": arms,
        "gain": one * [1, 0, 0],
        "bias": one * [0, 0, 0],
        "control_range": one * [-np.inf, np.inf],
        "force_range": (effort[at] / np.abs(gear))[:, None] * [-1, 1],
        "joint_range": effort[:, None] * [-1, 1],
    }
    actuators = Actuators(
        **{key: jnp.asarray(leaf, model.dtype) for key, leaf in leaves.items()},
        names=tuple(motor.name for motor in motors),
        controls=tuple(k),
        activations=(-1,) * len(motors),
        refused=(),
    )
    idle = [motor.name for v, motor in zip(at, motors, strict=True) if not effort[v]]
    if idle:
        note = Note(_PLACE, ", ".join(idle), "no force: the effort limit is zero")
        model.topology.report = Notes([*model.report, note])
    return replace(model, actuators=actuators)


def write_transmissions(robot: ET.Element, model: Model) -> None:
    """Add a transmission for each actuator."""
    x = model.actuators
    assert isinstance(x, Actuators)
    for k, name in enumerate(x.names):
        (v,) = np.flatnonzero(x.arms[k])
        element = ET.SubElement(robot, "transmission", name=f"{name}_transmission")
        ET.SubElement(
            element, "type"
        ).text = "transmission_interface/SimpleTransmission"
        joint = ET.SubElement(element, "joint", name=rates(model)[v][0])
        interface = ET.SubElement(joint, "hardwareInterface")
        interface.text = "hardware_interface/EffortJointInterface"
        motor = ET.SubElement(element, "actuator", name=name)
        gear = x.arms[k, v] * x.gain[k, 0]
        ET.SubElement(motor, "mechanicalReduction").text = text([gear])


def lost_actuators(model: Model) -> Iterator[Lost]:
    """The actuators that are not motors as those of `with_motors`."""
    x = model.actuators
    if not isinstance(x, Actuators):
        return
    where = f"model {model.name!r}"
    single = [alone for _, alone in rates(model)]
    spans = np.asarray(model.effort)[:, None] * [-1, 1]
    if x.refused or x.n_act or x.controls != tuple(range(len(x))):
        yield "actuators", where
    for k, name in enumerate(x.names):
        at = np.flatnonzero(x.arms[k])
        alone = len(at) == 1 and single[at[0]] and (x.arms[:, at[0]] != 0).sum() == 1
        is_motor = alone and x.gain[k, 0] and not x.gain[k, 1:].any()
        is_motor = is_motor and not x.bias[k].any() and _clipped(x, k, at, spans)
        if not is_motor:
            yield "actuators", f"{where} (actuator {name!r})"


def _clipped(x: Actuators, k: int, at: np.ndarray, spans: np.ndarray) -> bool:
    """Whether the only limit of an actuator is the effort of its joint, rate `at`."""
    least = np.abs(x.arms[k, at]) * np.abs(x.force_range[k]).min()
    held = np.allclose(x.joint_range[at], spans[at], rtol=1e-6)
    wide = bool((least >= (1 - 1e-6) * spans[at, 1]).all())
    return held and wide and not np.isfinite(x.control_range[k]).any()
