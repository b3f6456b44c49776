"""The examples: small in every run, as they are in `make test-all`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from examples import (
    delta_robot,
    fit,
    gripper,
    landing,
    operational_space,
    policy,
    randomized,
    rope,
    swing_up,
)


def test_a_quadruped_falls_on_its_legs():
    model = landing.quadruped()
    q, qd = landing.drop(model, jax.random.key(1), 250)
    assert jnp.isfinite(q).all() and jnp.isfinite(qd).all()
    assert 0.1 < q[-1, 2] < 0.4  # on its legs


@pytest.mark.slow
def test_quadrupeds_land_and_stand(tmp_path):
    q, qd, shares = landing.main(200, 2000, tmp_path)
    assert jnp.isfinite(q).all()
    stands = jnp.abs(qd[:, -1]).max(axis=1) < 1e-3
    assert stands.mean() > 0.9
    np.testing.assert_allclose(shares[stands], 1, atol=1e-3)
    assert (tmp_path / "landing.html").exists()


def test_a_policy_learns():
    with jax.numpy_dtype_promotion("standard"):  # optax wants it
        _, costs = policy.main(updates=3, starts=4, steps=10)
    assert np.isfinite(costs).all()


@pytest.mark.slow
def test_it_learns_to_hold_the_arm_up():
    with jax.numpy_dtype_promotion("standard"):
        _, costs = policy.main()
    assert costs[-1] < 0.2 * costs[0]


def test_an_arm_follows_a_circle(tmp_path):
    _, away = operational_space.main(updates=0, steps=50, out=tmp_path)
    assert jnp.linalg.norm(away, axis=1).max() < 0.1
    assert (tmp_path / "operational_space.html").exists()


@pytest.mark.slow
def test_it_follows_better_with_gains_by_their_gradient(tmp_path):
    with jax.numpy_dtype_promotion("standard"):
        errors, away = operational_space.main(out=tmp_path)
    assert errors[-1] < 0.5 * errors[0]


@pytest.mark.slow
def test_a_pole_swings_up(tmp_path):
    xs, costs = swing_up.main(out=tmp_path)
    assert abs(abs(xs[-1, 1]) - np.pi) < 0.01
    assert costs[-2] - costs[-1] < 1e-8  # converged


def test_swinging_up_lowers_its_cost(tmp_path):
    _, costs = swing_up.main(iterations=6, steps=20, out=tmp_path)
    assert costs[-1] < costs[0]


@pytest.mark.parametrize(
    "steps", [200, pytest.param(1500, marks=pytest.mark.slow)], ids=str
)
def test_a_motion_gives_back_its_parameters(steps, tmp_path):
    found, error, misfit = fit.main(steps=steps, out=tmp_path)
    assert 0.5 < misfit < 1.5
    np.testing.assert_array_less(np.abs(found - fit.TRUTH), 4 * error)


def test_gains_for_many_arms(tmp_path):
    with jax.numpy_dtype_promotion("standard"):
        costs, found = randomized.main(count=4, updates=2, steps=20, out=tmp_path)
    assert np.isfinite(costs).all() and np.isfinite(found["improved"]).all()


@pytest.mark.slow
def test_gains_for_a_thousand_arms_hold_another_thousand(tmp_path):
    with jax.numpy_dtype_promotion("standard"):
        costs, found = randomized.main(out=tmp_path)
    assert costs[-1] < costs[0]
    assert (found["improved"] < found["first"]).all()


@pytest.mark.slow
def test_a_gripper_picks_up_a_block(tmp_path):
    heights, _ = gripper.main(out=tmp_path)
    assert abs(heights[-1] - gripper.HALF - gripper.RAISED) < 0.01


@pytest.mark.slow
def test_a_rope_hangs_over_a_bar(tmp_path):
    points, qd, energy = rope.main(out=tmp_path)
    assert jnp.linalg.norm(points[-1, :, ::2], axis=1).min() > 0.99 * rope.RADIUS
    assert energy[-1] < energy[0] and points[-1, :, 2].max() > 0


@pytest.mark.slow
def test_a_delta_robot_draws_a_circle(tmp_path):
    *_, opening, error = delta_robot.main(rows=5, out=tmp_path)
    assert opening < 1e-8 and error.max() < 1e-6
