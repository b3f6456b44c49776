import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.model import (
    Inertial,
    ModelBuilder,
    from_log_cholesky,
    from_pi,
    inertial_parameters,
    pseudo_inertia,
    to_log_cholesky,
    to_pi,
    with_inertial_parameters,
)

to_theta = jax.jit(to_log_cholesky)
from_theta = jax.jit(from_log_cholesky)
pi_of = jax.jit(to_pi)
body_of = jax.jit(from_pi)
pseudo = jax.jit(pseudo_inertia)
parameters = jax.jit(inertial_parameters)
exchanged = jax.jit(with_inertial_parameters)
slope_from_theta = jax.jit(jax.jacfwd(from_log_cholesky))


def random_points(rng):
    return rng.uniform(0.2, 1, size=8), rng.normal(size=(8, 3))


def of_points(masses, points):
    """Mass, centre of mass and inertia about it of point masses."""
    mass = masses.sum()
    com = masses @ points / mass
    spread = np.einsum("k,ki,kj->ij", masses, points - com, points - com)
    return mass, com, np.trace(spread) * np.eye(3) - spread


def random_pi(rng):
    return pi_of(*of_points(*random_points(rng)))


def pair(rng):
    builder = ModelBuilder("pair")
    for name in "ab":
        builder.add_body(name, inertial=Inertial(*of_points(*random_points(rng))))
    return builder.build()


def flat(parts):
    return np.concatenate([np.ravel(part) for part in parts])


def test_pi_is_the_sum_over_points_about_the_origin(rng):
    masses, points = random_points(rng)
    x, y, z = points.T
    moments = (
        1 + 0 * x,
        x,
        y,
        z,
        y * y + z * z,
        -x * y,
        -x * z,
        x * x + z * z,
        -y * z,
        x * x + y * y,
    )
    got = pi_of(*of_points(masses, points))
    np.testing.assert_allclose(got, np.stack(moments) @ masses, atol=1e-13)


def test_from_pi_inverts_to_pi(rng):
    body = of_points(*random_points(rng))
    np.testing.assert_allclose(flat(body_of(pi_of(*body))), flat(body), atol=1e-13)


def test_pseudo_inertia_is_the_second_moment_of_the_mass(rng):
    masses, points = random_points(rng)
    x = np.column_stack([points, np.ones(len(points))])
    got = pseudo(pi_of(*of_points(masses, points)))
    np.testing.assert_allclose(got, x.T @ (masses[:, None] * x), atol=1e-13)


def test_from_log_cholesky_inverts_to_log_cholesky(rng):
    pi = random_pi(rng)
    np.testing.assert_allclose(from_theta(to_theta(pi)), pi, atol=1e-13)


def test_to_log_cholesky_inverts_from_log_cholesky(rng):
    theta = rng.normal(size=10)
    np.testing.assert_allclose(to_theta(from_theta(theta)), theta, atol=1e-11)


def test_log_cholesky_zero_is_the_unit_pseudo_inertia():
    got = pseudo(from_theta(np.zeros(10)))
    np.testing.assert_array_equal(got, np.eye(4))


def test_log_cholesky_coordinates_stand_in_the_documented_places(rng):
    alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3 = theta = rng.normal(size=10)
    U = [
        [np.exp(d1), s12, s13, t1],
        [0, np.exp(d2), s23, t2],
        [0, 0, np.exp(d3), t3],
        [0, 0, 0, 1],
    ]
    U = np.exp(alpha) * np.array(U)
    got = pseudo(from_theta(theta))
    np.testing.assert_allclose(got, U @ U.T, rtol=1e-12, atol=1e-12)


def test_any_ten_numbers_give_a_positive_definite_pseudo_inertia(rng):
    thetas = rng.normal(size=(200, 10))
    J = jax.jit(jax.vmap(lambda t: pseudo_inertia(from_log_cholesky(t))))(thetas)
    assert np.linalg.eigvalsh(J).min() > 0


def test_any_ten_numbers_satisfy_the_triangle_inequality(rng):
    thetas = rng.normal(size=(200, 10))
    _, _, I = jax.jit(jax.vmap(lambda t: from_pi(from_log_cholesky(t))))(thetas)
    low, middle, high = np.linalg.eigvalsh(I).T
    assert (low + middle > high).all()


@pytest.mark.parametrize("theta", [np.zeros(10), None])
def test_gradient_of_log_cholesky_is_finite_and_right(rng, theta):
    theta = rng.normal(size=10) if theta is None else theta
    slope = slope_from_theta(theta)
    steps = 1e-5 * np.eye(10)
    want = [(from_theta(theta + s) - from_theta(theta - s)) / 2e-5 for s in steps]
    # second-order differences
    np.testing.assert_allclose(slope, np.stack(want, -1), rtol=1e-6, atol=1e-7)


def test_slopes_of_the_two_coordinate_changes_are_inverse(rng):
    pi = random_pi(rng)
    there = jax.jit(jax.jacfwd(to_log_cholesky))(pi)
    back = jax.jit(jax.jacrev(from_log_cholesky))(to_theta(pi))
    np.testing.assert_allclose(back @ there, np.eye(10), atol=1e-11)


def test_a_body_without_mass_has_its_centre_at_the_origin():
    pi = jnp.zeros(10).at[9].set(0.2)
    want = flat((0, np.zeros(3), np.diag([0, 0, 0.2])))
    np.testing.assert_array_equal(flat(body_of(pi)), want)


@pytest.mark.parametrize("mode", [jax.jacfwd, jax.jacrev])
def test_a_body_without_mass_has_a_finite_gradient(mode):
    slope = jax.jit(mode(from_pi))(jnp.zeros(10))
    assert np.isfinite(flat(slope)).all()


def test_model_parameters_are_those_of_each_body(rng):
    model = pair(rng)
    want = [pi_of(model.mass[i], model.com[i], model.inertia[i]) for i in range(2)]
    np.testing.assert_allclose(parameters(model), np.stack(want), rtol=1e-14)


def test_parameters_put_into_a_model_come_back(rng):
    model, pi = pair(rng), jnp.stack([random_pi(rng), random_pi(rng)])
    got = parameters(exchanged(model, pi))
    np.testing.assert_allclose(got, pi, atol=1e-13)


def test_only_inertial_leaves_are_exchanged(rng):
    model = pair(rng)
    other = exchanged(model, jnp.ones((2, 10)))
    names = [k for k in vars(model) if k not in ("mass", "com", "inertia")]
    assert all(np.array_equal(vars(model)[k], vars(other)[k]) for k in names)


@pytest.mark.parametrize("shape", [(3, 10), (1, 10)])
def test_parameters_of_another_shape_are_refused(rng, shape):
    message = r"pi has shape .*, expected \(2, 10\)"
    with pytest.raises(ValueError, match=message):
        with_inertial_parameters(pair(rng), jnp.zeros(shape))


@pytest.mark.parametrize(
    "function", [to_log_cholesky, from_log_cholesky, pseudo_inertia]
)
def test_float32_stays_float32(function):
    x = jax.ShapeDtypeStruct((10,), jnp.float32)
    assert jax.eval_shape(function, x).dtype == jnp.float32


def test_float32_stays_float32_between_pi_and_center(rng):
    body = [jnp.asarray(x, jnp.float32) for x in of_points(*random_points(rng))]
    results = jax.eval_shape(lambda *x: from_pi(to_pi(*x)), *body)
    assert {x.dtype for x in results} == {jnp.dtype(jnp.float32)}
