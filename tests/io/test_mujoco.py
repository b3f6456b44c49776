"""States in the order and axes of MuJoCo."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.io import from_mujoco, load_mjcf, to_mujoco

GEOM = '<geom size="0.1"/>'
MIXED = f"""
<mujoco><worldbody>
  <body><joint type="slide"/>{GEOM}<body><joint type="ball"/>{GEOM}</body></body>
  <body><freejoint/>{GEOM}<body><joint/>{GEOM}</body></body>
  <body><freejoint/>{GEOM}</body>
</worldbody></mujoco>"""
to_both, from_both = jax.jit(to_mujoco), jax.jit(from_mujoco)


@cache
def mixed():
    return load_mjcf(MIXED)


@pytest.fixture
def state(rng):
    """A model with every joint type of MuJoCo, and a state of it."""
    model = mixed()
    q = rng.normal(size=model.nq)
    for places in model.topology.quaternion_q:
        q[places] /= np.linalg.norm(q[places])
    return model, jnp.asarray(q), jnp.asarray(rng.normal(size=model.nv))


def test_quaternions_have_w_first_in_mujoco():
    model = mixed()
    q = jnp.arange(float(model.nq))
    qpos, _ = to_both(model, q, jnp.zeros(model.nv))
    np.testing.assert_array_equal(qpos[:5], (0, 4, 1, 2, 3))
    np.testing.assert_array_equal(qpos[5:13], (5, 6, 7, 11, 8, 9, 10, 12))
    np.testing.assert_array_equal(qpos[13:], (13, 14, 15, 19, 16, 17, 18))


def test_linear_velocity_of_a_free_joint_is_in_world_axes_in_mujoco():
    text = f"<worldbody><body><freejoint/>{GEOM}</body></worldbody>"
    model = load_mjcf(f"<mujoco>{text}</mujoco>")
    half = np.sqrt(0.5)
    q = jnp.array([1.0, 2, 3, 0, 0, half, half])  # a quarter turn about z
    _, qvel = to_both(model, q, jnp.array([1.0, 2, 3, 4, 5, 6]))
    np.testing.assert_allclose(qvel, (-2, 1, 3, 4, 5, 6), rtol=0, atol=1e-15)


def test_from_mujoco_inverts_to_mujoco(state):
    model, q, qd = state
    back = from_both(model, *to_both(model, q, qd))
    np.testing.assert_allclose(back[0], q, rtol=0)
    np.testing.assert_allclose(back[1], qd, rtol=0, atol=1e-14)


def test_to_mujoco_inverts_from_mujoco(state):
    model, q, qd = state
    qpos, qvel = to_both(model, q, qd)
    back = to_both(model, *from_both(model, qpos, qvel))
    np.testing.assert_allclose(back[0], qpos, rtol=0)
    np.testing.assert_allclose(back[1], qvel, rtol=0, atol=1e-14)


def test_all_but_free_joints_keep_their_velocities(state):
    model, q, qd = state
    _, qvel = to_both(model, q, qd)
    kept = np.setdiff1d(np.arange(model.nv), model.topology.position_v)
    np.testing.assert_array_equal(qvel[kept], qd[kept])


def test_state_without_quaternions_is_unchanged():
    model = load_mjcf(
        f"<mujoco><worldbody><body><joint/>{GEOM}</body></worldbody></mujoco>"
    )
    q, qd = jnp.array([0.3]), jnp.array([0.4])
    qpos, qvel = to_both(model, q, qd)
    np.testing.assert_array_equal(np.stack([qpos, qvel]), np.stack([q, qd]))


def test_batches_of_states_convert_under_vmap(state):
    model, q, qd = state
    both = jax.jit(jax.vmap(to_mujoco, in_axes=(None, 0, 0)))(
        model, jnp.stack([q, q]), jnp.stack([qd, 2 * qd])
    )
    for a, b in zip(both, to_both(model, q, 2 * qd), strict=True):
        np.testing.assert_allclose(a[1], b, rtol=0, atol=1e-15)


def test_single_precision_stays_single(state):
    model, q, qd = state
    single = (x.astype(jnp.float32) for x in (model, q, qd))
    states = jax.eval_shape(to_mujoco, *single)
    assert {x.dtype for x in states} == {jnp.dtype(jnp.float32)}
