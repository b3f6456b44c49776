"""Dynamics by the equations of Gibbs and Appell."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.algorithms.steps import (
    Base,
    MovingFrame,
    PlacedStep,
    StepTerms,
    WorldStep,
    at_last_steps,
    base_frame,
    external_wrenches,
    less_external,
    mirrored,
    move,
    pairs,
    step_frames,
    step_terms,
    world_steps,
)
from jaxdyn.model import FExt, Model, Nq, Nv
from jaxdyn.program import collect, inward, outward, spread, take
from jaxdyn.spatial import (
    Mat3,
    Scalar,
    Sym3,
    Twist,
    Vec3,
    Wrench,
    cross,
    cross_columns,
    dot,
    similarity,
    skew,
    skew_square,
    symmetric,
)


def gibbs_appell(
    model: Model, q: Nq, qd: Nv, qdd: Nv | None, f_ext: FExt = None, base: Base = None
) -> Nv:
    r"""Joint forces of the rigid bodies alone, gravity included.

    $$\tau_j = \frac{\partial G}{\partial \ddot q_j}, \qquad
      \tilde t = \Omega J - (\Omega J)^T, \quad \Omega = \tilde{\dot\omega} +
      \tilde\omega^2, \quad J = \tfrac12 \mathrm{tr}(I) 1 - I$$

    [Mata] section 4.1, eqs. 9 to 16, O(n), with Euler's tensor J and the angular
    acceleration tensor Omega; all vectors in world axes, every joint type. Gravity is
    an upward acceleration of the base.
    """
    t = model.topology

    def motion(parent: tuple[MovingFrame, Mat3], x: StepTerms):  # step 1
        (before, Omega0), w0 = parent, parent[0].w
        R, step = move(before.R, x.local)
        p = step.column(x.qd)
        ds = before.rate.v + Omega0 @ step.a + cross(w0, p.v + p.v)
        rate = Twist(ds, before.rate.w + cross(w0, p.w))
        if x.qdd is not None:
            rate = rate + step.column(x.qdd)
        if x.bias is not None:
            rate = rate + x.bias.rotate(R)
        w = w0 + p.w
        return (MovingFrame(R, w, rate), angular_acceleration(w, rate.w)), step

    def outwards(  # steps 1 and 2
        parent: tuple[MovingFrame, Mat3], x: tuple[StepTerms, Array, Array | None]
    ):
        terms, body, external = x
        own, step = motion(parent, terms)
        at, Omega = own
        r = at.R @ Vec3.of(body[1:4])
        f = (at.rate.v + Omega @ r) * body[0]  # eq. 9
        Omega_J = Omega @ similarity(at.R, Sym3(*body[4:])).mat()
        chi = cross(r, f) + twice_skew_part(Omega_J)  # eq. 10, first terms of eq. 15
        return own, (step, less_external(Wrench(f, chi), external))

    def inwards(children: Wrench, x: tuple[WorldStep, Wrench]):  # step 3: eqs. 14 to 16
        step, wrench = x
        wrench = wrench + children
        return step.to_parent(wrench), step.along(wrench)

    external = external_wrenches(model, f_ext)
    terms = step_terms(model, q, qd, qdd), euler_tensors(model), external
    base_at = base_frame(model, q.dtype, base)
    root = base_at, angular_acceleration(base_at.w, base_at.rate.w)
    loads = outward(t.lanes, outwards, root, spread(t.lanes, terms))
    _, tau = inward(t.lanes, inwards, Wrench.zero(q.dtype), loads)
    return collect(t.lanes, tau, t.dof_steps)


def gibbs_appell_inertia(model: Model, q: Nq) -> Float[Array, "nv nv"]:
    r"""The inertia matrix M(q), without the armature of the joints.

    $$D_{jk} = \frac{\partial^2 G}{\partial \ddot q_j \partial \ddot q_k}
      = z_k^T (\Psi_j - \tilde s_{kj} \tilde\phi_j) z_j$$

    [Mata] section 4.2, O(n²): composite mass M, first moment phi and inertia tensor Psi
    about each link origin by an inward walk (steps 1, 4, 5), then all entries (steps 6
    and 7). The formula is that of turning joints; a sliding joint j puts M_j z_j in
    place of z_j x phi_j and phi_j x z_j in place of Psi_j z_j.
    """
    t = model.topology

    def hand(M: Scalar, phi: Vec3, Psi: Sym3, s: Vec3):  # steps 4 and 5
        s_phi = cross_columns(s, skew(phi))
        return M, phi + s * M, Psi - symmetric(s_phi) + skew_square(s, M)

    def compose(children: tuple[Scalar, Vec3, Sym3], x: PlacedStep):
        (M, phi, Psi), body, step = children, x.inertia, x.step
        M, phi, Psi = body.m + M, body.h + phi, body.I + Psi
        f = cross(step.e, phi) * step.turn + step.e * (M * step.slide)
        n = (Psi @ step.e) * step.turn + cross(phi, step.e) * step.slide
        return hand(M, phi, Psi, step.a), (step.column(1), x.r, Wrench(f, n))

    tip = jnp.zeros((), q.dtype), Vec3.zero(q.dtype), Sym3.zero(q.dtype)
    _, kept = inward(t.lanes, compose, tip, world_steps(model, q))
    return mirrored(t, pairs(t, *collect(t.lanes, kept, t.dof_steps)))


def euler_tensors(model: Model) -> Float[Array, "steps 10"]:
    """Mass, centre of mass and Euler's tensor J about it, [Mata] eq. 11, by step."""
    Q = Mat3.of(take(step_frames(model), model.topology.steps.last))
    I = Sym3.of(model.inertia)
    half = 0.5 * (I.xx + I.yy + I.zz)
    J = similarity(Q.T, Sym3.diagonal(half) - I)
    rows = model.mass, Q.T @ Vec3.of(model.com), J
    return at_last_steps(model, jnp.stack(jax.tree.leaves(rows), axis=-1))


def angular_acceleration(w: Vec3, dw: Vec3) -> Mat3:
    """The tensor Omega = skew(dw) + skew(w)², [Mata] eq. 12."""
    return skew(dw) - skew_square(w, 1).mat()


def twice_skew_part(m: Mat3) -> Vec3:
    """The vector t with skew(t) = m - mᵀ."""
    return Vec3(m.y.z - m.z.y, m.z.x - m.x.z, m.x.y - m.y.x)


def gibbs_terms(
    mass: Float[Array, " n"], I: Sym3, ddr: Vec3, w: Vec3, dw: Vec3
) -> Float[Array, " n"]:
    """Gibbs' function of each body, [Mata] eq. 3 with wdot . (w x I w) as last term."""
    Iw = I @ w
    linear, angular = mass * dot(ddr, ddr), dot(dw, I @ dw)
    return 0.5 * (linear + angular) + dot(dw, cross(w, Iw))
