import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from tests.models import every_joint, random_state, with_effects


def test_the_factor_is_unit_upper_triangular_with_positive_pivots(rng):
    model = with_effects(jd.robots.random_tree(4, 12, floating_base=True), rng)
    q, _, _ = random_state(model, rng)

    @jax.jit
    def run(model, q):
        f = jd.factor(model, q)
        M = jd.mass_matrix(model, q)
        return f.U, f.is_positive, f.matrix(), f.log_det(), M

    U, is_positive, product, log_det, M = run(model, q)
    np.testing.assert_array_equal(U, np.triu(U))
    np.testing.assert_array_equal(np.diagonal(U), 1.0)
    assert is_positive
    np.testing.assert_allclose(product, M, atol=1e-13 * np.abs(M).max())
    np.testing.assert_allclose(log_det, np.linalg.slogdet(M)[1], rtol=1e-13)


def test_the_factor_solves_many_right_hand_sides(rng):
    model = every_joint()
    q, _, _ = random_state(model, rng)
    b = jnp.asarray(rng.normal(size=(model.nv, 4)))
    f = jax.jit(jd.factor)(model, q)
    M = jd.mass_matrix(model, q)
    np.testing.assert_allclose(M @ f.solve(b), b, atol=1e-10)
    np.testing.assert_allclose(M @ f.inverse(), np.eye(model.nv), atol=1e-10)
    np.testing.assert_allclose(f.solve(b[:, 0]), f.solve(b)[:, 0], rtol=1e-12)


def test_a_right_hand_side_of_the_wrong_length_is_an_error():
    f = jd.factor(jd.robots.puma_560(), jnp.zeros(6))
    with pytest.raises(ValueError, match=r"b has shape \(5,\), expected \(6,\)"):
        f.solve(jnp.zeros(5))


def test_a_pivot_that_vanishes_in_one_configuration_names_its_joint():
    b = jd.ModelBuilder("folding")
    rod = jd.Inertial.rod(1.0, (0, 0, 0), (0, 0, 1.0))  # along the axis when q1 = 0
    b.add_body("yaw", joint="revolute", axis=(0, 0, 1))
    b.add_body("pitch", "yaw", joint="revolute", axis=(0, 1, 0), inertial=rod)
    model = b.build()
    assert jd.factor(model, jnp.array([0.0, 0.5])).is_positive
    for upright in (0.0, np.pi):  # sin(pi) is not zero: rounding must not hide it
        with pytest.raises(ValueError, match="no inertia resists joint 'j_yaw' at the"):
            jd.factor(model, jnp.array([0.3, upright]))
    assert not jax.jit(jd.factor)(model, jnp.zeros(2)).is_positive
    with pytest.raises(ValueError, match="model 'folding': q is .*, expected finite"):
        jd.factor(model, jnp.array([0.0, jnp.nan]))


def test_right_hand_sides_of_any_type_are_taken_and_complex_ones_refused():
    f = jd.factor(jd.robots.puma_560(dtype=jnp.float32), jnp.zeros(6, jnp.float32))
    assert f.solve(jnp.arange(6)).dtype == jnp.float32
    assert f.solve(jnp.ones(6, jnp.float32)).dtype == jnp.float32
    assert f.solve(jnp.ones(6, jnp.float64)).dtype == jnp.float64
    with pytest.raises(ValueError, match="b is complex, expected real numbers"):
        f.solve(jnp.ones(6, complex))


def test_pivots_that_are_sure_need_no_test_on_the_host(monkeypatch):
    from jaxdyn.dynamics import _forward

    asked = []
    monkeypatch.setattr(_forward, "singular_joints", lambda *x: asked.append(x))
    model = jd.robots.chain(2)
    jd.factor(model, jnp.zeros(2))
    assert not asked
    jd.factor(model, jnp.array([0.0, jnp.nan]))
    assert asked
