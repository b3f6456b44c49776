import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from tests.models import every_joint, random_state


@pytest.mark.slow
def test_the_complement_shapes_twists_and_fulfils_the_constraints(rng):
    model = every_joint(2)
    q, qd, _ = random_state(model, rng)
    T, K = (jax.jit(f)(model, q) for f in (jd.natural_complement, jd.joint_constraints))
    bodies, poses = jd.body_velocities(model, q, qd), jd.forward_kinematics(model, q)
    c = jnp.einsum("nij,nj->ni", poses.R, model.com)
    v = bodies.v + jnp.cross(bodies.w, c)
    t = jnp.concatenate([v, bodies.w], axis=1).ravel()
    np.testing.assert_allclose(T @ qd, t, atol=1e-13)
    np.testing.assert_allclose(K @ T, 0.0, atol=1e-13)
    assert np.linalg.matrix_rank(K, tol=1e-10) == 6 * model.n - model.nv


def test_denoc_matrices_are_triangular_and_diagonal_and_shape_twists(rng):
    model = every_joint(2)
    q, qd, _ = random_state(model, rng)
    N_l, N_d = jax.jit(jd.denoc_matrices)(model, q)
    bodies = jd.body_velocities(model, q, qd)
    t = jnp.concatenate([bodies.v, bodies.w], axis=1).ravel()
    np.testing.assert_allclose(N_l @ N_d @ qd, t, atol=1e-13)
    blocks = N_l.reshape(model.n, 6, model.n, 6).swapaxes(1, 2)
    for i in range(model.n):
        np.testing.assert_array_equal(blocks[i, i], np.eye(6))
        np.testing.assert_array_equal(blocks[i, i + 1 :], 0.0)
        outside = np.delete(np.arange(model.nv), np.r_[model.v_slice(i)])
        np.testing.assert_array_equal(N_d[6 * i : 6 * i + 6][:, outside], 0.0)


def test_equations_of_motion_follow_from_the_complement(rng):
    """[Angeles] eq. 7.57: the constraint wrenches drop out."""
    model = jd.robots.random_tree(5, 4, joints=("revolute", "prismatic"))
    q, qd, qdd = random_state(model, rng)

    @jax.jit
    def forces(q, qd, qdd):
        T, dT = jax.jvp(lambda q: jd.natural_complement(model, q), (q,), (qd,))
        t, dt = (T @ qd).reshape(-1, 6), (T @ qdd + dT @ qd).reshape(-1, 6)
        R = jd.forward_kinematics(model, q).R
        I = R @ model.inertia @ R.swapaxes(-1, -2)
        f = model.mass[:, None] * (dt[:, :3] - model.gravity[None])
        Iw = jnp.einsum("nij,nj->ni", I, t[:, 3:])
        n = jnp.einsum("nij,nj->ni", I, dt[:, 3:]) + jnp.cross(t[:, 3:], Iw)
        return T.T @ jnp.concatenate([f, n], axis=1).ravel()

    tau = jd.inverse_dynamics(model, q, qd, qdd)
    np.testing.assert_allclose(forces(q, qd, qdd), tau, atol=1e-12)
