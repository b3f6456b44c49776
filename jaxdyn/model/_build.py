"""Building a model body by body, on the host, with every check on its data."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from jaxdyn.model._check import (
    Body,
    Numbers,
    check_finite,
    check_rotation,
    is_floating,
    is_index,
    is_world,
)
from jaxdyn.model._model import Model
from jaxdyn.model._report import Note, Notes
from jaxdyn.model._singular import check_resistance, singular_joints
from jaxdyn.model.elements import (
    DOF_EFFECTS,
    DOF_LIMITS,
    Placement,
    Visual,
    check_axes,
    check_effects,
    check_joint,
    check_loop,
    check_pitch,
    loop_of,
)
from jaxdyn.model.inertia import Inertial
from jaxdyn.model.tables import Topology


class ModelBuilder:
    """Collects bodies and makes a `Model` of them.

    ```python
    b = ModelBuilder("pendulum")
    rod = Inertial.rod(1.0, (0, 0, 0), (0, 0, -1))
    b.add_body("rod", joint="revolute", axis=(0, 1, 0), inertial=rod)
    model = b.build()
    ```
    """

    def __init__(
        self,
        name: str = "robot",
        *,
        gravity: Numbers = (0.0, 0.0, -9.81),
        base: str = "base",
    ):
        for what, text in (("model", name), ("base", base)):
            if not isinstance(text, str) or not text:
                raise ValueError(f"the {what} has the name {text!r}, expected a text.")
        self.name = name
        self.base = base
        self.gravity = check_finite(base, "gravity", gravity, (3,))
        self._index: dict[str, int] = {}  # of the bodies, by name
        self._taken = {base}
        self._taken_joints: set[str] = set()
        self._rows: list[dict[str, Any]] = []
        self._frames: list[dict[str, Any]] = []
        self._loops: list[dict[str, Any]] = []
        self._couplings: list[dict[str, Any]] = []
        self.notes: list[Note] = []  # of a reader, for `Model.report`
        self._visuals: list[Visual] = []

    @property
    def names(self) -> list[str]:
        """The names of the bodies so far."""
        return list(self._index)

    def add_body(
        self,
        name: str,
        parent: Body | None = None,
        joint: str = "revolute",
        *,
        axis: Numbers | None = None,
        axis2: Numbers | None = None,
        pitch: float | int | None = None,
        R: Numbers | None = None,
        p: Numbers = (0.0, 0.0, 0.0),
        inertial: Inertial | None = None,
        joint_name: str | None = None,
        check_inertia: bool | None = True,
        **effects: Numbers,
    ) -> int:
        """Add one body and return its index.

        Args:
            name: the name of the body, different from all others.
            parent: name or index of a body that is already there; None or the name of
                the base for the world.
            joint: one of the joint types of docs/conventions.md.
            axis: direction of the joint in its joint frame, by default z. Any length
                but zero: it is normalised.
            axis2: second direction of universal and planar joints.
            pitch: translation per radian of a helical joint, in metres.
            R, p: pose of the joint frame in the parent's body frame.
            inertial: mass, centre of mass and inertia, in the body's own frame, which
                is the joint frame after the joint has moved. By default it has none.
            joint_name: by default "j_" and the name of the body; different from others.
            check_inertia: None accepts a violation of the triangle inequality, and
                False negative principal inertias too.
            effects: armature, damping, friction, friction_speed, stiffness, effort,
                velocity (one number or one per degree of freedom), rest, lower, upper
                (one per coordinate).
        """
        kind = check_joint(name, joint)
        inertial = (inertial or Inertial()).check(
            name, triangle=bool(check_inertia), positive=check_inertia is not False
        )
        first, second = check_axes(name, joint, kind, axis, axis2)
        row = {
            "name": self._free_name("body", name),
            "joint_name": self._free_joint_name(name, joint_name),
            "parent": self._parent(f"body {name!r}", parent),
            "joint": joint,
            "R": check_rotation(name, R),
            "p": check_finite(name, "placement p", p, (3,)),
            "axis": first,
            "axis2": second,
            "pitch": check_pitch(name, joint, pitch),
            "mass": inertial.mass,
            "com": inertial.com,
            "inertia": inertial.inertia,
            **check_effects(name, kind, effects),
        }
        self._rows.append(row)
        self._taken.add(name)
        self._taken_joints.add(row["joint_name"])
        self._index[name] = len(self._rows) - 1
        return self._index[name]

    def add_frame(
        self,
        name: str,
        body: Body | None,
        *,
        R: Numbers | None = None,
        p: Numbers = (0.0, 0.0, 0.0),
        joint_name: str | None = None,
    ) -> None:
        """Name a frame that is fixed to a body, such as a tool or a sensor.

        Args:
            name: the name of the frame, different from all bodies and frames.
            body: the body that carries it; None or the name of the base for the world.
            R, p: pose of the frame in the body frame.
            joint_name: of the fixed joint that holds it in files; by default "j_" and
                the name of the frame.
        """
        row = {
            "body": self._parent(f"frame {name!r}", body),
            "name": self._free_name("frame", name),
            "joint_name": _joint_name(f"frame {name!r}", name, joint_name),
            "R": check_rotation(name, R),
            "p": check_finite(name, "placement p", p, (3,)),
        }
        self._frames.append(row)
        self._taken.add(name)

    def add_loop(
        self,
        body_a: Body | None,
        placement_a: Placement,
        body_b: Body | None,
        placement_b: Placement,
        joint: str | None = None,
        *,
        axes: Sequence[int] | None = None,
        name: str | None = None,
    ) -> None:
        """Close a loop by a cut joint between two bodies, as `Model.with_loop` does.

        The bodies must be there already.
        """

        def bodies(loop: str) -> tuple[int, int]:
            return self._parent(loop, body_a), self._parent(loop, body_b)

        taken = [loop["name"] for loop in self._loops]
        placements = placement_a, placement_b
        data = check_loop(self.names, taken, bodies, placements, joint, axes, name)
        self._loops.append(data)

    def add_coupling(
        self, joint: Body, ratios: Mapping[Any, Any] | None = None, **options: Any
    ) -> None:
        """Let a joint follow others, as `Model.with_coupling` does.

        All couplings are checked when the model is built.
        """
        self._couplings.append(dict(joint=joint, ratios=ratios, **options))

    def add_visual(self, body: Body | None, visual: Visual) -> None:
        """Show a shape on a body; None or the name of the base for the world."""
        at = self._parent(f"visual {visual.name!r}", body)
        self._visuals.append(replace(visual, body=at))

    def build(
        self, dtype: DTypeLike | None = None, *, check_inertia: bool = True
    ) -> Model:
        """The model, with leaves in `dtype` (by default JAX's floating type).

        Args:
            check_inertia: False accepts joints that no inertia resists (see
                `singular_joints`), for which forward dynamics are not finite. A model
                without any mass, inertia and armature is always accepted.
        """
        if not self._rows:
            raise ValueError(f"model {self.name!r} has no bodies: add at least one.")
        dtype = jnp.result_type(float) if dtype is None else dtype
        if not is_floating(dtype):
            raise ValueError(f"dtype is {dtype!r}, expected a floating-point type.")
        topology, leaves = self._topology(), self._leaves()
        if check_inertia and not self._couplings:
            check_resistance(topology, leaves)
        arrays: dict[str, Any] = {
            key: jnp.asarray(leaf, dtype) for key, leaf in leaves.items()
        }
        model = Model(
            topology=topology,
            loops=tuple(loop_of(loop, dtype) for loop in self._loops),
            forces=(),
            **arrays,
        )
        if not self._couplings:
            return model
        model = model._coupled(*(model._relation(**x) for x in self._couplings))
        if check_inertia and singular_joints(model) and model.mass.any():
            check_resistance(topology, leaves)
        return model

    def _topology(self) -> Topology:
        rows, frames = self._rows, self._frames
        return Topology(
            name=self.name,
            base=self.base,
            names=tuple(row["name"] for row in rows),
            joint_names=tuple(row["joint_name"] for row in rows),
            parents=tuple(row["parent"] for row in rows),
            joints=tuple(row["joint"] for row in rows),
            frame_names=tuple(frame["name"] for frame in frames),
            frame_bodies=tuple(frame["body"] for frame in frames),
            frame_joint_names=tuple(frame["joint_name"] for frame in frames),
            report=Notes(self.notes),
            visuals=tuple(self._visuals),
        )

    def _leaves(self) -> dict[str, np.ndarray]:
        """The array leaves of the model, in double precision."""
        bodies = ("R", "p", "axis", "axis2", "pitch", "mass", "com", "inertia")
        joints = (*DOF_EFFECTS, *DOF_LIMITS, "friction_speed", "rest", "lower", "upper")
        rows, frames = self._rows, self._frames
        return {
            "gravity": self.gravity,
            "frame_R": np.reshape([frame["R"] for frame in frames], (-1, 3, 3)),
            "frame_p": np.reshape([frame["p"] for frame in frames], (-1, 3)),
            **{key: np.array([row[key] for row in rows], float) for key in bodies},
            **{key: np.concatenate([row[key] for row in rows]) for key in joints},
        }

    def _free_name(self, kind: str, name: str) -> str:
        if not isinstance(name, str) or not name:
            raise ValueError(f"a {kind} has the name {name!r}, expected a text.")
        if name in self._taken:
            raise ValueError(
                f"{kind} {name!r} has a name that is taken: the names of the base, of "
                "bodies and of frames must all differ."
            )
        return name

    def _free_joint_name(self, name: str, joint_name: str | None) -> str:
        joint_name = _joint_name(f"body {name!r}", name, joint_name)
        if joint_name in self._taken_joints:
            raise ValueError(
                f"body {name!r}: the joint name {joint_name!r} is taken: names of "
                "joints must differ."
            )
        return joint_name

    def _parent(self, what: str, parent: Body | None) -> int:
        if parent is None or is_world(parent, self.base):
            return -1
        return self._find(what, parent)

    def _find(self, what: str, body: Body) -> int:
        if isinstance(body, str) and body in self._index:
            return self._index[body]
        if is_index(body) and 0 <= body < len(self._index):
            return int(body)
        known = ", ".join(self._index) or "none"
        raise ValueError(
            f"{what} refers to body {body!r}, expected the base {self.base!r}, or the "
            f"name or index of one of the {len(self._index)} bodies added so far "
            f"({known}): number the bodies so that parents precede their children."
        )


def _joint_name(what: str, name: str, joint_name: str | None) -> str:
    joint_name = f"j_{name}" if joint_name is None else joint_name
    if not isinstance(joint_name, str) or not joint_name:
        raise ValueError(
            f"{what}: its joint has the name {joint_name!r}, expected a text."
        )
    return joint_name
