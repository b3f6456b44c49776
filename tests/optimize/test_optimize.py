import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxdyn as jd
from jaxdyn import optimize
from jaxdyn.optimize._shooting import Forces

STEPS, DT = 20, 0.1
SGD = optax.sgd(0.1)


def slider(mass=1.5, dtype=None):
    """One mass on a rail without gravity: the double integrator."""
    b = jd.ModelBuilder("slider", gravity=(0.0, 0.0, 0.0))
    box = jd.Inertial.box(mass, (0.1, 0.1, 0.1))
    b.add_body("mass", joint="prismatic", axis=(1, 0, 0), inertial=box)
    return b.build(dtype)


def pendulum():
    b = jd.ModelBuilder("pendulum", gravity=(0.0, -9.81, 0.0))
    b.add_body("rod", inertial=jd.Inertial.rod(1.0, (0, 0, 0), (0.5, 0, 0)))
    return b.build()


def least_forces(weight, mass=1.5):
    """The exact minimum of weight |A u - b|² + |u|² / N for a slider from 0 to 1."""
    k = np.arange(STEPS)
    A = np.stack([DT**2 * (STEPS - k), DT * np.ones(STEPS)]) / mass
    H = weight * A.T @ A + np.eye(STEPS) / STEPS
    u = np.linalg.solve(H, weight * A.T @ [1.0, 0.0])
    return u, weight * ((A @ u - [1.0, 0.0]) ** 2).sum() + (u**2).mean()


def slide(model=None, segments=1, weight=1e3, **options):
    model = slider() if model is None else model
    cost = optimize.reach(model, jnp.ones(1), weight=weight, rate_weight=weight)
    cost = cost + optimize.effort()
    zero = jnp.zeros(1, model.dtype)
    start = jnp.zeros((STEPS, 1), model.dtype)
    return optimize.optimize_torques(
        model, zero, zero, start, DT, cost, segments=segments, **options
    )


@pytest.mark.first
@pytest.mark.parametrize("segments", [1, 4])
def test_least_effort_of_a_slider_is_its_closed_form(segments):
    found = slide(segments=segments, gradient_tolerance=1e-9, cost_tolerance=1e-13)
    u, cost = least_forces(1e3)
    assert found.is_converged, found.message
    np.testing.assert_allclose(found.taus[:, 0], u, atol=1e-6)
    np.testing.assert_allclose(found.cost, cost, rtol=1e-9)
    assert found.defect <= 1e-6 and found.gap < 1e-5
    np.testing.assert_allclose(found.q[-1], 1, atol=1e-2)


def test_least_effort_tends_to_the_integral_of_continuous_time():
    _, cost = least_forces(1e7)
    T = STEPS * DT
    # u = 6 m / T² (1 - 2 t / T), of which the mean square is 12 m² / T⁴
    np.testing.assert_allclose(cost, 12 * 1.5**2 / T**4, rtol=0.02)
    found = slide(weight=1e7, steps=400, compiler_options={})
    np.testing.assert_allclose(found.cost, cost, rtol=1e-4)


SLOW = pytest.mark.slow


@pytest.mark.slow
@pytest.mark.first
@pytest.mark.parametrize(
    "optimizer", [optax.lbfgs(), SGD, pytest.param(optax.adam(0.1), marks=SLOW)]
)
def test_every_optimizer_of_optax_takes_the_same_path(optimizer):
    found = slide(optimizer=optimizer, steps=60, weight=30.0)
    assert found.costs[-1] < 0.7 * found.costs[0]
    np.testing.assert_allclose(found.cost, found.costs.min(), rtol=1e-9)
    assert len(found.costs) == len(found.gradient_norms) == found.steps + 1


@pytest.mark.slow
@pytest.mark.parametrize("segments", [4, pytest.param(1, marks=SLOW)])
def test_a_single_precision_search_stays_in_it(segments):
    found = slide(slider(dtype=jnp.float32), segments, steps=100)
    assert found.taus.dtype == found.q.dtype == found.costs.dtype == jnp.float32
    np.testing.assert_allclose(found.cost, least_forces(1e3)[1], rtol=1e-2)


def test_forces_stay_within_limits_and_use_them():
    limit = 1.7  # 1.5 would be just enough
    found = slide(limits=limit, weight=1e5, steps=500)
    assert np.abs(found.taus).max() <= limit
    free = slide(weight=1e5, steps=300)
    assert np.abs(free.taus).max() > 1.2 * limit
    assert np.abs(found.taus).max() > 0.9 * limit
    np.testing.assert_allclose(found.q[-1], 1, atol=1e-3)


def test_forces_are_a_smooth_map_onto_what_is_within_the_limits():
    limit = jnp.array([2.0, jnp.inf, 0.0])
    forces = Forces(jnp.array([0.5, 3.0, 4.0]), limit)
    tau = jnp.array([[1.9, 7.0, 0.0], [-0.3, -1e9, 0.0]])
    u = forces.coordinates(tau)
    np.testing.assert_allclose(forces.at(u), tau, rtol=1e-12)
    big = 2.0**100
    far = forces.at(jnp.array([[big, big, big], [-big, 0.0, -1.0]]))
    np.testing.assert_array_equal(far, [[2.0, 3 * big, 0.0], [-2.0, 0.0, 0.0]])
    slopes = jax.jacfwd(lambda u: forces.at(u).sum(axis=0))(jnp.zeros((1, 3)))
    np.testing.assert_array_equal(slopes[:, 0], np.diag([0.5, 3.0, 0.0]))


