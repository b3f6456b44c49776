import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.spatial import (
    ArticulatedInertia,
    Mat3,
    RigidInertia,
    Sym3,
    Twist,
    Vec3,
    Wrench,
    dot,
)


def skew_matrix(a):
    return np.cross(a, np.eye(3), axisb=0, axisc=0)


def shift_matrix(a):
    """The twist at the old origin, which is at `a`, from the twist at the new one."""
    return np.block([[np.eye(3), -skew_matrix(a)], [np.zeros((3, 3)), np.eye(3)]])


def random_rotation(rng):
    q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    return q * np.linalg.det(q)


def random_rigid(rng):
    """A body about its origin and its 6 x 6 matrix, linear part first."""
    m, c, Q = rng.uniform(1, 2), rng.normal(size=3), rng.normal(size=(3, 3))
    I_c, S = Q @ Q.T, skew_matrix(c)
    I = I_c - m * S @ S
    body = RigidInertia(jnp.asarray(m), vec(m * c), sym(I))
    return body, np.block([[m * np.eye(3), -m * S], [m * S, I]])


def random_articulated(rng):
    M = rng.normal(size=(6, 6))
    M = M @ M.T
    A, B, D = (jnp.asarray(x) for x in (M[:3, :3], M[:3, 3:], M[3:, 3:]))
    return ArticulatedInertia(Sym3.of(A), Mat3.of(B), Sym3.of(D)), M


def vec(a):
    return Vec3.of(jnp.asarray(a))


def twist(a):
    return Twist.of(jnp.asarray(a))


def sym(a):
    return Sym3.of(jnp.asarray(a))


def dense(inertia):
    """The 6 x 6 matrix column by column, from what `apply` does to unit twists."""
    columns = [inertia.apply(twist(e)).array() for e in np.eye(6)]
    return np.stack(columns, axis=-1)


both = pytest.mark.parametrize("random", [random_rigid, random_articulated])


@both
def test_apply_is_the_product_with_the_dense_matrix(rng, random):
    inertia, M = random(rng)
    t = rng.normal(size=6)
    got = inertia.apply(twist(t)).array()
    np.testing.assert_allclose(got, M @ t, rtol=1e-13, atol=1e-13)


@both
def test_sum_is_the_sum_of_the_dense_matrices(rng, random):
    (a, M_a), (b, M_b) = random(rng), random(rng)
    np.testing.assert_allclose(dense(a + b), M_a + M_b, atol=1e-13)


@both
def test_shift_is_the_congruence_with_the_dense_shift(rng, random):
    inertia, M = random(rng)
    a = rng.normal(size=3)
    X = shift_matrix(a)
    got = dense(inertia.shift(vec(a)))
    np.testing.assert_allclose(got, X.T @ M @ X, atol=1e-13 * abs(got).max())


@both
def test_shift_there_and_back_is_nothing(rng, random):
    inertia, M = random(rng)
    a = vec(rng.normal(size=3))
    got = dense(inertia.shift(a).shift(-a))
    np.testing.assert_allclose(got, M, atol=1e-12)


@both
def test_rotate_is_the_congruence_with_the_dense_rotation(rng, random):
    inertia, M = random(rng)
    R = random_rotation(rng)
    X = np.kron(np.eye(2), R)
    got = dense(inertia.rotate(Mat3.of(jnp.asarray(R))))
    np.testing.assert_allclose(got, X @ M @ X.T, atol=1e-13 * abs(got).max())


def test_minus_dyad_takes_away_the_dense_dyad(rng):
    inertia, M = random_articulated(rng)
    s, w = 0.7, rng.normal(size=6)
    wrench = Wrench.of(jnp.asarray(w))
    got = dense(inertia.minus_dyad(wrench, wrench * s))
    np.testing.assert_allclose(got, M - s * np.outer(w, w), atol=1e-13)


def test_elimination_leaves_nothing_along_the_joint(rng):
    inertia, _ = random_articulated(rng)
    p = twist(rng.normal(size=6))
    psi_hat = inertia.apply(p)
    rest = inertia.minus_dyad(psi_hat, psi_hat / dot(p, psi_hat)).apply(p)
    np.testing.assert_allclose(rest.array(), 0, atol=1e-13)


