"""Small deviations from a motion, and the steps that they allow."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.algorithms.forces import actuate
from jaxdyn.algorithms.kinematics import difference, integrate
from jaxdyn.algorithms.recursions import passive_forces
from jaxdyn.algorithms.steps import Base
from jaxdyn.dynamics import mass_matrix, tangent_dynamics
from jaxdyn.model import FExt, Model, Nq, Nv, arguments, reduced, whole
from jaxdyn.program import alone, compiled
from jaxdyn.simulate._rollout import Length, step


def linearize(
    model: Model,
    q: Nq,
    qd: Nv,
    tau: Nv,
    *,
    f_ext: FExt = None,
    base: Base = None,
    dt: Length | None = None,
    integrator: str = "implicit",
) -> tuple[Float[Array, "states states"], Float[Array, "states nv"]]:
    r"""The matrices A and B of the tangent dynamics, of a step if `dt` is given.

    $$\dot x = A x + B\, \delta\tau, \qquad \text{or} \qquad
      x_{k+1} = A x_k + B\, \delta\tau_k$$

    x = (d, dqd) are small deviations from the motion through the given state: d a
    tangent step of q as in `integrate`, dqd a change of qd. The external wrenches keep
    their components in world axes.

    Args:
        f_ext, base: as in `forward_dynamics`.
        dt, integrator: of `step`, for discrete time.
    """
    if dt is None:
        return tangent_dynamics(model, q, qd, tau, f_ext=f_ext, base=base)
    return _tangent_step(model, q, qd, tau, dt, f_ext, base, integrator)


@compiled("integrator")
def _tangent_step(
    model: Model,
    q: Nq,
    qd: Nv,
    tau: Nv,
    dt: Length,
    f_ext: FExt,
    base: Base,
    integrator: str,
) -> tuple[Float[Array, "states states"], Float[Array, "states nv"]]:
    given = arguments(model, q=q, qd=qd, tau=tau, f_ext=f_ext, base=base)
    model, q, qd, tau, f_ext, base = given

    def after(x: Array) -> tuple[Nq, Nv]:
        at, rate, drive = jnp.split(x, 3)
        moved = integrate(model, q, at), qd + rate, tau + drive
        return step(model, *moved, dt, f_ext=f_ext, base=base, integrator=integrator)

    still = jnp.zeros(3 * model.nv, q.dtype)
    end, _ = after(still)

    def deviation(x: Array) -> Array:
        place, rate = after(x)
        return jnp.concatenate([difference(model, end, place), rate])

    slopes = jax.jacfwd(deviation)(still)
    return slopes[:, : 2 * model.nv], slopes[:, 2 * model.nv :]


@alone()
def stable_step(
    model: Model, q: Nq, ctrl: Float[Array, " controls"] | None = None
) -> Float[Array, ""]:
    r"""An estimate of the longest stable step of "semi_implicit_euler" near rest.

    $$h = \frac{4}{\delta + \sqrt{\delta^2 + 4 \omega^2}}, \qquad
      \delta = \lambda_{\max}(M^{-1} D), \quad \omega^2 = \lambda_{\max}(M^{-1} K)$$

    An oscillation with damping rate delta and frequency omega neither grows nor
    reverses its decay up to this step. D and K are the slopes of springs, damping,
    friction and force elements at rest; loops are cut. Infinite where nothing resists
    or pulls back. Steps of "implicit" need none of this.

    Args:
        ctrl: controls; then the gains of the model's actuators count too.
    """
    model, q, ctrl = arguments(model, q=q, ctrl=ctrl)

    def forces(x: Array) -> Nv:
        d, rate = jnp.split(x, 2)
        at = integrate(model, q, d)
        tree, joints, rates, _ = whole(model, at, rate)
        total = reduced(model, at, passive_forces(tree, joints, rates))
        return total if ctrl is None else total - actuate(model, at, rate, ctrl)

    slopes = jax.jacfwd(forces)(jnp.zeros(2 * model.nv, q.dtype))
    L = jnp.linalg.cholesky(mass_matrix(model, q))

    def largest(A: Array) -> Array:
        half = jax.scipy.linalg.solve_triangular(L, (A + A.T) / 2, lower=True)
        scaled = jax.scipy.linalg.solve_triangular(L, half.T, lower=True)
        return jnp.linalg.eigvalsh(scaled).max(initial=0)

    square, decay = largest(slopes[:, : model.nv]), largest(slopes[:, model.nv :])
    return 4 / (decay + jnp.sqrt(decay**2 + 4 * square))
