"""Actuators as elements of MJCF."""

import xml.etree.ElementTree as ET
from typing import Any

import numpy as np

from jaxdyn.io._writing import rates, text
from jaxdyn.model import Actuators, Model


def force_ranges(model: Model, dropped: set[str]) -> np.ndarray:
    """The range in which actuator forces are clipped, for each rate."""
    if isinstance(model.actuators, Actuators) and "actuators" not in dropped:
        return np.asarray(model.actuators.joint_range)
    return np.stack([-model.effort, model.effort], axis=1)


def write_actuators(root: ET.Element, model: Model) -> None:
    """Add all actuators: each acts on a joint, or by a fixed tendon on several."""
    x = model.actuators
    assert isinstance(x, Actuators)
    group = ET.SubElement(root, "actuator")
    joints = [name for name, _ in rates(model)]
    for k, name in enumerate(x.names):
        motor = ET.SubElement(group, "general", name=name)
        moved = np.flatnonzero(x.arms[k])
        targets = list(dict.fromkeys(joints[v] for v in moved)) or joints[:1]
        if len(targets) == 1:
            width = joints.count(targets[0])
            gear = x.arms[k][joints.index(targets[0]) :][:width]
            motor.set("joint", targets[0])
            motor.set("gear", text(gear))
        else:
            motor.set("tendon", _tendon(root, name, targets, x.arms[k][moved]))
        for key, values in (("gain", x.gain[k]), ("bias", x.bias[k])):
            if key == "gain" or values.any():
                affine = key == "bias" or values[1:].any()
                motor.set(f"{key}type", "affine" if affine else "fixed")
                motor.set(f"{key}prm", text(values if affine else values[:1]))
        for key, span in (("ctrl", x.control_range), ("force", x.force_range)):
            if np.isfinite(span[k]).any():
                motor.set(f"{key}limited", "true")
                motor.set(f"{key}range", text(span[k]))


def _tendon(root: ET.Element, name: str, joints: list[str], arms: Any) -> str:
    """Add a fixed tendon with these lever arms; its name."""
    tendons = root.find("tendon")
    if tendons is None:
        tendons = ET.SubElement(root, "tendon")
    fixed = ET.SubElement(tendons, "fixed", name=name)
    for joint, arm in zip(joints, arms, strict=True):
        ET.SubElement(fixed, "joint", joint=joint, coef=text([arm]))
    return name
