"""Serial chains of revolute joints in link frames, as the papers count them.

Frame i is fixed to link i, its z along joint axis i, and stands in frame i - 1 at
Rx(alpha_i) Tx(a_i) Rz(theta_i) Tz(d_i): two screws, one about x that is constant and
one about z that holds the joint.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.model import Model, inertial_parameters, pseudo_inertia
from jaxdyn.spatial import Scalar, Sym3, Vec3, pytree

Angles = Float[Array, " n"]  # or their rates, or moments about the joints
_ROUNDING = 1e-9


class LinkFrames(eqx.Module):
    """A serial chain of revolute joints in link frames.

    Attributes:
        c_alpha, s_alpha, a, d: cosine and sine of the twist, length and offset of each
            frame in the frame before; the first twist and length are 0.
        P: pseudo-inertia [[J, h], [hᵀ, m]] of each link about its origin, with Euler's
            tensor J = tr(I)/2 1 - I and the first moment h.
        up: acceleration of the base that stands for gravity, in axes that the first
            joint turns about z.
    """

    c_alpha: Float[Array, " n"]
    s_alpha: Float[Array, " n"]
    a: Float[Array, " n"]
    d: Float[Array, " n"]
    P: Float[Array, "n 4 4"]
    up: Float[Array, "3"]

    def at(self, q: Angles) -> "Link":
        """All links at the angles `q`, their data stacked along the first axis."""
        J, h, m = self.P[:, :3, :3], self.P[:, :3, 3], self.P[:, 3, 3]
        turned = jnp.cos(q), jnp.sin(q), self.c_alpha, self.s_alpha, self.a, self.d
        rows, columns = np.triu_indices(3)
        return Link(*turned, m, Vec3.of(h), Sym3(*J[:, rows, columns].T))

    @property
    def s(self) -> Float[Array, "n 3"]:
        """The origin of each frame in the frame before."""
        z = jnp.stack([jnp.zeros_like(self.d), -self.s_alpha, self.c_alpha], axis=-1)
        return jnp.pad(self.a[:, None], ((0, 0), (0, 2))) + self.d[:, None] * z


@pytree
class Link:
    """One link: cosine and sine of its angle, its place, m, h and Euler's tensor J."""

    c: Scalar
    s: Scalar
    c_alpha: Scalar
    s_alpha: Scalar
    a: Scalar
    d: Scalar
    m: Scalar
    h: Vec3
    J: Sym3

    @property
    def inertia(self) -> Sym3:
        """The inertia tr(J) 1 - J about the origin."""
        J = self.J
        return Sym3(J.yy + J.zz, -J.xy, -J.xz, J.xx + J.zz, -J.yz, J.xx + J.yy)

    def out(self, v: Vec3) -> Vec3:
        """A vector of the link before in this frame: 8 multiplications, 4 additions."""
        y = self.c_alpha * v.y + self.s_alpha * v.z
        z = self.c_alpha * v.z - self.s_alpha * v.y
        return Vec3(self.c * v.x + self.s * y, self.c * y - self.s * v.x, z)

    def back(self, v: Vec3) -> Vec3:
        """A vector of this link in the frame before: 8 multiplications, 4 additions."""
        x, y = self.c * v.x - self.s * v.y, self.s * v.x + self.c * v.y
        c, s = self.c_alpha, self.s_alpha
        return Vec3(x, c * y - s * v.z, s * y + c * v.z)

    def to_child(self, v: Vec3, w: Vec3) -> tuple[Vec3, Vec3]:
        """A twist of the link before, here: 20 multiplications, 12 additions."""
        v = self.out(Vec3(v.x, v.y + self.a * w.z, v.z - self.a * w.y))
        w = self.out(w)
        return Vec3(v.x + self.d * w.y, v.y - self.d * w.x, v.z), w

    def to_parent(self, f: Vec3, n: Vec3) -> tuple[Vec3, Vec3]:
        """A wrench about the origin before: 20 multiplications, 12 additions."""
        n = self.back(Vec3(n.x - self.d * f.y, n.y + self.d * f.x, n.z))
        f = self.back(f)
        return f, Vec3(n.x, n.y - self.a * f.z, n.z + self.a * f.y)


def similarity_z(c: Scalar, s: Scalar, m: Sym3) -> Sym3:
    """The matrix Rz M Rzᵀ, with c and s the cosine and sine: 8 multiplications.

    With t = s (xx - yy) + 2 c xy the turned plane part is xx - s t, yy + s t, c t - xy.
    A change between Denavit-Hartenberg frames is this and `similarity_x` in sequence:
    16 multiplications and 16 additions (published: 16 and 17).
    """
    t = s * (m.xx - m.yy) + c * (m.xy + m.xy)
    k = s * t
    return Sym3(
        m.xx - k, c * t - m.xy, c * m.xz - s * m.yz, m.yy + k, s * m.xz + c * m.yz, m.zz
    )


