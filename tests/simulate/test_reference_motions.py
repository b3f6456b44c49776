"""Motions that independent software has integrated, reproduced by `simulate`."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn import motion
from tests.reference import cases, load

pytestmark = pytest.mark.reference


def simulated(model, q0, qd0, ts, tolerance, torque=None):
    """The motion by a solver of eighth order with a tight tolerance."""
    return jd.simulate(
        model,
        *map(jnp.asarray, (q0, qd0, ts)),
        torque=torque,
        solver=diffrax.Dopri8(),
        stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=tolerance),
    )


def deviation(found, reference):
    found, reference = np.asarray(found), np.asarray(reference)
    assert found.shape == reference.shape
    return np.abs(found - reference).max()


@pytest.mark.slow
@pytest.mark.first
@pytest.mark.parametrize("case", cases("gripper"), ids=lambda case: case["variant"])
def test_gripper_falls_as_computed_elsewhere(case):
    fall = case["free_fall"]
    model = jd.from_dict(case["model"] | {"name": "gripper"})  # one program for both
    run = simulated(model, fall["q"][0], fall["qd"][0], fall["t"], 1e-12)
    assert deviation(run.q, fall["q"]) < fall["max_diff_between_tolerances"]
    assert deviation(run.energy, fall["energy"]) < 1e-12


@pytest.mark.slow
@pytest.mark.first
@pytest.mark.parametrize("fall", load("rope")["runs"], ids=("planar", "spatial"))
def test_rope_falls_as_computed_elsewhere(fall):
    model = jd.from_dict(load("rope")["model"])
    run = simulated(model, fall["q0"], fall["qd0"], fall["t"], 1e-10)
    end = jnp.asarray(np.array([0.05, 0.0, 0.0]))
    poses = jax.jit(jax.vmap(lambda q: jd.forward_kinematics(model, q)))(run.q)
    tip = poses.p[:, -1] + poses.R[:, -1] @ end
    assert deviation(tip, fall["tip"]) < 1e-10
    assert np.ptp(run.energy) < 1e-9
    assert deviation(run.kinetic_energy, fall["kinetic_energy"]) < 1e-9


@pytest.mark.slow
def test_a_floating_tree_keeps_momentum_and_moves_as_computed_elsewhere():
    data = load("floating_momentum")
    model = jd.from_dict(data["model"])
    run = simulated(model, data["q"][0], data["qd"][0], data["t"], 1e-12)
    tolerance = data["max_diff_between_tolerances"]
    assert deviation(run.q, data["q"]) < tolerance
    assert deviation(run.qd, data["qd"]) < tolerance
    assert np.ptp(run.energy) < 1e-9
    momenta = jax.jit(jax.vmap(lambda q, qd: about_world_origin(model, q, qd)))
    key = "momentum_linear_and_angular_about_world_origin"
    assert deviation(momenta(run.q, run.qd), data[key]) < 1e-9


def about_world_origin(model, q, qd):
    """Linear and angular momentum; the library's own is about the centre of mass."""
    found, center = jd.momentum(model, q, qd), jd.center_of_mass(model, q)
    return jnp.concatenate(
        [found.linear, found.angular + jnp.cross(center, found.linear)]
    )


@pytest.mark.slow
def test_forced_puma_stays_on_its_path_for_five_seconds():
    data = load("puma_mohan_saha")
    model, path = jd.from_dict(data["model"]), data["trajectory"]
    wanted = motion.cycloidal(model, jnp.zeros(6), jnp.full(6, jnp.pi), 10.0)
    rows = slice(0, 51)
    run = simulated(
        model,
        path["q"][0],
        path["qd"][0],
        path["t"][rows],
        1e-12,
        motion.feedforward(model, wanted),
    )
    assert run.ts[-1] == 5.0
    assert deviation(run.q, path["q"][rows]) < 1e-10  # growth of errors up to 5 s: 96
