"""Rotations: about an axis, unit quaternions, exponential and logarithm.

Every function here is smooth where the rotation it describes is smooth: the
derivatives at angle zero and at the identity quaternion are exact, of second order too.
"""

import math
from fractions import Fraction
from functools import cache, reduce

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.spatial._components import pytree
from jaxdyn.spatial._vec3 import Mat3, Scalar, Vec3, cross, dot, skew, square


@pytree
class Quaternion:
    """A quaternion with vector part `x, y, z` and scalar part `w`."""

    x: Scalar
    y: Scalar
    z: Scalar
    w: Scalar

    @property
    def v(self) -> Vec3:
        """The vector part."""
        return Vec3(self.x, self.y, self.z)

    def __matmul__(self, other: "Quaternion") -> "Quaternion":
        """The product: the rotation `other` first, then this one, in fixed axes."""
        a, b = self, other
        v = a.v * b.w + b.v * a.w + cross(a.v, b.v)
        return Quaternion(v.x, v.y, v.z, a.w * b.w - dot(a.v, b.v))

    def __mul__(self, s: Scalar) -> "Quaternion":
        return Quaternion(self.x * s, self.y * s, self.z * s, self.w * s)

    @property
    def T(self) -> "Quaternion":
        """The conjugate: the inverse rotation of a unit quaternion."""
        return Quaternion(-self.x, -self.y, -self.z, self.w)

    def unit(self) -> "Quaternion":
        """This quaternion divided by its length, however long or short it is.

        One that is far from unit length is divided by its largest component first,
        which its square could not hold. That is a constant for derivatives: the result
        is the same for every such divisor.
        """
        sizes = (jax.lax.abs(a) for a in (self.x, self.y, self.z, self.w))
        largest = jax.lax.stop_gradient(reduce(jax.lax.max, sizes))
        is_far = (largest < 1 / 16) | (largest > 16)
        return (self * jnp.where(is_far, 1 / largest, 1)).renormalized()

    def renormalized(self) -> "Quaternion":
        """This quaternion, which is near unit length, divided by its length."""
        return self * jax.lax.rsqrt(dot(self.v, self.v) + self.w * self.w)

    def matrix(self) -> Mat3:
        """The rotation matrix 1 + 2 w skew(v) + 2 skew(v)² of a unit quaternion."""
        v, w = self.v, self.w
        u = v + v
        p = square(v, 2)
        wx, wy, wz = w * u.x, w * u.y, w * u.z
        return Mat3(
            Vec3(1 - p.yy - p.zz, p.xy + wz, p.xz - wy),
            Vec3(p.xy - wz, 1 - p.xx - p.zz, p.yz + wx),
            Vec3(p.xz + wy, p.yz - wx, 1 - p.xx - p.yy),
        )

    @staticmethod
    def of(a: Float[Array, "... 4"]) -> "Quaternion":
        """The quaternion whose x, y, z, w are the last axis of `a`."""
        return Quaternion(a[..., 0], a[..., 1], a[..., 2], a[..., 3])

    def array(self) -> Float[Array, "... 4"]:
        """The components x, y, z, w stacked along a new last axis."""
        return jnp.stack([self.x, self.y, self.z, self.w], axis=-1)


@jax.custom_jvp
def cos_sin(angle: Scalar) -> tuple[Scalar, Scalar]:
    """Cosine and sine to the last place, in additions and multiplications only.

    The angle less the nearest multiple k of pi/2, taken off in three parts of which the
    first two have so few digits that k times them is exact; then the Taylor series of
    both on [-pi/4, pi/4]. The library functions are calls for one number at a time,
    ten times slower in a loop over states. Beyond 1e8 (float32: 1e4) the result is that
    of an angle which differs in the last place, beyond 1e17 (1e8) that of any angle.
    """
    dtype = jnp.result_type(angle)
    k = jnp.round(angle * (2 / np.pi))
    coarse, middle, fine = _quarter_turn(dtype)
    near = (angle - k * coarse) - k * middle
    r: Array = near - k * fine
    rest: Array = (near - r) - k * fine  # what r is rounded by
    lost = jnp.abs(r) > 1
    r, rest = jnp.where(lost, 0, r), jnp.where(lost, 0, rest)
    z = r * r
    terms = 8 if dtype == np.float64 else 4
    sine = r + (r * z * _horner(z, _SINE[:terms]) + rest * (1 - 0.5 * z))
    cosine = 1 - (0.5 * z - (z * z * _horner(z, _COSINE[:terms]) - r * rest))
    quadrant = k - 4 * jnp.floor(k / 4)
    odd = (quadrant == 1) | (quadrant == 3)
    c, s = jnp.where(odd, sine, cosine), jnp.where(odd, cosine, sine)
    c = jnp.where((quadrant == 1) | (quadrant == 2), -c, c)
    return c, jnp.where(quadrant >= 2, -s, s)


