"""Motions of mechanisms with closed loops."""

from functools import cache

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.simulate._drift import Projected
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


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in list(CASES)[1:]]


@pytest.mark.slow
@pytest.mark.reference
@pytest.mark.parametrize("name", ["fourbar", *SLOW])
def test_mechanisms_move_as_computed_elsewhere_with_closed_loops(name):
    motion = CASES[name]["motion"]
    model, found = run(name)
    tolerance = motion["max_diff_between_tolerances"]
    for ours, theirs in ((found.q, motion["q"]), (found.qd, motion["qd"])):
        assert np.abs(np.asarray(ours) - np.array(theirs)).max() < tolerance
    tau = np.array(motion["tau"])
    # constant forces of joints with one coordinate; a free platform is not driven
    moved = (np.asarray(found.q) - np.asarray(found.q[0]))[:, model.nq - model.nv :]
    rest = np.asarray(found.energy) - moved @ tau
    assert np.ptp(rest) < 1e-8
    np.testing.assert_allclose(rest, motion["energy_minus_actuator_work"], atol=1e-8)
    assert jnp.abs(found.loop_residual).max() < 1e-14
    rates = jax.vmap(jd.loop_jacobian, (None, 0))(model, found.q)
    assert jnp.abs(jnp.einsum("tij,tj->ti", rates, found.qd)).max() < 1e-13
    balance = jd.power_balance(model, found)
    assert jnp.abs(balance.error).max() < 1e-11


@pytest.mark.slow
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


@pytest.mark.slow
def test_loops_drift_open_unless_stabilised():
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


STEPS = dict(stepsize_controller=diffrax.ConstantStepSize(), dt0=0.02)


def coupler_point(x, **options):
    """Where a point of the four-bar's coupler is after 0.2 s, along some direction.

    `x` are the initial rate and the torque of the crank, the mass of the coupler and
    the length of the crank.
    """
    rate, torque, mass, length = x
    model = jd.robots.four_bar()
    model = eqx.tree_at(
        lambda m: (m.mass, m.p),
        model,
        (model.mass.at[1].set(mass), model.p.at[1, 0].set(length)),
    )
    q, qd = start(FOUR_BAR)
    q = jd.project_configuration(model, q)
    qd = jd.project_velocity(model, q, rate * qd)
    ts, torques = jnp.array([0.0, 0.2]), torque * jnp.array([1.0, 0.0, 0.0])
    found = jd.simulate(model, q, qd, ts, torque=torques, **STEPS, **options)
    poses = jd.forward_kinematics(model, found.q[-1])
    point = poses.p[1] + poses.R[1] @ jnp.array([0.4, 0.1, 0.0])
    return point @ jnp.array([1.0, 0.7, 0.0])


X = jnp.array([3.0, 2.0, 2.0, 0.3])


def reverse_mode(x):
    return jax.value_and_grad(coupler_point)(x)


def forward_mode(x):
    def value(x):
        return coupler_point(x, adjoint=diffrax.ForwardMode())

    return value(x), jax.jacfwd(value)(x)


@pytest.mark.slow  # minutes of compilation
@pytest.mark.parametrize("mode", [reverse_mode, forward_mode])
def test_gradients_of_a_coupler_point_are_differences_also_in_a_batch(mode):
    h = 1e-4 * jnp.eye(4)
    at = X[None] + jnp.concatenate([h, -h, 2 * h, -2 * h])
    values = jax.jit(jax.vmap(coupler_point))(at)
    up, down, far_up, far_down = jnp.split(values, 4)
    slopes = (8 * (up - down) - (far_up - far_down)) / (12 * 1e-4)
    single = jax.jit(mode)
    _, gradient = single(X)
    assert jnp.abs(slopes).min() > 1e-4
    np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-9)
    alone = jnp.stack([single(x)[0] for x in at[::5]])
    np.testing.assert_allclose(alone, values[::5], rtol=1e-13)


