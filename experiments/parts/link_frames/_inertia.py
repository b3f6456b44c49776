"""The inertia matrix in link frames: composite links, and Gibbs-Appell."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from experiments.parts.link_frames._frames import (
    Angles,
    Link,
    LinkFrames,
    similarity_x,
    similarity_z,
)
from jaxdyn.spatial import Sym3, Vec3, dot, skew_square


def link_inertia_composite(links: LinkFrames, q: Angles) -> Float[Array, "n n"]:
    r"""The inertia matrix, by composite links.

    The wrench that turns all links beyond joint j about it, carried inward: its moment
    about axis i is M_ij. The method of Walker and Orin, [Mata] Table 2, [Mohan] eqs. 28
    and 29.
    """

    def compose(carry: Any, x: Any) -> Any:
        (m, h, I), (f, n), (link, is_own) = *carry, x
        m, h, I = m + link.m, h + link.h, I + link.inertia
        f = _where(is_own, Vec3(-h.y, h.x, jnp.zeros_like(m)), f)
        n = _where(is_own, Vec3(I.xz, I.yz, I.zz), n)
        return (_handed(link, m, h, I), link.to_parent(f, n)), n.z

    size = len(q)
    zero, zeros = jnp.zeros((), q.dtype), jnp.zeros(size, q.dtype)
    o, columns = Vec3.zero(q.dtype), Vec3(zeros, zeros, zeros)
    tip = (zero, o, Sym3.zero(q.dtype)), (columns, columns)
    rows = links.at(q), jnp.eye(size, dtype=bool)
    return _both_sides(lax.scan(compose, tip, rows, reverse=True)[1])


def _handed(link: Link, m: Any, h: Vec3, I: Sym3) -> tuple[Any, Vec3, Sym3]:
    """A rigid link about the origin before and in its frame."""
    a, d = link.a, link.d
    k = 2 * d * h.z + m * d * d  # along z, then about z and x, then along x
    yz, xz = I.yz - d * h.y, I.xz - d * h.x
    I = Sym3(I.xx + k, I.xy, xz, I.yy + k, yz, I.zz)
    I = similarity_z(link.c, link.s, I)
    I = similarity_x(link.c_alpha, link.s_alpha, I)
    h = link.back(Vec3(h.x, h.y, h.z + m * d))
    k = 2 * a * h.x + m * a * a
    xy, xz = I.xy - a * h.y, I.xz - a * h.z
    I = Sym3(I.xx, xy, xz, I.yy + k, I.yz, I.zz + k)
    return m, Vec3(h.x + m * a, h.y, h.z), I


def link_inertia_gibbs_appell(links: LinkFrames, q: Angles) -> Float[Array, "n n"]:
    r"""The inertia matrix, by the second derivatives of the Gibbs function.

    $$D_{jk} = z_k^T [\Psi_j - \tilde s_{kj} \tilde\phi_j] z_j$$

    [Mata] section 4.2, steps 1 to 7, with skew matrices of phi in steps 5 and 7.
    """
    link, size = links.at(q), len(q)
    to_next = jnp.concatenate([links.s[1:], jnp.zeros_like(links.s[:1])])
    to_next = Vec3.of(to_next)
    beyond = jnp.cumsum(link.m[::-1])[::-1] - link.m  # step 1
    gamma = link.h + to_next * beyond
    E = link.inertia + skew_square(to_next, beyond)

    def axes(carry: Any, x: Any) -> Any:  # steps 2 and 3, for all k at once
        (s, z), (link, is_before, is_own) = carry, x
        o = jnp.zeros_like(s.x)
        s = link.out(Vec3(s.x + jnp.where(is_before, link.a, o), s.y, s.z))
        s = Vec3(s.x, s.y, s.z + jnp.where(is_before, link.d, o))
        z = _where(is_own, Vec3(o, o, o + 1), link.out(z))
        return (s, z), (s, z)

    def compose(carry: Any, x: Any) -> Any:  # steps 4 and 5
        (phi, Psi), (link, gamma, E, s) = carry, x
        Psi = E + _moved(s, phi) + Psi
        phi = gamma + phi
        turned = similarity_z(link.c, link.s, Psi)
        turned = similarity_x(link.c_alpha, link.s_alpha, turned)
        return (link.back(phi), turned), (phi, Psi)

    o, none = Vec3.zero(q.dtype), jnp.zeros(size, q.dtype)
    columns = Vec3(none, none, none)
    is_own = jnp.eye(size, dtype=bool)
    is_before = jnp.tri(size, k=-1, dtype=bool)
    rows = link, is_before, is_own
    s, z = lax.scan(axes, (columns, columns), rows)[1]
    rows = link, gamma, E, to_next
    phi, Psi = lax.scan(compose, (o, Sym3.zero(q.dtype)), rows, reverse=True)[1]
    x, y = phi.x[:, None], phi.y[:, None]  # steps 6 and 7
    Psi_z = Vec3(Psi.xz[:, None], Psi.yz[:, None], Psi.zz[:, None])
    v = Vec3(Psi_z.x - s.z * x, Psi_z.y - s.z * y, Psi_z.z + (s.x * x + s.y * y))
    return _both_sides(dot(z, v).T)


def _moved(s: Vec3, phi: Vec3) -> Sym3:
    """The sum -skew(s) skew(phi) - (skew(s) skew(phi))ᵀ: 9 multiplications."""
    x, y, z = 2 * s.x * phi.x, 2 * s.y * phi.y, 2 * s.z * phi.z
    xy, xz = s.x * phi.y + s.y * phi.x, s.x * phi.z + s.z * phi.x
    return Sym3(y + z, -xy, -xz, x + z, -(s.y * phi.z + s.z * phi.y), x + y)


def _where(condition: Any, a: Vec3, b: Vec3) -> Vec3:
    return jax.tree.map(lambda x, y: jnp.where(condition, x, y), a, b)


def _both_sides(upper: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """The symmetric matrix with the given upper triangle."""
    return jnp.triu(upper) + jnp.triu(upper, k=1).T