def test_a_wrench_follows_from_newton_and_euler_about_the_origin(rng):
    m, (c, w, dv, dw) = 2.0, rng.normal(size=(4, 3))
    I = np.diag(rng.uniform(1, 2, 3))
    body = RigidInertia.about_center(jnp.asarray(m), vec(c), Sym3.of(jnp.asarray(I)))
    f = m * (dv + np.cross(dw, c) + np.cross(w, np.cross(w, c)))
    n = I @ dw + np.cross(w, I @ w) + np.cross(c, f)
    found = body.wrench(vec(w), Twist(vec(dv), vec(dw)))
    np.testing.assert_allclose(found.f.array(), f, atol=1e-13)
    np.testing.assert_allclose(found.n.array(), n, atol=1e-13)


def test_a_rigid_body_as_articulated_inertia_is_the_same_map(rng):
    body, M = random_rigid(rng)
    np.testing.assert_allclose(dense(body.articulated()), M, atol=1e-13)


def test_shift_of_a_rigid_body_commutes_with_articulated(rng):
    body, _ = random_rigid(rng)
    a = vec(rng.normal(size=3))
    got, want = dense(body.shift(a).articulated()), dense(body.articulated().shift(a))
    np.testing.assert_allclose(got, want, atol=1e-13)


def test_about_center_is_the_parallel_axis_theorem(rng):
    m, c, Q = 1.7, rng.normal(size=3), rng.normal(size=(3, 3))
    I_c = Q @ Q.T
    body = RigidInertia.about_center(jnp.asarray(m), vec(c), sym(I_c))
    want = I_c + m * (c @ c * np.eye(3) - np.outer(c, c))
    np.testing.assert_allclose(body.I.array(), want, atol=1e-14 * abs(want).max())


def test_about_center_equals_the_shift_from_the_center(rng):
    m, c, I_c = jnp.asarray(1.7), vec(rng.normal(size=3)), sym(np.diag([2, 3, 4.0]))
    at_center = RigidInertia(m, Vec3.zero(jnp.float64), I_c)
    got = RigidInertia.about_center(m, c, I_c)
    np.testing.assert_allclose(dense(got), dense(at_center.shift(c)), atol=1e-13)


def test_zero_is_neutral_in_sums(rng):
    inertia, M = random_articulated(rng)
    got = dense(inertia + ArticulatedInertia.zero(jnp.float64))
    np.testing.assert_allclose(got, M, atol=1e-13)


def every_operation(body, a, R, t, w, s):
    articulated = body.articulated()
    articulated += ArticulatedInertia.zero(s.dtype)
    return (
        (body + body).shift(a).rotate(R).apply(t),
        (articulated + articulated).shift(a).rotate(R).minus_dyad(w, w * s).apply(t),
        RigidInertia.about_center(s, a, body.I),
    )


def operands(rng, dtype):
    a, R = vec(rng.normal(size=3)), Mat3.of(jnp.asarray(random_rotation(rng)))
    t, w = twist(rng.normal(size=6)), Wrench.of(jnp.asarray(rng.normal(size=6)))
    values = random_rigid(rng)[0], a, R, t, w, jnp.asarray(0.3)
    return jax.tree.map(lambda x: x.astype(dtype), values)


def test_float32_stays_float32(rng):
    results = jax.eval_shape(every_operation, *operands(rng, jnp.float32))
    assert {x.dtype for x in jax.tree.leaves(results)} == {jnp.dtype(jnp.float32)}


def test_vmap_equals_the_loop(rng):
    one, two = operands(rng, jnp.float64), operands(rng, jnp.float64)
    single = jax.jit(every_operation)
    loop = single(*one), single(*two)
    rows = jax.tree.map(lambda *x: jnp.stack(x), *loop)
    batch = jax.tree.map(lambda *x: jnp.stack(x), one, two)
    got = jax.jit(jax.vmap(every_operation))(*batch)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-12), got, rows)


def test_gradient_of_the_kinetic_energy_is_the_momentum(rng):
    body, M = random_rigid(rng)
    t = rng.normal(size=6)

    def energy(t):
        return 0.5 * dot(Twist.of(t), body.apply(Twist.of(t)))

    got = jax.jit(jax.grad(energy))(jnp.asarray(t))
    np.testing.assert_allclose(got, M @ t, atol=1e-13)
