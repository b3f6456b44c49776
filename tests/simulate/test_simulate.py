from functools import partial

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
import pytest

import jaxdyn as jd
from jaxdyn.simulate import adaptive_steps
from tests.models import random_state

BISECTION = optx.Bisection(1e-13, 1e-13, flip=True)
TIGHT = diffrax.PIDController(rtol=1e-11, atol=1e-11)


def pendulum(**joint):
    b = jd.ModelBuilder("pendulum", gravity=(0.0, -9.81, 0.0))
    rod = jd.Inertial.rod(1.0, (0, 0, 0), (1, 0, 0))
    b.add_body("rod", inertial=rod, **joint)
    return b.build()


def ball():
    b = jd.ModelBuilder("ball")
    body = jd.Inertial.box(1.3, (0.3, 0.5, 0.8)).moved(np.eye(3), np.full(3, 0.1))
    b.add_body("ball", joint="free", inertial=body)
    return b.build()


class Damper(eqx.Module):
    """A policy with a parameter."""

    gain: jax.Array

    def __call__(self, t, q, qd):
        return -self.gain * qd


QUARTER = jnp.linspace(0.0, 0.3, 4)
STARTS = {
    "pendulum": (pendulum, [0.3], [1.0]),
    "gripper": (jd.robots.gripper, [0.3, -0.2, 0.1, 0.5], [1.0, 0.5, -1.0, 0.2]),
    "floating": (ball, [0.1, 0.2, 0.3, 0, 0, 0, 1.0], [0.3, 0.2, 0.1, 1.0, -2.0, 3.0]),
}


@pytest.mark.first
@pytest.mark.parametrize(
    "name, mode",
    [
        ("pendulum", "forward"),
        ("floating", "reverse"),
        pytest.param("pendulum", "reverse", marks=pytest.mark.slow),
        pytest.param("gripper", "reverse", marks=pytest.mark.slow),
    ],
)
def test_gradients_by_state_policy_and_model_are_differences(name, mode, rng):
    make, q, qd = STARTS[name]
    model, gain = make(), jnp.asarray(1e-3)
    x = (jnp.array(qd), gain, model.mass)

    def loss(qd, gain, mass):
        heavy = eqx.tree_at(lambda m: m.mass, model, mass)
        run = jd.simulate(
            heavy,
            jnp.array(q),
            qd,
            QUARTER,
            torque=Damper(gain),
            stepsize_controller=TIGHT,
            adjoint=diffrax.ForwardMode() if mode == "forward" else None,
            max_steps=1000,
        )
        return jnp.sin(run.q).sum() + (run.qd**2).sum() + run.energy.sum()

    dx = jax.tree.map(lambda a: a * rng.normal(size=a.shape), x)

    @jax.jit
    def value_and_slope(x):
        if mode == "forward":
            return jax.jvp(loss, x, dx)
        value, gradient = jax.value_and_grad(loss, range(3))(*x)
        return value, sum(jnp.vdot(g, d) for g, d in zip(gradient, dx, strict=True))

    def at(k, h=1e-3):
        return value_and_slope(jax.tree.map(lambda a, d: a + k * h * d, x, dx))

    difference = (8 * (at(1)[0] - at(-1)[0]) - (at(2)[0] - at(-2)[0])) / (12 * 1e-3)
    np.testing.assert_allclose(at(0)[1], difference, rtol=1e-8)


def test_forward_mode_by_the_default_adjoint_says_what_to_do():
    run = lambda q: jd.simulate(pendulum(), q, 0 * q, jnp.array([0.0, 0.1])).q  # noqa: E731
    with pytest.raises(ValueError, match=r"give adjoint=diffrax\.ForwardMode"):
        jax.jacfwd(run)(jnp.array([0.3]))


def test_every_form_of_torque_is_the_same_torque():
    model, q = pendulum(), jnp.array([0.3])
    ts = jnp.linspace(0.0, 1.0, 11)
    ramp = lambda t, q, qd: 3.0 * t * jnp.ones(1)  # noqa: E731
    by_law = jd.simulate(model, q, 0 * q, ts, torque=ramp)
    by_samples = jd.simulate(model, q, 0 * q, ts, torque=3 * ts[:, None])
    np.testing.assert_allclose(by_samples.q, by_law.q, atol=1e-8)
    np.testing.assert_allclose(by_law.tau[:, 0], 3 * ts, atol=1e-15)
    constant = jd.simulate(model, q, 0 * q, ts, torque=np.ones(1))
    np.testing.assert_array_equal(constant.tau, jnp.ones((11, 1)))