@cos_sin.defjvp
def _(
    primals: tuple[Scalar], tangents: tuple[Scalar]
) -> tuple[tuple[Scalar, Scalar], tuple[Scalar, Scalar]]:
    (angle,), (d,) = primals, tangents
    c, s = cos_sin(angle)
    return (c, s), (-s * d, c * d)


def turn_z(r: Mat3, c: Scalar, s: Scalar) -> Mat3:
    """The product R Rz with c and s the cosine and sine: 12 multiplications."""
    return Mat3(r.x * c + r.y * s, r.y * c - r.x * s, r.z)


def axis_angle(u: Vec3, angle: Scalar) -> Mat3:
    """The rotation by `angle` about the unit vector `u` (Rodrigues)."""
    c, s = cos_sin(angle)
    return Mat3.identity(c.dtype) * c + skew(u) * s + square(u, 1 - c).mat()


def frame_along(u: Vec3) -> Mat3:
    """A rotation whose third column is the direction of `u`, the identity for u = z.

    Which one is chosen jumps where u_z changes sign; its third column does not.
    """
    u = u * jax.lax.rsqrt(dot(u, u))
    sign = jnp.where(u.z < 0, -1, 1).astype(u.z.dtype)
    a = -1 / (sign + u.z)
    b = u.x * u.y * a
    return Mat3(
        Vec3(1 + sign * u.x * u.x * a, sign * b, -sign * u.x),
        Vec3(b, sign + u.y * u.y * a, -u.y),
        u,
    )


def exp(d: Vec3) -> Quaternion:
    """The unit quaternion of the rotation by the vector `d` (axis times angle)."""
    x: Array = dot(d, d)
    small = x < 1e-2
    angle = jnp.sqrt(jnp.where(small, 1, x))
    series = _horner(x, (1 / 2, -1 / 48, 1 / 3840, -1 / 645120, 1 / 185794560))
    c, s = cos_sin(angle / 2)
    v = d * jnp.where(small, series, s / angle)
    series = _horner(
        x, (1.0, -1 / 8, 1 / 384, -1 / 46080, 1 / 10321920, -1 / 3715891200)
    )
    return Quaternion(v.x, v.y, v.z, jnp.where(small, series, c))


def log(a: Quaternion) -> Vec3:
    """The rotation vector of a unit quaternion, of length at most pi."""
    sign = jnp.where(a.w < 0, -1, 1).astype(a.w.dtype)
    v = a.v * sign
    w: Array = a.w * sign
    x: Array = dot(v, v)
    small = x < 1e-3
    t = jnp.where(small, x, 0) / jnp.where(small, w * w, 1)
    series = _horner(t, (2.0, -2 / 3, 2 / 5, -2 / 7, 2 / 9, -2 / 11))
    series = series / jnp.where(small, w, 1)
    n = jnp.sqrt(jnp.where(small, 1, x))
    return v * jnp.where(small, series, 2 * jnp.arctan2(n, w) / n)


def _horner(x: Scalar, coefficients: tuple[float, ...]) -> Array:
    """The polynomial in `x` with the given coefficients, lowest power first."""
    result = jnp.full_like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        result = result * x + c
    return result


# (sin r - r) / r³ and (cos r - 1 + r²/2) / r⁴ in powers of r²
_SINE = tuple((-1) ** (k + 1) / math.factorial(2 * k + 3) for k in range(8))
_COSINE = tuple((-1) ** k / math.factorial(2 * k + 4) for k in range(8))


@cache
def _quarter_turn(dtype: np.dtype) -> tuple[np.ndarray, ...]:
    """Three numbers whose sum is pi/2 to three times the precision of a type.

    The first two leave half of the digits free for k.
    """
    rest = Fraction("1.5707963267948966192313216916397514420985846996875529")
    digits = jnp.finfo(dtype).nmant // 2
    parts = []
    for _ in range(2):
        scale = Fraction(2) ** (digits - math.floor(math.log2(rest)) - 1)
        parts.append(Fraction(math.floor(rest * scale)) / scale)
        rest -= parts[-1]
    return tuple(np.asarray(float(part), dtype) for part in (*parts, rest))
