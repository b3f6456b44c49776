"""Component algebra: `Vec3`, `Mat3` and `Sym3` as structures of scalars.

A component may be a Python number or an array of any shape: all operations act
component by component, so one multiplication in a formula is one multiplication in
the traced program, and under `jax.vmap` every component is one contiguous array.
"""

from typing import TypeVar

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from jaxdyn.spatial._components import Components, pytree
from jaxdyn.spatial._scalars import Scalar, add, minor, mul, neg, sub

M = TypeVar("M", "Vec3", "Mat3")


@pytree
class Vec3(Components):
    """A vector with components `x, y, z`."""

    x: Scalar
    y: Scalar
    z: Scalar

    @staticmethod
    def zero(dtype: DTypeLike) -> "Vec3":
        """The zero vector, of scalars with the given dtype."""
        o = jnp.zeros((), dtype)
        return Vec3(o, o, o)

    @staticmethod
    def of(a: Float[Array, "... 3"]) -> "Vec3":
        """The vector whose components are the last axis of `a`."""
        return Vec3(a[..., 0], a[..., 1], a[..., 2])

    def array(self) -> Float[Array, "... 3"]:
        """The components stacked along a new last axis."""
        return jnp.stack([self.x, self.y, self.z], axis=-1)


@pytree
class Mat3(Components):
    """A 3 x 3 matrix, kept as its columns `x, y, z`.

    The columns of a rotation are the axes of the turned frame.
    """

    x: Vec3
    y: Vec3
    z: Vec3

    def __matmul__(self, other: M) -> M:
        """The product with a `Vec3` (9 multiplications) or a `Mat3` (27)."""
        if isinstance(other, Vec3):
            return self.x * other.x + self.y * other.y + self.z * other.z
        return Mat3(self @ other.x, self @ other.y, self @ other.z)

    @property
    def T(self) -> "Mat3":
        """The transpose."""
        x, y, z = self.x, self.y, self.z
        return Mat3(Vec3(x.x, y.x, z.x), Vec3(x.y, y.y, z.y), Vec3(x.z, y.z, z.z))

    @staticmethod
    def identity(dtype: DTypeLike) -> "Mat3":
        """The unit matrix, of scalars with the given dtype."""
        o, i = jnp.zeros((), dtype), jnp.ones((), dtype)
        return Mat3(Vec3(i, o, o), Vec3(o, i, o), Vec3(o, o, i))

    @staticmethod
    def of(a: Float[Array, "... 3 3"]) -> "Mat3":
        """The matrix whose rows and columns are the last two axes of `a`."""
        return Mat3(*(Vec3.of(a[..., :, j]) for j in range(3)))

    def array(self) -> Float[Array, "... 3 3"]:
        """The entries with rows and columns as new last axes."""
        return jnp.stack([self.x.array(), self.y.array(), self.z.array()], axis=-1)


@pytree
class Sym3(Components):
    """A symmetric 3 x 3 matrix, kept as its six different entries."""

    xx: Scalar
    xy: Scalar
    xz: Scalar
    yy: Scalar
    yz: Scalar
    zz: Scalar

    def __matmul__(self, other: M) -> M:
        """The product with a `Vec3` (9 multiplications) or a `Mat3` (27)."""
        return self.mat() @ other

    def mat(self) -> Mat3:
        """The same matrix with all nine entries."""
        s = self
        return Mat3(
            Vec3(s.xx, s.xy, s.xz), Vec3(s.xy, s.yy, s.yz), Vec3(s.xz, s.yz, s.zz)
        )

    @staticmethod
    def zero(dtype: DTypeLike) -> "Sym3":
        """The zero matrix, of scalars with the given dtype."""
        o = jnp.zeros((), dtype)
        return Sym3(o, o, o, o, o, o)

    @staticmethod
    def diagonal(s: Scalar) -> "Sym3":
        """The unit matrix times `s`."""
        o = jnp.zeros_like(s)
        return Sym3(s, o, o, s, o, s)

    @staticmethod
    def of(a: Float[Array, "... 3 3"]) -> "Sym3":
        """The symmetric part of the last two axes of `a`."""
        a = 0.5 * (a + jnp.swapaxes(a, -1, -2))
        return Sym3(*(a[..., i, j] for i in range(3) for j in range(i, 3)))

    def array(self) -> Float[Array, "... 3 3"]:
        """The entries with rows and columns as new last axes."""
        return self.mat().array()


