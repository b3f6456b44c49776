"""Inverse dynamics in link frames: Newton-Euler, and Gibbs-Appell with tensors."""

from typing import Any

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from experiments.parts.link_frames._frames import Angles, LinkFrames
from jaxdyn.spatial import Mat3, Scalar, Sym3, Vec3, cross, skew_square


def link_kinematics(
    links: LinkFrames, q: Angles, qd: Angles, qdd: Angles
) -> tuple[Vec3, Vec3, Vec3, Vec3, Vec3]:
    r"""c, w, dc, dw, ddc of every link: its centre of mass and its motion.

    [Angeles] Algorithm 7.4.1, outward, with the vectors of link i in the frame that
    turns with it at its own joint: there e_i = (0, 0, 1). Gravity is an acceleration of
    the base, eq. 7.44.
    """
    rho, delta, _ = _centers(links)

    def motion(parent: Any, x: Any) -> Any:
        (c, w, dc, dw, ddc), delta = parent
        link, rho, own_delta, qd, qdd = x
        c = link.out(c + delta) + rho
        w0, w = w, _plus_z(link.out(w), qd)
        u, v = cross(w0, delta), cross(w, rho)
        dc = link.out(dc + u) + v
        dw0, dw = dw, link.out(dw) + Vec3(w.y * qd, -w.x * qd, qdd)
        ddc = link.out(ddc + cross(dw0, delta) + cross(w0, u))
        ddc = ddc + cross(dw, rho) + cross(w, v)
        own = c, w, dc, dw, ddc
        return (own, own_delta), own

    o = Vec3.zero(q.dtype)
    base = (o, o, o, o, Vec3.of(links.up)), o
    return lax.scan(motion, base, (links.at(q), rho, delta, qd, qdd))[1]


def link_newton_euler(links: LinkFrames, q: Angles, qd: Angles, qdd: Angles) -> Angles:
    r"""The joint forces, by the equations of Newton and Euler for each link.

    [Angeles] Algorithms 7.4.1 and 7.4.2, eqs. 7.38 and 7.39, with phi and n of the next
    link turned into the frame of this one (printed: mixed frames).
    """
    _, w, _, dw, ddc = link_kinematics(links, q, qd, qdd)
    rho, delta, I_c = _centers(links)

    def transmit(children: Any, x: Any) -> Any:
        phi, n = children
        link, rho, delta, I, w, dw, ddc = x
        f = ddc * link.m + phi
        n = I @ dw + cross(w, I @ w) + n + cross(delta, phi) + cross(rho, f)
        return (link.back(f), link.back(n)), n.z

    o = Vec3.zero(q.dtype)
    rows = links.at(q), rho, delta, I_c, w, dw, ddc
    return lax.scan(transmit, (o, o), rows, reverse=True)[1]


def link_gibbs_appell(links: LinkFrames, q: Angles, qd: Angles, qdd: Angles) -> Angles:
    r"""The joint forces, by the Gibbs function and tensors.

    $$\Omega = \tilde{\dot\omega} + \tilde\omega \tilde\omega, \qquad
      \tilde t = \Omega J - (\Omega J)^T$$

    [Mata] section 4.1, eqs. 10 to 16, with forces and moments about the origins of the
    links instead of their centres of mass, so that no parameter need be a mass: with
    `regrouped` links all masses are zero.
    """

    def motion(parent: Any, x: Any) -> Any:  # step 1
        (w, dw, Omega, dv), (link, qd, qdd) = parent, x
        dv = link.out(dv + Omega.x * link.a)
        w, dw = link.out(w), link.out(dw)
        dw = dw + Vec3(w.y * qd, -w.x * qd, qdd)
        w = _plus_z(w, qd)
        Omega = acceleration_tensor(w, dw)
        dv = dv + Omega.z * link.d
        f = dv * link.m + Omega @ link.h  # step 2
        n = euler_moment(Omega, link.J) + cross(link.h, dv)
        return (w, dw, Omega, dv), (link, f, n)

    def transmit(children: Any, x: Any) -> Any:  # step 3
        link, f, n = x
        f, n = f + children[0], n + children[1]
        return link.to_parent(f, n), n.z

    o = Vec3.zero(q.dtype)
    base = o, o, Mat3(o, o, o), Vec3.of(links.up)
    loads = lax.scan(motion, base, (links.at(q), qd, qdd))[1]
    return lax.scan(transmit, (o, o), loads, reverse=True)[1]


def acceleration_tensor(w: Vec3, dw: Vec3) -> Mat3:
    """skew(dw) + skew(w)², [Mata] eq. 12: 6 multiplications, 9 additions."""
    xx, yy, zz = w.x * w.x, w.y * w.y, w.z * w.z
    xy, xz, yz = w.x * w.y, w.x * w.z, w.y * w.z
    return Mat3(
        Vec3(-(yy + zz), xy + dw.z, xz - dw.y),
        Vec3(xy - dw.z, -(xx + zz), yz + dw.x),
        Vec3(xz + dw.y, yz - dw.x, -(xx + yy)),
    )


def euler_moment(omega: Mat3, J: Sym3) -> Vec3:
    """The axis of Omega J - (Omega J)ᵀ, [Mata] eq. 10: 15 M, 15 A; 13 without J_zz."""
    x, y, z = omega.x, omega.y, omega.z
    t_x = x.z * J.xy - x.y * J.xz + y.z * J.yy - z.y * J.zz + (z.z - y.y) * J.yz
    t_y = y.x * J.yz - y.z * J.xy + z.x * J.zz - x.z * J.xx + (x.x - z.z) * J.xz
    t_z = z.y * J.xz - z.x * J.yz + x.y * J.xx - y.x * J.yy + (y.y - x.x) * J.xy
    return Vec3(t_x, t_y, t_z)


def _plus_z(v: Vec3, s: Scalar) -> Vec3:
    return Vec3(v.x, v.y, v.z + s)


def _centers(links: LinkFrames) -> tuple[Vec3, Vec3, Sym3]:
    """rho and delta, to and from the centres of mass, and the inertias about them."""
    link = links.at(jnp.zeros_like(links.a))
    m: Array = link.m
    has_mass = m != 0
    rho = link.h * jnp.where(has_mass, 1 / jnp.where(has_mass, m, 1), 0)
    to_next = jnp.concatenate([links.s[1:], jnp.zeros_like(links.s[:1])])
    return rho, Vec3.of(to_next) - rho, link.inertia - skew_square(rho, m)
