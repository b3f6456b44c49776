"""What decides the structure of a program: names, parents, joint types, tables."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Array

from jaxdyn.model._report import UNRESISTED, Notes
from jaxdyn.model.elements import COUPLED_TYPES, JOINT_TYPES, JointType, Visual
from jaxdyn.model.tables._contraction import Contraction, contract
from jaxdyn.model.tables._modules import Modules, cut_modules
from jaxdyn.program import BLOCK, Jumps, Lanes, cut_lanes, jump_tables

T = TypeVar("T")
A = TypeVar("A", np.ndarray, Array)


@dataclass(frozen=True, eq=False)
class Steps:
    """Index tables of the elementary steps; one entry per step, host side.

    An index equal to the length of the array it points into means "none".

    Attributes:
        body: the body to which the step belongs.
        parent: the step before it, -1 for the world.
        first: whether it is the first step of its joint.
        direction: the row of the direction table (see `DIRECTIONS`).
        turn, slide: rotation and translation per unit rate; `pitched` marks the steps
            whose translation is the pitch of the joint instead.
        q: the coordinate that moves the step.
        v: the velocity coordinate that drives it.
        last: for each *body* its last step, which carries its frame and its mass.
    """

    body: np.ndarray
    parent: np.ndarray
    first: np.ndarray
    direction: np.ndarray
    turn: np.ndarray
    slide: np.ndarray
    pitched: np.ndarray
    q: np.ndarray
    v: np.ndarray
    last: np.ndarray


DIRECTIONS = ("axis", "axis2", "axis3", "plane", "x", "y", "z")


def directions(xp: ModuleType, axis: A, axis2: A) -> A:
    """[7 n, 3] the `DIRECTIONS` of all bodies; `xp` is NumPy or jax.numpy."""
    axis3 = xp.cross(axis, axis2)
    fixed = [xp.broadcast_to(row, axis.shape) for row in xp.eye(3, dtype=axis.dtype)]
    return xp.concatenate([axis, axis2, axis3, xp.cross(axis3, axis), *fixed])


@dataclass(eq=False, repr=False)
class Topology:
    """The static part of a model: hashable, and shared by copies.

    Two topologies are equal if parents, joint types and the bodies of frames are equal,
    and if they give the same answer to every name that traced code has looked up in one
    of them (`looked_up`). Otherwise names do not count, nor do the report of what a
    reader left out and the shapes that are only seen: models that differ in these share
    compiled programs and can be stacked.
    """

    name: str
    base: str
    names: tuple[str, ...]
    joint_names: tuple[str, ...]
    parents: tuple[int, ...]
    joints: tuple[str, ...]
    frame_names: tuple[str, ...] = ()
    frame_bodies: tuple[int, ...] = ()
    frame_joint_names: tuple[str, ...] = ()
    report: Notes = Notes()
    visuals: tuple[Visual, ...] = ()

    def __post_init__(self):
        if not self.frame_joint_names:
            self.frame_joint_names = tuple(f"j_{frame}" for frame in self.frame_names)
        self._structure = self.parents, self.joints, self.frame_bodies
        self._hash = hash(self._structure)
        self._looked_up: set[tuple[str, str | None]] = set()

    def __repr__(self) -> str:
        # short also for a thousand bodies, and another for every other content
        state = self.__getstate__()
        del state["report"], state["visuals"]
        content = hashlib.sha256(repr(tuple(state.values())).encode())
        digest = content.hexdigest()[:16]
        return f"Topology({self.name!r}, n = {len(self.names)}, {digest})"

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Topology) or self._structure != other._structure:
            return False
        other._structure = self._structure  # the next time they are identical: fast
        names = self._looked_up | other._looked_up
        if any(self.find(*x) != other.find(*x) for x in names):
            return False
        # a program found for one of them may now become a part of the other's
        self._looked_up, other._looked_up = names, names.copy()
        return True

    def find(self, field: str, name: str | None) -> Any:
        """The index of a name in a field such as `names`, None if it is not there.

        For the name None it is the whole field.
        """
        names = getattr(self, field)
        if name is None:
            return names
        return names.index(name) if name in names else None

    def looked_up(self, field: str, name: str | None) -> None:
        """Remember that traced code depends on the answer of `find`."""
        self._looked_up.add((field, name))

    @cached_property
    def has_unresisted(self) -> bool:
        """Whether a reader has found joints that no inertia resists."""
        return any(note.became.startswith(UNRESISTED) for note in self.report)

    @cached_property
    def types(self) -> tuple[JointType, ...]:
        """The joint type of each body."""
        known = JOINT_TYPES | COUPLED_TYPES
        return tuple(known[joint] for joint in self.joints)

    def _check_tree(self) -> None:
        """Recursions need the tree of all joints, `Model.tree`."""
        if not COUPLED_TYPES.keys().isdisjoint(self.joints):
            raise RuntimeError(
                f"the joints of model {self.name!r} are coupled: a function of jaxdyn "
                "has not asked for model.tree; please report this."
            )

    @cached_property
    def q_start(self) -> tuple[int, ...]:
        """Where each body's coordinates start in q; one more entry for the end."""
        return tuple(int(i) for i in np.cumsum([0, *(t.nq for t in self.types)]))

    @cached_property
    def v_start(self) -> tuple[int, ...]:
        """Where each body's coordinates start in qd; one more entry for the end."""
        return tuple(int(i) for i in np.cumsum([0, *(t.nv for t in self.types)]))

    @property
    def nq(self) -> int:
        """The number of position coordinates."""
        return self.q_start[-1]

    @property
    def nv(self) -> int:
        """The number of velocity coordinates (degrees of freedom)."""
        return self.v_start[-1]

    @cached_property
    def modules(self) -> Modules:
        """The kinematic modules of the tree."""
        return cut_modules(self.parents, self.names)

    @cached_property
    def steps(self) -> Steps:
        """The elementary steps of all joints, in body order."""
        rows, last = [], []
        for i, joint in enumerate(self.types):
            for k, step in enumerate(joint.steps):
                moved = joint.nv > 0 and joint.quaternion is None
                first_parent = last[self.parents[i]] if self.parents[i] >= 0 else -1
                rows.append(
                    (
                        i,
                        first_parent if k == 0 else len(rows) - 1,
                        k == 0,
                        DIRECTIONS.index(step.direction),
                        step.turn,
                        step.slide if isinstance(step.slide, int) else 0,
                        step.slide == "pitch",
                        self.q_start[i] + k if moved else self.nq,
                        self.v_start[i] + k if joint.nv else self.nv,
                    )
                )
            last.append(len(rows) - 1)
        return Steps(
            *(np.array(column) for column in zip(*rows, strict=True)),
            last=np.array(last),
        )

    @cached_property
    def lanes(self) -> Lanes:
        """The elementary steps as lanes."""
        self._check_tree()
        return cut_lanes(self.steps.parent)

    @cached_property
    def depth(self) -> int:
        """The number of elementary steps on the longest path from base to tip."""
        depth = np.ones(len(self.steps.parent), int)
        for i, p in enumerate(self.steps.parent):
            if p >= 0:
                depth[i] += depth[p]
        return int(depth.max())

    @property
    def jumps(self) -> Jumps:
        """Tables for sums along the paths and over the subtrees of all steps."""
        return self.jumps_in_blocks(BLOCK)

    def jumps_in_blocks(self, block: int) -> Jumps:
        """The same with other blocks of a serial chain."""
        self._check_tree()
        return self._cached(
            "jumps", block, lambda: jump_tables(self.steps.parent, block)
        )

    def contraction(self, chunk: int) -> Contraction:
        """The elementary steps as pieces, which begin with a joint, and their joins."""
        self._check_tree()
        steps = self.steps
        cut = lambda: contract(steps.parent, chunk, steps.first)  # noqa: E731
        return self._cached("contraction", chunk, cut)

    def _cached(self, name: str, size: int, make: Callable[[], T]) -> T:
        if (name, size) not in self._tables:
            self._tables[name, size] = make()
        return self._tables[name, size]

    @cached_property
    def _tables(self) -> dict[tuple[str, int], Any]:
        return {}

    @cached_property
    def dof_steps(self) -> np.ndarray:
        """For each velocity coordinate the step that it drives."""
        return np.flatnonzero(self.steps.v < self.nv)

    @cached_property
    def _step_ancestors(self) -> np.ndarray:
        """[steps, steps] whether step i is j or stands between j and the base."""
        self._check_tree()
        above = np.eye(len(self.steps.body), dtype=bool)
        for j, p in enumerate(self.steps.parent):
            if p >= 0:
                above[:, j] |= above[:, p]
        return above

    @cached_property
    def ancestors(self) -> np.ndarray:
        """[nv, nv] whether coordinate i moves what j moves, i = j included."""
        return self._step_ancestors[np.ix_(self.dof_steps, self.dof_steps)]

    @cached_property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """All pairs i, j of velocity coordinates with i on the path to j."""
        i, j = np.nonzero(self.ancestors)
        return i, j

    @cached_property
    def moves(self) -> np.ndarray:
        """[nv, n] whether coordinate i moves body j."""
        return self._step_ancestors[np.ix_(self.dof_steps, self.steps.last)]

    @cached_property
    def body_ancestors(self) -> np.ndarray:
        """[n, n] whether body i is j or stands between j and the base."""
        return self._step_ancestors[np.ix_(self.steps.last, self.steps.last)]

    @cached_property
    def step_carriers(self) -> np.ndarray:
        """For each step the one in whose frame its axis is fixed.

        The step itself, but the last one of its joint where that has a quaternion.
        """
        body, own = self.steps.body, np.arange(len(self.steps.body))
        is_turned = np.isin(body, self.quaternion_bodies)
        return np.where(is_turned, self.steps.last[body], own)

    @cached_property
    def moving_steps(self) -> np.ndarray:
        """For each step the first one that moves when its coordinate does.

        The step itself, but the first one of its joint where that has a quaternion.
        """
        body, own = self.steps.body, np.arange(len(self.steps.body))
        is_turned = np.isin(body, self.quaternion_bodies)
        return np.where(is_turned, self._first_steps(body), own)

    def support(self, body: int) -> np.ndarray:
        """The steps that move a body, tip to base."""
        steps, step = [], int(self.steps.last[body])
        while step >= 0:
            steps.append(step)
            step = int(self.steps.parent[step])
        return np.array(steps)

    def _bodies_with(self, start: str) -> np.ndarray:
        return np.flatnonzero([getattr(t, start) is not None for t in self.types])

    def _table(self, start: str, width: int) -> np.ndarray:
        bodies = self._bodies_with(start)
        starts = [self.q_start[i] + getattr(self.types[i], start) for i in bodies]
        return np.array(starts, int)[:, None] + np.arange(width)

    @cached_property
    def quaternion_bodies(self) -> np.ndarray:
        """The bodies whose joint has a quaternion."""
        return self._bodies_with("quaternion")

    @cached_property
    def quaternion_q(self) -> np.ndarray:
        """[quaternions, 4] the places of all quaternions in q."""
        return self._table("quaternion", 4)

    @cached_property
    def quaternion_v(self) -> np.ndarray:
        """[quaternions, 3] the places of their angular velocities in qd."""
        ends = np.array([self.v_start[i + 1] for i in self.quaternion_bodies], int)
        return ends[:, None] + np.arange(-3, 0)

    def _first_steps(self, bodies: np.ndarray) -> np.ndarray:
        last = self.steps.last[bodies]
        widths = [len(self.types[i].steps) for i in bodies]
        return last - np.array(widths, int) + 1

    @cached_property
    def quaternion_steps(self) -> np.ndarray:
        """The steps that carry the rotation of the joints with a quaternion."""
        return self._first_steps(self.quaternion_bodies)

    @cached_property
    def free_steps(self) -> np.ndarray:
        """The steps that carry the displacement of the free joints."""
        return self._first_steps(self.free_bodies)

    @cached_property
    def free_bodies(self) -> np.ndarray:
        """The bodies whose joint has a displacement in space."""
        return self._bodies_with("position")

    @cached_property
    def position_q(self) -> np.ndarray:
        """[free joints, 3] the places of all displacements in q."""
        return self._table("position", 3)

    @cached_property
    def free_quaternion_q(self) -> np.ndarray:
        """[free joints, 4] the places of their quaternions in q."""
        return self.quaternion_q[np.isin(self.quaternion_bodies, self.free_bodies)]

    @cached_property
    def position_v(self) -> np.ndarray:
        """[free joints, 3] the places of their linear velocities in qd."""
        starts = np.array([self.v_start[i] for i in self.free_bodies], int)
        return starts[:, None] + np.arange(3)

    @cached_property
    def plain_q(self) -> np.ndarray:
        """The coordinates that are simply added to; `plain_v` are their rates."""
        return self.steps.q[self.steps.q < self.nq]

    @cached_property
    def plain_v(self) -> np.ndarray:
        """The velocity coordinates that are rates of `plain_q`."""
        return self.steps.v[self.steps.q < self.nq]
