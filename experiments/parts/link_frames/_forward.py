"""Forward dynamics in link frames: the factor U D Uᵀ of the inertia matrix."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from experiments.parts.link_frames._frames import Angles, Link, LinkFrames, similarity_z
from experiments.parts.link_frames._inverse import link_gibbs_appell
from jaxdyn.spatial import (
    ArticulatedInertia,
    Mat3,
    RigidInertia,
    Scalar,
    Sym3,
    Vec3,
    dot,
)


def link_solve(links: LinkFrames, q: Angles, phi: Angles) -> Angles:
    r"""The accelerations that solve M(q) qdd = phi, with M = U D Uᵀ.

    [Mohan] section 4.1, steps 5 to 15 (eqs. 30 to 37); [Shah] eqs. 18 to 23 and Table
    3. The joint axis is (0, 0, 1): psi_hat is a column of M_hat, and the row and column
    of M_bar along the axis vanish and are not computed. M_bar then goes to the link
    before as the two screws of its frame.
    """

    def eliminate(children: Any, x: Any) -> Any:
        (M_hat, eta), (link, phi) = children, x
        rigid = RigidInertia(link.m, link.h, link.inertia)
        M_hat = rigid.articulated() + M_hat
        D = M_hat.D
        m_hat, psi_hat = D.zz, (M_hat.B.z, D.xz, D.yz)  # steps 6 and 7
        psi = jax.tree.map(lambda y: y / m_hat, psi_hat)  # step 8
        phi_hat = phi - eta[1].z  # step 10
        f = eta[0] + psi[0] * phi_hat  # step 11; along the axis phi_hat + eta is phi
        n = Vec3(eta[1].x + psi[1] * phi_hat, eta[1].y + psi[2] * phi_hat, phi)
        M_bar = _eliminated(M_hat, psi_hat, psi)  # step 9
        handed = _handed(link, M_bar), link.to_parent(f, n)  # step 5 of the link before
        return handed, (link, psi, phi_hat / m_hat)  # step 12

    def substitute(mu: Any, x: Any) -> Any:  # steps 13 to 15
        link, (psi_v, psi_x, psi_y), phi_tilde = x
        v, w = link.to_child(*mu)
        turned = phi_tilde - (dot(psi_v, v) + psi_x * w.x + psi_y * w.y)
        return (v, Vec3(w.x, w.y, turned)), turned - w.z

    o = Vec3.zero(q.dtype)
    tip = ArticulatedInertia.zero(q.dtype), (o, o)
    _, kept = lax.scan(eliminate, tip, (links.at(q), phi), reverse=True)
    return lax.scan(substitute, (o, o), kept)[1]


def link_forward_dynamics(
    links: LinkFrames, q: Angles, qd: Angles, tau: Angles
) -> Angles:
    """The joint accelerations under the joint forces `tau`.

    [Mohan] section 4.1 with its step 4: phi = tau less the forces without acceleration.
    """
    bias = link_gibbs_appell(links, q, qd, jnp.zeros_like(qd))
    return link_solve(links, q, tau - bias)


def _eliminated(M: ArticulatedInertia, psi_hat: Any, psi: Any) -> ArticulatedInertia:
    """M - psi_hat psiᵀ without the axis: 15 multiplications, 15 additions."""
    (f, x, y), (g, u, v) = psi_hat, psi
    o = jnp.zeros_like(x)
    A = M.A - Sym3(f.x * g.x, f.x * g.y, f.x * g.z, f.y * g.y, f.y * g.z, f.z * g.z)
    B = Mat3(M.B.x - f * u, M.B.y - f * v, Vec3(o, o, o))
    D = Sym3(M.D.xx - x * u, M.D.xy - x * v, o, M.D.yy - y * v, o, o)
    return ArticulatedInertia(A, B, D)


def _handed(link: Link, M: ArticulatedInertia) -> ArticulatedInertia:
    """M_bar about the origin before and in its frame, as two screws."""
    M = _shift_z(link.d, M)
    c, s = link.c, link.s
    A, D = similarity_z(c, s, M.A), similarity_z(c, s, M.D)
    M = ArticulatedInertia(A, _turn_z(c, s, M.B), D)
    c, s = link.c_alpha, link.s_alpha
    A, D = _turn_x(c, s, M.A), _turn_x(c, s, M.D)
    return _shift_x(link.a, ArticulatedInertia(A, _turn_block_x(c, s, M.B), D))


def _shift_z(d: Scalar, M: ArticulatedInertia) -> ArticulatedInertia:
    """M_bar shifted along its joint axis: 8 multiplications, 12 additions."""
    A, B, D = M.A.mat(), M.B, M.D
    x, y = B.x - A.y * d, B.y + A.x * d
    xx, yy = D.xx - d * (B.x.y + x.y), D.yy + d * (B.y.x + y.x)
    D = Sym3(xx, D.xy + d * (x.x - B.y.y), D.xz, yy, D.yz, D.zz)
    return ArticulatedInertia(M.A, Mat3(x, y, B.z), D)


def _shift_x(a: Scalar, M: ArticulatedInertia) -> ArticulatedInertia:
    """M shifted along x: 10 multiplications, 14 additions."""
    A, B, D = M.A.mat(), M.B, M.D
    y, z = B.y - A.z * a, B.z + A.y * a
    yy, zz = D.yy - a * (B.y.z + y.z), D.zz + a * (B.z.y + z.y)
    xy, xz = D.xy - a * B.x.z, D.xz + a * B.x.y
    D = Sym3(D.xx, xy, xz, yy, D.yz + a * (y.y - B.z.z), zz)
    return ArticulatedInertia(M.A, Mat3(B.x, y, z), D)


def _turn_z(c: Scalar, s: Scalar, B: Mat3) -> Mat3:
    """Rz B Rzᵀ: 12 multiplications; the antisymmetric part in the plane stays."""
    x, y, z = B.x, B.y, B.z
    t = s * (x.x - y.y) + c * (y.x + x.y)
    k, u = s * t, c * t
    return Mat3(
        Vec3(x.x - k, u - y.x, c * x.z - s * y.z),
        Vec3(u - x.y, y.y + k, s * x.z + c * y.z),
        Vec3(c * z.x - s * z.y, s * z.x + c * z.y, z.z),
    )


def _turn_block_x(c: Scalar, s: Scalar, B: Mat3) -> Mat3:
    """Rx B Rxᵀ: `_turn_z` with y, z, x in the place of x, y, z."""
    x, y, z = (Vec3(v.y, v.z, v.x) for v in (B.x, B.y, B.z))
    t = _turn_z(c, s, Mat3(y, z, x))
    return Mat3(*(Vec3(v.z, v.x, v.y) for v in (t.z, t.x, t.y)))


def _turn_x(c: Scalar, s: Scalar, m: Sym3) -> Sym3:
    """Rx M Rxᵀ: 8 multiplications, 7 additions; products of c and s are off line."""
    u = m.yy - m.zz
    k = s * s * u + 2 * s * c * m.yz
    yz = s * c * u + (c * c - s * s) * m.yz
    xy, xz = c * m.xy - s * m.xz, s * m.xy + c * m.xz
    return Sym3(m.xx, xy, xz, m.yy - k, yz, m.zz + k)