@pytest.mark.slow
def test_wrenches_are_constant_sampled_or_a_law():
    model, ts = pendulum(), jnp.linspace(0.0, 0.5, 6)
    q, qd = jnp.array([0.3]), jnp.array([1.0])
    weight = -model.mass[0] * model.gravity
    lift = lambda t, q, qd: jnp.concatenate(  # noqa: E731
        [weight, jnp.cross(jd.forward_kinematics(model, q).R[0] @ model.com[0], weight)]
    )[None]
    lifted = jd.simulate(model, q, qd, ts, f_ext=lift)
    np.testing.assert_allclose(lifted.q[:, 0], 0.3 + ts, atol=1e-14)  # no weight
    pushed = jd.simulate(model, q, qd, ts, f_ext=np.ones((1, 6)))
    samples = jd.simulate(model, q, qd, ts, f_ext=np.ones((6, 1, 6)))
    np.testing.assert_allclose(pushed.q, samples.q, atol=1e-12)


@pytest.mark.slow
def test_quaternions_stay_of_unit_length_where_the_solver_is_crude():
    model = jd.robots.random_tree(0, 2, joints=("free", "spherical"))
    q, qd, _ = random_state(model, np.random.default_rng(0))
    crude = dict(
        solver=diffrax.Euler(), stepsize_controller=diffrax.ConstantStepSize(), dt0=0.01
    )
    run = jd.simulate(model, q, qd, jnp.linspace(0, 0.2, 5), **crude, dense=True)
    places = model.topology.quaternion_q
    lengths = jnp.linalg.norm(run.q[:, places], axis=-1)
    np.testing.assert_allclose(lengths, 1, atol=1e-15)
    np.testing.assert_allclose(
        jnp.linalg.norm(run.at(0.07).q[places], axis=-1), 1, atol=1e-15
    )
    # the length of a quaternion has no influence
    longer = q.at[places].multiply(7.0)
    again = jd.simulate(model, longer, qd, jnp.linspace(0, 0.2, 5), **crude, dense=True)
    np.testing.assert_allclose(again.qd, run.qd, atol=1e-11)


@pytest.mark.slow
def test_dense_output_is_as_good_as_the_rows():
    model, q = pendulum(), jnp.array([0.3])
    run = jd.simulate(model, q, 0 * q, jnp.array([0.0, 0.3, 0.7]), dense=True)
    np.testing.assert_allclose(run.at(0.3).q, run.q[1], atol=1e-12)
    rows = jd.simulate(model, q, 0 * q, jnp.array([0.0, 0.41, 0.7]))
    np.testing.assert_allclose(run.at(0.41).q, rows.q[1], atol=1e-6)
    with pytest.raises(ValueError, match="dense=True"):
        rows.at(0.1)


@pytest.mark.slow
def test_a_joint_limit_ends_the_motion_exactly_and_its_time_is_differentiable():
    model, q = pendulum(lower=-1.0, upper=2.0), jnp.array([0.5])
    ts = jnp.linspace(0.0, 1.0, 11)
    stop = jd.joint_limit_event(model, root_finder=BISECTION)

    @eqx.filter_jit
    @partial(eqx.filter_value_and_grad, has_aux=True)
    def end(q):
        run = jd.simulate(model, q, 0 * q, ts, event=stop)
        return run.end_time, run

    (_, run), slope = end(q)
    assert run.is_successful and run.event_mask
    np.testing.assert_allclose(run.end.q, -1.0, atol=1e-9)
    assert run.result == jd.Outcome.event_occurred
    after = ts > run.end_time
    assert jnp.isnan(run.q[after]).all() and jnp.isfinite(run.q[~after]).all()
    h = 1e-4
    difference = (end(q + h)[0][0] - end(q - h)[0][0]) / (2 * h)
    np.testing.assert_allclose(slope, difference, atol=1e-7)
    with pytest.raises(ValueError, match="root_finder is Newton, expected None or a b"):
        jd.joint_limit_event(model, root_finder=optx.Newton(1e-10, 1e-10))
    for none in ({}, dict(lower=0.5, upper=0.5)):
        with pytest.raises(ValueError, match="no finite joint limit"):
            jd.joint_limit_event(pendulum(**none))


