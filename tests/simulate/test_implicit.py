"""Steps that stay stable however stiff joints, servos, stops and elements are."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from tests.models import random_state

BAR = jd.Inertial(1.0, (0.5, 0, 0), np.diag([0.01, 0.1, 0.1]))


def joint(kind="revolute", mass=1.0, gravity=(0.0, 0.0, 0.0), **effects):
    b = jd.ModelBuilder("joint", gravity=gravity)
    b.add_body("rod", joint=kind, inertial=jd.Inertial.rod(mass, (0, 0, 0), (1, 0, 0)),
               **effects)  # fmt: skip
    return b.build()


def energies(model, q, qd):
    each = partial(jax.vmap, in_axes=(None, 0, 0))
    kinetic = each(jd.kinetic_energy)(model, q, qd)
    return kinetic + jax.vmap(jd.potential_energy, (None, 0))(model, q)


def never_grows(energy, start):
    return bool((jnp.diff(energy) <= 1e-12 * start).all())


def test_friction_stops_a_light_joint_and_does_not_turn_it_around():
    model = joint(mass=1e-3, friction=1.0)
    q, qd, rest = jnp.zeros(1), jnp.array([1.0]), jnp.zeros((100, 1))
    _, wild = jd.rollout(model, q, qd, rest, 2e-3, integrator="semi_implicit_euler")
    _, quiet = jd.rollout(model, q, qd, rest, 2e-3)
    assert jnp.abs(jnp.diff(wild[:, 0])).max() > 1
    assert (quiet >= 0).all() and (jnp.diff(quiet[:, 0]) <= 0).all()
    assert quiet[-1, 0] < 1e-12


def test_a_joint_creeps_where_friction_holds_it():
    model = joint(mass=1e-3, friction=1.0)
    qd = jd.rollout(model, jnp.zeros(1), jnp.zeros(1), jnp.full((400, 1), 0.5), 2e-3)[1]
    v = 0.5 / np.sqrt(1 - 0.5**2) * model.friction_speed[0]
    np.testing.assert_allclose(qd[-1, 0], v, rtol=1e-6)


@pytest.mark.parametrize("dt", [2e-3, 5e-3])
def test_a_stiff_spring_never_gains_energy(dt):
    model = joint("prismatic", stiffness=1e6, damping=10.0)
    q = jnp.array([1e-2])
    q, qd = jd.rollout(model, q, 0 * q, jnp.zeros((200, 1)), dt)
    energy = energies(model, q, qd)
    assert never_grows(energy, energy[0]) and energy[-1] < 1e-6 * energy[0]


@pytest.mark.slow
@pytest.mark.first
@pytest.mark.parametrize("dt", [2e-3, 5e-3])
def test_nor_does_one_between_two_bodies(dt):
    b = jd.ModelBuilder("pair", gravity=(0.0, 0.0, 0.0))
    b.add_body("a", joint="spherical", inertial=BAR)
    b.add_body("b", parent="a", p=(1.0, 0, 0), inertial=BAR)
    model = b.build()
    q, still = jd.neutral(model).at[-1].set(0.5), jnp.zeros(model.nv)
    poses = jd.forward_kinematics(model, q)
    tip = poses.p[1] + poses.R[1, :, 0] + 1e-3 * jnp.array([0.6, 0.0, 0.8])
    model = model.with_force(
        jd.SpringDamper("b", (1, 0, 0), None, np.asarray(tip), stiffness=1e6)
    )
    q, qd = jd.rollout(model, q, still, jnp.zeros((100, model.nv)), dt)
    energy = energies(model, q, qd)
    assert energy.max() <= energy[0] and energy[-1] < 1e-2 * energy[0]


def test_stops_hold_a_falling_joint_and_take_its_energy():
    model = joint(gravity=(0.0, -9.81, 0.0), lower=-1.0, upper=1.0)
    model = model.with_force(jd.joint_stops(model, time=2e-3))
    q = jnp.zeros(1)
    for dt in (2e-3, 5e-3):
        qs, qds = jd.rollout(model, q, q, jnp.zeros((400, 1)), dt)
        energy = energies(model, qs, qds)
        hit = int(jnp.argmax(qs[:, 0] < -1))
        assert never_grows(energy[hit:], 1.0)
        # it rests where the stop carries the weight
        k, w = model.forces[0].stiffness[0], model.forces[0].width
        weight = 9.81 / 2 * np.cos(qs[-1, 0])
        np.testing.assert_allclose((1 + qs[-1, 0]) ** 2, 2 * w * weight / k, rtol=1e-6)
        np.testing.assert_allclose(qds[-1], 0, atol=1e-9)


def test_stops_have_an_energy_and_slopes():
    model = joint(lower=-0.5, upper=0.5)
    model = model.with_force(jd.joint_stops(model, stiffness=100.0, damping=1.0))
    for x in (0.4, 0.5004, 0.7, -0.5003, -0.9):
        q, qd = jnp.array([x]), jnp.array([0.0])
        slope = jax.grad(lambda q: jd.potential_energy(model, q))(q)
        held = jd.inverse_dynamics(model, q, qd, qd)
        np.testing.assert_allclose(held, slope, atol=1e-12)
    with pytest.raises(ValueError, match="stiffness is .* expected 1 finite numbers"):
        jd.joint_stops(model, stiffness=-1.0)
    with pytest.raises(ValueError, match="time is 0, expected a positive number"):
        jd.joint_stops(model, time=0)


SERVO = """
<mujoco><option gravity="0 0 -9.81"/><worldbody>
  <body><joint name="a" axis="0 1 0" armature="0.01"/>
    <geom type="capsule" size="0.03 0.1" pos="0 0 0.1" mass="0.3"/>
    <body pos="0 0 0.2"><joint name="b" axis="0 1 0"/>
      <geom type="capsule" size="0.02 0.1" pos="0 0 0.1" mass="0.05"/></body></body>
