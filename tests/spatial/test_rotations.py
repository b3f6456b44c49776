import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.spatial import (
    Quaternion,
    Vec3,
    axis_angle,
    cos_sin,
    exp,
    frame_along,
    log,
)

AXES = [s * e for e in np.eye(3) for s in (1.0, -1.0)]


@jax.jit
def unit_and_slope(a):
    def normal(a):
        return Quaternion.of(a).unit().array()

    return normal(a), jax.jacrev(normal)(a)


def unit(rng, n):
    a = rng.normal(size=n)
    return a / np.linalg.norm(a)


def skew_matrix(a):
    return np.cross(a, np.eye(3), axisb=0, axisc=0)


def rodrigues(u, t):
    K = skew_matrix(u)
    return np.eye(3) + np.sin(t) * K + (1 - np.cos(t)) * K @ K


@jax.jit
def matrix(a):
    return Quaternion.of(a).matrix().array()


@jax.jit
def product(a, b):
    return (Quaternion.of(a) @ Quaternion.of(b)).array()


@jax.jit
def exp_array(d):
    return exp(Vec3.of(d)).array()


@jax.jit
def log_array(a):
    return log(Quaternion.of(a)).array()


turn = jax.jit(axis_angle)


@jax.jit
def frame(u):
    return frame_along(Vec3.of(u)).array()


exp_slope, log_slope, frame_slope = (
    jax.jit(jax.jacfwd(f)) for f in (exp_array, log_array, frame)
)
exp_curvature, log_curvature = (jax.jit(jax.hessian(f)) for f in (exp_array, log_array))


def test_quaternion_order_is_x_y_z_w():
    half = 0.35
    a = np.array([0, 0, np.sin(half), np.cos(half)])
    want = rodrigues(np.array([0, 0, 1.0]), 0.7)
    np.testing.assert_allclose(matrix(a), want, atol=1e-15)


def test_quaternion_matrix_turns_vectors_by_the_sandwich_product(rng):
    a, x = unit(rng, 4), rng.normal(size=3)
    conjugate = Quaternion.of(jnp.asarray(a)).T.array()
    turned = product(product(a, np.append(x, 0.0)), conjugate)
    np.testing.assert_allclose(turned[:3], matrix(a) @ x, atol=1e-14)


def test_quaternion_matrix_is_a_rotation(rng):
    R = np.asarray(matrix(unit(rng, 4)))
    got = np.append(R.T @ R, np.linalg.det(R))
    np.testing.assert_allclose(got, np.append(np.eye(3), 1), atol=1e-14)


def test_quaternion_product_is_the_product_of_the_matrices(rng):
    a, b = unit(rng, 4), unit(rng, 4)
    want = matrix(a) @ matrix(b)
    np.testing.assert_allclose(matrix(product(a, b)), want, atol=1e-14)


def test_quaternion_conjugate_is_the_inverse_rotation(rng):
    a = unit(rng, 4)
    conjugate = Quaternion.of(jnp.asarray(a)).T.array()
    np.testing.assert_allclose(matrix(conjugate), matrix(a).T, atol=1e-15)


def test_quaternion_unit_divides_by_the_length(rng):
    a = 5 * rng.normal(size=4)
    got = Quaternion.of(jnp.asarray(a)).unit().array()
    np.testing.assert_allclose(got, a / np.linalg.norm(a), rtol=1e-14)


LENGTHS = [
    *((np.float64, x) for x in (1e-300, 1e-200, 1e-3, 17.0, 1e200, 1e300)),
    *((np.float32, x) for x in (1e-36, 1e-30, 1e-3, 17.0, 1e30, 1e34)),
]


@pytest.mark.parametrize("dtype, length", LENGTHS)
def test_quaternion_of_any_length_becomes_unit_with_its_derivatives(dtype, length, rng):
    a = unit(rng, 4)
    scaled = jnp.asarray(length * a, dtype)
    got, slope = unit_and_slope(scaled)
    assert got.dtype == slope.dtype == dtype
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(got, a, atol=2 * eps)
    slope = np.asarray(slope, np.longdouble) * np.longdouble(length)
    projector = np.eye(4) - np.outer(a, a)
    np.testing.assert_allclose(slope.astype(float), projector, atol=4 * eps)


@pytest.mark.parametrize("dtype, far", [(np.float64, 1e60), (np.float32, 1e8)])
def test_second_derivatives_of_unit_quaternions_scale_with_the_length(dtype, far, rng):
    a, w = rng.normal(size=(2, 4)).astype(dtype)
    bend = jax.jit(jax.hessian(lambda a: w @ Quaternion.of(a).unit().array()))
    want = np.asarray(bend(a), float)
    for length in (1 / far, far):
        found = np.asarray(bend(jnp.asarray(a * dtype(length))), float) * length**2
        np.testing.assert_allclose(found, want, atol=60 * np.finfo(dtype).eps)


