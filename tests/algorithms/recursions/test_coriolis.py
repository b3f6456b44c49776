import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from tests.models import every_joint, random_state


def test_the_rate_of_the_inertia_matrix_less_twice_the_coriolis_matrix_is_skew(rng):
    model = every_joint(branched=False)
    armature = jnp.asarray(rng.uniform(0.1, 1.0, model.nv))
    model = eqx.tree_at(lambda m: m.armature, model, armature)
    q, qd, _ = random_state(model, rng)

    @jax.jit
    def found(q, qd):
        def M(t):
            return jd.mass_matrix(model, jd.integrate(model, q, t * qd))

        dM = jax.jvp(M, (0.0,), (1.0,))[1]
        still = jd.bias_forces(model, q, qd) - jd.gravity_forces(model, q)
        return dM, jd.coriolis_matrix(model, q, qd), still

    dM, C, still = found(q, qd)
    S = dM - 2 * C
    np.testing.assert_allclose(S, -S.T, atol=1e-13 * np.abs(C).max())
    np.testing.assert_allclose(C @ qd, still, atol=1e-12 * np.abs(still).max())


@pytest.mark.slow
def test_entries_are_christoffel_symbols_where_q_are_coordinates(rng):
    joints = ("revolute", "prismatic", "helical", "universal", "cylindrical", "planar")
    model = jd.robots.random_tree(8, 6, joints=joints)
    q, qd, _ = random_state(model, rng)
    dM = jax.jit(jax.jacfwd(lambda q: jd.mass_matrix(model, q)))(q)
    symbols = 0.5 * (dM + dM.swapaxes(1, 2) - dM.transpose(2, 0, 1))  # [i, j, k]
    # c_ijk = (dM_ij/dq_k + dM_ik/dq_j - dM_jk/dq_i) / 2
    expected = jnp.einsum("ijk,k->ij", symbols, qd)
    C = jax.jit(jd.coriolis_matrix)(model, q, qd)
    np.testing.assert_allclose(C, expected, atol=1e-12 * np.abs(C).max())
