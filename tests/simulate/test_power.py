import diffrax
import equinox as eqx
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from tests.models import every_joint, random_state


def test_power_in_less_power_lost_is_the_rate_of_energy(rng):
    model = every_joint(1, branched=False)
    model = eqx.tree_at(lambda m: m.damping, model, replace_fn=lambda x: x + 0.1)
    q, qd, tau = random_state(model, rng)
    ts = jnp.linspace(0.0, 0.1, 41)
    wind = jnp.asarray(rng.normal(size=(model.n, 6)))
    tight = diffrax.PIDController(rtol=1e-10, atol=1e-12)
    run = jd.simulate(
        model, q, qd, ts, torque=tau, f_ext=wind, stepsize_controller=tight
    )
    balance = jd.power_balance(model, run)
    size = jnp.abs(balance.energy_rate).max()
    assert jnp.abs(balance.dissipated).max() > 1e-3
    np.testing.assert_allclose(balance.error, 0, atol=1e-12 * size)
    np.testing.assert_allclose(balance.drift, 0, atol=1e-7 * size)
    np.testing.assert_allclose(balance.actuators, run.qd @ tau, atol=1e-12 * size)
    wrong = eqx.tree_at(lambda r: r.qdd, run, run.qdd + 1.0)  # an error is seen
    assert jnp.abs(jd.power_balance(model, wrong).error).max() > 1e-4 * size


def test_work_of_a_cubic_power_is_exact_between_rows():
    from jaxdyn.simulate._power import _integral

    ts = jnp.array([0.0, 0.3, 0.4, 1.0, 1.1])
    np.testing.assert_allclose(_integral(ts, ts**2), ts**3 / 3, atol=1e-15)
    np.testing.assert_allclose(_integral(ts[:2], ts[:2]), ts[:2] ** 2 / 2, atol=1e-15)
