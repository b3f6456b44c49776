import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from tests.models import random_state

ARM = jd.robots.puma_560()
BODY = ARM.names[-1]


@pytest.fixture
def state(rng):
    return random_state(ARM, rng)


def test_rates_of_a_frame_are_those_along_the_motion(state):
    q, qd, qdd = state

    def at(t):
        return jd.integrate(ARM, q, t * qd + t**2 / 2 * qdd)

    def position(t):
        return jd.frame_pose(ARM, at(t), BODY)[1]

    one = (jnp.ones(()),)
    speed = jax.jvp(position, (0.0,), one)[1]
    second = jax.jvp(lambda t: jax.jvp(position, (t,), one)[1], (0.0,), one)[1]
    v = jd.frame_velocity(ARM, q, qd, BODY)
    a = jd.frame_acceleration(ARM, q, qd, qdd, BODY)
    np.testing.assert_allclose(v[:3], speed, atol=1e-12)
    np.testing.assert_allclose(a[:3], second, atol=1e-10)


def test_a_wrench_at_a_point_does_the_work_of_its_force(state):
    q, qd, _ = state
    force, moment, point = (
        jnp.array(x) for x in ([1.0, 2, 3], [3.0, -1, 0], [0.1, 0, 0.2])
    )
    f_ext = jd.point_wrench(ARM, q, BODY, force, moment, point)
    zero = jnp.zeros(ARM.nv)
    tau = jd.inverse_dynamics(ARM, q, zero, zero)
    tau = tau - jd.inverse_dynamics(ARM, q, zero, zero, f_ext=f_ext)
    twist = jd.jacobian(ARM, q, BODY, point) @ qd
    work = twist @ jnp.concatenate([force, moment])
    np.testing.assert_allclose(tau @ qd, work, rtol=1e-10)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-3, 0.0099, 0.0101, 1.0, 3.0, 3.1415])
def test_the_rotation_vector_and_its_derivative(angle):
    axis = np.array([2.0, -1.0, 2.0]) / 3

    def turned(w):
        K = jnp.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
        return jax.scipy.linalg.expm(K)

    w = jnp.asarray(angle * axis)
    np.testing.assert_allclose(jd.rotation_vector(turned(w)), w, atol=1e-10)
    if angle < 3.1:
        slope = jax.jacfwd(lambda w: jd.rotation_vector(turned(w)))(w)
        np.testing.assert_allclose(slope, np.eye(3), atol=1e-9)


def test_the_task_inertia_is_that_of_the_dense_matrices(state):
    q, _, tau = state
    J, M = jd.jacobian(ARM, q, BODY), jd.mass_matrix(ARM, q)
    at = jd.task_space(ARM, q, BODY, rows=slice(3))
    J = J[:3]
    expected = jnp.linalg.inv(J @ jnp.linalg.solve(M, J.T))
    np.testing.assert_allclose(at.inertia, expected, rtol=1e-8)
    np.testing.assert_allclose(J @ at.inverse, np.eye(3), atol=1e-9)
    moved = J @ jnp.linalg.solve(M, at.null(tau))
    np.testing.assert_allclose(moved, 0, atol=1e-9 * float(jnp.abs(tau).max()))


def away(kp, steps):
    """The square of the error of a pose after some steps of control."""
    q0 = jnp.array([0.3, -1.0, 0.8, 0.2, 0.9, 0.1])
    goal = jd.frame_pose(ARM, q0 + 0.2, BODY)
    law = jd.motion.operational_space(
        *(ARM, BODY, goal, kp, 40.0), posture=q0, damping=1e-9
    )
    q, _ = jd.rollout(ARM, q0, jnp.zeros(6), law, 2e-3, steps=steps)
    return (jd.pose_error(*jd.frame_pose(ARM, q[-1], BODY), *goal) ** 2).sum()


def test_operational_space_control_reaches_a_pose():
    assert away(400.0, 500) < 1e-8


@pytest.mark.slow
def test_it_has_gradients():
    few, h = jax.jit(jax.value_and_grad(lambda kp: away(kp, 20))), 1e-2
    difference = (few(400.0 + h)[0] - few(400.0 - h)[0]) / (2 * h)
    np.testing.assert_allclose(few(400.0)[1], difference, rtol=1e-5)


def test_errors_name_the_frame(without_type_checker):
    with pytest.raises(
        ValueError, match="no frame or body 'link', .* did you mean 'link"
    ):
        jd.frame_pose(jd.robots.chain(3), jnp.zeros(3), "link")
    with pytest.raises(ValueError, match=r"force has shape \(2,\), expected \(3,\)"):
        jd.point_wrench(ARM, jnp.zeros(ARM.nq), BODY, jnp.zeros(2))
    with pytest.raises(ValueError, match=r"kp has shape \(5,\), expected one number"):
        goal = jnp.eye(3), jnp.zeros(3)
        jd.motion.operational_space(
            *(ARM, BODY, goal, jnp.ones(5), 1.0), posture=jnp.zeros(ARM.nq)
        )