def dot(a: Vec3, b: Vec3) -> Scalar:
    """The scalar product a . b: 3 multiplications, 2 additions."""
    return add(add(mul(a.x, b.x), mul(a.y, b.y)), mul(a.z, b.z))


def cross(a: Vec3, b: Vec3) -> Vec3:
    """The vector product a x b: 6 multiplications, 3 additions."""
    return Vec3(
        minor(a.y, b.z, a.z, b.y),
        minor(a.z, b.x, a.x, b.z),
        minor(a.x, b.y, a.y, b.x),
    )


def outer(a: Vec3, b: Vec3) -> Mat3:
    """The dyad a bᵀ: 9 multiplications."""
    return Mat3(a * b.x, a * b.y, a * b.z)


def inverse(m: Mat3) -> Mat3:
    """The inverse of a regular matrix, by the vector products of its columns."""
    yz = cross(m.y, m.z)
    rows = Mat3(yz, cross(m.z, m.x), cross(m.x, m.y))
    return rows.T * (1 / dot(m.x, yz))


def upper(a: Vec3, b: Vec3) -> Sym3:
    """The dyad a bᵀ of parallel vectors, which is symmetric: 6 multiplications."""
    x, y, z = a.x, a.y, a.z
    return Sym3(*map(mul, (x, x, x, y, y, z), (b.x, b.y, b.z, b.y, b.z, b.z)))


def skew(a: Vec3) -> Mat3:
    """The matrix of the vector product: skew(a) @ b = a x b."""
    o = jnp.zeros_like(a.x)
    b = -a
    return Mat3(Vec3(o, a.z, b.y), Vec3(b.z, o, a.x), Vec3(a.y, b.x, o))


def cross_columns(a: Vec3, m: Mat3) -> Mat3:
    """The product skew(a) @ m: 18 multiplications, 9 additions."""
    return Mat3(cross(a, m.x), cross(a, m.y), cross(a, m.z))


def symmetric(m: Mat3) -> Sym3:
    """The sum m + mᵀ, which is twice the symmetric part: 6 additions."""
    x, y, z = m.x, m.y, m.z
    return Sym3(
        *map(add, (x.x, x.y, x.z, y.y, y.z, z.z), (x.x, y.x, z.x, y.y, z.y, z.z))
    )


def square(a: Vec3, s: Scalar = 1) -> Sym3:
    """The symmetric dyad s a aᵀ: 9 multiplications (6 when `s` is left out)."""
    return upper(a, a if isinstance(s, int) and s == 1 else a * s)


def skew_square(a: Vec3, s: Scalar) -> Sym3:
    """The inertia s (a.a 1 - a aᵀ) = -s skew(a)² of a point mass `s` at `a`."""
    xx, xy, xz, yy, yz, zz = vars(square(a, s)).values()
    return Sym3(add(yy, zz), neg(xy), neg(xz), add(xx, zz), neg(yz), add(xx, yy))


def similarity(r: Mat3, s: Sym3) -> Sym3:
    """The matrix R S Rᵀ of `s` in turned axes: 31 multiplications, 30 additions.

    R S Rᵀ = s_zz 1 + R (S - s_zz 1) Rᵀ leaves five entries, and the second product is
    the symmetric part of x uᵀ + y vᵀ with the first two columns x, y of R; the last
    diagonal entry follows from the trace, which a rotation keeps.
    """
    a, b = sub(s.xx, s.zz), sub(s.yy, s.zz)
    u = r.x * (0.5 * a) + r.y * s.xy + r.z * s.xz
    v = r.y * (0.5 * b) + r.z * s.yz

    def entry(i: str, j: str) -> Scalar:
        xi, yi, ui, vi = (getattr(w, i) for w in (r.x, r.y, u, v))
        xj, yj, uj, vj = (getattr(w, j) for w in (r.x, r.y, u, v))
        xy = add(mul(xi, uj), mul(ui, xj))
        return add(add(xy, mul(yi, vj)), mul(vi, yj))

    def twice(i: str) -> Scalar:
        xi, yi, ui, vi = (getattr(w, i) for w in (r.x, r.y, u, v))
        t = add(mul(xi, ui), mul(yi, vi))
        return add(t, t)

    xx, yy = twice("x"), twice("y")
    return Sym3(
        add(xx, s.zz),
        entry("x", "y"),
        entry("x", "z"),
        add(yy, s.zz),
        entry("y", "z"),
        add(sub(sub(add(a, b), xx), yy), s.zz),
    )
