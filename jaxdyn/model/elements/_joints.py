"""The joint types: one section each, all answering the same questions.

A joint with k degrees of freedom is k elementary steps. Each step is a screw about one
line: it turns with `turn` and slides with `slide` times its rate. For joints whose
position is a list of coordinates, step k is also *moved* by coordinate k. For joints
with a quaternion the first step carries the whole motion and the steps only span the
velocities, in the axes of the moved body.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Step:
    """One elementary step of a joint.

    `direction` names the line of the screw: "axis", "axis2", "axis3" = axis x axis2 or
    "plane" = axis3 x axis of the joint, or "x", "y", "z" of the body. `slide` is 0, 1
    or "pitch".
    """

    direction: str
    turn: int
    slide: int | str


@dataclass(frozen=True)
class JointType:
    """What the library knows of a joint type.

    Attributes:
        nq, nv: numbers of position and velocity coordinates.
        steps: the elementary steps, in the order of the velocity coordinates.
        axes: how many axes the user gives: 0, 1 or 2.
        position: where in the joint's q the displacement (3 numbers) starts, or None.
        quaternion: where in the joint's q the quaternion (4 numbers) starts, or None.
    """

    nq: int
    nv: int
    steps: tuple[Step, ...]
    axes: int
    position: int | None = None
    quaternion: int | None = None

    @property
    def neutral(self) -> np.ndarray:
        """The position in which the joint does not move its body: [nq]."""
        q = np.zeros(self.nq)
        if self.quaternion is not None:
            q[self.quaternion + 3] = 1.0
        return q


# q: angle about `axis`.                                        qd: its rate.
REVOLUTE = JointType(nq=1, nv=1, axes=1, steps=(Step("axis", 1, 0),))

# q: displacement along `axis`.                                 qd: its rate.
PRISMATIC = JointType(nq=1, nv=1, axes=1, steps=(Step("axis", 0, 1),))

# q: angle about `axis`; the displacement along it is pitch times the angle (pitch in
# metres per radian).                                           qd: the angle's rate.
HELICAL = JointType(nq=1, nv=1, axes=1, steps=(Step("axis", 1, "pitch"),))

# q: angle about `axis`, then angle about `axis2`, which the first turns.
# qd: the rates.
UNIVERSAL = JointType(
    nq=2, nv=2, axes=2, steps=(Step("axis", 1, 0), Step("axis2", 1, 0))
)

# q: angle about `axis`, displacement along it.                 qd: the rates.
CYLINDRICAL = JointType(
    nq=2, nv=2, axes=1, steps=(Step("axis", 1, 0), Step("axis", 0, 1))
)

# q: displacements along `axis2` and axis x axis2, then angle about the normal `axis`.
# qd: the rates.
PLANAR = JointType(
    nq=3,
    nv=3,
    axes=2,
    steps=(Step("plane", 0, 1), Step("axis3", 0, 1), Step("axis", 1, 0)),
)

# q: unit quaternion x, y, z, w.
# qd: angular velocity of the body relative to its parent, in body axes.
SPHERICAL = JointType(
    nq=4,
    nv=3,
    axes=0,
    steps=(Step("x", 1, 0), Step("y", 1, 0), Step("z", 1, 0)),
    quaternion=0,
)

# q: position in the joint frame, unit quaternion x, y, z, w.
# qd: linear velocity of the body origin, angular velocity, relative to the parent, both
# in body axes.
FREE = JointType(
    nq=7,
    nv=6,
    axes=0,
    steps=(
        *(Step(d, 0, 1) for d in "xyz"),
        *(Step(d, 1, 0) for d in "xyz"),
    ),
    position=0,
    quaternion=3,
)

# q, qd: none. The body is one step that does not move.
FIXED = JointType(nq=0, nv=0, axes=0, steps=(Step("z", 0, 0),))

JOINT_TYPES: dict[str, JointType] = {
    "revolute": REVOLUTE,
    "prismatic": PRISMATIC,
    "helical": HELICAL,
    "universal": UNIVERSAL,
    "cylindrical": CYLINDRICAL,
    "planar": PLANAR,
    "spherical": SPHERICAL,
    "free": FREE,
    "fixed": FIXED,
}

# Joints in the coordinates of a model with couplings (see `Couplings`): one that others
# decide, and one whose place in q is that of another coordinate.
COUPLED_TYPES: dict[str, JointType] = {
    "coupled": JointType(nq=0, nv=0, axes=1, steps=(Step("z", 0, 0),)),
    "geared": JointType(nq=1, nv=1, axes=1, steps=(Step("axis", 1, 0),)),
}
