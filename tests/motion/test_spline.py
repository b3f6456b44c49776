import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn import motion
from jaxdyn.motion import Spline
from tests.models import every_joint, random_state

TIMES = jnp.array([0.0, 0.5, 0.8, 2.0])


def waypoints(model, rng):
    return jnp.stack([random_state(model, rng)[0] for _ in TIMES])


@pytest.mark.parametrize(
    "make", [jd.robots.gripper, lambda: every_joint(1, branched=False)]
)
def test_it_goes_smoothly_through_all_waypoints(make, rng):
    model = make()
    qs, (qd0, qd1) = waypoints(model, rng), jnp.asarray(rng.normal(size=(2, model.nv)))
    move = motion.spline(model, TIMES, qs, qd0=qd0, qd1=qd1)
    m = jax.vmap(move)(jnp.concatenate([TIMES, TIMES[1:3] - 1e-12, jnp.ones(1)]))
    d = jax.vmap(jd.difference, (None, 0, 0))(model, qs, m.q[:4])
    np.testing.assert_allclose(d, np.zeros((4, model.nv)), atol=1e-14)
    np.testing.assert_allclose(m.qd[0], qd0, atol=1e-12)
    np.testing.assert_allclose(m.qd[3], qd1, atol=1e-12)
    np.testing.assert_allclose(m.qd[4:6], m.qd[1:3], atol=1e-9)
    np.testing.assert_allclose(m.qdd[4:6], m.qdd[1:3], atol=1e-8)


def test_it_rests_at_its_ends_if_no_rates_are_given(rng):
    model = jd.robots.gripper()
    move = motion.spline(model, TIMES, waypoints(model, rng))
    ends = jax.vmap(move)(TIMES[::3])
    np.testing.assert_allclose(ends.qd, np.zeros((2, 4)), atol=1e-13)
    assert (ends.qdd != 0).all()


def test_it_repeats_a_cubic_of_which_it_knows_the_end_rates():
    model = jd.robots.gripper()
    c = jnp.asarray(np.arange(16.0).reshape(4, 4))

    def cubic(t):
        return c[0] + t * (c[1] + t * (c[2] + t * c[3]))

    slope = jax.jacfwd(cubic)
    move = motion.spline(
        model, TIMES, jax.vmap(cubic)(TIMES), qd0=slope(0.0), qd1=slope(2.0)
    )
    ts = jnp.linspace(0, 2, 9)
    m = jax.vmap(move)(ts)
    np.testing.assert_allclose(m.q, jax.vmap(cubic)(ts), atol=1e-12)
    np.testing.assert_allclose(m.qdd, jax.vmap(jax.jacfwd(slope))(ts), atol=1e-11)


def test_two_waypoints_are_the_cubic_from_rest_to_rest():
    move = motion.spline(jd.robots.gripper(), TIMES[::3], jnp.eye(2, 4))
    expected = 3 * 0.25**2 - 2 * 0.25**3
    np.testing.assert_allclose(move(0.5).q[:2], [1 - expected, expected], atol=1e-15)


def test_steps_one_after_the_other_are_the_sum_for_coordinates(rng):
    model, free = jd.robots.gripper(), every_joint(1, branched=False)
    qs = waypoints(model, rng)
    plain = motion.spline(model, TIMES, qs)
    weights = motion.spline(free, TIMES, waypoints(free, rng))
    none = jnp.zeros((1, 4))
    steps = jnp.concatenate([none, jnp.diff(qs, axis=0), none])
    chained = Spline(model, TIMES, qs[0], weights.values, weights.slopes, steps)
    for a, b in zip(
        jax.tree.leaves(plain(0.6)), jax.tree.leaves(chained(0.6)), strict=True
    ):
        np.testing.assert_allclose(a, b, atol=1e-13)


def test_wrong_times_and_waypoints_are_errors_that_name_them(without_type_checker):
    model, qs = jd.robots.gripper(), jnp.zeros((4, 4))
    for times, message in (
        (TIMES + 1, r"times\[0\] is 1.0, expected 0"),
        (-TIMES, r"times\[1\] is -0.5 after -?0.0, expected increasing times"),
        (TIMES * 0, r"times\[1\] is 0.0 after 0.0, expected increasing times"),
        (TIMES[:1], r"times has shape \(1,\), expected two times or more"),
        (TIMES[:, None], r"times has shape \(4, 1\), expected two times or more"),
        (TIMES[:3], r"qs has shape \(4, 4\), expected \(3, 4\)"),
    ):
        with pytest.raises(ValueError, match=message):
            motion.spline(model, times, qs)
    with pytest.raises(RuntimeError, match="expected increasing times"):
        build = jax.jit(lambda times: motion.spline(model, times, qs))
        jax.block_until_ready(build(TIMES * 0))
