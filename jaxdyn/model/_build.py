"""Building a model body by body, on the host, with every check on its data."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxdyn.model._inertial import Inertial, check_finite
from jaxdyn.model._joints import JOINT_TYPES, JointType
from jaxdyn.model._model import Loop, Model
from jaxdyn.model._topology import Topology

Numbers = float | int | Sequence[Any] | np.ndarray

_DOF_EFFECTS = ("armature", "damping", "friction", "stiffness")
_DOF_LIMITS = ("effort", "velocity")


class ModelBuilder:
    """Collects bodies and makes a `Model` of them.

    ```python
    b = ModelBuilder("pendulum")
    b.add_body("rod", joint="revolute", axis=(0, 1, 0), inertial=Inertial.rod(1.0, (0, 0, 0), (0, 0, -1)))
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
        self.name = name
        self.base = base
        self.gravity = check_finite(base, "gravity", gravity, (3,))
        self._rows: list[dict[str, Any]] = []
        self._frames: list[dict[str, Any]] = []
        self._loops: list[dict[str, Any]] = []

    @property
    def names(self) -> list[str]:
        """The names of the bodies so far."""
        return [row["name"] for row in self._rows]

    def add_body(
        self,
        name: str,
        parent: str | int | None = None,
        joint: str = "revolute",
        *,
        axis: Numbers | None = None,
        axis2: Numbers | None = None,
        pitch: float | int | None = None,
        R: Numbers | None = None,
        p: Numbers = (0.0, 0.0, 0.0),
        inertial: Inertial | None = None,
        joint_name: str | None = None,
        check_inertia: bool = True,
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
            inertial: mass, centre of mass and inertia, in the body's own frame, which is
                the joint frame after the joint has moved. Without it the body has none.
            joint_name: by default "j_" and the name of the body.
            check_inertia: False accepts an inertia that violates the triangle inequality.
            effects: armature, damping, friction, stiffness, effort, velocity (one number
                or one per degree of freedom), rest, lower, upper (one per coordinate).
        """
        index = self._parent(name, parent)
        kind = self._kind(name, joint)
        R = np.eye(3) if R is None else R
        inertial = inertial or Inertial()
        inertial.check(name, triangle=check_inertia)
        first, second = _axes(name, joint, kind, axis, axis2)
        row = {
            "name": name,
            "joint_name": f"j_{name}" if joint_name is None else joint_name,
            "parent": index,
            "joint": joint,
            "R": _rotation(name, R),
            "p": check_finite(name, "placement p", p, (3,)),
            "axis": first,
            "axis2": second,
            "pitch": _pitch(name, joint, pitch),
            "mass": inertial.mass,
            "com": inertial.com,
            "inertia": inertial.inertia,
            **_effects(name, kind, effects),
        }
        self._rows.append(row)
        return len(self._rows) - 1

    def add_frame(
        self,
        name: str,
        body: str | int | None,
        *,
        R: Numbers | None = None,
        p: Numbers = (0.0, 0.0, 0.0),
    ) -> None:
        """Name a frame that is fixed to a body, such as a tool or a sensor.

        Args:
            name: the name of the frame, different from all bodies and frames.
            body: the body that carries it; None or the name of the base for the world.
            R, p: pose of the frame in the body frame.
        """
        row = {
            "body": self._parent(name, body),
            "name": name,
            "R": _rotation(name, np.eye(3) if R is None else R),
            "p": check_finite(name, "placement p", p, (3,)),
        }
        self._frames.append(row)

    def add_loop(
        self,
        body_a: str | int,
        p_a: Numbers,
        body_b: str | int,
        p_b: Numbers,
        axes: Sequence[int] = (0, 1, 2),
    ) -> None:
        """Hold a point of one body and a point of another together.

        Args:
            body_a, body_b: names or indices of bodies that are already there.
            p_a, p_b: the point in the axes of each body.
            axes: the world axes along which the points are held together.
        """
        what = f"loop {len(self._loops)}"
        a, b = (self._find(what, body) for body in (body_a, body_b))
        if a == b:
            raise ValueError(
                f"{what} joins body {self.names[a]!r} to itself, expected two different bodies."
            )
        if not axes or not set(axes) <= {0, 1, 2} or len(set(axes)) != len(axes):
            raise ValueError(
                f"{what}: axes are {tuple(axes)}, expected some of 0, 1, 2, once each."
            )
        points = [
            check_finite(self.names[i], f"point of {what}", p, (3,))
            for i, p in ((a, p_a), (b, p_b))
        ]
        self._loops.append(
            {"bodies": (a, b), "points": points, "axes": tuple(int(i) for i in axes)}
        )

    def build(self, dtype: Any = None) -> Model:
        """The model, with leaves in `dtype` (by default JAX's default floating type)."""
        if not self._rows:
            raise ValueError(f"model {self.name!r} has no bodies: add at least one.")
        dtype = jnp.result_type(float) if dtype is None else dtype
        rows = self._rows

        def column(key: str, per_body: bool = True) -> Any:
            values = [row[key] for row in rows]
            stacked = np.array(values, float) if per_body else np.concatenate(values)
            return jnp.asarray(stacked, dtype)

        topology = Topology(
            name=self.name,
            base=self.base,
            names=tuple(row["name"] for row in rows),
            joint_names=tuple(row["joint_name"] for row in rows),
            parents=tuple(row["parent"] for row in rows),
            joints=tuple(row["joint"] for row in rows),
            frame_names=tuple(frame["name"] for frame in self._frames),
            frame_bodies=tuple(frame["body"] for frame in self._frames),
        )
        loops = tuple(
            Loop(
                *(jnp.asarray(p, dtype) for p in loop["points"]),
                *loop["bodies"],
                loop["axes"],
            )
            for loop in self._loops
        )
        bodies = ("R", "p", "axis", "axis2", "pitch", "mass", "com", "inertia")
        joints = (*_DOF_EFFECTS, *_DOF_LIMITS, "rest", "lower", "upper")
        return Model(
            topology=topology,
            gravity=jnp.asarray(self.gravity, dtype),
            frame_R=jnp.asarray(
                np.reshape([frame["R"] for frame in self._frames], (-1, 3, 3)), dtype
            ),
            frame_p=jnp.asarray(
                np.reshape([frame["p"] for frame in self._frames], (-1, 3)), dtype
            ),
            loops=loops,
            **{key: column(key) for key in bodies},
            **{key: column(key, per_body=False) for key in joints},
        )

    def _parent(self, name: str, parent: str | int | None) -> int:
        if not isinstance(name, str) or not name:
            raise ValueError(
                f"body {len(self._rows)} has the name {name!r}, expected a text."
            )
        taken = {self.base, *self.names, *(frame["name"] for frame in self._frames)}
        if name in taken:
            raise ValueError(
                f"body {len(self._rows)} has the name {name!r}, which is taken: names of bodies "
                "and of the base must all differ."
            )
        if parent is None or parent == self.base or parent == -1:
            return -1
        return self._find(f"body {name!r}", parent)

    def _find(self, what: str, body: str | int) -> int:
        names = self.names
        if isinstance(body, str):
            if body in names:
                return names.index(body)
            raise ValueError(
                f"{what} refers to {body!r}, expected one of the bodies added so far "
                f"({', '.join(names) or 'none'}): number the bodies so that parents precede "
                "their children."
            )
        if not 0 <= body < len(names):
            raise ValueError(
                f"{what} has parent {body}, expected -1 to {len(names) - 1}: number the bodies so "
                "that parents precede their children."
            )
        return int(body)

    def _kind(self, name: str, joint: str) -> JointType:
        if joint not in JOINT_TYPES:
            raise ValueError(
                f"body {name!r}: joint type {joint!r} is not known, expected one of: "
                f"{', '.join(JOINT_TYPES)}."
            )
        return JOINT_TYPES[joint]


def _axes(
    name: str, joint: str, kind: JointType, axis: Numbers | None, axis2: Numbers | None
) -> tuple[np.ndarray, np.ndarray]:
    """The two directions of a joint, of unit length; z and x where it has none."""
    for given, what, needed in ((axis, "axis", 1), (axis2, "axis2", 2)):
        if given is not None and kind.axes < needed:
            raise ValueError(
                f"body {name!r}: a {joint} joint has no {what}, but {given} was given: leave it out."
            )
    first = _direction(name, "axis", (0.0, 0.0, 1.0) if axis is None else axis)
    if kind.axes < 2:
        return first, np.array([1.0, 0.0, 0.0])
    if axis2 is None:
        raise ValueError(
            f"body {name!r}: a {joint} joint needs axis2, a second direction."
        )
    second = _direction(name, "axis2", axis2)
    if joint == "universal" and np.linalg.norm(np.cross(first, second)) < 1e-9:
        raise ValueError(
            f"body {name!r}: axis and axis2 of a universal joint are parallel ({first.tolist()}): "
            "the joint would turn about one line only."
        )
    if joint == "planar" and abs(first @ second) > 1e-9:
        raise ValueError(
            f"body {name!r}: axis2 {second.tolist()} of a planar joint is not perpendicular to "
            f"the normal {first.tolist()}: axis2 is the first direction in the plane."
        )
    return first, second


def _direction(name: str, what: str, value: Numbers) -> np.ndarray:
    v = check_finite(name, what, value, (3,))
    length = np.linalg.norm(v)
    if length == 0:
        raise ValueError(
            f"body {name!r}: {what} is {v.tolist()}, expected a direction, not zero."
        )
    return v if abs(length - 1) < 4e-16 else v / length


def _rotation(name: str, value: Numbers) -> np.ndarray:
    R = check_finite(name, "placement R", value, (3, 3))
    error = np.abs(R.T @ R - np.eye(3)).max()
    if error > 1e-6 or np.linalg.det(R) < 0:
        raise ValueError(
            f"body {name!r}: placement R {R.tolist()} is not a rotation (RᵀR differs from 1 by "
            f"{error:.2g}, determinant {np.linalg.det(R):.3g}): give orthonormal, right-handed axes."
        )
    if error < 1e-14:
        return R
    u, _, vt = np.linalg.svd(R)  # remove the rounding of printed digits
    return u @ vt


def _pitch(name: str, joint: str, pitch: float | int | None) -> float:
    if joint == "helical":
        if pitch is None:
            raise ValueError(
                f"body {name!r}: a helical joint needs a pitch, in metres per radian."
            )
        return float(check_finite(name, "pitch", pitch, ()))
    if pitch is not None:
        raise ValueError(
            f"body {name!r}: a {joint} joint has no pitch, but {pitch} was given: leave it out."
        )
    return 0.0


def _effects(
    name: str, kind: JointType, given: dict[str, Numbers]
) -> dict[str, np.ndarray]:
    """Joint effects and limits, one entry per coordinate."""
    neutral = np.zeros(kind.nq)
    if kind.quaternion is not None:
        neutral[kind.quaternion + 3] = 1.0
    result = {key: np.zeros(kind.nv) for key in _DOF_EFFECTS}
    result |= {key: np.full(kind.nv, np.inf) for key in _DOF_LIMITS}
    result |= {
        "rest": neutral,
        "lower": np.full(kind.nq, -np.inf),
        "upper": np.full(kind.nq, np.inf),
    }
    for key, value in given.items():
        if key not in result:
            raise ValueError(
                f"body {name!r}: {key!r} is not known, expected one of: {', '.join(result)}."
            )
        size = result[key].size
        try:
            result[key] = np.broadcast_to(np.asarray(value, float), (size,)).copy()
        except ValueError:
            raise ValueError(
                f"body {name!r}: {key} is {value}, expected one number or {size}."
            ) from None
        if np.isnan(result[key]).any():
            raise ValueError(
                f"body {name!r}: {key} is {value}, expected numbers, not NaN."
            )
        if key in (*_DOF_EFFECTS, *_DOF_LIMITS) and (result[key] < 0).any():
            raise ValueError(f"body {name!r}: {key} is {value}, expected zero or more.")
    if (result["lower"] > result["upper"]).any():
        raise ValueError(
            f"body {name!r}: lower limit {result['lower'].tolist()} exceeds the upper limit "
            f"{result['upper'].tolist()}: exchange them."
        )
    return result
