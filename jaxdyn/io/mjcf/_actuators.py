"""Actuators of a compiled MuJoCo model as data."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from jaxdyn.io.mjcf._mujoco import gear, names, word
from jaxdyn.io.mjcf._tree import Tree

_KNOWN = {
    "Dyn": ("none", "integrator", "filter", "filterexact"),
    "Gain": ("fixed", "affine"),
    "Bias": ("none", "affine"),
    "Trn": ("joint", "jointinparent", "tendon"),
}


def actuator_data(tree: Tree) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The leaves and the static fields of `Actuators`."""
    m = tree.m
    given = names(m, "actuator")
    count, every = len(given), range(len(given))
    if not count:
        return {}, {}
    given = [name or f"actuator_{k}" for k, name in enumerate(given)]
    arms = np.zeros((count, m.nv))
    refused = {}
    for k in every:
        reason = next(_doubts(m, k), None) or _set_arms(m, k, arms[k])
        if not reason and not _has_numbers(m, k, arms[k]):
            reason = "numbers that are not finite"
        if reason:
            refused[given[k]] = reason
            arms[k] = 0
    controls = getattr(m, "actuator_ctrladr", np.arange(count))
    is_off = np.array([_is_off(tree, k) for k in every])[:, None]
    affine = np.array([_kind(m, "Gain", k) == "affine" for k in every])[:, None]
    gain = np.where(affine | [True, False, False], m.actuator_gainprm[:, :3], 0)
    biased = np.array([_kind(m, "Bias", k) == "affine" for k in every])[:, None]
    bias = m.actuator_biasprm[:, :3]
    clamped = m.actuator_ctrllimited[controls].astype(bool) & (
        "clampctrl" not in tree.off
    )
    joint = m.dof_jntid
    leaves = {
        "arms": arms,
        "gain": np.where(is_off | ~np.isfinite(gain), 0, gain),
        "bias": np.where(biased & ~is_off & np.isfinite(bias), bias, 0),
        "control_range": _range(clamped, m.actuator_ctrlrange[controls]),
        "force_range": _range(m.actuator_forcelimited, m.actuator_forcerange),
        "joint_range": _range(m.jnt_actfrclimited[joint], m.jnt_actfrcrange[joint]),
    }
    last = m.actuator_actadr + m.actuator_actnum - 1
    return leaves, {
        "names": tuple(given),
        "controls": tuple(map(int, controls)),
        "activations": tuple(int(i) for i in np.where(m.actuator_actadr < 0, -1, last)),
        "refused": tuple(refused.items()),
    }


def _range(limited: np.ndarray, span: np.ndarray) -> np.ndarray:
    has_ends = limited.astype(bool)[:, None] & ~np.isnan(span)
    return np.where(has_ends, span, [-np.inf, np.inf])


def _has_numbers(m: Any, k: int, arms: np.ndarray) -> bool:
    """Whether the numbers of an actuator are finite; its ranges may be infinite."""
    law = *arms, *m.actuator_gainprm[k, :3], *m.actuator_biasprm[k, :3]
    control = getattr(m, "actuator_ctrladr", range(m.nu))[k]
    spans = m.actuator_ctrlrange[control], m.actuator_forcerange[k]
    return bool(np.isfinite(law).all() and not np.isnan(spans).any())


def _kind(m: Any, what: str, k: int) -> str:
    return word(f"mjt{what}", getattr(m, f"actuator_{what.lower()}type")[k])


def _is_off(tree: Tree, k: int) -> bool:
    """Whether actuation is disabled, or that of the actuator's group."""
    group = int(tree.m.actuator_group[k])
    disabled = 0 <= group < 31 and tree.m.opt.disableactuator >> group & 1
    return "actuation" in tree.off or bool(disabled)


def _doubts(m: Any, k: int) -> Iterator[str]:
    """Why the force of an actuator is not of the form of `Actuators`."""
    if m.actuator_plugin[k] >= 0:
        yield "a plugin"
    for what, known in _KNOWN.items():
        kind = _kind(m, what, k)
        if kind not in known:
            yield f"{'transmission' if what == 'Trn' else what.lower()} type {kind}"
    if m.actuator_actearly[k]:
        yield "actearly"
    if hasattr(m, "actuator_delay") and m.actuator_delay[k]:
        yield "a delay"


def _set_arms(m: Any, k: int, arms: np.ndarray) -> str:
    """Fill the lever arms of an actuator; the reason why they are not constant."""
    kind, target = _kind(m, "Trn", k), m.actuator_trnid[k, 0]
    ratios = gear(m, k)
    if kind == "tendon":
        if word("mjtWrap", m.wrap_type[m.tendon_adr[target]]) != "joint":
            return "a spatial tendon"
        if m.tendon_actfrclimited[target]:
            return "a tendon with a limit of its actuator force"
        for w in range(
            m.tendon_adr[target], m.tendon_adr[target] + m.tendon_num[target]
        ):
            arms[m.jnt_dofadr[m.wrap_objid[w]]] += m.wrap_prm[w] * ratios[0]
        return ""
    width = {0: 6, 1: 3}.get(m.jnt_type[target], 1)
    if kind == "jointinparent" and width > 1:
        return "transmission type jointinparent of a ball or free joint"
    arms[m.jnt_dofadr[target] :][:width] = ratios[:width]
    return ""
