import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn import motion
from tests.models import every_joint, random_state


def test_a_cycloidal_motion_of_coordinates_is_that_of_the_papers():
    model = jd.robots.puma_mohan_saha()
    move = motion.cycloidal(model, jnp.zeros(6), jnp.full(6, jnp.pi), 10.0)
    t = np.linspace(0, 10, 7)
    m = jax.vmap(move)(jnp.asarray(t))
    w = 2 * np.pi * t / 10
    for value, expected in (
        (m.q, np.pi * t / 10 - np.sin(w) / 2),
        (m.qd, np.pi / 10 * (1 - np.cos(w))),
        (m.qdd, 2 * (np.pi / 10) ** 2 * np.sin(w)),
    ):
        np.testing.assert_allclose(value, np.outer(expected, np.ones(6)), atol=1e-15)


def test_a_cycloidal_motion_takes_every_joint_from_one_end_to_the_other(rng):
    model = every_joint(1, branched=False)
    q0, q1 = (random_state(model, rng)[0] for _ in range(2))
    m = jax.vmap(motion.cycloidal(model, q0, q1, 3.0))(jnp.linspace(0, 3, 7))
    d = [jd.difference(model, q, x) for q, x in zip((q0, q1), m.q[::6], strict=True)]
    np.testing.assert_allclose(d, np.zeros((2, model.nv)), atol=1e-14)
    # half way on the shortest way
    np.testing.assert_allclose(
        jd.difference(model, q0, m.q[3]), jd.difference(model, q0, q1) / 2, atol=1e-14
    )
    np.testing.assert_allclose(m.qd[::6], np.zeros((2, model.nv)), atol=1e-14)


def test_a_polynomial_has_the_rates_of_both_ends_for_every_joint(rng):
    model = every_joint(1, branched=False)
    start, end = (random_state(model, rng) for _ in range(2))
    names = ("qd0", "qdd0"), ("qd1", "qdd1")
    rates = {
        name: rate
        for state, pair in zip((start, end), names, strict=True)
        for name, rate in zip(pair, state[1:], strict=True)
    }
    move = motion.polynomial(model, start[0], end[0], 1.7, **rates)
    m = jax.vmap(move)(jnp.linspace(0, 1.7, 7))
    for k, (q, qd, qdd) in zip((0, 6), (start, end), strict=True):
        np.testing.assert_allclose(jd.difference(model, q, m.q[k]), 0 * qd, atol=1e-13)
        np.testing.assert_allclose(m.qd[k], qd, atol=1e-12)
        np.testing.assert_allclose(m.qdd[k], qdd, atol=1e-11)


def test_a_polynomial_between_rests_is_the_known_quintic():
    model = jd.robots.gripper()
    move = motion.polynomial(model, jnp.zeros(4), jnp.ones(4), 2.0)
    u = np.linspace(0, 1, 5)
    m = jax.vmap(move)(jnp.asarray(2 * u))
    np.testing.assert_allclose(m.q[:, 0], 10 * u**3 - 15 * u**4 + 6 * u**5, atol=1e-15)


@pytest.mark.parametrize("make", [motion.cycloidal, motion.polynomial])
@pytest.mark.parametrize("duration", [0.0, -1.0, float("nan"), float("inf")])
def test_a_duration_is_a_positive_number(make, duration):
    q = jnp.zeros(4)
    message = f"duration is {duration}, expected a positive number"
    with pytest.raises(ValueError, match=message):
        make(jd.robots.gripper(), q, q, duration)


def test_a_wrong_duration_is_found_in_traced_code_too():
    model, q = jd.robots.gripper(), jnp.zeros(4)
    build = jax.jit(lambda duration: motion.cycloidal(model, q, q, duration))
    with pytest.raises(RuntimeError, match="duration is wrong, expected a positive"):
        jax.block_until_ready(build(-1.0))


def test_wrong_shapes_are_errors_that_name_them(without_type_checker):
    model, q = jd.robots.gripper(), jnp.zeros(4)
    with pytest.raises(ValueError, match=r"q1 has shape \(3,\), expected \(4,\)"):
        motion.cycloidal(model, q, jnp.zeros(3), 1.0)
    with pytest.raises(ValueError, match=r"qdd1 has shape \(2, 4\), expected \(4,\)"):
        motion.polynomial(model, q, q, 1.0, qdd1=jnp.zeros((2, 4)))
    with pytest.raises(ValueError, match="q0 is complex, expected real numbers"):
        motion.polynomial(model, q.astype(complex), q, 1.0)
    with pytest.raises(ValueError, match=r"duration has shape \(2,\), expected \(\)"):
        motion.cycloidal(model, q, q, jnp.ones(2))
