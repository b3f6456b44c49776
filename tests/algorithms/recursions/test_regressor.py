import jax
import numpy as np
import pytest

import jaxdyn as jd
from tests.models import every_joint, moving_base, random_state, with_effects


def test_joint_forces_are_linear_in_the_parameters(rng):
    model = with_effects(every_joint(3), rng)
    q, qd, qdd = random_state(model, rng)
    base = moving_base(rng)
    Y = jax.jit(jd.regressor)(model, q, qd, qdd, base=base)
    tau = jd.inverse_dynamics(model, q, qd, qdd, base=base)
    found = Y @ jd.dynamic_parameters(model)
    np.testing.assert_allclose(found, tau, atol=1e-12 * np.abs(tau).max())


@pytest.mark.slow
def test_columns_are_slopes_of_inverse_dynamics(rng):
    model = with_effects(jd.robots.random_tree(2, 4, joints=("spherical",)), rng)
    q, qd, qdd = random_state(model, rng)

    def forces(pi):
        changed = jd.with_inertial_parameters(model, pi)
        return jd.inverse_dynamics(changed, q, qd, qdd)

    slopes = jax.jit(jax.jacfwd(forces))(jd.inertial_parameters(model))
    Y = jax.jit(jd.regressor)(model, q, qd, qdd)[:, : 10 * model.n]
    np.testing.assert_allclose(Y, slopes.reshape(model.nv, -1), atol=1e-11)


def test_every_parameter_has_a_name_of_its_own():
    model = every_joint()
    names = jd.parameter_names(model)
    assert len(set(names)) == len(names) == jd.dynamic_parameters(model).size
    puma = jd.parameter_names(jd.robots.puma_560())
    assert puma[1] == "link1.h_x"
    assert puma[-1] == f"{jd.robots.puma_560().joint_names[-1]}.stiffness"
