"""The examples: small in every run, as they are in `make test-all`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from examples import landing, policy


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
