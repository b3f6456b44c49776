import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn import motion
from jaxdyn.motion._motion import JointMotion, osculating, tangent_jet
from tests.models import every_joint, random_state, with_effects
from tests.reference import load


def moving(model, rng):
    q0, q1 = (random_state(model, rng)[0] for _ in range(2))
    return motion.cycloidal(model, q0, q1, 2.0)


@pytest.mark.slow
def test_computed_torque_makes_errors_damped_oscillations_for_every_joint(rng):
    model = with_effects(every_joint(1, branched=False), rng)
    move, t = moving(model, rng), jnp.asarray(0.7)
    kp, kd = jnp.asarray(rng.uniform(1, 9, (2, model.nv)))
    d, qd = jnp.asarray(rng.uniform(-0.5, 0.5, (2, model.nv)))
    q = jd.integrate(model, move(t).q, d)
    tau = motion.computed_torque(model, move, kp, kd, free_joints=True)(t, q, qd)
    qdd = jd.forward_dynamics(model, q, qd, tau)

    @jax.jit
    def error_jet(q, qd, qdd):
        path = osculating(model, JointMotion(q, qd, qdd))
        return tangent_jet(
            lambda h: jd.difference(model, move.path(t + h), path(h)), q.dtype
        )

    e, de, dde = error_jet(q, qd, qdd)
    np.testing.assert_allclose(e, d, atol=1e-14)
    np.testing.assert_allclose(dde, -kd * de - kp * e, atol=1e-10)


def test_on_the_reference_computed_torque_is_feedforward(rng):
    model = jd.robots.gripper()
    move = moving(model, rng)
    at = move(0.7)
    tau = motion.computed_torque(model, move, 5.0, 2.0)(0.7, at.q, at.qd)
    forward = motion.feedforward(model, move)
    np.testing.assert_allclose(tau, forward(0.7, at.q, at.qd), atol=1e-14)
    np.testing.assert_allclose(
        forward(0.7), jd.inverse_dynamics(model, at.q, at.qd, at.qdd), atol=1e-14
    )


@pytest.mark.reference
def test_feedforward_along_the_cycloid_has_the_reference_torques():
    model = jd.robots.puma_mohan_saha()
    data = load("puma_mohan_saha")["trajectory"]
    move = motion.cycloidal(model, jnp.zeros(6), jnp.full(6, jnp.pi), 10.0)
    tau = jax.vmap(motion.feedforward(model, move))(jnp.asarray(data["t"]))
    np.testing.assert_allclose(tau, data["tau"], atol=1e-12)


def test_pd_gravity_rests_at_its_target_and_takes_its_power_from_a_spring(rng):
    model = with_effects(every_joint(1, branched=False), rng)
    q, qd, _ = random_state(model, rng)
    target, still = random_state(model, rng)[0], jnp.zeros(model.nv)
    kp, kd = jnp.asarray(rng.uniform(1, 9, (2, model.nv)))
    law = motion.pd_gravity(model, target, kp, kd, free_joints=True)
    np.testing.assert_allclose(
        law(0.0, target, still), jd.bias_forces(model, target, still), atol=1e-12
    )

    def energy(h):
        e = jd.difference(model, target, jd.integrate(model, q, h * qd))
        return (kp * e**2).sum() / 2

    power = qd @ (law(0.0, q, qd) - jd.bias_forces(model, q, still))
    slope = jax.jvp(energy, (0.0,), (1.0,))[1]
    np.testing.assert_allclose(power, -slope - (kd * qd**2).sum(), rtol=1e-12)


def closed_loop(model, law, q, qd, dt, count):
    def step(state, k):
        q, qd = state
        qd = qd + dt * jd.forward_dynamics(model, q, qd, law(k * dt, q, qd))
        q = jd.integrate(model, q, dt * qd)
        return (q, qd), None

    return jax.jit(lambda *x: jax.lax.scan(step, x, jnp.arange(count * 1.0))[0])(q, qd)


@pytest.mark.slow
def test_pd_gravity_reaches_its_target():
    model, target = jd.robots.gripper(), jnp.array([0.5, -0.3, 0.8, 1.0])
    law = motion.pd_gravity(model, target, 0.5, jnp.array([0.1, 0.03, 0.01, 0.03]))
    q, qd = closed_loop(model, law, jnp.zeros(4), jnp.zeros(4), 2e-4, 20_000)
    np.testing.assert_allclose(q, target, atol=1e-5)
    np.testing.assert_allclose(qd, np.zeros(4), atol=1e-4)


