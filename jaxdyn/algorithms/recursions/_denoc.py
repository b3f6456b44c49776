"""Dynamics by the decoupled natural orthogonal complement (DeNOC) matrices."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.algorithms.couplings import along_columns, of_tree
from jaxdyn.algorithms.recursions._factor import Eliminated, Factor, eliminate, stays
from jaxdyn.algorithms.recursions._noc import layout, natural, propagation
from jaxdyn.algorithms.steps import (
    Base,
    MovingFrame,
    PlacedStep,
    StepTerms,
    WorldStep,
    base_frame,
    external_wrenches,
    inertias,
    less_external,
    mirrored,
    move,
    rates,
    step_terms,
    world_steps,
)
from jaxdyn.model import FExt, Model, Nq, Nv, arguments
from jaxdyn.program import Laned, collect, compiled, inward, outward, spread, take
from jaxdyn.spatial import (
    ArticulatedInertia,
    RigidInertia,
    Scalar,
    Twist,
    Vec3,
    Wrench,
    cross,
)


def denoc(
    model: Model, q: Nq, qd: Nv, qdd: Nv | None, f_ext: FExt = None, base: Base = None
) -> Nv:
    r"""Joint forces of the rigid bodies alone, gravity included.

    $$\tau = N_d^T N_l^T w, \qquad w = M \dot t + \Omega M E t - w^E$$

    [Shah] Table 1: twists and their rates from module to module outward, wrenches
    inward; O(n). The modules run as lanes. Gravity is subtracted from the acceleration
    of the base.
    """
    t = model.topology

    def collect_wrench(children: Wrench, x: tuple[PlacedStep, Wrench]):
        at, w = x
        w = w + children  # w~ = w + A^T w~ of the children
        return at.step.to_parent(w), at.step.along(w)

    loads = _forward(model, q, qd, qdd, f_ext, base)
    _, tau = inward(t.lanes, collect_wrench, Wrench.zero(q.dtype), loads)
    return collect(t.lanes, tau, t.dof_steps)


def denoc_forward(
    model: Model, q: Nq, qd: Nv, tau: Nv, f_ext: FExt = None, base: Base = None
) -> tuple[Nv, Factor]:
    r"""Joint accelerations under the joint forces `tau`, and the factor of M.

    $$U D U^T \ddot q = \varphi, \qquad \varphi = \tau - N_d^T N_l^T w \;
      (\ddot q = 0)$$

    [Shah] eqs. 19 to 23 and Table 3, [Mohan] section 4, in three walks, O(n): wrenches
    w at zero joint accelerations outward, elimination inward, substitution outward. In
    the papers the second walk forms the sum of wrenches for phi and the vector eta for
    phi_hat = phi - p^T eta apart. Both are handed down by A^T, so here they travel as
    one vector. That saves a walk, and more than two digits on a chain of 1000 links,
    where the two cancel.
    """
    t = model.topology

    def inwards(
        children: tuple[ArticulatedInertia, Wrench],
        x: tuple[PlacedStep, Wrench, Scalar, Scalar],
    ):
        at, w, stay, tau = x
        M_hat, w = at.inertia.articulated() + children[0], w + children[1]
        psi, m_hat, M_bar = eliminate(M_hat, at.step, stay)
        phi_hat = tau - at.step.along(w)
        eta = w + psi * phi_hat
        handed = M_bar.shift(at.step.a), at.step.to_parent(eta)
        return handed, (Eliminated(at.step, at.r, psi, m_hat), phi_hat / m_hat)

    loads = _forward(model, q, qd, None, f_ext, base)
    forces = zip(stays(model), spread(t.lanes, rates(t, tau)), strict=True)
    rows = tuple((*x, *y) for x, y in zip(loads, forces, strict=True))
    tip = ArticulatedInertia.zero(q.dtype), Wrench.zero(q.dtype)
    _, kept = inward(t.lanes, inwards, tip, rows)
    factor = Factor(tuple(level[0] for level in kept), t)
    return factor.substitute(tuple(level[1] for level in kept)), factor


def denoc_inertia(model: Model, q: Nq) -> Float[Array, "nv nv"]:
    r"""The inertia matrix M(q), without the armature of the joints.

    $$i_{ij} = p_i^T A_{ji}^T \tilde M_j p_j, \qquad
      \tilde M_j = M_j + \sum_k A_{kj}^T \tilde M_k A_{kj}$$

    [Mohan] eqs. 28 and 29, [Shah] eqs. 13, 16 and 17: the composite masses by an inward
    walk; A_ji p_i are the blocks of N = N_l N_d. O(n²).
    """
    t = model.topology

    def compose(children: RigidInertia, x: PlacedStep):
        M = x.inertia + children
        return M.shift(x.step.a), M

    tip = RigidInertia.zero(q.dtype)
    _, kept = inward(t.lanes, compose, tip, world_steps(model, q))
    body = t.steps.body[t.dof_steps]
    at = layout(model, q)
    N = take(natural(model, at, at.origin), body)  # [j, :, i]: A_ji p_i
    M = collect(t.lanes, kept, t.steps.last[body])
    psi = M.apply(Twist.of(jnp.diagonal(N, axis1=0, axis2=2).T)).array()
    i, j = t.pairs
    entries = (N * psi[:, :, None]).sum(axis=1).ravel()
    return mirrored(t, take(entries, j * t.nv + i))


@compiled()
@of_tree(lambda at, x: (x[0], along_columns(at, x[1])))
def denoc_matrices(
    model: Model, q: Nq
) -> tuple[Float[Array, "twists twists"], Float[Array, "twists nv"]]:
    r"""The matrices N_l and N_d with $t = N_l N_d \dot q$.

    The twists t of the bodies are stacked, each [v; w] at its body origin in world
    axes. N_l is block lower triangular with A_ij below its unit diagonal, N_d block
    diagonal with the columns p_i of each joint: [Mohan] eq. 8c. For a tree, A_ij is
    zero unless body j is on the path from the base to body i. ([Shah] eq. 10 cuts the
    same product by modules instead of bodies.)
    """
    model, q = arguments(model, q=q)
    t = model.topology
    owns = t.steps.body[t.dof_steps] == np.arange(model.n)[:, None]
    at = layout(model, q)
    N_d = jnp.where(owns[:, None], natural(model, at, at.origin), 0)
    return propagation(model, at), N_d.reshape(6 * model.n, model.nv)


def _forward(
    model: Model, q: Nq, qd: Nv, qdd: Nv | None, f_ext: FExt, base: Base
) -> Laned[tuple[PlacedStep, Wrench]]:
    """[Shah] Table 1, step 1: each step with its inertia and its wrench w, laned."""
    lanes = model.topology.lanes

    def twist_rate(parent: MovingFrame, step: WorldStep, x: StepTerms):
        w0, p = parent.w, step.column(x.qd)
        dt = step.to_child(parent.rate)  # A dt0
        # (dA/dt) t0, in which the offset changes by w0 x a + p_v, and Omega p qd
        turning = cross(w0, cross(w0, step.a) + p.v + p.v)
        dt = dt + Twist(turning, cross(w0, p.w))
        if x.qdd is not None:
            dt = dt + step.column(x.qdd)  # p qdd
        return w0 + p.w, dt

    def outwards(
        parent: tuple[MovingFrame, Vec3], x: tuple[StepTerms, Array, Array | None]
    ):
        (before, r0), (terms, pi, external) = parent, x
        R, step = move(before.R, terms.local)
        w, dt = twist_rate(before, step, terms)
        if terms.bias is not None:
            dt = dt + terms.bias.rotate(R)
        M = RigidInertia.of(pi).rotate(R)
        wrench = less_external(M.wrench(w, dt), external)  # M dt + Omega M E t - w_E
        placed = PlacedStep(step, r0 + step.a, M)
        return (MovingFrame(R, w, dt), placed.r), (placed, wrench)

    external = external_wrenches(model, f_ext)
    terms = spread(lanes, (step_terms(model, q, qd, qdd), inertias(model), external))
    root = base_frame(model, q.dtype, base), Vec3.zero(q.dtype)
    return outward(lanes, outwards, root, terms)
