"""Straight paths of a tool."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxdyn.algorithms.kinematics import moving_place
from jaxdyn.model import Model, Nq
from jaxdyn.motion._inputs import check_rotation, inputs, positive, reach, tolerance_of
from jaxdyn.motion._inverse_kinematics import Frame, inverse_kinematics
from jaxdyn.motion._line import Line, between, sampled
from jaxdyn.motion._motion import JointMotion, Time, resting, tangent_jet, time
from jaxdyn.motion._point_to_point import cycloid
from jaxdyn.program import alone

LAWS: dict[str, Callable[[Any], Any]] = {
    "constant_speed": lambda u: u,
    "cycloidal": cycloid,
    "quintic": lambda u: u**3 * (10 - 15 * u + 6 * u**2),
}


class StraightLine(eqx.Module):
    """The straight path of a frame; see `straight_line`.

    Attributes:
        line: the path as a function of s, from 0 to 1.
        nodes: configurations at equal distances along the path.
        guesses: polynomials of the tangent step from each node to the next.
        error: the largest distance from the path and angle from the attitude, at the
            nodes and half way between, in metres and radians.
        singular_value: the smallest singular value of the Jacobian at the nodes, those
            that are zero all along the path not counted.
        converged: whether the frame can follow the path, within the limits of the
            joints and away from singularities.
    """

    line: Line
    duration: Float[Array, ""]
    nodes: Float[Array, "nodes nq"]
    guesses: Float[Array, "segments 6 nv"]
    error: Float[Array, "2"]
    singular_value: Float[Array, ""]
    converged: Bool[Array, ""]
    law: str = eqx.field(static=True)

    def __call__(self, t: Time) -> JointMotion:
        """Position, velocity and acceleration at time t; NaN where out of reach."""
        return _at_time(self, time(self, t))


def straight_line(
    model: Model,
    frame: Frame,
    start: Float[Array, "3"],
    end: Float[Array, "3"],
    duration: Time,
    *,
    attitude: Float[Array, "3 3"] | None,
    q0: Nq,
    law: str = "cycloidal",
    samples: int = 100,
    throw: bool = True,
) -> StraightLine:
    r"""The motion in which a frame goes straight from one point to another.

    $$p = p_0 + s (p_1 - p_0), \quad
      \dot q = J^+ \begin{pmatrix} \dot p \\ 0 \end{pmatrix}, \quad
      \ddot q = \frac{d}{dt} \dot q \;
      \bigl(= J^{-1} (a - \dot J \dot q) \text{ if J is square}\bigr)$$

    Positions are solutions of the inverse kinematics to rounding at any time, in the
    branch that is found from q0: Newton's method from a guess, which is a polynomial
    between configurations that are stored. [Mata] section 5.2 has the constant speed.
    A redundant arm takes the least rates; its positions are then their integral, with
    an error of fourth order in the distance of the samples.

    Args:
        frame: name of a frame, or name or index of a body.
        start, end: of the frame's origin, in the world.
        attitude: the constant rotation of the frame, or None if that is free.
        q0: where to look for the configuration at the start.
        law: how s goes from 0 to 1: "cycloidal" or "quintic", at rest at both ends, or
            "constant_speed", with rates that jump there.
        samples: how many segments the path is cut into.
        throw: whether a path that cannot be followed raises; otherwise it is
            `StraightLine.converged`, and the motion is NaN where it is out of reach.

    Raises:
        ValueError: no such frame or law, wrong shapes, no rotation, no duration.
        RuntimeError: the path is out of reach or beyond the limits of the joints,
            meets a singularity, or comes so near that it needs more samples.
    """
    place = moving_place(model, frame)
    if law not in LAWS:
        raise ValueError(f"law is {law!r}, expected one of: {', '.join(LAWS)}.")
    if samples < 1:
        raise ValueError(f"samples is {samples}, expected a positive number.")
    given = dict(start=(start, (3,)), end=(end, (3,)), attitude=(attitude, (3, 3)))
    given["q0"] = (q0, (model.nq,))
    model, start, end, attitude, q0 = inputs(model, **given)
    if attitude is not None:
        check_rotation("attitude", attitude)
    T = positive("duration", duration, q0.dtype)
    first = inverse_kinematics(model, q0, frame, start, attitude, throw=False).q
    line = Line(model, start, end, attitude, place)
    motion = StraightLine(line, T, *sampled(line, first, samples), law=law)
    if not throw:
        return motion
    return reach(
        motion,
        motion.converged,
        f"straight_line: {frame!r} of model {model.name!r} cannot follow the path. It "
        "stays up to {:.3g} m and {:.3g} rad away, with singular values of the "
        "Jacobian down to {:.3g}: the path is out of reach, beyond the limits of the "
        "joints, or meets a singularity; start from another q0, or take more samples "
        "(throw=False returns what was found).",
        *motion.error,
        motion.singular_value,
    )


@alone()
def _at_time(motion: StraightLine, t: Any) -> JointMotion:
    line = motion.line

    def inside(t: Any) -> JointMotion:
        law = LAWS[motion.law]
        s, ds, dds = tangent_jet(lambda h: law((t + h) / motion.duration), t.dtype)
        at = line.rates(between(line, motion.nodes, motion.guesses, s))
        error = line.goal(s).error(line.model, at.q)
        is_there = (error <= tolerance_of(t.dtype)).all()
        found = JointMotion(at.q, at.qd * ds, at.qdd * ds**2 + at.qd * dds)
        return jax.tree.map(lambda x: jnp.where(is_there, x, jnp.nan), found)

    return resting(inside, t, motion.duration)
