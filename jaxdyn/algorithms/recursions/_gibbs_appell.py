"""Dynamics by the equations of Gibbs and Appell."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.algorithms.steps import (
    BaseMotion,
    Joint,
    at_last_steps,
    base_state,
    joint_terms,
    joints,
    less_external,
    mirrored,
    move,
    pairs,
    step_frames,
    wrenches,
)
from jaxdyn.model import Model
from jaxdyn.program import collect, inward, outward, spread, take
from jaxdyn.spatial import (
    Mat3,
    RigidInertia,
    Sym3,
    Vec3,
    cross,
    cross_columns,
    dot,
    similarity,
    skew,
    skew_square,
    symmetric,
)


def gibbs_appell(
    model: Model,
    q: Float[Array, " nq"],
    qd: Float[Array, " nv"],
    qdd: Float[Array, " nv"] | None,
    f_ext: Float[Array, "n 6"] | None = None,
    base: BaseMotion | None = None,
) -> Float[Array, " nv"]:
    r"""Joint forces of the rigid bodies alone, gravity included.

    $$\tau_j = \frac{\partial G}{\partial \ddot q_j}, \qquad
      \tilde t = \Omega J - (\Omega J)^T, \quad \Omega = \tilde{\dot\omega} +
      \tilde\omega^2, \quad J = \tfrac12 \mathrm{tr}(I) 1 - I$$

    [Mata] section 4.1, eqs. 9 to 16, O(n), with Euler's tensor J and the angular
    acceleration tensor Omega; all vectors in world axes, every joint type. Gravity is
    an upward acceleration of the base.
    """
    t, o = model.topology, Vec3.zero(q.dtype)

    def motion(parent: Any, x: Any) -> Any:  # step 1
        (R0, w0, dw0, Omega0, ds0), (link, qd, qdd, bias) = parent, x
        R, s, z = move(R0, link)
        turned, slid = z * (link.turn * qd), z * (link.slide * qd)
        dw = dw0 + cross(w0, turned)
        ds = ds0 + Omega0 @ s + cross(w0, slid + slid)
        if qdd is not None:
            dw, ds = dw + z * (link.turn * qdd), ds + z * (link.slide * qdd)
        if bias is not None:
            dw, ds = dw + R @ bias[0], ds + R @ bias[1]
        w = w0 + turned
        return (R, w, dw, angular_acceleration(w, dw), ds), s

    def outwards(parent: Any, x: Any) -> Any:  # steps 1 and 2
        joint, body, external = x
        own, s = motion(parent, joint)
        R, _, _, Omega, ds = own
        r = R @ Vec3.of(body[1:4])
        f = (ds + Omega @ r) * body[0]  # eq. 9
        Omega_J = Omega @ similarity(R, Sym3(*body[4:])).mat()
        chi = cross(r, f) + twice_skew_part(Omega_J)  # eq. 10, first terms of eq. 15
        f, chi = less_external(f, chi, external)
        return own, (joint[0].turn, joint[0].slide, R.z, s, f, chi)

    def inwards(children: Any, x: Any) -> Any:  # step 3: eqs. 14 to 16
        turn, slide, z, s, f, chi = x
        f, chi = f + children[0], chi + children[1]
        return (f, chi + cross(s, f)), turn * dot(z, chi) + slide * dot(z, f)

    terms = joint_terms(model, q, qd, qdd), euler_tensors(model), wrenches(model, f_ext)
    R, _, w, dv, dw = base_state(q.dtype, base)
    root = R, w, dw, angular_acceleration(w, dw), dv - Vec3.of(model.gravity)
    loads = outward(t.lanes, outwards, root, spread(t.lanes, terms))
    _, tau = inward(t.lanes, inwards, (o, o), loads)
    return collect(t.lanes, tau, t.dof_steps)


def gibbs_appell_inertia(model: Model, q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
    r"""The inertia matrix M(q), without the armature of the joints.

    $$D_{jk} = \frac{\partial^2 G}{\partial \ddot q_j \partial \ddot q_k}
      = z_k^T (\Psi_j - \tilde s_{kj} \tilde\phi_j) z_j$$

    [Mata] section 4.2, O(n²): composite mass M, first moment phi and inertia tensor Psi
    about each link origin by an inward walk (steps 1, 4, 5), then all entries (steps 6
    and 7). The formula is that of turning joints; a sliding joint j puts M_j z_j in
    place of z_j x phi_j and phi_j x z_j in place of Psi_j z_j.
    """
    t = model.topology

    def hand(M: Any, phi: Vec3, Psi: Sym3, s: Vec3) -> Any:  # steps 4 and 5
        s_phi = cross_columns(s, skew(phi))
        return M, phi + s * M, Psi - symmetric(s_phi) + skew_square(s, M)

    def compose(children: Any, x: tuple[Joint, RigidInertia]) -> Any:
        joint, body = x
        M, phi, Psi = body.m + children[0], body.h + children[1], body.I + children[2]
        f = cross(joint.e, phi) * joint.turn + joint.e * (M * joint.slide)
        n = (Psi @ joint.e) * joint.turn + cross(phi, joint.e) * joint.slide
        return hand(M, phi, Psi, joint.a), (joint.column(1), joint.r, f, n)

    tip = jnp.zeros((), q.dtype), Vec3.zero(q.dtype), Sym3.zero(q.dtype)
    _, kept = inward(t.lanes, compose, tip, joints(model, q))
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


def gibbs_terms(mass: Any, I: Sym3, ddr: Vec3, w: Vec3, dw: Vec3) -> Float[Array, " n"]:
    """Gibbs' function of each body, [Mata] eq. 3 with wdot . (w x I w) as last term."""
    Iw = I @ w
    linear, angular = mass * dot(ddr, ddr), dot(dw, I @ dw)
    return 0.5 * (linear + angular) + dot(dw, cross(w, Iw))