def test_joints_may_start_and_rest_on_limits_and_stop_where_they_leave_them():
    b = jd.ModelBuilder("closed hand", gravity=(0.0, -9.81, 0.0))
    rod = jd.Inertial.rod(1.0, (0, 0, 0), (1, 0, 0))
    b.add_body("arm", inertial=rod, lower=-0.5, upper=0.5)
    across = dict(joint="prismatic", axis=(0, 0, 1), inertial=rod)  # without weight
    b.add_body("finger", "arm", **across, lower=0.0, upper=0.04)
    b.add_body("locked", "finger", **across, lower=0.0, upper=0.0)
    model, ts = b.build(), jnp.linspace(0.0, 1.0, 3)
    stop = jd.joint_limit_event(model, root_finder=BISECTION)

    def end(q, qd):
        run = jd.simulate(model, jnp.array(q), jnp.array(qd), ts, event=stop)
        assert run.result == jd.Outcome.event_occurred
        return np.append(run.end_time, run.end.q)

    rest = [0.0, 0.0, 0.0]
    np.testing.assert_allclose(end(rest, rest)[1:], [-0.5, 0, 0], atol=3e-10)
    up = end(rest, [5.0, 0.0, 0.0])
    np.testing.assert_allclose(up[1:], [0.5, 0, 0], atol=3e-10)
    inward = end([0.5, 0.04, 0.0], rest)
    np.testing.assert_allclose(inward[1:], [-0.5, 0.04, 0], atol=3e-10)
    outward = end([0.5, 0.0, 0.0], [1.0, 0.0, 0.0])
    np.testing.assert_allclose(outward, [0, 0.5, 0, 0], atol=3e-10)
    fallen = end([-0.5, 0.0, 0.0], rest)
    np.testing.assert_allclose(fallen, [0, -0.5, 0, 0], atol=1e-5)
    pinched = end(rest, [0.0, -0.1, 0.1])
    np.testing.assert_allclose(pinched, 0, atol=3e-9)


@pytest.mark.slow
def test_a_limit_event_made_anew_compiles_nothing_and_names_the_joint():
    b = jd.ModelBuilder("arm", gravity=(0.0, -9.81, 0.0))
    rod = jd.Inertial.rod(1.0, (0, 0, 0), (1, 0, 0))
    b.add_body("upper", inertial=rod, lower=-1.0, upper=2.0)
    across = dict(joint="prismatic", axis=(0, 0, 1), inertial=rod)
    b.add_body("finger", "upper", **across, lower=0.0, upper=0.1)  # rests on a limit
    model, ts, traces = b.build(), jnp.linspace(0.0, 1.0, 5), []

    class Torque(eqx.Module):
        def __call__(self, t, q, qd):
            traces.append(t)
            return 0 * q

    def run(model, q, **options):
        stop = jd.joint_limit_event(model, root_finder=BISECTION)
        q = jnp.asarray(q)
        return jd.simulate(model, q, 0 * q, ts, torque=Torque(), event=stop, **options)

    first = run(model, [0.5, 0.0])
    count = len(traces)
    nearer = eqx.tree_at(lambda m: m.lower, model, jnp.array([-0.9, 0.0]))
    second = run(nearer, [0.5, 0.0])
    assert len(traces) == count
    np.testing.assert_allclose(second.end.q, [-0.9, 0.0], atol=1e-7)
    assert first.reached_limits(model) == second.reached_limits(nearer) == ("j_upper",)
    with pytest.raises(
        ValueError, match=r"q0\[1\] is 0.2, expected 0 to 0.1, .* 'j_fi"
    ):
        run(model, [0.0, 0.2])
    starts = jnp.array([[0.0, 0.2], [jnp.nan, 0.0], [0.5, 0.0]])
    batch = jax.jit(jax.vmap(lambda q: run(model, q, throw=False)))(starts)
    is_beyond = batch.result == jd.Outcome.starts_beyond_limit
    is_lost = batch.result == jd.Outcome.not_finite
    assert is_beyond.tolist() == [True, False, False]
    assert is_lost.tolist() == [False, True, False]
    assert batch.stats["num_steps"].max() < 100
    other = eqx.tree_at(lambda run: run.end.q, second, jnp.array([-0.8, 0.0]))
    assert other.reached_limits(nearer) == ()  # as if something else had stopped it
    with pytest.raises(ValueError, match=r"shape \(3, 2\), expected one trajectory"):
        batch.reached_limits(model)


def test_a_failure_is_a_sentence_and_raises_by_default():
    model, q = pendulum(), jnp.array([0.3])
    ts = jnp.linspace(0.0, 1.0, 11)
    with pytest.raises(RuntimeError, match="maximum number of solver steps.*t = 0.0 "):
        jd.simulate(model, q, 0 * q, ts, max_steps=3)
    short = jd.simulate(model, q, 0 * q, ts, max_steps=3, throw=False)
    assert not short.is_successful and "steps" in jd.Outcome[short.result]

    def breaks(t, q, qd):
        return jnp.where(t > 0.5, jnp.nan, 0.0) * q

    stuck = jd.simulate(model, q, 0 * q, ts, torque=breaks, throw=False)
    assert not stuck.is_successful and 0.4 < stuck.end_time < 0.6
    assert stuck.stats["num_steps"] < 1000
    fixed = dict(stepsize_controller=diffrax.ConstantStepSize(), dt0=0.1)
    with pytest.raises(RuntimeError, match="not finite"):
        jd.simulate(model, q, 0 * q, ts, torque=breaks, **fixed)
    with pytest.raises(RuntimeError, match="maximum number of solver steps"):
        jax.jit(lambda q: jd.simulate(model, q, 0 * q, ts, max_steps=3))(q)