def similarity_x(c: Scalar, s: Scalar, m: Sym3) -> Sym3:
    """The matrix Rx M Rxᵀ: `similarity_z` with y, z, x in the place of x, y, z."""
    t = similarity_z(c, s, Sym3(m.yy, m.yz, m.xy, m.zz, m.xz, m.xx))
    return Sym3(t.zz, t.xz, t.yz, t.xx, t.xy, t.yy)


def link_frames(model: Model) -> LinkFrames:
    """The link frames of a serial robot with revolute joints, as `from_dh` makes it.

    Origins are moved along the joint axes, so that both conventions of Denavit and
    Hartenberg give the same frames. The angle of the table must be the joint's.

    Raises:
        ValueError: if the model is not such a robot, or has armature, springs or
            friction.
    """
    _check(model)
    R, p = np.asarray(model.R), np.asarray(model.p)
    n, noise = model.n, 64 * np.finfo(model.dtype).eps
    c, s = (_without(x, noise) for x in (R[:, 1, 1], R[:, 2, 1]))
    c[0], s[0] = 1.0, 0.0
    # p = a x + before z_(i-1) + after z_i, where z_i = (0, -s, c)
    has_twist = np.abs(s) > _ROUNDING
    after = np.where(has_twist, -p[:, 1] / np.where(has_twist, s, 1.0), 0.0)
    before = p[:, 2] - after * c
    slide = np.append(before[1:], 0.0)  # of each origin along its own axis
    a = np.where(np.arange(n) > 0, p[:, 0], 0.0)
    T = np.tile(np.eye(4), (n, 1, 1))
    T[:, 2, 3] = -slide
    P = np.asarray(jax.vmap(pseudo_inertia)(inertial_parameters(model)))
    P = T @ P @ T.transpose(0, 2, 1)
    P = _without(P, noise * np.abs(P).max(axis=(1, 2), keepdims=True))
    up = -R[0].T @ np.asarray(model.gravity)
    d = np.where(np.arange(n) > 0, after, 0.0) + slide
    return LinkFrames(*(jnp.asarray(x, model.dtype) for x in (c, s, a, d, P, up)))


def regrouped(links: LinkFrames) -> LinkFrames:
    """The same robot with as few inertial parameters as its motion can tell.

    What lies on the axis of a revolute joint moves with the link before as well: the
    mass m, the first moment h_z and the second moment J_zz are handed inward, off line,
    and leave zeros. Seven parameters per link remain. The joint forces and the inertia
    matrix stay as they are, the forces in the joints do not.
    """
    table = np.stack([links.c_alpha, links.s_alpha, links.a, links.d], axis=1)
    places = [_place(*row) for row in table.tolist()]
    P = np.array(links.P)
    for i in reversed(range(len(P))):
        on_axis = np.zeros((4, 4))
        on_axis[2:, 2:] = P[i, 2:, 2:]
        P[i, 2:, 2:] = 0.0
        if i > 0:
            P[i - 1] += places[i] @ on_axis @ places[i].T
    return eqx.tree_at(lambda x: x.P, links, jnp.asarray(P, links.P.dtype))


def _without(x: np.ndarray, noise: Any) -> np.ndarray:
    """The same numbers with zero where one is zero but for rounding."""
    return np.where(np.abs(x) <= noise, np.zeros_like(x), x)


def _place(c: float, s: float, a: float, d: float) -> np.ndarray:
    """The pose Rx Tx Tz of a frame in the frame before, without its turn about z."""
    return np.array([[1, 0, 0, a], [0, c, -s, -s * d], [0, s, c, c * d], [0, 0, 0, 1]])


def _check(model: Model) -> None:
    n = model.n
    if model.parents != tuple(range(-1, n - 1)) or set(model.joints) != {"revolute"}:
        raise ValueError(
            f"model {model.name!r} has the joints {model.joints} and the parents "
            f"{model.parents}, expected a serial chain of revolute joints."
        )
    effects = ("armature", "damping", "friction", "stiffness")
    extra = [name for name in effects if np.any(getattr(model, name))]
    extra += ["forces"] if model.forces else []
    if extra:
        raise ValueError(
            f"model {model.name!r} has {', '.join(extra)}: link frames hold rigid "
            "bodies alone; set them to zero."
        )
    R, p = np.asarray(model.R)[1:], np.asarray(model.p)[1:]
    is_parallel = np.abs(R[:, 2, 1]) <= _ROUNDING
    rows = np.abs(R[:, 0, 0] - 1) + np.abs(np.where(is_parallel, p[:, 1], 0))
    axes = np.abs(np.asarray(model.axis) - [0, 0, 1]).max(axis=1)
    for i in range(n):
        if axes[i] > _ROUNDING or (i > 0 and rows[i - 1] > _ROUNDING):
            raise ValueError(
                f"body {model.names[i]!r} is not placed by Rx(alpha) and a shift in "
                "the plane of x and a joint axis, with its joint about z: build the "
                "robot with from_dh and theta = 0."
            )
