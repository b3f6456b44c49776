"""Torques that reach a goal or follow a path at the least cost."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float
from tqdm import tqdm

from jaxdyn.algorithms.kinematics import difference
from jaxdyn.model import Model, arguments
from jaxdyn.optimize._costs import CostFunction, cost_of
from jaxdyn.optimize._descent import LBFGS_LONG, check_options, descend
from jaxdyn.optimize._segments import Solution, in_pieces
from jaxdyn.optimize._shooting import SingleShooting, joint_forces
from jaxdyn.simulate import rollout


class OptimizedTorques(eqx.Module):
    """What `optimize_torques` found.

    Attributes:
        ts: the times 0, dt, 2 dt, ...
        taus: the joint forces of each step.
        q, qd: the motion under them, rolled out in one piece.
        cost: what that motion costs.
        costs: what was minimised, at the start and after each step: the cost, or the
            augmented Lagrangian of several segments.
        gradient_norms: of its gradient by all unknowns.
        steps: how many steps the optimiser took.
        defect: the largest number by which segments miss each other; 0 for one.
        gap: the largest distance of the segments from the motion in one piece, in any
            joint and rate; 0 for one.
        is_converged: whether there was nothing more to gain, with all segments met.
        message: how it ended, in words.
    """

    ts: Float[Array, " times"]
    taus: Float[Array, "steps nv"]
    q: Float[Array, "times nq"]
    qd: Float[Array, "times nv"]
    cost: Float[Array, ""]
    costs: Float[Array, " evaluations"]
    gradient_norms: Float[Array, " evaluations"]
    steps: int
    defect: float
    gap: float
    is_converged: bool
    message: str = eqx.field(static=True)


def optimize_torques(
    model: Model,
    q0: Float[Array, " nq"],
    qd0: Float[Array, " nv"],
    taus0: Float[Array, "steps joints"],
    dt: float,
    cost: CostFunction,
    *,
    integrator: str = "implicit",
    optimizer: optax.GradientTransformation | None = None,
    steps: int = 200,
    segments: int = 1,
    states0: tuple[Any, Any] | None = None,
    limits: Float[Array, "..."] | float | None = None,
    gradient_tolerance: float = 1e-6,
    cost_tolerance: float = 1e-7,
    defect_tolerance: float | None = None,
    compiler_options: dict[str, Any] | None = None,
    progress: bool = False,
    throw: bool = True,
) -> OptimizedTorques:
    """The joint forces of each step under which a motion costs least.

    A descent from `taus0` with gradients by reverse mode through `rollout`. It finds a
    minimum near the start, which need not be the least of all. The optimiser counts
    forces in those that would move a joint by a radian or metre within a segment.

    With several segments (multiple shooting) the states between them are unknowns too,
    and the motion in each segment starts from there; that segments meet is a constraint
    of an augmented Lagrangian, in at most 12 rounds of `steps` steps. It is for long
    motions, whose end depends strongly on the first torques. The torques found are
    rolled out once in a single piece: `cost`, `q` and `qd` are those of that motion,
    and `gap` says how far the segments were from it. They are a start for one more
    search with one segment.

    Args:
        taus0: the first torques; as many rows as there are steps.
        dt: the length of a step.
        cost: function (q, qd, tau) of all rows of a motion, such as a sum of `reach`,
            `track`, `effort` and functions of your own.
        integrator: as in `rollout`.
        optimizer: any of optax; by default L-BFGS, of which a step is one evaluation of
            the cost and its gradient.
        steps: of the optimiser, at most.
        segments: into how many equal pieces the motion is cut; 1 is single shooting.
            Models with loops take one.
        states0: (q, qd) in which segments after the first start, as a first guess; by
            default those of the motion under `taus0`.
        limits: of the joint forces, one number or nv of them, zero for a joint that is
            not driven; by default `model.effort`. Forces never exceed them, and
            approach them from inside.
        gradient_tolerance: the descent ends where the norm of the gradient is that
            fraction of the first one.
        cost_tolerance: it ends where the least cost changed by less than this fraction
            of itself in 50 steps.
        defect_tolerance: the largest defect of segments that met; 1e-6 (float32: 1e-3)
            by default.
        compiler_options: as in `jax.jit`, for the program of the descent: compilation
            is most of the time of a short one, and less optimisation compiles sooner.
        progress: whether a bar shows the steps.
        throw: whether a cost that is not finite raises; otherwise `message` says so.

    Raises:
        ValueError: wrong shapes, unknown options, torques outside of the limits, a
            first state that opens a loop.
        RuntimeError: the cost or its gradient is not finite.
    """
    model, q0, qd0, taus = arguments(model, q0=q0, qd0=qd0, taus=taus0)
    _check_segments(model, segments, len(taus), states0)
    options: dict[str, Any]
    options = dict(gradient_tolerance=gradient_tolerance, cost_tolerance=cost_tolerance)
    if defect_tolerance is None:
        defect_tolerance = 1e-6 if q0.dtype == jnp.float64 else 1e-3
    check_options(steps, dt=dt, defect_tolerance=defect_tolerance, **options)
    options["compiler_options"] = compiler_options
    optimizer = LBFGS_LONG if optimizer is None else optimizer
    h = jnp.asarray(dt, q0.dtype)
    q, qd = rollout(model, q0, qd0, taus, h, integrator=integrator)
    forces = joint_forces(model, limits, q0, taus, h * (len(taus) // segments))
    whole = SingleShooting(model, q0, qd0, h, forces, cost, integrator)
    u = forces.coordinates(taus)
    with tqdm(total=steps, disable=not progress, desc="torques") as bar:
        if segments == 1:
            found = descend(whole, u, optimizer, steps, **options, bar=bar)
            found = Solution(found.x, [found])
        else:
            found = in_pieces(
                *(whole, u, _nodes(model, (q, qd), segments, states0)),
                *(cost_of(cost, q, qd, taus), optimizer, steps),
                *(defect_tolerance, options, bar),
            )
    if throw and not found.is_finite:
        raise RuntimeError(f"{found.message} throw=False returns what was found.")
    return _result(whole, found)


def _result(whole: SingleShooting, found: Solution) -> OptimizedTorques:
    """What was found, rolled out in one piece."""
    taus = whole.forces.at(found.u)
    q, qd = rollout(
        *(whole.model, whole.q0, whole.qd0, taus, whole.dt), integrator=whole.integrator
    )
    gap = 0.0
    if found.motion is not None:
        apart = jax.vmap(lambda a, b: difference(whole.model, a, b))
        away = apart(found.motion[0], q), found.motion[1] - qd
        gap = float(max(jnp.abs(x).max() for x in away))
    return OptimizedTorques(
        ts=whole.dt * jnp.arange(len(q), dtype=q.dtype),
        taus=taus,
        q=q,
        qd=qd,
        cost=cost_of(whole.cost, q, qd, taus),
        costs=jnp.concatenate([f.costs for f in found.descents]),
        gradient_norms=jnp.concatenate([f.gradient_norms for f in found.descents]),
        steps=sum(f.steps for f in found.descents),
        defect=found.defect,
        gap=gap,
        is_converged=found.is_converged,
        message=found.message,
    )


def _nodes(
    model: Model, first: tuple[Any, Any], segments: int, given: Any
) -> tuple[Any, Any]:
    """The states in which segments after the first start."""
    q, qd = first
    if given is None:
        every = (len(q) - 1) // segments
        return q[every:-1:every], qd[every:-1:every]
    shapes = (segments - 1, model.nq), (segments - 1, model.nv)
    nodes = tuple(jnp.asarray(x) for x in given)
    if tuple(x.shape for x in nodes) != shapes:
        raise ValueError(
            f"states0 has the shapes {tuple(x.shape for x in nodes)}, expected "
            f"{shapes}: q and qd in which the segments after the first start."
        )
    return nodes[0].astype(q.dtype), nodes[1].astype(q.dtype)


def _check_segments(model: Model, segments: int, steps: int, states0: Any) -> None:
    if segments < 1 or steps % segments:
        raise ValueError(
            f"segments is {segments} for {steps} steps, expected a number that divides "
            "them."
        )
    if segments > 1 and model.loops:
        raise ValueError(
            f"segments is {segments} for model {model.name!r} with loops, expected 1: "
            "states between segments would open them."
        )
    if segments == 1 and states0 is not None:
        raise ValueError(
            "states0 is given for segments = 1, expected None: a motion in one piece "
            "has no states between segments."
        )