@pytest.mark.parametrize(
    "changed, message",
    [
        (dict(q0=[np.nan]), r"q0\[0\] is nan, expected a finite number"),
        (dict(qd0=[np.inf]), r"qd0\[0\] is inf, expected a finite number"),
        (dict(max_steps=1e3), r"max_steps is 1000.0, expected a whole number from 1"),
        (dict(max_steps=0), r"max_steps is 0, expected a whole number from 1"),
        (dict(ts=[0.0]), r"ts has shape \(1,\), expected two times or more"),
        (dict(ts=[0.0, 2.0, 1.0]), r"ts\[2\] is 1.0 after 2.0, expected increasing"),
        (dict(ts=[0.0, np.inf]), r"ts\[1\] is inf, expected a finite time"),
        (dict(q0=[0.0, 1.0]), r"q0 has shape \(2,\), expected \(1,\)"),
        (dict(qd0=[]), r"qd0 has shape \(0,\), expected \(1,\)"),
        (dict(torque=np.ones((2, 1))), r"torque has shape \(2, 1\), expected \(1,\)"),
        (dict(torque="full"), r"torque is a str, expected a function"),
        (dict(torque=lambda t, q, qd: t), r"torque returned shape \(\), expected \(1"),
        (dict(f_ext=np.ones(6)), r"f_ext has shape \(6,\), expected \(1, 6\)"),
        (dict(method="magic"), r"method is 'magic', expected one of: denoc"),
        (dict(loop_method="magic"), r"loop_method is 'magic', expected one of: kkt"),
        (dict(solver=diffrax.SemiImplicitEuler()), r"solver is SemiImplicitEuler"),
        (dict(stepsize_controller=diffrax.ConstantStepSize()), r"dt0 is None"),
    ],
)
def test_wrong_input_is_named(changed, message, without_type_checker):
    given = dict(q0=[0.0], qd0=[0.0], ts=[0.0, 0.5, 1.0]) | changed
    given |= {k: jnp.asarray(given[k], float) for k in ("q0", "qd0", "ts")}
    with pytest.raises(ValueError, match=message):
        jd.simulate(pendulum(), **given)


def test_float32_stays_float32():
    model, q = pendulum().astype(jnp.float32), jnp.array([0.3], jnp.float32)
    run = jd.simulate(model, q, 0 * q, QUARTER.astype(jnp.float32))
    floats = [x.dtype for x in jax.tree.leaves(run) if eqx.is_inexact_array(x)]
    assert set(floats) == {jnp.dtype("float32")}
    with pytest.raises(ValueError, match=r"ts\[2\] .* increasing times in float32"):
        jd.simulate(model, q, 0 * q, jnp.linspace(1e4, 1e4 + 0.01, 21))


@pytest.mark.slow
def test_vmap_is_the_loop_and_adjoints_of_diffrax_agree():
    model, qs = pendulum(), jnp.array([[0.3], [1.0]])

    def end(q, adjoint=None):
        options = dict(adjoint=adjoint, max_steps=100)
        return jd.simulate(model, q, 0 * q, QUARTER, **options).q[-1, 0]

    batch = jax.jit(jax.vmap(jax.value_and_grad(end)))(qs)
    for k, q in enumerate(qs):
        for adjoint in (diffrax.DirectAdjoint(), diffrax.BacksolveAdjoint()):
            value, slope = jax.value_and_grad(end)(q, adjoint)
            np.testing.assert_allclose(batch[0][k], value, atol=1e-12)
            np.testing.assert_allclose(batch[1][k], slope, atol=1e-7)


@pytest.mark.slow
def test_implicit_solvers_take_stiff_joints():
    stiff = pendulum(damping=1e5)
    q = jnp.array([0.3])
    run = jd.simulate(
        stiff,
        q,
        jnp.array([1.0]),
        jnp.array([0.0, 1.0]),
        solver=diffrax.Kvaerno3(),
        stepsize_controller=diffrax.PIDController(rtol=1e-5, atol=1e-7),
    )
    creep = -9.81 / 2 * np.cos(0.3) / 1e5
    np.testing.assert_allclose(run.qd[-1, 0], creep, rtol=1e-3)
    assert run.stats["num_steps"] < 200


def test_tolerances_are_those_that_are_given():
    steps = adaptive_steps(QUARTER, rtol=1e-6, atol=0.0)
    assert (steps.rtol, steps.atol) == (1e-6, 0.0)
    steps = adaptive_steps(QUARTER)
    assert (steps.rtol, steps.atol) == (1e-8, 1e-10)


def test_a_bar_shows_progress(capsys):
    q = jnp.array([0.3])
    jd.simulate(pendulum(), q, 0 * q, QUARTER, progress=True)
    assert "100.00%" in capsys.readouterr().err
