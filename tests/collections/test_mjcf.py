"""Every MJCF file of the packages that MuJoCo compiles moves as MuJoCo says."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.model import with_rate_leaves
from tests.collections.files import mjcf_files, short
from tests.io.test_mjcf_compiled import (
    assert_close,
    body_pose,
    mass_matrix,
)

FILES = mjcf_files()
LARGE = 150  # coordinates: compared with MuJoCo by poses alone


@pytest.fixture(params=FILES, ids=short)
def pair(request):
    """MuJoCo's model and ours."""
    path = request.param
    try:
        mj_model = mujoco.MjModel.from_xml_path(str(path))
    except ValueError as error:
        pytest.skip(f"MuJoCo does not compile it: {str(error)[:80]}")
    if not mj_model.njnt:
        pytest.skip("nothing moves")
    try:
        return mj_model, jd.load(path)
    except ValueError as error:
        assert "cannot be expressed" in str(error)
        return mj_model, jd.load(path, skip=("equality/tendon", "equality/flex"))


def state_of(mj_model, model, rng):
    """A random state that keeps couplings, and the matrix T with qvel = T qd."""
    data = mujoco.MjData(mj_model)
    mujoco.mj_integratePos(mj_model, data.qpos, rng.normal(size=mj_model.nv), 1.0)
    qvel = jnp.array(rng.normal(size=mj_model.nv))
    q, qd = jd.from_mujoco(model, jnp.array(data.qpos), qvel)
    data.qpos[:], data.qvel[:] = jd.to_mujoco(model, q, qd)
    mujoco.mj_forward(mj_model, data)
    T = jax.jacfwd(lambda v: jd.to_mujoco(model, q, v)[1])(qd)
    return data, q, qd, np.asarray(T)


def qacc(model, q, qd, qdd):
    """MuJoCo's accelerations for ours."""
    moving = jd.configuration_rate(model, q, qd), jnp.array(qdd)
    return jax.jvp(lambda *x: jd.to_mujoco(model, *x)[1], (q, qd), moving)[1]


def held(data):
    """Positions and rates of the equality constraints of joints and tendons."""
    kinds = [mujoco.mjtEq.mjEQ_JOINT, mujoco.mjtEq.mjEQ_TENDON]
    rows = data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
    rows[rows] = np.isin(data.model.eq_type[data.efc_id[rows]], kinds)
    return np.concatenate([data.efc_pos[rows], data.efc_vel[rows]])


@jax.jit
def found(model, q, qd, qdd):
    poses, frames = jd.forward_kinematics(model, q), jd.frame_poses(model, q)
    M, tau = jd.mass_matrix(model, q), jd.inverse_dynamics(model, q, qd, qdd)
    return poses, frames, M, tau


@pytest.mark.filterwarnings("ignore:model .* will (not )?move as its file says")
def test_it_loads_and_moves_as_in_mujoco(pair, rng):
    mj_model, model = pair
    none = jnp.zeros(model.tree.nv)
    frictionless = with_rate_leaves(model, friction=none)
    bare = with_rate_leaves(frictionless, damping=none, stiffness=none)
    bare = replace(bare, forces=())
    data, q, qd, T = state_of(mj_model, model, rng)
    qdd = rng.normal(size=model.nv)
    poses, frames, M, tau = found(bare, q, qd, jnp.array(qdd))
    for i in range(1, mj_model.nbody):
        R, p = body_pose(model, poses, frames, mj_model.body(i).name or f"body_{i}")
        assert_close(R, data.xmat[i].reshape(3, 3))
        assert_close(p, data.xpos[i])
    if model.nv <= LARGE:
        theirs = mass_matrix(mj_model, data)
        assert_close(M, T.T @ theirs @ T)
        forces = theirs @ qacc(model, q, qd, qdd) + data.qfrc_bias
        assert_close(tau, T.T @ forces)
        if not jd.singular_joints(model) and not model.loops:
            again = jd.forward_dynamics(bare, q, qd, tau)
            scale = np.abs(qdd).max() * np.linalg.cond(np.asarray(M))
            np.testing.assert_allclose(again, qdd, atol=1e-15 * scale + 1e-12)
    if model.couplings:
        assert_close(held(data), 0 * held(data))
    if not np.any([note.changes_motion for note in model.report]):
        passive = jd.bias_forces(frictionless, q, qd)
        assert_close(passive - jd.bias_forces(bare, q, qd), -T.T @ data.qfrc_passive)


@pytest.mark.filterwarnings("ignore:model .* will (not )?move as its file says")
def test_actuators_have_the_forces_of_mujoco(pair, rng):
    mj_model, model = pair
    refused = [note for note in model.report if "jd.actuate refuses" in note.became]
    if not mj_model.nu or refused:
        pytest.skip("no actuators that jd.actuate takes")
    data, q, qd, T = state_of(mj_model, model, rng)
    data.ctrl[:] = rng.normal(size=mj_model.nu)
    data.act[:] = rng.normal(size=mj_model.na)
    mujoco.mj_forward(mj_model, data)
    act = jnp.array(data.act) if mj_model.na else None
    tau = jd.actuate(model, q, qd, jnp.array(data.ctrl), act=act)
    assert_close(tau, T.T @ data.qfrc_actuator)
