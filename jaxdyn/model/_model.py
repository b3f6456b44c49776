"""The `Model` pytree: a robot as static topology and array leaves."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Float

from jaxdyn.model._check import Body, Numbers, is_index, is_world
from jaxdyn.model._report import Notes
from jaxdyn.model._show import show
from jaxdyn.model.elements import (
    POSITION_LEAVES,
    RATE_LEAVES,
    AbstractForce,
    Actuators,
    Couplings,
    Loop,
    Placement,
    Relation,
    Visual,
    check_loop,
    check_relation,
    force_of,
    loop_of,
)
from jaxdyn.model.tables import Modules, Topology, coupled_places
from jaxdyn.program import is_staged, take


class Model(eqx.Module):
    """A tree of rigid bodies, each with one joint to its parent.

    Everything one may fit is an array leaf; everything that decides the structure of a
    program is in `topology`. Build it with `ModelBuilder`, `from_dict`, `from_dh`,
    `load_urdf`, `load_mjcf` or `jaxdyn.robots`: they check the data. The conventions
    stand in docs/conventions.md.

    Attributes:
        topology: names, parents and joint types, report and visuals. Only parents and
            joint types decide programs: models that differ in the others share compiled
            programs and can be stacked (`jax.tree.map`). What a compiled program
            returns, and a stack, has those of the first model.
        gravity: acceleration of free fall, in world axes.
        R, p: pose of the joint frame of each body in the body frame of its parent.
        axis, axis2: directions of the joint in its joint frame; normalised where used.
        pitch: translation per radian of helical joints, zero for others.
        mass, com, inertia: of each body, in body axes; inertia about the mass centre.
        armature: rotor inertia, the kinetic energy 1/2 armature qd² of each rate.
        damping, friction: viscous coefficient and Coulomb force of each joint.
        friction_speed: speed at which Coulomb friction has 71 % of its size; positive.
        stiffness, rest: spring of each joint and the position at which it is free.
        lower, upper: limits of q; effort, velocity: limits of tau and qd; data only.
        frame_R, frame_p: pose of each named frame in the body that carries it.
        loops: cut joints that close kinematic loops.
        forces: elements that act between bodies or in joints, such as `SpringDamper`.
        actuators: data for `jd.actuate`, empty without any; they act through tau alone.
        couplings: joints that follow others, empty without any. They have no places in
            q, qd and tau, nor in the leaves above: see `with_coupling` and `tree`.
    """

    gravity: Float[Array, "3"]
    R: Float[Array, "n 3 3"]
    p: Float[Array, "n 3"]
    axis: Float[Array, "n 3"]
    axis2: Float[Array, "n 3"]
    pitch: Float[Array, " n"]
    mass: Float[Array, " n"]
    com: Float[Array, "n 3"]
    inertia: Float[Array, "n 3 3"]
    armature: Float[Array, " nv"]
    damping: Float[Array, " nv"]
    friction: Float[Array, " nv"]
    friction_speed: Float[Array, " nv"]
    stiffness: Float[Array, " nv"]
    rest: Float[Array, " nq"]
    lower: Float[Array, " nq"]
    upper: Float[Array, " nq"]
    effort: Float[Array, " nv"]
    velocity: Float[Array, " nv"]
    frame_R: Float[Array, "frames 3 3"]
    frame_p: Float[Array, "frames 3"]
    loops: tuple[Loop, ...]
    forces: tuple[AbstractForce, ...]
    topology: Topology = eqx.field(static=True)
    actuators: Actuators | tuple[()] = ()
    couplings: Couplings | tuple[()] = ()

    def find(self, field: str, name: str | None = None) -> Any:
        """The index of a name in a field of the topology, None if it is not there.

        Args:
            field: "names" of bodies, "joint_names", "frame_names", "report" or
                "visuals".
            name: by default the whole field is returned.
        """
        if any(map(is_staged, jax.tree.leaves(self))):
            self.topology.looked_up(field, name)
        return self.topology.find(field, name)

    @property
    def name(self) -> str:
        """The name of the robot."""
        return self.topology.name

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the bodies."""
        return self.find("names")

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The names of the joints; joint i moves body i."""
        return self.find("joint_names")

    @property
    def report(self) -> Notes:
        """What a reader left out of its file, repaired or kept as data; a table."""
        return self.find("report")

    @property
    def visuals(self) -> tuple[Visual, ...]:
        """The shapes and meshes that bodies show; they have no part in the motion."""
        return self.find("visuals")

    @property
    def joints(self) -> tuple[str, ...]:
        """The joint type of each body."""
        return self.topology.joints

    @property
    def parents(self) -> tuple[int, ...]:
        """The parent of each body, -1 for the world."""
        return self.topology.parents

    @property
    def frame_names(self) -> tuple[str, ...]:
        """The names of the frames fixed to bodies, such as a tool."""
        return self.find("frame_names")

    @property
    def frame_bodies(self) -> tuple[int, ...]:
        """The body that carries each frame, -1 for the world."""
        return self.topology.frame_bodies

    @property
    def n(self) -> int:
        """The number of bodies."""
        return len(self.topology.parents)

    @property
    def nq(self) -> int:
        """The number of position coordinates."""
        return self.topology.nq

    @property
    def nv(self) -> int:
        """The number of velocity coordinates (degrees of freedom)."""
        return self.topology.nv

    @property
    def actuated(self) -> np.ndarray:
        """Which entries of tau a motor can provide: all but those of free joints."""
        free = self.topology.position_v
        return ~np.isin(np.arange(self.nv), np.append(free, free + 3))

    @property
    def modules(self) -> Modules:
        """The kinematic modules of the tree, [Shah] section 1."""
        return self.topology.modules

    @property
    def dtype(self) -> np.dtype:
        """The floating-point type of the leaves."""
        return self.mass.dtype

    def astype(self, dtype: DTypeLike) -> "Model":
        """The same model with all leaves in another floating-point type."""
        return jax.tree.map(lambda leaf: leaf.astype(dtype), self)

    @property
    def nc(self) -> int:
        """The number of constraints: rows of `loop_residual` and loop forces."""
        return sum(len(loop.rows) for loop in self.loops)

    def with_loop(
        self,
        body_a: Body | None,
        placement_a: Placement,
        body_b: Body | None,
        placement_b: Placement,
        joint: str | None = None,
        *,
        axes: Sequence[int] | None = None,
        name: str | None = None,
    ) -> "Model":
        """The same model with one more cut joint, which closes a loop.

        Args:
            body_a, body_b: the two bodies, by name or index; None, -1 or the name of
                the base for the world.
            placement_a, placement_b: frames on these bodies, in body axes: the origin,
                or a pair of rotation and origin.
            joint: what holds the two frames together: "revolute" or "cylindrical" about
                z, "prismatic" along z, "planar" with the normal z, "universal" about z
                of frame a and x of frame b, "spherical" (by default), "fixed", or
                "point" with `axes`.
            axes: the world axes along which the origins are held together, as (0, 1)
                for a mechanism that moves in the plane x, y.
            name: by default "loop" and its number.
        """

        def bodies(loop: str) -> tuple[int, int]:
            return self._side(loop, body_a), self._side(loop, body_b)

        taken = [loop.name for loop in self.loops]
        placements = placement_a, placement_b
        data = check_loop(self.names, taken, bodies, placements, joint, axes, name)
        loop = loop_of(data, self.dtype)
        return eqx.tree_at(lambda m: m.loops, self, (*self.loops, loop))

    def without_loops(self) -> "Model":
        """The same tree of bodies without its loops."""
        return eqx.tree_at(lambda m: m.loops, self, ())

    def with_coupling(
        self,
        joint: Body,
        ratios: Mapping[Any, Any] | None = None,
        *,
        offset: float = 0.0,
        polynomial: Sequence[Any] = (),
        argument: Mapping[Any, Any] | None = None,
    ) -> "Model":
        r"""The same model with a joint that follows others, as a gripper's second jaw.

        $$q_i = \text{offset} + \sum_j \text{ratios}_j\, q_j + \sum_p
          \text{polynomial}_p \Big(\sum_j \text{argument}_j\, q_j\Big)^p$$

        The joint has no place in q any more, and nv is one less: tau are the forces of
        the coordinates that are left. A joint among its own `ratios` stays where it is,
        but its place in q then is that of another coordinate, such as the angle of a
        motor: see `with_gears`.

        Args:
            joint: the joint that follows, by its name or by its body, as all joints; it
                has one degree of freedom, as those that it follows.
            ratios, argument: factors by joint.
            polynomial: up to five coefficients, of the powers 0 to 4.
        """
        return self._coupled(
            self._relation(joint, ratios, offset, polynomial, argument)
        )

    def with_gears(
        self, joints: Sequence[Body], matrix: Numbers, offset: Numbers | None = None
    ) -> "Model":
        """The same model with coordinates x of motors: joints q = matrix x + offset.

        As in a wrist whose motors turn two joints at once. The motors take the places
        of the joints, by names or bodies, in q, qd and tau. Leaves such as `damping`
        stay those of the joints.
        """
        rows, given = np.asarray(matrix, float), offset
        shift = np.zeros(len(joints)) if given is None else np.asarray(given, float)
        if rows.shape != (len(joints),) * 2 or shift.shape != (len(joints),):
            raise ValueError(
                f"matrix has shape {rows.shape} and offset {shift.shape}, expected "
                f"{(len(joints),) * 2} and {(len(joints),)} for joints {list(joints)}."
            )
        ratios = [dict(zip(joints, row.tolist(), strict=True)) for row in rows]
        given = zip(joints, ratios, shift, strict=True)
        return self._coupled(*(self._relation(*x, is_geared=True) for x in given))

    def _relation(
        self,
        joint: Body,
        ratios: Mapping[Any, Any] | None,
        offset: float = 0.0,
        polynomial: Sequence[Any] = (),
        argument: Mapping[Any, Any] | None = None,
        is_geared: bool = False,
    ) -> Relation:
        """A coupling as `_coupled` takes it, checked."""
        i = self._joint(joint)
        label = f"coupling of joint {self.joint_names[i]!r}"
        linear, inner = (
            {self._joint(j): x for j, x in (given or {}).items()}
            for given in (ratios, argument)
        )
        return check_relation(label, i, linear, offset, polynomial, inner, is_geared)

    def _coupled(self, *relations: Relation) -> "Model":
        """The same model with more couplings."""
        from jaxdyn.model._coupled import coupled  # it builds on this file

        known = self.couplings.relations() if self.couplings else []
        return coupled(self.tree, [*known, *relations])

    @property
    def tree(self) -> "Model":
        """The same model with every joint in q, also those that follow others."""
        x = self.couplings
        if not x:
            return self
        at = coupled_places(self.topology, x.tree, x.joints, x.sources)

        def whole(name: str, index: np.ndarray) -> Array:
            both = [on_host(getattr(y, name)) for y in (self, x)]
            if any(isinstance(y, Tracer) for y in both):
                return take(jnp.concatenate(both), index)
            return jnp.asarray(np.concatenate(both)[index])

        leaves = {name: whole(name, at.own_v) for name in RATE_LEAVES}
        leaves |= {name: whole(name, at.own_q) for name in POSITION_LEAVES}
        return replace(self, topology=x.tree, couplings=(), **leaves)

    def replace(self, **leaves: ArrayLike) -> "Model":
        """The same model with other values for some leaves, as replace(mass=m).

        Args:
            leaves: by name; arrays of the shapes of the leaves, or numbers for all
                their entries. With more axes in front the model is a batch of models,
                see `jd.axes`.
        """
        new: dict[str, Array] = {}
        for name, given in leaves.items():
            old = getattr(self, name, None) if name in self.leaf_names() else None
            if old is None:
                close = difflib.get_close_matches(name, self.leaf_names(), 1)
                hint = f", did you mean {close[0]!r}" if close else ""
                raise ValueError(
                    f"a model has no leaf {name!r}{hint}: expected one of "
                    f"{', '.join(self.leaf_names())}."
                )
            value = jnp.asarray(given).astype(self.dtype)
            if value.ndim == 0:
                value = jnp.broadcast_to(value, old.shape)
            if value.shape[value.ndim - old.ndim :] != old.shape:
                raise ValueError(
                    f"{name} has shape {value.shape}, expected {old.shape} for model "
                    f"{self.name!r}, one number, or {('models', *old.shape)}."
                )
            new[name] = value
        # not by `dataclasses.replace`, which builds one model and no batch
        return eqx.tree_at(
            lambda m: [getattr(m, x) for x in new], self, [*new.values()]
        )

    @staticmethod
    def leaf_names() -> tuple[str, ...]:
        """The names of the leaves that are arrays."""
        others = ("loops", "forces", "topology", "actuators", "couplings")
        return tuple(x.name for x in fields(Model) if x.name not in others)

    def with_force(self, element: AbstractForce) -> "Model":
        """The same model with one more force element, such as a `SpringDamper`.

        Its leaves take the floating-point type of the model.
        """
        forces = (*self.forces, force_of(element, self))
        return eqx.tree_at(lambda m: m.forces, self, forces)

    def _joint(self, joint: Body) -> int:
        """The body of a joint given by its name or by its body."""
        found = self.find("joint_names", joint) if isinstance(joint, str) else None
        return self.body(joint) if found is None else found

    def _side(self, loop: str, body: Body | None) -> int:
        if body is None or is_world(body, self.find("base")):
            return -1
        try:
            return self.body(body)
        except ValueError as error:
            raise ValueError(f"{loop}: {error}") from None

    def body(self, body: Body) -> int:
        """The index of a body given by name or index."""
        found = self.find("names", body) if isinstance(body, str) else None
        if found is not None:
            return found
        if is_index(body) and 0 <= body < self.n:
            return int(body)
        raise ValueError(
            f"model {self.name!r} has no body {body!r}, expected an index from 0 to "
            f"{self.n - 1} or one of: {', '.join(self.names)}."
        )

    def q_slice(self, body: Body) -> slice:
        """Where the position coordinates of a body's joint stand in q."""
        i = self.body(body)
        return slice(self.topology.q_start[i], self.topology.q_start[i + 1])

    def v_slice(self, body: Body) -> slice:
        """Where the velocity coordinates of a body's joint stand in qd, qdd and tau."""
        i = self.body(body)
        return slice(self.topology.v_start[i], self.topology.v_start[i + 1])

    def __repr__(self) -> str:
        shown = ("mass", "gravity", "axis", "axis2", "pitch")
        leaves = {name: getattr(self, name) for name in shown}
        # a model of tracers, a batch, or a filter with its structure has no values
        is_concrete = all(
            eqx.is_array(x) and not isinstance(x, Tracer) for x in leaves.values()
        )
        if not is_concrete or self.mass.shape != (self.n,):
            return show(self.topology, None, self.loops, self.couplings)
        values = {name: np.asarray(x) for name, x in leaves.items()}
        return show(self.topology, values, self.loops, self.couplings)


def on_host(leaf: Array) -> Array | np.ndarray:
    """The leaf as an array of NumPy, if it can be: that compiles nothing."""
    return leaf if isinstance(leaf, Tracer) else np.asarray(leaf)
