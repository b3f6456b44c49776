import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.algorithms.recursions import passive_forces
from jaxdyn.algorithms.recursions._joint_forces import elastic_energy, spring_forces
from jaxdyn.model import JOINT_TYPES

BALL = jd.Inertial.ellipsoid(1.0, (1, 2, 3))
with_quaternion = pytest.mark.parametrize("joint", ["spherical", "free"])


def sprung(joint, rng, **effects):
    """One body on a joint with a different stiffness in each direction."""
    kind = JOINT_TYPES[joint]
    b = jd.ModelBuilder("sprung")
    k, rest = rng.uniform(1, 9, size=kind.nv), rng.normal(size=kind.nq)
    effects = {"stiffness": k, "rest": rest} | effects
    b.add_body("ball", joint=joint, inertial=BALL, **effects)
    return b.build()


def sprung_in_quaternions(rng):
    """Two bodies, on a spherical and on a free joint, with springs as above."""
    b = jd.ModelBuilder("sprung")
    for joint in ("spherical", "free"):
        kind = JOINT_TYPES[joint]
        k, rest = rng.uniform(1, 9, size=kind.nv), rng.normal(size=kind.nq)
        b.add_body(joint, joint=joint, inertial=BALL, stiffness=k, rest=rest)
    return b.build()


def random_q(model, rng):
    return jd.random_configuration(model, jax.random.key(int(rng.integers(1 << 30))))


@pytest.mark.first
@with_quaternion
def test_the_power_of_the_springs_is_the_rate_of_their_energy(joint, rng):
    model = sprung(joint, rng)
    q, qd, h = random_q(model, rng), jnp.asarray(rng.normal(size=model.nv)), 1e-3

    def energy(t):
        return elastic_energy(model, jd.integrate(model, q, t * qd))

    rows = ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))
    rate = sum(c * (energy(k * h) - energy(-k * h)) for k, c in rows) / h
    power = spring_forces(model, q) @ qd
    np.testing.assert_allclose(power, rate, rtol=1e-10)


@pytest.mark.first
@with_quaternion
def test_springs_do_no_work_around_a_closed_path(joint, rng):
    model = sprung(joint, rng)
    a, b = jnp.asarray(rng.normal(size=(2, model.nv)))

    def path(t):
        step = 0.4 * (a * jnp.sin(t) + b * jnp.cos(t))
        return jd.integrate(model, model.rest, step)

    def power(t):
        q = path(t)
        qd = jax.jacfwd(lambda s: jd.difference(model, q, path(s)))(t)
        return spring_forces(model, q) @ qd

    times = jnp.linspace(0, 2 * jnp.pi, 64, endpoint=False)
    assert abs(jax.jit(jax.vmap(power))(times).mean()) < 1e-12


def test_a_spring_of_equal_stiffness_pulls_along_the_shortest_step(rng):
    model = sprung("spherical", rng, stiffness=3.0)
    q = random_q(model, rng)
    expected = 3.0 * jd.difference(model, model.rest, q)
    np.testing.assert_allclose(spring_forces(model, q), expected, atol=1e-13)


@pytest.mark.parametrize("joint", ["revolute", "prismatic", "cylindrical"])
def test_the_force_of_an_ordinary_spring_is_exactly_stiffness_times_stretch(joint, rng):
    model = sprung(joint, rng)
    q = jnp.asarray(rng.normal(size=model.nq))
    expected = model.stiffness * (q - model.rest)
    np.testing.assert_array_equal(spring_forces(model, q), expected)


@pytest.mark.first
@pytest.mark.parametrize("mode", [jax.jacfwd, jax.jacrev])
def test_the_slope_at_rest_is_the_stiffness(mode, rng):
    model = sprung_in_quaternions(rng)

    def force(d):
        return spring_forces(model, jd.integrate(model, model.rest, d))

    slope = jax.jit(mode(force))(jnp.zeros(model.nv))
    np.testing.assert_allclose(slope, np.diag(model.stiffness), atol=1e-13)


@pytest.mark.slow
def test_second_derivatives_at_rest_are_finite(rng):
    model = sprung_in_quaternions(rng)

    def force(d):
        return spring_forces(model, jd.integrate(model, model.rest, d))

    @jax.jit
    def curvature(weights, along):
        def slope(d):
            return jax.vjp(force, d)[1](weights)[0]

        return jax.jvp(slope, (jnp.zeros(model.nv),), (along,))[1]

    axes = np.eye(model.nv)
    for weights, along in itertools.product(axes, axes):
        assert np.isfinite(curvature(weights, along)).all()


def test_coulomb_friction_has_71_percent_of_its_size_at_the_friction_speed(rng):
    speed = np.array([0.2, 3.0])
    kind = {"friction": 5.0, "friction_speed": speed, "stiffness": 0.0}
    model = sprung("cylindrical", rng, **kind)
    tau = passive_forces(model, jnp.zeros(2), jnp.asarray(speed))
    np.testing.assert_allclose(tau, 5.0 * np.sqrt(0.5), rtol=1e-15)


def test_the_friction_speed_is_a_millimetre_or_milliradian_per_second_by_default(rng):
    model = sprung("revolute", rng, friction=5.0, stiffness=0.0)
    tau = passive_forces(model, jnp.zeros(1), jnp.array([-1e-3]))
    np.testing.assert_allclose(tau, -5.0 * np.sqrt(0.5), rtol=1e-15)


def test_forces_of_the_armature_are_the_rate_of_its_momentum_in_world_axes(rng):
    a, (q, qd, qdd) = rng.uniform(1, 9, 6), rng.normal(size=(3, 7))
    model = sprung("free", rng, armature=a, stiffness=0.0)
    plain, qd, qdd = sprung("free", rng, stiffness=0.0), qd[:6], qdd[:6]
    q = jd.integrate(model, jnp.asarray(q), jnp.zeros(6))  # a unit quaternion

    def in_world(q, x):  # [force, moment about the world origin] of x in body axes
        at = jd.forward_kinematics(model, q)
        force, moment = at.R[0] @ x[:3], at.R[0] @ x[3:]
        return jnp.concatenate([force, moment + jnp.cross(at.p[0], force)])

    def momentum(t):
        return in_world(jd.integrate(model, q, t * qd), a * (qd + t * qdd))

    tau, without = (jd.inverse_dynamics(m, q, qd, qdd) for m in (model, plain))
    rate = jax.jit(jax.jacfwd(momentum))(0.0)
    np.testing.assert_allclose(in_world(q, tau - without), rate, atol=1e-11)


def test_armature_of_a_free_joint_moves_as_a_body_of_its_mass_and_inertia(rng):
    mass, inertia = 3.0, np.array([4.0, 5.0, 6.0])
    added = jd.ModelBuilder("added", gravity=(0, 0, 0))
    geared = jd.ModelBuilder("geared", gravity=(0, 0, 0))
    geared.add_body(
        "a", joint="free", inertial=BALL, armature=np.append([mass] * 3, inertia)
    )
    whole = jd.Inertial(BALL.mass + mass, BALL.com, BALL.inertia + np.diag(inertia))
    added.add_body("a", joint="free", inertial=whole)
    q, qd, tau = rng.normal(size=(3, 7))
    args = jnp.asarray(q), jnp.asarray(qd[:6]), jnp.asarray(tau[:6])
    added, geared = added.build(), geared.build()
    found, expected = (jd.forward_dynamics(m, *args) for m in (geared, added))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
