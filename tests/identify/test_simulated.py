import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxdyn as jd
from jaxdyn.identify import Optax, Simulated, choose, fit
from jaxdyn.io import Log
from tests.reference import load


def pendulum():
    b = jd.ModelBuilder("pendulum")
    rod = jd.Inertial.box(1.0, (0.1, 0.1, 0.5)).moved(np.eye(3), np.array([0, 0, -0.3]))
    b.add_body("rod", axis=(0, 1, 0), inertial=rod, damping=0.1, stiffness=2.0)
    return b.build()


def swing(model, times=41, q0=1.0):
    ts = jnp.linspace(0.0, 2.0, times)
    tau = 0.5 * jnp.sin(3 * ts)[:, None]
    run = jd.simulate(model, jnp.array([q0]), jnp.zeros(1), ts, torque=tau)
    return Log(*map(np.asarray, (ts, run.q, run.qd)), None, np.asarray(tau))


def place(model, q, qd):
    """The end of the rod, as a camera would see it."""
    poses = jd.forward_kinematics(model, q)
    return poses.p[0] + poses.R[0] @ jnp.asarray([0.0, 0.0, -0.6], q.dtype)


CHOSEN = dict(patterns=["*.damping", "*.stiffness"], start={"*": 1.0})


MULTIPLE = {"length": 10, "free_start": True, "continuity": 1e-4}


def assert_found(found):
    assert found.converged
    # windows are simulated to 1e-8 of the motion, of which damping is a hundredth
    np.testing.assert_allclose(found.model.damping, 0.1, rtol=1e-5)
    np.testing.assert_allclose(found.model.stiffness, 2.0, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("length", [None, 10])
def test_motions_give_the_parameters_that_made_them(length):
    true = pendulum()
    assert_found(fit(choose(true, **CHOSEN), Simulated(1e-3, length), swing(true)))


@pytest.mark.slow
def test_multiple_shooting_does_and_mends_wrong_starts(rng):
    true = pendulum()
    log, chosen = swing(true), choose(true, **CHOSEN)
    found = fit(chosen, Simulated(1e-3, **MULTIPLE), log)
    assert_found(found)
    # 41 times, and two numbers at each of three borders between windows
    assert found.uncertainty.count == 41 + 6
    assert found.uncertainty.freedom == 41 + 6 - 2 - 8
    blurred = eqx.tree_at(
        lambda x: x.qd, log, log.qd + 0.3 * rng.normal(size=log.qd.shape)
    )
    found = fit(chosen, Simulated(1e-3, **MULTIPLE), blurred)
    assert_found(found)
    assert np.abs(found.more[:, 1] + (blurred.qd - log.qd)[:40:10]).max() < 1e-5


def test_the_measured_start_of_a_window_is_no_data():
    true, plain = pendulum(), Simulated(1e-3, length=4)
    rows = plain.rows(true, swing(true, 13))
    run = jax.vmap(lambda row: plain(true, None, row))
    assert jax.eval_shape(run, rows).shape == (3, 4)  # of five times


@pytest.mark.slow
def test_what_a_camera_sees_is_enough_and_optax_takes_it_too():
    true = pendulum()
    log = swing(true, times=21)
    y = np.stack([place(true, jnp.asarray(q), None) for q in log.q])
    seen = Simulated(1e-3, measure=place, y=y)
    found = fit(choose(true, **CHOSEN), seen, log)
    np.testing.assert_allclose(found.model.stiffness, 2.0, rtol=1e-6)
    slow = Optax(optax.adam(0.05), steps=3)
    with jax.numpy_dtype_promotion("standard"):  # optax mixes types
        begun = fit(choose(true, **CHOSEN), seen, log, solver=slow)
    assert begun.losses[2] < begun.losses[0]


@pytest.mark.slow
@pytest.mark.reference
def test_masses_of_a_gripper_from_a_fall_that_another_program_computed():
    case = load("gripper")["cases"][0]
    true = jd.from_dict(case["model"])
    fall = case["free_fall"]
    wrong = eqx.tree_at(lambda m: m.mass, true, true.mass * jnp.array([1, 1.5, 0.5, 2]))
    chosen = choose(wrong, [f"{name}.mass" for name in true.names[1:]])
    every = slice(None, None, 5)
    log = Log(*(np.asarray(fall[x])[every] for x in ("t", "q", "qd")))
    found = fit(chosen, Simulated(std=1e-6), log)
    np.testing.assert_allclose(found.model.mass, true.mass, rtol=1e-5)


def test_wrong_shooting_says_what_is_wrong():
    model = pendulum()
    log, chosen = swing(model), choose(model, "*.damping")
    with pytest.raises(ValueError, match="measure and y belong together"):
        Simulated(measure=place)
    with pytest.raises(ValueError, match="give free_start=True"):
        Simulated(continuity=1.0)
    with pytest.raises(ValueError, match="length is 41, expected 1 to 40"):
        fit(chosen, Simulated(length=41), log)
    with pytest.raises(ValueError, match=r"Simulated has shape \(2,\), expected one n"):
        fit(chosen, Simulated(np.ones(2)), log)
    with pytest.raises(ValueError, match="Simulated is 0.0, expected numbers above 0"):
        fit(chosen, Simulated(0.0), log)
    with pytest.raises(ValueError, match="continuity is -1.0, expected numbers above"):
        fit(chosen, Simulated(free_start=True, continuity=-1.0), log)
    with pytest.raises(ValueError, match="no rates qd"):
        fit(chosen, Simulated(), Log(log.ts, log.q))
    with pytest.raises(ValueError, match="y has 2 rows, expected 41"):
        fit(chosen, Simulated(measure=place, y=np.zeros((2, 3))), log)
