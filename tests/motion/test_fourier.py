from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn import motion
from tests.models import every_joint, random_state

T = 1.6


def coefficients(model, harmonics=3):
    rng = np.random.default_rng(5)
    return jnp.asarray(0.2 * rng.normal(size=(2, harmonics, model.nv)))


@cache
def example():
    model = every_joint(1, branched=False)
    q0 = random_state(model, np.random.default_rng(0))[0]
    return motion.fourier(model, q0, *coefficients(model), T)


@cache
def samples():
    """Times around one inside, both ends, and others outside."""
    h = 2e-3
    ts = np.concatenate([0.7 + h * np.arange(-3, 4), [0, T, -1, T + 1]])
    return h, jax.vmap(example())(jnp.asarray(ts))


def test_without_polynomial_it_is_the_series():
    model = jd.robots.gripper()
    a, b = coefficients(model)
    q0, ts = np.arange(4.0), np.linspace(0, T, 9)
    move = motion.fourier(model, jnp.asarray(q0), a, b, T, rest=False)
    m, a, b = jax.tree.map(np.asarray, (jax.vmap(move)(jnp.asarray(ts)), a, b))
    w = 2 * np.pi / T * np.arange(1, 4)
    s, c = np.sin(np.outer(ts, w)), np.cos(np.outer(ts, w))
    for value, expected in (
        (m.q, q0 + s @ a + c @ b),
        (m.qd, (c * w) @ a - (s * w) @ b),
        (m.qdd, -(s * w**2) @ a - (c * w**2) @ b),
    ):
        np.testing.assert_allclose(value, expected, atol=1e-12)


def test_the_polynomial_takes_off_the_rates_at_the_ends_and_nothing_of_the_place():
    model, none = jd.robots.gripper(), jnp.zeros(4)
    a, b = coefficients(model)
    both = [motion.fourier(model, none, a, b, T, rest=rest) for rest in (True, False)]
    ts = jnp.linspace(0, T, 9)
    m, series = (jax.vmap(move)(ts) for move in both)
    p = np.polynomial.Polynomial.fit(ts, np.asarray(series.q - m.q)[:, 1], 5)
    np.testing.assert_allclose(p(np.asarray(ts)), (series.q - m.q)[:, 1], atol=1e-13)
    np.testing.assert_allclose(m.q[::8], series.q[::8], atol=1e-14)


def test_every_joint_starts_and_ends_at_rest_in_the_same_place():
    _, m = samples()
    ends = slice(7, 9)
    np.testing.assert_allclose(m.qd[ends], np.zeros_like(m.qd[ends]), atol=1e-13)
    np.testing.assert_allclose(m.qdd[ends], np.zeros_like(m.qd[ends]), atol=1e-11)
    d = jd.difference(example().model, m.q[7], m.q[8])
    np.testing.assert_allclose(d, np.zeros_like(d), atol=1e-14)
    np.testing.assert_array_equal(m.q[9:], m.q[ends])
    assert not m.qd[9:].any() and not m.qdd[9:].any()
    assert float(example().duration) == T


def test_qd_is_the_rate_of_q_and_qdd_that_of_qd():
    h, m = samples()
    weights = np.array([-1, 9, -45, 0, 45, -9, 1]) / (60 * h)
    model = example().model
    steps = jax.vmap(lambda q: jd.difference(model, m.q[3], q))(m.q[:7])
    np.testing.assert_allclose(weights @ steps, m.qd[3], atol=1e-9)
    np.testing.assert_allclose(weights @ m.qd[:7], m.qdd[3], atol=1e-8)


def test_its_gradient_is_right():
    model = jd.robots.random_tree(0, 1, joints=("helical",))
    q0 = jd.neutral(model)
    weights = jnp.ones(1)

    def total(a, b, duration):
        m = motion.fourier(model, q0, a, b, duration)(0.7)
        return (jd.difference(model, q0, m.q) + m.qd + m.qdd) @ weights

    x = (*coefficients(model), jnp.asarray(T))
    dx = jax.tree.map(lambda x: jnp.cos(x + 1), x)
    gradient = jax.jit(jax.grad(total, (0, 1, 2)))(*x)
    slope = sum(jnp.vdot(a, b) for a, b in zip(gradient, dx, strict=True))

    @jax.jit
    def near(k):
        return total(*(a + k * 1e-3 * b for a, b in zip(x, dx, strict=True)))

    rows = ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))
    expected = sum(c * (near(k * 1.0) - near(-k * 1.0)) for k, c in rows) / 1e-3
    np.testing.assert_allclose(slope, expected, rtol=1e-8)


def test_it_stays_in_single_precision():
    model = jd.robots.gripper(dtype=jnp.float32)
    a, b = coefficients(model).astype(jnp.float32)
    q0 = jnp.zeros(4, jnp.float32)
    move = jax.eval_shape(lambda: motion.fourier(model, q0, a, b, T))
    m = jax.eval_shape(lambda move, t: move(t), move, jnp.asarray(0.5))
    assert {x.dtype for x in jax.tree.leaves((move, m))} == {jnp.dtype("float32")}


def test_wrong_inputs_are_errors_that_name_them(without_type_checker):
    model, q, a = jd.robots.gripper(), jnp.zeros(4), jnp.zeros((3, 4))
    for arguments, message in (
        ((q, a[0], a, T), r"sines has shape \(4,\), expected \(harmonics, 4\)"),
        ((q, a[:0], a, T), r"sines has shape \(0, 4\), expected \(harmonics, 4\)"),
        ((q, a, a[:2], T), r"cosines has shape \(2, 4\), expected \(3, 4\)"),
        ((q[:2], a, a, T), r"q0 has shape \(2,\), expected \(4,\)"),
        ((q, a, a, 0.0), "duration is 0.0, expected a positive number"),
    ):
        with pytest.raises(ValueError, match=message):
            motion.fourier(model, *arguments)
