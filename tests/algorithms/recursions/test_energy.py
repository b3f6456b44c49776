import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from tests.models import every_joint, random_state, with_effects


def test_kinetic_energy_is_the_quadratic_form_of_the_inertia_matrix(rng):
    model = with_effects(every_joint(), rng)
    q, qd, _ = random_state(model, rng)
    M = jd.mass_matrix(model, q)
    T = jax.jit(jd.kinetic_energy)(model, q, qd)
    np.testing.assert_allclose(T, 0.5 * qd @ M @ qd, rtol=1e-13)


def test_the_centroidal_matrix_maps_rates_to_momentum(rng):
    model = every_joint(1)
    q, qd, _ = random_state(model, rng)
    A = jax.jit(jd.centroidal_momentum_matrix)(model, q)
    h = jax.jit(jd.momentum)(model, q, qd)
    np.testing.assert_allclose(A[:3] @ qd, h.linear, atol=1e-12)
    np.testing.assert_allclose(A[3:] @ qd, h.angular, atol=1e-12)


def test_linear_momentum_is_mass_times_velocity_of_the_center(rng):
    model = every_joint(2)
    q, qd, _ = random_state(model, rng)

    def center(t):
        return jd.center_of_mass(model, jd.integrate(model, q, t * qd))

    v = jax.jit(jax.jacfwd(center))(0.0)
    h = jd.momentum(model, q, qd)
    np.testing.assert_allclose(h.linear, model.mass.sum() * v, atol=1e-12)


def test_springs_store_energy_and_the_lagrangian_is_the_difference(rng):
    b = jd.ModelBuilder("spring", gravity=(0, 0, 0))
    disc = jd.Inertial.cylinder(1.0, 0.1, 0.1)
    b.add_body("disc", inertial=disc, stiffness=3.0, rest=0.5)
    model, q, qd = b.build(), jnp.array([1.5]), jnp.array([2.0])
    T, V = jd.kinetic_energy(model, q, qd), jd.potential_energy(model, q)
    np.testing.assert_allclose(V, 1.5)
    np.testing.assert_allclose(jd.lagrangian(model, q, qd), T - V)


def test_momentum_of_a_massless_robot_is_zero_and_has_a_slope():
    b = jd.ModelBuilder("empty")
    b.add_body("body")
    model = b.build()
    momentum, slope = jax.value_and_grad(
        lambda qd: jd.momentum(model, jnp.zeros(1), qd).angular.sum()
    )(jnp.ones(1))
    assert momentum == 0.0
    np.testing.assert_array_equal(slope, 0.0)