@pytest.mark.slow
def test_a_joint_without_drive_swings_where_it_is_wanted():
    model = jd.robots.chain(2)
    q0 = jnp.array([0.0, 0.0])
    target = jnp.array([0.3, -0.2])
    cost = optimize.reach(model, target, weight=10.0, rate_weight=0.0)
    start = jnp.zeros((10, 2))
    found = optimize.optimize_torques(
        model, q0, 0 * q0, start, 0.02, cost, limits=jnp.array([jnp.inf, 0.0])
    )
    assert (found.taus[:, 1] == 0).all() and (found.taus[:, 0] != 0).all()
    assert found.cost < 0.7 * found.costs[0]


@pytest.mark.slow
def test_a_path_of_a_ball_joint_is_followed():
    model = jd.robots.random_tree(0, 1, joints=("spherical",))
    q0 = jd.neutral(model)
    q1 = jd.integrate(model, q0, jnp.array([0.5, -0.4, 0.3]))
    motion = jd.motion.cycloidal(model, q0, q1, 0.5)
    ts = jnp.linspace(0, 0.5, 11)
    cost = optimize.track(model, motion, ts, weight=1e3)
    start = jnp.zeros((10, 3))
    found = optimize.optimize_torques(model, q0, jnp.zeros(3), start, 0.05, cost)
    path = jax.vmap(motion)(ts).q
    apart = jax.vmap(lambda a, b: jd.difference(model, a, b))(path, found.q)
    assert np.abs(apart).max() < 1e-2 < np.abs(jd.difference(model, q0, q1)).max()
    for rows in (path, -path):  # the same rotations
        same = optimize.track(model, rows, weight=1e3)
        np.testing.assert_allclose(
            same(found.q, found.qd, found.taus), found.cost, rtol=1e-9
        )


def test_costs_add_with_functions_of_the_user():
    model = slider()
    q, qd, tau = jnp.array([[0.0], [2.0]]), jnp.array([[0.0], [3.0]]), jnp.ones((1, 1))
    reach = optimize.reach(model, jnp.ones(1), jnp.ones(1), weight=2.0, rate_weight=0.5)
    total = reach + optimize.effort(4.0) + (lambda q, qd, tau: q.sum())
    assert float(total(q, qd, tau)) == 2 * 1 + 0.5 * 4 + 4 + 2
    assert float(sum([reach, optimize.effort(4.0)])(q, qd, tau)) == 2 * 1 + 0.5 * 4 + 4
    track = optimize.track(model, jnp.zeros((2, 1)), qd=jnp.ones((2, 1)))
    weighted = optimize.track(
        model, jnp.zeros((2, 1)), qd=jnp.ones((2, 1)), rate_weight=1.0
    )
    assert float(track(q, qd, tau)) == 2
    assert float(weighted(q, qd, tau)) == 2 + (1 + 4) / 2


def barrier(q, qd, tau):
    """Infinite at 1 and no number beyond; the minimum is at 1 - 1e-4."""
    return -jnp.log(1.0 - q[-1, 0]) - 1e4 * q[-1, 0] + (tau**2).mean()


@pytest.mark.slow
def test_a_cost_that_is_not_finite_is_said():
    model, beyond = slider(), jnp.full(1, 2.0)
    given = model, beyond, 0 * beyond, jnp.zeros((STEPS, 1)), DT, barrier
    with pytest.raises(RuntimeError, match="not finite at the start"):
        optimize.optimize_torques(*given)
    found = optimize.optimize_torques(*given, throw=False)
    assert "not finite" in found.message and not found.is_converged
    with pytest.raises(RuntimeError, match="not finite after"):
        slide(optimizer=SGD, steps=100, weight=1e6)


def test_a_line_search_comes_back_from_where_the_cost_is_not_finite():
    model, zero = slider(), jnp.zeros(1)
    start = jnp.zeros((STEPS, 1))
    found = optimize.optimize_torques(model, zero, zero, start, DT, barrier)
    assert not np.isfinite(found.costs).all() and np.isfinite(found.cost)
    np.testing.assert_allclose(found.q[-1], 1 - 1e-4, atol=1e-5)


@pytest.mark.slow
def test_a_closed_loop_is_driven_in_one_piece():
    model = jd.robots.four_bar()
    q0 = jd.close_loops(model, jnp.array([0.3, 0.8, 1.6])).q
    target = q0 + 0.1
    cost = optimize.reach(model, target, weight=jnp.array([1.0, 0.0, 0.0]))
    start = jnp.zeros((5, 3))
    zero = jnp.zeros(3)
    found = optimize.optimize_torques(model, q0, zero, start, 0.02, cost, steps=10)
    assert found.cost < 0.5 * found.costs[0]
    residual = jax.vmap(lambda q: jd.loop_residual(model, q))(found.q)
    assert np.abs(residual).max() < 1e-9


