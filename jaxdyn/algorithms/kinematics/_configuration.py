"""Configurations as points of a manifold: tangents, differences, samples."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, UInt32

from jaxdyn.model import Model, Nq, Nv, Topology, arguments
from jaxdyn.program import compiled, exchange, put, take
from jaxdyn.spatial import Mat3, Quaternion, Vec3, exp, log, skew


def neutral(model: Model) -> Nq:
    """The configuration with all coordinates zero and all quaternions the identity."""
    q = np.zeros(model.nq)
    q[model.topology.quaternion_q[:, 3]] = 1.0
    return jnp.asarray(q, model.dtype)


@compiled()
def integrate(model: Model, q: Nq, d: Nv) -> Nq:
    """The configuration reached from `q` along the tangent `d`, such as qd times dt.

    Coordinates add. A quaternion is multiplied by exp(d), a free position moves by R d:
    both tangents are in body axes, as qd is. The new quaternions have unit length.
    """
    model, q, d = arguments(model, q=q, d=d)
    t = model.topology
    result = q + put(take(d, t.plain_v), t.plain_q, model.nq)
    if t.quaternion_q.size:
        turn = exp(Vec3.of(take(d, t.quaternion_v)))
        turned = Quaternion.of(take(q, t.quaternion_q)).unit() @ turn
        result = exchange(result, t.quaternion_q, turned.renormalized().array())
    if t.position_q.size:
        moved = _free_rotation(model, q) @ Vec3.of(take(d, t.position_v))
        result = result + put(moved.array(), t.position_q, model.nq)
    return result


@compiled()
def difference(model: Model, q0: Nq, q1: Nq) -> Nv:
    """The shortest tangent from `q0` to `q1`: the inverse of `integrate`."""
    model, q0, q1 = arguments(model, q0=q0, q1=q1)
    t = model.topology
    d = put(take(q1 - q0, t.plain_q), t.plain_v, model.nv)
    if t.quaternion_q.size:
        a, b = (Quaternion.of(take(q, t.quaternion_q)).unit() for q in (q0, q1))
        d = d + put(log(a.T @ b).array(), t.quaternion_v, model.nv)
    if t.position_q.size:
        moved = _free_rotation(model, q0).T @ Vec3.of(take(q1 - q0, t.position_q))
        d = d + put(moved.array(), t.position_v, model.nv)
    return d


@compiled()
def configuration_rate(model: Model, q: Nq, qd: Nv) -> Nq:
    r"""The rate dq/dt of all coordinates when the joints move with `qd`.

    Coordinates change by qd, a free position by R v, and a quaternion by half its
    product with the angular velocity in body axes, $\dot\varepsilon = \frac12
    \varepsilon\,\omega$. That rate is at right angles to the quaternion and of its
    length, so the rotation it describes turns by $\omega$ whatever its length is.
    """
    model, q, qd = arguments(model, q=q, qd=qd)
    t = model.topology
    rate = put(take(qd, t.plain_v), t.plain_q, model.nq)
    if t.quaternion_q.size:
        w = Vec3.of(take(qd, t.quaternion_v)) * 0.5
        spin = Quaternion(w.x, w.y, w.z, jnp.zeros_like(w.x))
        turned = Quaternion.of(take(q, t.quaternion_q)) @ spin
        rate = rate + put(turned.array(), t.quaternion_q, model.nq)
    if t.position_q.size:
        moved = _free_rotation(model, q) @ Vec3.of(take(qd, t.position_v))
        rate = rate + put(moved.array(), t.position_q, model.nq)
    return rate


def unit_quaternions(topology: Topology, q: Nq) -> Nq:
    """The configuration with its quaternions divided by their lengths."""
    if not topology.quaternion_q.size:
        return q
    units = Quaternion.of(take(q, topology.quaternion_q)).unit()
    return exchange(q, topology.quaternion_q, units.array())


def random_configuration(model: Model, key: PRNGKeyArray | UInt32[Array, "2"]) -> Nq:
    """A random configuration within the limits of the joints.

    Coordinates are uniform between their limits. Without limits angles lie between -pi
    and pi and displacements between -1 and 1; with one, in a range of the same width
    on its right side. Rotations are uniform.
    """
    t = model.topology
    angle = np.ones(model.nq)
    moved = t.steps.q < t.nq
    angle[t.steps.q[moved]] = np.where(t.steps.turn[moved], np.pi, 1.0)
    wide = jnp.asarray(angle, model.dtype)
    below, above = jnp.isfinite(model.lower), jnp.isfinite(model.upper)
    lower = jnp.where(above, model.upper - 2 * wide, -wide)
    lower = jnp.where(below, model.lower, lower)
    upper = jnp.where(above, model.upper, lower + 2 * wide)
    keys = jax.random.split(key)
    u = jax.random.uniform(keys[0], (model.nq,), model.dtype)
    q = lower + u * (upper - lower)
    normal = jax.random.normal(keys[1], t.quaternion_q.shape, model.dtype)
    return q.at[t.quaternion_q].set(Quaternion.of(normal).unit().array())


def _free_rotation(model: Model, q: Nq) -> Mat3:
    """The rotation of each free joint from its joint frame to the body."""
    return Quaternion.of(take(q, model.topology.free_quaternion_q)).unit().matrix()


def turning_rate(model: Model, qd: Nv) -> Float[Array, "nv nv"]:
    r"""The matrix W with which tangents turn: $\dot d = \delta\dot q - W d$.

    Tangents of joints with a quaternion are in body axes, which turn while the body
    moves; W is zero for all other joints.
    """
    t = model.topology
    W = jnp.zeros(model.nv**2, qd.dtype)

    def block(x: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> Array:
        entries = skew(Vec3.of(take(qd, x))).array()
        return put(entries, rows[:, :, None] * model.nv + columns[:, None], W.size)

    if t.quaternion_v.size:
        W = W + block(t.quaternion_v, t.quaternion_v, t.quaternion_v)
    if t.position_v.size:
        at, turn = t.position_v, t.position_v + 3
        W = W + block(turn, at, at) + block(at, at, turn)
    return W.reshape(model.nv, model.nv)
