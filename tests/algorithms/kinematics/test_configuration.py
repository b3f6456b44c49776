import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from jaxdyn.model import JOINT_TYPES


def all_joints(seed=0):
    return jd.robots.random_tree(
        seed, 12, joints=tuple(JOINT_TYPES), floating_base=True
    )


def test_difference_inverts_integrate(rng):
    model = all_joints()
    q = jd.random_configuration(model, jax.random.key(1))
    d = jnp.asarray(rng.uniform(-1, 1, model.nv))
    step = jax.jit(jd.difference)(model, q, jax.jit(jd.integrate)(model, q, d))
    np.testing.assert_allclose(step, d, atol=1e-14)


def test_a_step_along_the_difference_ends_at_the_other_pose():
    model = all_joints(1)
    q0, q1 = (jd.random_configuration(model, jax.random.key(i)) for i in (2, 3))
    q = jd.integrate(model, q0, jd.difference(model, q0, q1))
    expected, value = jd.forward_kinematics(model, q1), jd.forward_kinematics(model, q)
    np.testing.assert_allclose(value.R, expected.R, atol=1e-13)
    np.testing.assert_allclose(value.p, expected.p, atol=1e-13)


def test_derivative_of_the_difference_at_equal_poses_is_the_identity():
    model = all_joints(2)
    q = jd.random_configuration(model, jax.random.key(4))

    def there_and_back(d):
        return jd.difference(model, q, jd.integrate(model, q, d))

    zero = jnp.zeros(model.nv)
    for derivative in (jax.jacfwd, jax.jacrev):
        J = jax.jit(derivative(there_and_back))(zero)
        np.testing.assert_allclose(J, np.eye(model.nv), atol=1e-14)
    assert np.abs(jax.jit(jax.hessian(there_and_back))(zero)).max() < 1e-14


def test_integrate_keeps_quaternions_of_unit_length(rng):
    model = all_joints()
    q = jd.neutral(model)
    step = jax.jit(jd.integrate)
    for _ in range(100):
        q = step(model, q, jnp.asarray(rng.normal(size=model.nv)))
    lengths = jnp.linalg.norm(q[model.topology.quaternion_q], axis=1)
    np.testing.assert_allclose(lengths, 1.0, atol=1e-15)


def test_random_configurations_stay_within_limits():
    b = jd.ModelBuilder("limited")
    b.add_body("a", lower=-0.1, upper=0.2)
    b.add_body("b", "a", "prismatic", lower=2.0)
    b.add_body("c", "b", "spherical")
    model = b.build()
    keys = jax.random.split(jax.random.key(0), 500)
    q = jax.vmap(lambda key: jd.random_configuration(model, key))(keys)
    assert -0.1 <= q[:, 0].min() < -0.09 and 0.19 < q[:, 0].max() <= 0.2
    assert q[:, 1].min() >= 2.0
    np.testing.assert_allclose(jnp.linalg.norm(q[:, 2:], axis=1), 1.0, atol=1e-15)


def test_neutral_is_zero_with_identity_quaternions():
    model = jd.robots.random_tree(0, 2, joints=("spherical",), floating_base=True)
    assert jd.neutral(model).tolist() == [0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1]