def test_computed_torque_brings_the_gripper_back_to_its_motion():
    model = jd.robots.gripper()
    move = motion.cycloidal(model, jnp.zeros(4), jnp.ones(4), 1.0)
    law = motion.computed_torque(model, move, 100.0, 20.0)
    q, _ = closed_loop(model, law, jnp.full(4, 0.2), jnp.zeros(4), 1e-3, 2000)
    # critically damped: (1 + 10 t) exp(-10 t) of 0.2 at t = 2
    np.testing.assert_allclose(q, np.ones(4), atol=1e-7)


def test_gains_and_waypoints_are_parameters(rng):
    model = jd.robots.gripper()
    q, qd, _ = random_state(model, rng)
    law = motion.computed_torque(model, moving(model, rng), 5.0, jnp.ones(4))

    def chosen(law):
        return law.kp, law.kd, law.motion.d

    @jax.jit
    @jax.grad
    def slope(x):
        return eqx.tree_at(chosen, law, x)(0.7, q, qd).sum()

    kp, kd, d = slope(chosen(law))
    assert kp.shape == () and kd.shape == d.shape == (4,)
    M = jd.mass_matrix(model, q).sum(axis=0)  # the sum of tau is M qdd summed, and h
    at = law.motion(0.7)
    np.testing.assert_allclose(kd, M * (at.qd - qd), atol=1e-13)
    np.testing.assert_allclose(kp, M @ (at.q - q), atol=1e-13)
    assert (d != 0).all()


def test_forces_are_cut_at_the_effort_if_asked(rng):
    effort = jnp.array([0.1, jnp.inf, 0.2, 0.0])
    model = eqx.tree_at(lambda m: m.effort, jd.robots.gripper(), effort)
    move, q = moving(model, rng), jnp.zeros(4)
    for make in (
        lambda **o: motion.computed_torque(model, move, 50.0, 1.0, **o),
        lambda **o: motion.pd_gravity(model, q + 1, 50.0, 1.0, **o),
        lambda **o: motion.feedforward(model, move, **o),
    ):
        free, cut = make()(0.7, q, q), make(saturate=True)(0.7, q, q)
        np.testing.assert_allclose(cut, np.clip(free, -effort, effort))
        assert (cut != free).any()


def test_wrong_gains_are_errors_that_name_them(without_type_checker):
    model, q = jd.robots.gripper(), jnp.zeros(4)
    for gains, message in (
        ((-1.0, 1.0), "kp is -1.0, expected numbers that are not negative"),
        (
            (1.0, jnp.array([1.0, 1, 1, jnp.nan])),
            r"kd is \[ 1.  1.  1. nan\], expected",
        ),
        ((1.0, jnp.ones(3)), r"kd has shape \(3,\), expected one number or \(4,\)"),
    ):
        with pytest.raises(ValueError, match=message):
            motion.pd_gravity(model, q, *gains)
    with pytest.raises(ValueError, match=r"target has shape \(3,\), expected \(4,\)"):
        motion.pd_gravity(model, q[:3], 1.0, 1.0)


def test_laws_of_trees_refuse_loops():
    model = jd.robots.four_bar()
    move = motion.cycloidal(model, jnp.zeros(3), jnp.ones(3), 1.0)
    for law, *given in (
        (motion.computed_torque, move, 1.0, 1.0),
        (motion.pd_gravity, jnp.zeros(3), 1.0, 1.0),
        (motion.feedforward, move),
    ):
        with pytest.raises(ValueError, match=r"'fourbar' has loops \(first: 'loop 0'"):
            law(model, *given)


def test_laws_do_not_push_a_floating_base(rng):
    model = jd.robots.random_tree(0, 3, joints=("free", "revolute"))
    q, qd, _ = random_state(model, rng)
    assert model.actuated.sum() == model.nv - 6 * model.joints.count("free")
    tau = motion.pd_gravity(model, jd.neutral(model), 5.0, 1.0)(0.0, q, qd)
    np.testing.assert_array_equal(np.asarray(tau) != 0, model.actuated)
    move, goal = moving(model, rng), (jnp.eye(3), jnp.zeros(3))
    for law, *given in (
        (motion.computed_torque, move, 1.0, 1.0),
        (motion.feedforward, move),
        (motion.operational_space, 0, goal, 1.0, 1.0),
    ):
        posture = {"posture": q} if law is motion.operational_space else {}
        with pytest.raises(
            ValueError, match="joint 'j_b.*' of model .* is free, expect"
        ):
            law(model, *given, **posture)
        law(model, *given, **posture, free_joints=True)