@pytest.mark.parametrize("solver", [diffrax.Kvaerno3(), diffrax.Dopri5()])
def test_steps_of_any_solver_are_projected_in_both_modes(solver):
    on_circle = Projected(solver, lambda y, args: y / jnp.linalg.norm(y))
    turn = diffrax.ODETerm(lambda t, y, args: args * jnp.array([-y[1], y[0]]))

    def end(rate):
        return diffrax.diffeqsolve(
            turn,
            on_circle,
            0.0,
            1.0,
            None,
            jnp.array([1.0, 0.0]),
            rate,
            stepsize_controller=diffrax.PIDController(rtol=1e-6, atol=1e-8),
            adjoint=diffrax.ForwardMode(),
        ).ys[0]

    y, dy = jax.jit(lambda x: jax.jvp(end, (x,), (jnp.ones(()),)))(jnp.asarray(2.0))
    np.testing.assert_allclose(jnp.linalg.norm(y), 1, atol=1e-15)
    np.testing.assert_allclose(y, [np.cos(2.0), np.sin(2.0)], atol=1e-5)
    np.testing.assert_allclose(dy, [-np.sin(2.0), np.cos(2.0)], atol=1e-5)


@pytest.mark.slow  # half a minute of compilation
def test_implicit_solvers_keep_loops_closed():
    model, motion = jd.robots.four_bar(), FOUR_BAR
    found = jd.simulate(
        model,
        *start(motion),
        jnp.asarray(motion["t"][:3]),
        torque=jnp.asarray(motion["tau"]),
        solver=diffrax.Kvaerno3(),
        stepsize_controller=diffrax.PIDController(rtol=1e-6, atol=1e-8),
    )
    np.testing.assert_allclose(found.q, np.array(motion["q"][:3]), atol=1e-6)
    assert opening(model, found.q) < 1e-14


@pytest.mark.first
@pytest.mark.parametrize("integrator", ["semi_implicit_euler", "rk4"])
def test_fixed_steps_keep_loops_closed(integrator):
    model = jd.robots.four_bar()
    options = dict(integrator=integrator)
    qs, qds = jd.rollout(model, *start(FOUR_BAR), jnp.zeros((400, 3)), 5e-3, **options)
    assert opening(model, qs) < 1e-14
    rates = jax.vmap(jd.loop_jacobian, (None, 0))(model, qs)
    assert jnp.abs(jnp.einsum("tij,tj->ti", rates, qds)).max() < 1e-13
    apart = np.abs(np.asarray(qs[:201:4]) - np.array(FOUR_BAR["q"])).max()
    assert apart < {"semi_implicit_euler": 0.1, "rk4": 1e-6}[integrator]


@pytest.mark.slow
def test_single_precision_stays_single_with_closed_loops():
    model = jd.robots.four_bar(dtype=np.float32)
    q, qd = (x.astype(np.float32) for x in start(FOUR_BAR))
    qs, qds = jd.rollout(model, q, qd, jnp.zeros((100, 3), np.float32), 5e-3)
    assert qs.dtype == qds.dtype == np.float32
    assert opening(model, qs) < 1e-6


def test_bad_input_is_named(without_type_checker):
    model, ts = jd.robots.four_bar(), jnp.array([0.0, 0.1])
    q, qd = start(FOUR_BAR)
    with pytest.raises(ValueError, match="loop 0 of model 'fourbar' is open by 0.155"):
        jd.simulate(model, q + 0.1, qd, ts)
    with pytest.raises(ValueError, match="loop 0 .* opens with .* project_velocity"):
        jd.simulate(model, q, qd + 0.1, ts)
    with pytest.raises(ValueError, match="drift is 'none', expected 'projection', a"):
        jd.simulate(model, q, qd, ts, drift="none")
    for drift in (jd.Baumgarte, 3, False):
        with pytest.raises(ValueError, match="drift is .*, expected 'projection', a"):
            jd.simulate(model, q, qd, ts, drift=drift)
    with pytest.raises(ValueError, match="method is 'composite' .* expected 'denoc'"):
        jd.simulate(model, q, qd, ts, method="composite")
    with pytest.raises(ValueError, match="loop_method is 'lu', expected one of: kkt"):
        jd.simulate(model, q, qd, ts, loop_method="lu")
    with pytest.raises(ValueError, match="loop 0 .* is open by"):
        jd.rollout(model, q + 0.1, qd, jnp.zeros((2, 3)), 0.1)
    with pytest.raises(ValueError, match="integrator is 'implicit_midpoint' for model"):
        taus = jnp.zeros((2, 3))
        jd.rollout(model, q, qd, taus, 0.1, integrator="implicit_midpoint")
