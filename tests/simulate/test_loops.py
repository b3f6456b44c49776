"""Motions of mechanisms with closed loops."""

from functools import cache

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from tests.reference import cases, relative_error

CASES = {case["model"]["name"]: case for case in cases("closed_loops", "stewart_gough")}
TIGHT = dict(
    solver=diffrax.Dopri8(),
    stepsize_controller=diffrax.PIDController(rtol=1e-11, atol=1e-12),
)
FOUR_BAR = CASES["fourbar"]["motion"]


def start(motion):
    return jnp.asarray(motion["q"][0]), jnp.asarray(motion["qd"][0])


@cache
def run(name, **options):
    motion = CASES[name]["motion"]
    model = jd.from_dict(CASES[name]["model"])
    ts, tau = jnp.asarray(motion["t"]), jnp.asarray(motion["tau"])
    return model, jd.simulate(
        model, *start(motion), ts, torque=tau, dense=True, **TIGHT, **options
    )


def opening(model, q):
    return float(jnp.abs(jax.vmap(jd.loop_residual, (None, 0))(model, q)).max())


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in list(CASES)[1:4]]


@pytest.mark.reference
@pytest.mark.parametrize("name", ["fourbar", *SLOW, "stewart_gough"])
def test_mechanisms_move_as_computed_elsewhere_with_closed_loops(name):
    motion = CASES[name]["motion"]
    model, found = run(name)
    tolerance = motion["max_diff_between_tolerances"]
    for ours, theirs in ((found.q, motion["q"]), (found.qd, motion["qd"])):
        assert np.abs(np.asarray(ours) - np.array(theirs)).max() < tolerance
    tau = np.array(motion["tau"])
    # constant forces of joints with one coordinate; a free platform is not driven
    moved = np.asarray(found.q - found.q[0])[:, model.nq - model.nv :]
    rest = np.asarray(found.energy) - moved @ tau
    assert np.ptp(rest) < 1e-8
    np.testing.assert_allclose(rest, motion["energy_minus_actuator_work"], atol=1e-8)
    assert jnp.abs(found.loop_residual).max() < 1e-14
    rates = jax.vmap(jd.loop_jacobian, (None, 0))(model, found.q)
    assert jnp.abs(jnp.einsum("tij,tj->ti", rates, found.qd)).max() < 1e-13
    balance = jd.power_balance(model, found)
    assert jnp.abs(balance.error).max() < 1e-11 * jnp.abs(balance.energy_rate).max()


def test_rows_have_the_loop_forces_and_any_time_has_closed_loops():
    model, found = run("fourbar")
    for k in (0, 17, 50):
        state = found.q[k], found.qd[k], found.tau[k]
        qdd, loop_forces = jd.constrained_dynamics(model, *state)
        assert relative_error(found.qdd[k], qdd) < 1e-11
        assert relative_error(found.loop_forces[k], loop_forces) < 1e-11
    ts = jnp.linspace(0.0, 1.0, 333)
    between = jax.jit(jax.vmap(found.at))(ts)
    assert opening(model, between.q) < 1e-14
    as_solved = jax.vmap(found.interpolation.evaluate)(ts)
    assert 1e-12 < opening(model, as_solved.q) < 1e-6
    np.testing.assert_allclose(between.q, as_solved.q, atol=1e-6)
    np.testing.assert_allclose(found.end.q, found.q[-1], atol=1e-15)


def test_loops_drift_open_unless_projected_or_stabilised():
    model = jd.robots.four_bar()
    q, qd = start(FOUR_BAR)
    ts = jnp.linspace(0.0, 20.0, 201)
    steps = dict(stepsize_controller=diffrax.ConstantStepSize(), dt0=0.01)

    def openings(drift):
        found = jd.simulate(model, q, qd, ts, drift=drift, **steps)
        return np.abs(np.asarray(found.loop_residual)).max(axis=1)

    left, held = openings(None), openings(jd.Baumgarte(20.0))
    assert left[-1] > 10 * left[20] > 1e-8
    assert held.max() < 0.1 * left[-1]
    assert openings("projection").max() < 1e-14