class PD(eqx.Module):
    gains: jax.Array
    target: jax.Array

    def __call__(self, t, q, qd):
        return self.gains[0] * (self.target - q) - self.gains[1] * qd


def test_a_policy_learns_from_several_starts():
    model = pendulum()
    policy = PD(jnp.array([1.0, 0.1]), jnp.array([0.5]))
    ts = jnp.linspace(0, 1, 21)
    goal = optimize.track(model, jnp.full((21, 1), 0.5)) + optimize.effort(1e-4)
    q0, qd0 = jnp.array([[0.0], [0.2], [-0.3]]), jnp.zeros((3, 1))
    options = dict(where=lambda policy: policy.gains, steps=60)
    found = optimize.optimize_policy(model, policy, q0, qd0, ts, goal, **options)
    assert found.q.shape == (3, 21, 1) and found.taus.shape == (3, 20, 1)
    assert found.cost < 0.3 * found.costs[0]
    assert found.policy.target == policy.target
    np.testing.assert_allclose(found.cost, found.costs.min(), rtol=1e-9)
    # the same motion, step by step
    q, qd = q0[1], qd0[1]
    for k in range(3):
        tau = found.policy(ts[k], q, qd)
        rows = jd.rollout(model, q, qd, tau[None], ts[k + 1] - ts[k])
        q, qd = rows[0][1], rows[1][1]
    np.testing.assert_allclose(found.q[1, 3], q, rtol=1e-12)


def test_wrong_input_is_named():
    model = slider()
    zero, start = jnp.zeros(1), jnp.zeros((STEPS, 1))
    cost = optimize.effort()

    def torques(cost=cost, start=start, dt=DT, **options):
        optimize.optimize_torques(model, zero, zero, start, dt, cost, **options)

    for match, call in {
        "dt is 0.0, expected a positive": lambda: torques(dt=0.0),
        "steps is 0, expected a positive integer": lambda: torques(steps=0),
        "segments is 3 for 20 steps": lambda: torques(segments=3),
        r"taus has shape \(20, 2\)": lambda: torques(start=jnp.zeros((STEPS, 2))),
        "integrator is 'euler'": lambda: torques(integrator="euler"),
        r"limits has shape \(2,\)": lambda: torques(limits=jnp.ones(2)),
        "limits is -1": lambda: torques(limits=-1.0),
        r"taus0\[0, 0\] is 1, expected less than the limit": lambda: torques(
            start=jnp.ones((STEPS, 1)), limits=1.0
        ),
        r"states0 has the shapes": lambda: torques(
            segments=2, states0=(jnp.zeros((3, 1)), jnp.zeros((3, 1)))
        ),
        r"cost returned shape \(20,\)": lambda: torques(lambda q, qd, tau: tau[:, 0]),
        r"q has shape \(2,\), expected \(1,\)": lambda: optimize.reach(
            model, jnp.ones(2)
        ),
        r"weight has shape \(3,\)": lambda: optimize.reach(
            model, jnp.ones(1), weight=jnp.ones(3)
        ),
        "weight is -1": lambda: optimize.effort(-1.0),
        "states0 is given for segments = 1": lambda: torques(states0=(start, start)),
        "ts is None": lambda: optimize.track(model, lambda t: t),
        "ts is given beside rows of q": lambda: optimize.track(model, zero[None], zero),
        "qd is given beside a motion": lambda: optimize.track(
            model, lambda t: t, zero, qd=zero[None]
        ),
        "a path of 5 times for a motion of 21": lambda: torques(
            optimize.track(model, jnp.zeros((5, 1)))
        ),
    }.items():
        with pytest.raises(ValueError, match=match):
            call()


def test_segments_would_open_loops():
    model, zero = jd.robots.four_bar(), jnp.zeros(3)
    given = model, zero, zero, jnp.zeros((5, 3)), DT, optimize.effort()
    with pytest.raises(ValueError, match="with loops, expected 1"):
        optimize.optimize_torques(*given, segments=5)


def test_a_wrong_policy_is_named():
    model, ts, cost = pendulum(), jnp.linspace(0, 1, 5), optimize.effort()
    policy = PD(jnp.ones(2), jnp.zeros(1))

    def learn(policy=policy, q0=None, ts=ts, **options):
        q0 = jnp.zeros(1) if q0 is None else q0
        optimize.optimize_policy(model, policy, q0, jnp.zeros(1), ts, cost, **options)

    for match, call in {
        "no free parameters": lambda: learn(lambda t, q, qd: q),
        "expected two increasing times": lambda: learn(ts=ts[::-1]),
        r"q0 and qd0 have the shapes \(3,\) and \(1,\)": lambda: learn(q0=jnp.ones(3)),
        r"policy returned shape \(2,\)": lambda: learn(PD(jnp.ones(2), jnp.zeros(2))),
        "integrator is 'euler'": lambda: learn(integrator="euler"),
    }.items():
        with pytest.raises(ValueError, match=match):
            call()