</worldbody><actuator>
  <position joint="a" kp="4500" kv="450"/><position joint="b" kp="3500" kv="350"/>
</actuator></mujoco>
"""


@pytest.mark.first
@pytest.mark.parametrize("dt", [2e-3, 5e-3])
def test_servos_with_the_gains_of_a_real_robot_are_stable(dt):
    model = jd.load(SERVO)
    target = jnp.array([0.4, -0.3])
    run = partial(jd.rollout, model, jnp.zeros(2), jnp.zeros(2), actuated=True)
    rows = jnp.broadcast_to(target, (1000, 2))
    q, qd = run(rows, dt)
    np.testing.assert_allclose(q[-1], target, atol=1e-2)
    np.testing.assert_allclose(qd[-1], 0, atol=1e-6)
    assert not jnp.isfinite(run(rows, dt, integrator="semi_implicit_euler")[0]).all()
    assert jd.stable_step(model, jnp.zeros(2), target) < dt


@pytest.mark.slow
def test_simulated_servos_are_those_of_short_steps():
    model, target = jd.load(SERVO), jnp.array([0.4, -0.3])
    zero, ts = jnp.zeros(2), jnp.linspace(0, 0.02, 3)
    run = jd.simulate(model, zero, zero, ts, torque=target, actuated=True)
    rows = jnp.broadcast_to(target, (20_000, 2))
    q, _ = jd.rollout(model, zero, zero, rows, 1e-6, actuated=True, every=10_000)
    np.testing.assert_allclose(run.q, q, atol=1e-4)


def test_without_stiff_effects_it_is_semi_implicit(rng):
    model = jd.robots.random_tree(0, 3, joints=("free", "revolute"))
    q, qd, tau = random_state(model, rng)
    a = jd.step(model, q, qd, tau, 1e-3)
    b = jd.step(model, q, qd, tau, 1e-3, integrator="semi_implicit_euler")
    for x, y in zip(a, b, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-14, atol=1e-14)


@pytest.mark.slow
def test_the_gyroscopic_forces_are_those_of_the_armature_alone(rng):
    model = jd.robots.random_tree(0, 2, joints=("free", "spherical"))
    effects = dict(damping=2.0, friction=0.5, stiffness=3.0, armature=0.3)
    model = model.replace(**effects)
    q, qd, tau = random_state(model, rng)
    ends = [jd.step(model, q, qd, tau, h)[1] for h in (1e-5, 2e-5)]
    slope = [(v - qd) / h for v, h in zip(ends, (1e-5, 2e-5), strict=True)]
    limit = 2 * slope[0] - slope[1]
    np.testing.assert_allclose(limit, jd.forward_dynamics(model, q, qd, tau), rtol=1e-5)


def test_the_longest_explicit_step_is_where_oscillations_begin_to_grow():
    model = joint("prismatic", stiffness=400.0, damping=3.0)
    h = jd.stable_step(model, jnp.zeros(1))
    q, rest = jnp.array([0.1]), jnp.zeros((300, 1))
    run = partial(jd.rollout, model, q, 0 * q, rest, integrator="semi_implicit_euler")
    below, above = (jnp.abs(run(f * h)[0][-20:]).max() for f in (0.98, 1.02))
    assert below < 0.1 < 10 < above
    assert jd.stable_step(joint(), jnp.zeros(1)) == jnp.inf


@pytest.mark.slow
def test_a_linearized_step_is_the_step_nearby(rng):
    model = jd.robots.random_tree(1, 3, joints=("spherical", "revolute"))
    model = model.replace(damping=0.1)
    q, qd, tau = random_state(model, rng)
    A, B = jd.linearize(model, q, qd, tau, dt=1e-2)
    end, _ = jd.step(model, q, qd, tau, 1e-2)
    x, eps = jnp.asarray(rng.normal(size=(3, model.nv))), 1e-6

    def moved(s):
        at = jd.integrate(model, q, s * x[0]), qd + s * x[1], tau + s * x[2]
        place, rate = jd.step(model, *at, 1e-2)
        return jnp.concatenate([jd.difference(model, end, place), rate])

    expected = (moved(eps) - moved(-eps)) / (2 * eps)
    ours = A @ jnp.concatenate([x[0], x[1]]) + B @ x[2]
    np.testing.assert_allclose(ours, expected, rtol=1e-6, atol=1e-7)
