"""Motions that tell as much as possible about the parameters of a robot."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from jaxdyn.algorithms.recursions import dynamic_parameters
from jaxdyn.identify._rows import check_counts
from jaxdyn.identify.excitation import _problem as search
from jaxdyn.identify.excitation._aim import Criterion
from jaxdyn.identify.excitation._plan import Form, Shape, most_used, sampled
from jaxdyn.identify.excitation._problem import DRAWN, Problem, pick, problem_of
from jaxdyn.identify.linear import FREE
from jaxdyn.io import Log
from jaxdyn.model import Model
from jaxdyn.motion import Fourier, Spline

Numbers = Array | np.ndarray | Sequence[float | int] | float | int


class Excitation(eqx.Module):
    """A motion from rest to rest and what it tells about base parameters.

    Attributes:
        log: the samples, with the forces of the model.
        names: the base parameters, by what represents them.
        information: the inverse of the covariance of their least-squares estimate.
        std: their standard deviations, in their own units.
        scale: the changes of base parameters that change the joint forces of random
            motions within the limits by as much as the noise, in the mean square.
        condition: of the regressor of the samples, in units of `noise` and `scale`.
        used: of position, velocity and effort the largest part of its limit for each
            coordinate, at four times as many times as there are samples.
        before, after: the criterion of the random motion it came from, and its own.
        history: the criterion at each step.
    """

    motion: Fourier | Spline
    log: Log
    information: Float[np.ndarray, "base base"]
    std: Float[np.ndarray, " base"]
    scale: Float[np.ndarray, " base"]
    condition: float
    used: dict[str, np.ndarray]
    before: float
    after: float
    history: Float[np.ndarray, " steps"]
    names: tuple[str, ...] = eqx.field(static=True)
    criterion: Criterion = eqx.field(static=True)

    @property
    def scaled_std(self) -> Float[np.ndarray, " base"]:
        """The standard deviations in units of `scale`."""
        return self.std / self.scale

    @property
    def violation(self) -> dict[str, float]:
        """By which part each limit is exceeded at most: 0."""
        return {k: max(float(x.max(initial=0)) - 1, 0.0) for k, x in self.used.items()}

    @property
    def result(self) -> str:
        """What came out, in words."""
        worst = int(np.argmax(self.scaled_std))
        most = ", ".join(f"{100 * x.max():.0f} % of {k}" for k, x in self.used.items())
        return (
            f"{type(self.motion).__name__} motion of {float(self.motion.duration):g} s "
            f"with {len(self.log.ts)} samples for {len(self.names)} base parameters: "
            f"the largest scaled standard deviation is {self.scaled_std[worst]:.3g}, "
            f"of {self.names[worst]} ({self.std[worst]:.3g} in its unit); condition "
            f"number {self.condition:.3g}; {self.criterion} from {self.before:.3f} to "
            f"{self.after:.3f} in {len(self.history)} steps; limits kept, used at most "
            f"{most}."
        )


def excite(
    model: Model,
    *,
    duration: float,
    parameters: str | Sequence[str] = FREE,
    harmonics: int = 5,
    form: Form = "fourier",
    criterion: Criterion = "worst",
    lower: Numbers | None = None,
    upper: Numbers | None = None,
    velocity: Numbers | None = None,
    effort: Numbers | None = None,
    noise: Numbers | None = None,
    samples: int = 150,
    steps: int = 300,
    optimizer: optax.GradientTransformation | None = None,
    starts: int = 4,
    key: PRNGKeyArray | None = None,
    progress: bool = False,
) -> Excitation:
    r"""The motion from rest to rest from whose log the parameters are known best.

    With the regressors $Y_t$ of the base parameters at the samples and the noise
    $\Sigma$ of the joint forces, least squares has the covariance $C = M^{-1}$,

    $$M = \sum_t Y_t^T \Sigma^{-1} Y_t.$$

    Made small is, in units of `Excitation.scale`, the largest standard deviation
    (criterion "worst", as a mean of their eighth powers), the volume of the ellipsoid
    of errors ("log_det") or the ratio of its axes ("condition"). The best of some
    random motions are improved by the gradient, with penalties beyond the limits; in
    the end each is scaled about its centre to keep them, and the best is returned. It
    is never worse than the random motion from which it came.

    Args:
        duration: of the motion, in seconds.
        parameters: names or patterns of the free parameters, as in `base_parameters`.
        harmonics: of the Fourier series; a spline has twice as many knots between ends.
        form: "fourier" or, for joints without quaternions, "spline".
        lower, upper, velocity, effort: limits of q, qd and tau, by default those of the
            model; forces are those of the model as it is.
        noise: standard deviation of measured joint forces, one number or one for each;
            by default 1 % of the effort.
        samples: number of measurements, at equal distances of time.
        steps: of the optimizer, by default Adam with a rate that falls to zero.
        starts: how many motions are improved.
        key: of the random motions; the same key gives the same result.
        progress: whether to show a bar.

    Raises:
        ValueError: a limit is missing, infinite, of the wrong shape or leaves no room;
            the model has loops; a number is not positive; an unknown form or criterion;
            no random motion keeps the limits.
    """
    check_counts(steps=steps, starts=starts)
    options: dict[str, Any] = dict(parameters=parameters, harmonics=harmonics)
    options |= dict(form=form, criterion=criterion, noise=noise, samples=samples)
    options |= dict(lower=lower, upper=upper, velocity=velocity, effort=effort)
    optimizer = search.adam(steps) if optimizer is None else optimizer
    with jax.enable_x64(True):
        problem = problem_of(model, duration, **options)
        key = jax.random.key(0) if key is None else key
        count = max(DRAWN, starts)
        shapes = search.random_shapes(problem.plan, key, samples, True, count)
        before = problem.values(shapes)
        order = np.argsort(before)[:starts]
        chosen = pick(shapes, order)
        found, history = search.improved(problem, chosen, optimizer, steps, progress)
        found, after = problem.feasible(found, chosen, before[order])
        best = int(np.argmin(after))
        course = float(before[order[best]]), float(after[best]), history[:, best]
        return _judged(problem, model, pick(found, best), *course)


def random_excitation(
    model: Model,
    *,
    duration: float,
    each_joint: bool = False,
    key: PRNGKeyArray | None = None,
    **options: Any,
) -> Excitation:
    """A random motion from rest to rest as large as the limits allow, for comparison.

    The centre is uniform in the middle half of the range and coefficients are normal,
    times the range; all are multiplied by one factor until a limit is touched.

    Args:
        each_joint: whether each joint is first brought to the limits of its own range
            and rate by a factor of its own, as the starts of `excite` are. Such a
            motion uses the limits much better.
        options: parameters, harmonics, form, criterion, lower, upper, velocity, effort,
            noise and samples, as in `excite`.

    What is raised is that of `excite`; `scale` is the same for the same arguments,
    whatever the key.
    """
    with jax.enable_x64(True):
        problem = problem_of(model, duration, **options)
        key = jax.random.key(0) if key is None else key
        given = problem.plan, key, problem.samples, each_joint
        shapes = search.random_shapes(*given, DRAWN)
        value = float(problem.values(shapes)[0])
        return _judged(problem, model, pick(shapes, 0), value, value, np.zeros(0))


def _judged(
    problem: Problem,
    model: Model,
    shape: Shape,
    before: float,
    after: float,
    history: np.ndarray,
) -> Excitation:
    """What the motion tells, by NumPy."""
    plan, aim = problem.plan, problem.aim
    one = plan, pick(shape, None), problem.samples
    m = jax.tree.map(lambda x: np.asarray(x[0]), sampled(*one))
    Y = search.regressors(*one)[0]
    scale = np.asarray(aim.scale)
    A = Y[..., aim.columns] / np.asarray(aim.noise)[:, None] * scale
    _, s, Vt = np.linalg.svd(A.reshape(-1, len(scale)), full_matrices=False)
    std = np.sqrt(((Vt.T / s) ** 2).sum(axis=1)) * scale
    motion: Any = plan.motion(shape)
    ts = np.linspace(0, plan.duration, problem.samples)
    tau = Y @ np.asarray(dynamic_parameters(plan.model))
    return Excitation(
        motion=jax.tree.map(lambda x: x.astype(model.dtype), motion),
        log=Log(ts, m.q, m.qd, m.qdd, tau),
        information=(Vt.T * s**2) @ Vt / np.outer(scale, scale),
        std=std,
        scale=scale,
        condition=float(s[0] / s[-1]),
        used=jax.tree.map(np.asarray, most_used(plan, shape, problem.samples)),
        before=before,
        after=after,
        history=history,
        names=problem.names,
        criterion=aim.criterion,
    )