def test_quaternion_passes_vmap(rng):
    a = rng.normal(size=(5, 4))
    rows = np.stack([matrix(row) for row in a])
    np.testing.assert_allclose(jax.vmap(matrix)(a), rows, atol=1e-14)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 0.3, 3.0, -2.0, 7.0])
def test_axis_angle_is_the_exponential(rng, angle):
    u = unit(rng, 3)
    got = turn(Vec3.of(jnp.asarray(u)), angle).array()
    np.testing.assert_allclose(got, matrix(exp_array(angle * u)), atol=1e-14)


def test_axis_angle_agrees_with_rodrigues(rng):
    u = unit(rng, 3)
    got = turn(Vec3.of(jnp.asarray(u)), 1.2).array()
    np.testing.assert_allclose(got, rodrigues(u, 1.2), atol=1e-14)


def test_axis_angle_has_its_derivatives_at_angle_zero(rng):
    u = unit(rng, 3)

    def f(t):
        return axis_angle(Vec3.of(jnp.asarray(u)), t).array()

    slope = jax.jacfwd(f)
    got = jax.jit(lambda t: jnp.stack([slope(t), jax.jacfwd(slope)(t)]))(0.0)
    K = skew_matrix(u)
    np.testing.assert_allclose(got, np.stack([K, K @ K]), atol=1e-14)


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-5, 0.0999, 0.1001, 2.0, np.pi - 1e-6])
def test_log_inverts_exp(rng, angle):
    d = angle * unit(rng, 3)
    np.testing.assert_allclose(log_array(exp_array(d)), d, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("w", [1e-6, 0.3, 0.9994, 0.9996, 1 - 1e-12, 1.0])
def test_exp_inverts_log(rng, w):
    a = np.append(np.sqrt(1 - w * w) * unit(rng, 3), w)
    np.testing.assert_allclose(exp_array(log_array(a)), a, atol=1e-14)


def test_log_of_both_quaternions_of_a_rotation_is_one_vector(rng):
    a = unit(rng, 4)
    np.testing.assert_array_equal(log_array(-a), log_array(a))


def test_log_is_at_most_half_a_turn(rng):
    a = rng.normal(size=(1000, 4))
    a /= np.linalg.norm(a, axis=1, keepdims=True)
    d = jax.jit(jax.vmap(log_array))(a)
    assert np.linalg.norm(d, axis=1).max() <= np.pi


@pytest.mark.parametrize(
    "slope", [exp_slope, jax.jit(jax.jacrev(exp_array))], ids=["jacfwd", "jacrev"]
)
def test_exp_has_its_derivative_at_zero(slope):
    got = slope(np.zeros(3))
    np.testing.assert_array_equal(got, np.vstack([np.eye(3) / 2, np.zeros(3)]))


@pytest.mark.parametrize(
    "slope", [log_slope, jax.jit(jax.jacrev(log_array))], ids=["jacfwd", "jacrev"]
)
def test_log_has_its_derivative_at_the_identity(slope):
    got = slope(np.array([0, 0, 0, 1.0]))
    np.testing.assert_array_equal(got, np.hstack([2 * np.eye(3), np.zeros((3, 1))]))


def test_exp_has_its_second_derivative_at_zero():
    want = np.zeros((4, 3, 3))
    want[3] = -np.eye(3) / 4  # w = cos(|d| / 2)
    np.testing.assert_array_equal(exp_curvature(np.zeros(3)), want)


def test_log_has_its_second_derivative_at_the_identity():
    want = np.zeros((3, 4, 4))  # 2 v / w + O(v^3)
    want[:, :3, 3] = want[:, 3, :3] = -2 * np.eye(3)
    np.testing.assert_array_equal(log_curvature(np.array([0, 0, 0, 1.0])), want)


# |d| = 0.1 and |v|^2 = 1e-3 are where series and closed form meet
MEETING = {
    "exp": (exp_array, exp_slope, exp_curvature),
    "log": (log_array, log_slope, log_curvature),
}


def beside(rng, name, factor):
    """A point where series and closed form meet, a little to one side."""
    u = unit(rng, 3)
    if name == "exp":
        return 0.1 * factor * u
    n = np.sqrt(1e-3) * factor
    return np.append(n * u, np.sqrt(1 - n * n))


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("name", MEETING)
def test_series_and_closed_form_meet(rng, name, order):
    state = rng.bit_generator.state
    below = MEETING[name][order](beside(rng, name, 1 - 1e-14))
    rng.bit_generator.state = state
    above = MEETING[name][order](beside(rng, name, 1 + 1e-14))
    # second derivatives of the closed form lose two digits so near zero
    np.testing.assert_allclose(below, above, atol=(1e-15, 1e-13, 1e-12)[order])


@pytest.mark.parametrize("factor", [0.9, 1.1])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("name", MEETING)
def test_derivatives_on_both_sides_agree_with_differences(rng, name, order, factor):
    x, h = beside(rng, name, factor), 1e-4
    f = MEETING[name][order - 1]
    steps = h * np.eye(x.size)
    # fourth-order differences
    want = [
        (8 * (f(x + s) - f(x - s)) - f(x + 2 * s) + f(x - 2 * s)) / 12 for s in steps
    ]
    got = np.moveaxis(MEETING[name][order](x), -1, 0)
    np.testing.assert_allclose(got, np.stack(want) / h, atol=1e-9)


@pytest.mark.parametrize("angle", [0.099, 0.101, 1.0, 3.0])
def test_exp_agrees_with_half_angles(rng, angle):
    u = unit(rng, 3)
    want = np.append(np.sin(angle / 2) * u, np.cos(angle / 2))
    np.testing.assert_allclose(exp_array(angle * u), want, atol=1e-15)


@pytest.mark.parametrize("u", [*AXES, None])
def test_frame_along_is_a_rotation_with_third_column_u(rng, u):
    u = unit(rng, 3) if u is None else u
    R = np.asarray(frame(3 * u))
    got = np.vstack([R.T @ R, R[:, 2], np.full(3, np.linalg.det(R))])
    np.testing.assert_allclose(got, np.vstack([np.eye(3), u, np.ones(3)]), atol=1e-14)


def test_frame_along_z_is_the_identity():
    np.testing.assert_array_equal(frame(np.array([0, 0, 2.0])), np.eye(3))


@pytest.mark.parametrize("u", AXES)
def test_frame_along_has_a_finite_derivative_along_axes(u):
    projector = np.eye(3) - np.outer(u, u)  # of the third column, for a unit vector
    slope = np.asarray(frame_slope(u))
    finite = np.where(np.isfinite(slope).all(), slope[:, 2], np.nan)
    np.testing.assert_allclose(finite, projector, atol=1e-15)


@pytest.mark.parametrize(
    "function, size",
    [
        (exp_array, 3),
        (log_array, 4),
        (matrix, 4),
        (frame, 3),
        (lambda a: Quaternion.of(a).unit().array(), 4),
        (lambda a: axis_angle(Vec3.of(a[1:]), a[0]).array(), 4),
        (lambda a: (Quaternion.of(a) @ Quaternion.of(a).T).array(), 4),
    ],
)
def test_float32_stays_float32(function, size):
    x = jax.ShapeDtypeStruct((size,), jnp.float32)
    assert jax.eval_shape(function, x).dtype == jnp.float32


@pytest.mark.parametrize("dtype, atol", [(np.float64, 1.2e-16), (np.float32, 6e-8)])
@pytest.mark.parametrize("largest", [1.0, 100.0, 1e4])
def test_cosine_and_sine_are_right_to_the_last_place(dtype, atol, largest, rng):
    angle = rng.uniform(-largest, largest, 100_000).astype(dtype)
    exact = angle.astype(np.longdouble)
    c, s = map(np.asarray, jax.jit(cos_sin)(jnp.asarray(angle)))
    assert c.dtype == s.dtype == dtype
    np.testing.assert_allclose(
        c.astype(np.longdouble), np.cos(exact), atol=atol, rtol=0
    )
    np.testing.assert_allclose(
        s.astype(np.longdouble), np.sin(exact), atol=atol, rtol=0
    )


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_cosine_and_sine_of_short_numbers(dtype):
    angle = jnp.linspace(-3, 3, 201).astype(dtype)
    exact, last_place = angle.astype(jnp.float64), float(jnp.finfo(dtype).eps)
    for found, expected in zip(cos_sin(angle), (jnp.cos, jnp.sin), strict=True):
        assert found.dtype == dtype
        error = found.astype(jnp.float64) - expected(exact)
        assert jnp.abs(error).max() < last_place


def test_cosine_and_sine_of_multiples_of_a_quarter_turn_and_of_large_angles():
    quarters = jnp.asarray(np.arange(-8, 9) * (np.pi / 2))
    c, s = cos_sin(quarters)
    np.testing.assert_allclose(c, np.cos(quarters), atol=1.2e-16)
    np.testing.assert_allclose(s, np.sin(quarters), atol=1.2e-16)
    large = jnp.asarray([1e8, -1e10])  # as if the angle differed in its last place
    np.testing.assert_allclose(cos_sin(large)[1], np.sin(large), atol=4e-16 * 1e10)
    assert all(np.abs(x).max() <= 1 for x in cos_sin(jnp.asarray([1e20, -1e300])))
    assert all(np.isnan(x) for x in cos_sin(jnp.asarray(np.inf)))


def test_derivatives_of_cosine_and_sine_of_any_order():
    def wave(x):
        c, s = cos_sin(x)
        return c + 2 * s

    for x in (0.0, 0.3, -2.0, 40.0):
        third = jax.grad(jax.grad(jax.grad(wave)))(x)
        np.testing.assert_allclose(third, np.sin(x) - 2 * np.cos(x), atol=1e-15)
