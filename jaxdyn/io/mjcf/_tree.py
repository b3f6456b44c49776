"""The bodies, joints and sites of a compiled MuJoCo model as parts and frames."""

from collections.abc import Iterator
from typing import Any, SupportsIndex

import numpy as np

from jaxdyn.io._parts import Part
from jaxdyn.io._pose import quaternion_to_matrix, rotation_about
from jaxdyn.io.mjcf._mujoco import gear, names, switched_off
from jaxdyn.model import Inertial

WORLD = "world"
Side = tuple[str, np.ndarray, np.ndarray]  # a part, and the pose of a frame in it
_TYPES = ("free", "spherical", "prismatic", "revolute")  # in MuJoCo's order
_COUNTS = ((7, 6), (4, 3), (1, 1), (1, 1))  # numbers of positions and rates


def rotation(quat: np.ndarray) -> np.ndarray:
    """The rotation of MuJoCo's quaternion w, x, y, z."""
    w, x, y, z = quat
    return quaternion_to_matrix(x, y, z, w)


class Tree:
    """Bodies as parts, in MuJoCo's order.

    Attributes:
        m: the compiled model.
        off: what its flags disable.
        names, origins: of each body of MuJoCo the name of its part, and where MuJoCo's
            origin is in that.
        parts: those of a body with several joints stand one after the other.
        joints: the names of MuJoCo's joints, in its order.
        merged: the parts that are frames of others, by name.
        taken_joints: names of joints that are in use.
    """

    def __init__(self, m: Any, merge_fixed: bool):
        self.m, self.off = m, switched_off(m)
        given = names(m, "body")
        self._taken, self.taken_joints = set(given), set(names(m, "jnt"))
        self.names = [WORLD] + [
            name or self.free_name(f"body_{i}") for i, name in enumerate(given) if i
        ]
        self._joint_names = names(m, "jnt")
        self.origins = np.zeros((m.nbody, 3))
        self.parts: list[Part] = []
        self.joints: list[str] = []
        for i in range(1, m.nbody):
            self._add_body(i)
        self.merged = {
            part.name: part
            for part in self.parts
            if merge_fixed and part.joint == "fixed"
        }

    def free_name(self, name: str) -> str:
        """The name with as many underscores behind it as make it differ from others."""
        return _free(name, self._taken)

    def _add_body(self, i: int) -> None:
        """Add the parts of a body.

        Every joint but the last moves a massless part, named for the body and the
        joint. A part has its origin at the anchor of its joint and the axes of the
        body.
        """
        m, name, up = self.m, self.names[i], int(self.m.body_parentid[i])
        parent = self.names[up]
        R, p = rotation(m.body_quat[i]), self.origins[up] + m.body_pos[i]
        first, count = m.body_jntadr[i], m.body_jntnum[i]
        if not count:
            joint_name = _free(f"j_{name}", self.taken_joints)
            part = Part(name, parent, "fixed", R, p)
            part.options = {"joint_name": joint_name}
            self.parts.append(part)
            p = np.zeros(3)
        for k, j in enumerate(range(first, first + count), start=1):
            kind = _TYPES[m.jnt_type[j]]
            if kind == "free":
                R, p = np.eye(3), np.zeros(3)  # its q is the pose in the world
            anchor, turn, slide = _drawn(m, j, kind)
            given = self._joint_names[j]
            last = k == count
            part_name = name if last else self.free_name(f"{name}_{given or k}")
            part = Part(part_name, parent, kind, R @ turn, p + R @ (anchor + slide))
            joint_name = given or _free(f"j_{part_name}", self.taken_joints)
            part.options = self._effects(j, kind)
            part.options["joint_name"] = joint_name
            self.parts.append(part)
            self.joints.append(joint_name)
            parent, R, p = part_name, np.eye(3), -anchor
        axes = rotation(m.body_iquat[i])
        inertia = axes @ np.diag(m.body_inertia[i]) @ axes.T
        inertial = Inertial(float(m.body_mass[i]), m.body_ipos[i].copy(), inertia)
        self.parts[-1].inertial = inertial.moved(np.eye(3), p)
        self.origins[i] = p

    def _effects(self, j: int, kind: str) -> dict[str, Any]:
        """Joint effects and limits, arguments of `ModelBuilder.add_body`."""
        m, off = self.m, self.off
        nq, nv = _COUNTS[m.jnt_type[j]]
        at = slice(m.jnt_dofadr[j], m.jnt_dofadr[j] + nv)
        armature, damping = m.dof_armature[at].copy(), m.dof_damping[at].copy()
        motor = m.jnt_actuatorid[j] if hasattr(m, "jnt_actuatorid") else -1
        if motor >= 0:  # a motor with inertia and damping of its own
            square = gear(m, motor)[0] ** 2
            armature += square * m.actuator_armature[motor]
            damping += square * m.actuator_damping[motor]
        effects: dict[str, Any] = {"armature": armature}
        if "damper" not in off:
            effects["damping"] = damping
        if not off & {"frictionloss", "constraint"}:
            effects["friction"] = m.dof_frictionloss[at].copy()
        if m.jnt_stiffness[j] and "spring" not in off:
            effects["stiffness"] = float(m.jnt_stiffness[j])
        rest = m.qpos_spring[m.jnt_qposadr[j] :][:nq].copy()
        if nq > 1:
            rest[-4:] = np.roll(rest[-4:], -1)
        else:
            effects["axis"] = m.jnt_axis[j].copy()
            if m.jnt_limited[j]:
                effects["lower"], effects["upper"] = m.jnt_range[j]
            if m.jnt_actfrclimited[j]:
                effects["effort"] = float(np.abs(m.jnt_actfrcrange[j]).max())
        if nq == 1 or "stiffness" in effects:
            effects["rest"] = rest
        return effects

    def carried(self, body: SupportsIndex, R: np.ndarray, p: np.ndarray) -> Side:
        """The part that carries a frame with the pose (R, p) in a body of MuJoCo."""
        name, p = self.names[body], self.origins[body] + p
        while name in self.merged:
            part = self.merged[name]
            name, R, p = part.parent, part.R @ R, part.p + part.R @ p
        return name, R, p

    def site(self, k: SupportsIndex) -> Side:
        """The part that carries a site."""
        m = self.m
        return self.carried(m.site_bodyid[k], rotation(m.site_quat[k]), m.site_pos[k])

    def frames(self) -> Iterator[tuple[str, Side, str]]:
        """Name, place and joint name of body frames and of named sites, by body."""
        sites = names(self.m, "site")
        for i, body in enumerate(self.names):
            frames = []
            if self.origins[i].any():
                side = self.carried(i, np.eye(3), np.zeros(3))
                frames.append((self.free_name(f"{body}_frame"), side))
            for k in np.flatnonzero(self.m.site_bodyid == i):
                if sites[k]:
                    taken = sites[k] in self._taken
                    name = f"{sites[k]}_site" if taken else sites[k]
                    frames.append((self.free_name(name), self.site(k)))
            for name, side in frames:
                yield name, side, _free(f"j_{name}", self.taken_joints)


def _drawn(m: Any, j: int, kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Anchor of a joint, and its motion at q = 0 from the pose that the file draws."""
    anchor, turn, slide = np.zeros(3), np.eye(3), np.zeros(3)
    if kind in ("revolute", "spherical"):
        anchor = m.jnt_pos[j].copy()
    drawn = m.qpos0[m.jnt_qposadr[j]]
    if kind == "revolute":
        turn = rotation_about(m.jnt_axis[j], -drawn)
    elif kind == "prismatic":
        slide = -drawn * m.jnt_axis[j]
    return anchor, turn, slide


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name
