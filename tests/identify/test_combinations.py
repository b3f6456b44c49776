import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.identify import (
    Acceleration,
    Torque,
    choose,
    dynamic_values,
    fit,
    fitted_combinations,
    least_squares,
    linear_starts,
)
from jaxdyn.io import Log

NOISE = np.array([0.1, 0.05])


@pytest.fixture(scope="module")
def arm():
    b = jd.ModelBuilder("arm")
    box = jd.Inertial.box(2.0, (0.5, 0.1, 0.1)).moved(np.eye(3), np.array([0.25, 0, 0]))
    b.add_body("upper", joint_name="j1", axis=(0, 1, 0), inertial=box)
    more = dict(joint_name="j2", axis=(0, 1, 0), p=(0.5, 0, 0))
    b.add_body("lower", "upper", **more, inertial=box)
    return b.build()


@pytest.fixture(scope="module")
def log(arm):
    """What the arm needs with damping that the nominal one has not."""
    true = eqx.tree_at(lambda m: m.damping, arm, jnp.array([40.0, 0.2]))
    ts = np.linspace(0, 4, 201)
    w, phase = np.array([3.0, 4.0]), np.outer(ts, [3.0, 4.0]) + [0.0, 1.0]
    q, qd, qdd = np.sin(phase), w * np.cos(phase), -(w**2) * np.sin(phase)
    tau = jax.jit(jax.vmap(jd.inverse_dynamics, (None, 0, 0, 0)))(true, q, qd, qdd)
    noise = NOISE * np.random.default_rng(0).normal(size=q.shape)
    return Log(ts, q, qd, qdd, np.asarray(tau) + noise)


def test_dynamic_values_are_the_dynamic_parameters_by_name(arm):
    values = dynamic_values(arm)
    assert values["upper.m"] == 2.0 and values["upper.h_x"] == 0.5
    np.testing.assert_array_equal(list(values.values()), jd.dynamic_parameters(arm))


def test_linear_starts_are_near_the_truth_and_not_too_far_away(arm, log):
    """100 times the usual 0.1 is the farthest start of an effect that is zero."""
    start = linear_starts(choose(arm, ["*.inertial", "*.damping"]), log)
    assert list(start) == ["j1.damping", "j2.damping"]
    assert start["j1.damping"] == pytest.approx(10.0)
    assert start["j2.damping"] == pytest.approx(0.2, rel=0.1)
    chosen = choose(arm, "*.damping", start=start)
    damping = chosen.model(chosen.theta).damping
    np.testing.assert_allclose(damping, list(start.values()))


def test_there_are_no_linear_starts_where_nothing_is_linear_or_told(arm, log):
    assert linear_starts(choose(arm, "*.mass"), log) == {}
    closed = jd.robots.four_bar()
    assert linear_starts(choose(closed, "*.damping"), log) == {}
    rest = Log(log.ts, 0 * log.q, 0 * log.qd, 0 * log.qdd, log.tau)
    assert linear_starts(choose(arm, "*.damping"), rest) == {}
    with pytest.raises(ValueError, match="the log has no qd: call filtered"):
        linear_starts(choose(arm, "*.damping"), Log(log.ts, log.q, tau=log.tau))


def test_combinations_of_a_fit_are_those_of_least_squares(arm, log):
    names = ["*.inertial", "*.damping"]
    start = linear_starts(choose(arm, names), log)
    found = fit(choose(arm, names, start=start), Torque(NOISE), log, validation=0.0)
    estimates = fitted_combinations(found, log)
    options = dict(noise=NOISE, covariance="classical", validation=0.0)
    linear = least_squares(arm, log, parameters=names, **options)
    assert estimates.names == linear.combinations
    change = (estimates.fitted - linear.beta) / linear.std
    np.testing.assert_allclose(change, 0, atol=1e-2)
    np.testing.assert_allclose(estimates.std, linear.std, rtol=1e-3)
    row = next(x for x in estimates.rows if x["name"] == "j1.damping")
    np.testing.assert_allclose(row["low"] * row["high"], row["fitted"] ** 2)
    assert "95% interval" in estimates.table() and "j1.damping" in estimates.table()
    wide = fitted_combinations(found, log, level=0.99).interval
    assert (np.diff(wide, axis=1) > np.diff(estimates.interval, axis=1)).all()


@pytest.mark.slow
def test_fits_that_are_not_linear_have_no_combinations(arm, log):
    masses = fit(choose(arm, "*.mass"), Torque(), log)
    with pytest.raises(ValueError, match="upper.mass, lower.mass, expected Torque"):
        fitted_combinations(masses, log)
    other = fit(choose(arm, "*.damping"), Acceleration(), log)
    with pytest.raises(ValueError, match="the fit is of Acceleration"):
        fitted_combinations(other, log)
