"""Every MJCF file of the packages that MuJoCo compiles moves as MuJoCo says."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxdyn as jd
from tests.collections.files import robot_files
from tests.io.test_mjcf_compiled import (
    assert_close,
    body_pose,
    mass_matrix,
    state_of,
    world_acceleration,
)

PACKAGES = ("dm_control", "gymnasium", "gymnasium_robotics", "pybullet_data")
FILES = [path for package in PACKAGES for path in robot_files(package, "xml", "mujoco")]
LARGE = 150  # coordinates: compared with MuJoCo by poses alone


@pytest.fixture(params=FILES, ids=lambda path: "/".join(path.parts[-3:]))
def pair(request):
    """MuJoCo's model and ours; couplings, which we do not have yet, are left out."""
    path = request.param
    try:
        mj_model = mujoco.MjModel.from_xml_path(str(path))
    except ValueError as error:
        pytest.skip(f"MuJoCo does not compile it: {str(error)[:80]}")
    if not mj_model.njnt:
        pytest.skip("nothing moves")
    coupled = [f"equality/{kind}" for kind in ("joint", "tendon", "flex")]
    return mj_model, jd.load_mjcf(path, skip=coupled)


@jax.jit
def found(model, q, qd, qdd):
    poses, frames = jd.forward_kinematics(model, q), jd.frame_poses(model, q)
    M, tau = jd.mass_matrix(model, q), jd.inverse_dynamics(model, q, qd, qdd)
    return poses, frames, M, tau


@pytest.mark.filterwarnings("ignore:model .* will (not )?move as its file says")
def test_it_loads_and_moves_as_in_mujoco(pair, rng):
    mj_model, model = pair
    none = {key: jnp.zeros_like(model.damping) for key in ("damping", "friction")}
    bare = replace(model, forces=(), stiffness=none["damping"], **none)
    data, q, qd, T = state_of(mj_model, model, rng)
    qdd = rng.normal(size=model.nv)
    poses, frames, M, tau = found(bare, q, qd, jnp.array(qdd))
    for i in range(1, mj_model.nbody):
        R, p = body_pose(model, poses, frames, mj_model.body(i).name or f"body_{i}")
        assert_close(R, data.xmat[i].reshape(3, 3))
        assert_close(p, data.xpos[i])
    if model.nv <= LARGE:
        theirs = mass_matrix(mj_model, data)
        acc = world_acceleration(model, qd, qdd, T)
        assert_close(M, T.T @ theirs @ T)
        assert_close(tau, T.T @ (theirs @ acc + data.qfrc_bias))
    if not np.any([note.changes_motion for note in model.report]):
        passive = jd.bias_forces(replace(model, friction=none["friction"]), q, qd)
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
