"""A robot with a joint that follows another is identified from its log."""

import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from jaxdyn import identify


def test_linear_fits_predict_the_forces_of_a_coupled_robot(rng):
    model = jd.robots.chain(3).with_coupling(2, {0: -0.5}, offset=0.2)
    w, a, at = rng.uniform(0.5, 3, (3, 1, model.nv))
    t = np.linspace(0, 6, 60)
    q, qd, qdd = (
        jnp.array(x)
        for x in (
            a * np.sin(w * t[:, None] + at),
            a * w * np.cos(w * t[:, None] + at),
            -a * w**2 * np.sin(w * t[:, None] + at),
        )
    )
    forces = jax.vmap(jd.inverse_dynamics, (None, 0, 0, 0))
    log = jd.io.Log.of(model, t, q, qd, qdd, forces(model, q, qd, qdd))
    found = identify.consistent(identify.least_squares(model, log)).model
    assert found.couplings and found.nv == 2
    tau = forces(found, q, qd, qdd)
    np.testing.assert_allclose(tau, log.tau, atol=1e-5 * np.abs(log.tau).max())
