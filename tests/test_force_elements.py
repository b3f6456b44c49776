"""Force elements take part in all of the dynamics and in all derivatives."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.dynamics import FORWARD, INVERSE
from tests.models import fork, random_state


@cache
def sprung():
    """The fork with a spring-damper between its branches, and one to the world."""
    return with_springs(fork(), "left", "right")


@cache
def chain():
    """The same on a serial robot, whose programs are compiled sooner."""
    return with_springs(jd.robots.chain(3), 0, 2)


def with_springs(model, a, b):
    inner = jd.SpringDamper(
        *(a, (0.1, 0.2, 0.0), b, (0.0, 0.1, 0.3)),
        **dict(stiffness=30.0, damping=2.0, rest_length=0.2),
    )
    outer = jd.SpringDamper(None, (0.5, 0, 1), a, (0, 0, 0.1), 50.0, 3.0)
    return model.with_force(inner).with_force(outer)


def by_hand(model, at, moved):
    """The wrenches of the elements, written out for the poses and twists of bodies."""
    forces, at, moved = jax.tree.map(np.asarray, (model.forces, at, moved))
    f_ext = np.zeros((model.n, 6))
    for x in forces:
        ends = []
        for body, p in ((x.body_a, x.p_a), (x.body_b, x.p_b)):
            if body < 0:
                ends.append((p, np.zeros(3), None))
                continue
            arm = at.R[body] @ p
            v = moved.v[body] + np.cross(moved.w[body], arm)
            ends.append((at.p[body] + arm, v, (body, arm)))
        d, rate = ends[1][0] - ends[0][0], ends[1][1] - ends[0][1]
        l = np.linalg.norm(d)
        size = x.stiffness * (l - x.rest_length) + x.damping * (d @ rate) / l
        for (_, _, place), sign in zip(ends, (1, -1), strict=True):
            if place is not None:
                f = sign * size * d / l
                f_ext[place[0]] += np.concatenate([f, np.cross(place[1], f)])
    return f_ext


@pytest.mark.first
@pytest.mark.parametrize("name", ["fork", "chain"])
def test_elements_act_as_the_external_wrenches_they_are(name, rng):
    bare, model = {"chain": (jd.robots.chain(3), chain()), "fork": (fork(), sprung())}[
        name
    ]
    q, qd, qdd = random_state(model, rng)
    every = name == "chain"  # the methods share the code of the elements

    @jax.jit
    def run(model, bare, f_ext):
        tau = jd.inverse_dynamics(bare, q, qd, qdd, f_ext=f_ext)
        inverse = {
            method: jd.inverse_dynamics(model, q, qd, qdd, method=method)
            for method in (INVERSE if every else ["newton_euler"])
        }
        forward = {
            method: jd.forward_dynamics(model, q, qd, tau, method=method)
            for method in (FORWARD if every else ["denoc"])
        }
        reactions = jd.joint_reactions(model, q, qd, qdd)
        expected = jd.joint_reactions(bare, q, qd, qdd, f_ext=f_ext)
        return tau, inverse, forward, reactions, expected

    moving = jax.jit(lambda q, qd: jd.body_velocities(bare, q, qd))
    at = jax.jit(lambda q: jd.forward_kinematics(bare, q))(q)
    f_ext = by_hand(model, at, moving(q, qd))
    tau, inverse, forward, reactions, expected = run(model, bare, f_ext)
    for method, found in inverse.items():
        np.testing.assert_allclose(found, tau, atol=1e-11, err_msg=method)
    for method, found in forward.items():
        np.testing.assert_allclose(found, qdd, atol=1e-9, err_msg=method)
    np.testing.assert_allclose(reactions, expected, atol=1e-11)


@pytest.mark.slow
def test_energy_and_losses_account_for_all_power(rng):
    model = sprung()
    q, qd, tau = random_state(model, rng)

    @jax.jit
    def run(q, qd):
        def energy(q, qd):
            return jd.kinetic_energy(model, q, qd) + jd.potential_energy(model, q)

        qdd = jd.forward_dynamics(model, q, qd, tau)
        rate = jd.configuration_rate(model, q, qd)
        flows = jd.power(model, q, qd, tau)
        return jax.jvp(energy, (q, qd), (rate, qdd))[1], flows

    rate, flows = run(q, qd)
    net = flows.actuators - flows.dissipated
    np.testing.assert_allclose(rate, net, rtol=1e-10)
    assert flows.dissipated > 0


def test_derivatives_by_state_and_leaves_are_finite_differences(rng):
    model = chain()
    q, qd, tau = random_state(model, rng)
    leaves = jax.tree.map(jnp.asarray, model.forces)

    def accelerations(d, qd, leaves):
        m = eqx.tree_at(lambda m: m.forces, model, leaves)
        return jd.forward_dynamics(m, jd.integrate(m, q, d), qd, tau)

    x = jnp.zeros(model.nv), qd, leaves
    along = jax.tree.map(lambda a: jnp.asarray(rng.normal(size=a.shape)), x)
    weights = jnp.asarray(rng.normal(size=model.nv))

    @jax.jit
    def run(x, along):
        forward = jax.jvp(accelerations, x, along)[1]
        back = jax.vjp(accelerations, *x)[1](weights)
        A, _ = jd.linearize(model, q, qd, tau)
        return forward, back, A

    forward, back, A = run(x, along)
    h = 1e-6
    moved = [jax.tree.map(lambda a, b, s=s: a + s * b, x, along) for s in (h, -h)]
    up, down = (accelerations(*y) for y in moved)
    np.testing.assert_allclose(forward, (up - down) / (2 * h), rtol=1e-5, atol=1e-5)
    pairs = zip(*map(jax.tree.leaves, (back, along)), strict=True)
    both = sum(jnp.vdot(a, b) for a, b in pairs)
    np.testing.assert_allclose(both, weights @ forward, rtol=1e-9)
    by_state = weights @ A[model.nv :]
    np.testing.assert_allclose(by_state, np.concatenate(back[:2]), atol=1e-8)


@pytest.mark.slow
def test_a_spring_at_rest_and_of_no_length_has_finite_derivatives():
    b = jd.ModelBuilder("slider", gravity=(0, 0, 0))
    point = jd.Inertial.point(2.0, (0, 0, 0))
    b.add_body("mass", joint="prismatic", axis=(1, 0, 0), inertial=point)
    spring = jd.SpringDamper(None, (0, 0, 0), "mass", (0, 0, 0), 8.0, 3.0)
    model, zero = b.build().with_force(spring), jnp.zeros(1)

    def qdd(q, qd):
        return jd.forward_dynamics(model, q, qd, zero)[0]

    @jax.jit
    def run(q, qd):
        bend = jax.hessian(lambda q: jd.potential_energy(model, q))
        return jax.jacfwd(qdd)(q, qd), bend(q), jax.hessian(qdd)(q, qd)

    for q in (zero, zero + 0.5):
        slope, second, bend = run(q, zero)
        np.testing.assert_allclose(slope, [-4.0])
        np.testing.assert_allclose(second, [[8.0]])
        assert np.isfinite(bend).all()


def test_wrong_elements_are_errors_that_name_them():
    model = fork()
    with pytest.raises(ValueError, match="expected an instance of AbstractForce"):
        model.with_force(3.0)  # type: ignore
    with pytest.raises(ValueError, match="joins body 'left' to itself"):
        model.with_force(jd.SpringDamper("left", (0, 0, 0), 1, (0, 0, 1)))
    with pytest.raises(ValueError, match="no body 'arm'"):
        model.with_force(jd.SpringDamper("arm", (0, 0, 0), None, (0, 0, 1)))
    with pytest.raises(ValueError, match="stiffness .* zero or more"):
        model.with_force(jd.SpringDamper("left", (0, 0, 0), None, (0, 0, 1), -1.0))


@pytest.mark.slow
def test_elements_act_in_mechanisms_with_loops_and_in_single_precision(rng):
    model = chain().with_loop(0, (0.1, 0, 0), 2, (0, 0.1, 0), axes=(0,))
    q, qd, tau = random_state(model, rng)

    @jax.jit
    def run(model, q, qd, tau):
        qdd, forces = jd.constrained_dynamics(model, q, qd, tau)
        closing = jd.loop_jacobian(model, q).T @ forces
        free = jd.forward_dynamics(model.without_loops(), q, qd, tau)
        return qdd, jd.inverse_dynamics(model, q, qd, qdd) - closing, free

    qdd, found, free = run(model, q, qd, tau)
    np.testing.assert_allclose(found, tau, atol=1e-10)
    single = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), (model, q, qd, tau))
    results = run(*single)
    assert all(x.dtype == jnp.float32 for x in results)
    np.testing.assert_allclose(results[2], free, rtol=1e-3)
