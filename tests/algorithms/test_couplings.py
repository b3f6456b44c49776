"""Couplings beside a dense projection of the tree, and all derivatives."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.dynamics._methods import FORWARD, INERTIA, INVERSE


def linear():
    """A floating tree: a follower, one of two joints, a follower of a follower."""
    tree = jd.robots.random_tree(3, 9, floating_base=True)
    tree = with_effects(tree)
    names = tree.joint_names
    m = tree.with_coupling(names[4], {names[2]: -0.7}, offset=0.2)
    m = m.with_coupling(names[6], {names[4]: 1.5, names[3]: 0.4})
    return m.with_coupling(names[8], {}, offset=-0.3)


def curved():
    """A fixed base, polynomials up to the fourth power, of one and of two joints."""
    tree = with_effects(jd.robots.random_tree(5, 8))
    names, cubic = tree.joint_names, (0.1, -0.5, 0.3, 0.2)
    m = tree.with_coupling(names[3], polynomial=cubic, argument={names[0]: 1.0})
    return m.with_coupling(
        names[5],
        {names[6]: 0.5},
        polynomial=(0.0, 0.3, -0.1, 0.05, 0.02),
        argument={names[1]: 0.5, names[2]: -1.0},
    )


def geared():
    """A wrist matrix, a follower of one of its motors, and a polynomial."""
    tree = with_effects(jd.robots.random_tree(7, 7, branching=0.2))
    names = tree.joint_names
    m = tree.with_gears(names[4:6], [[0.02, 0.0], [0.03, 0.025]], [0.1, -0.2])
    m = m.with_coupling(names[6], {names[5]: 0.04, names[0]: 0.3})
    return m.with_coupling(names[2], polynomial=(0, 1, 0.2), argument={names[1]: 1.0})


def with_effects(model):
    rng = np.random.default_rng(1)
    names = ("armature", "damping", "friction", "stiffness")
    values = {x: jnp.asarray(rng.uniform(0.1, 1, model.nv)) for x in names}
    return replace(model, **values)


MODELS = {"linear": linear, "curved": curved, "geared": geared}


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]()


def state(model, seed=0):
    key = jax.random.split(jax.random.PRNGKey(seed), 4)
    q = jd.random_configuration(model, key[0])
    return q, *(jax.random.normal(k, (model.nv,)) for k in key[1:])


def projection(model, q, qd):
    """The positions of all joints, G and dG/dt, from what the couplings say alone."""
    tree, topology = model.tree, model.topology
    place = topology.q_start

    def positions(z):
        parts = {i: z[place[i] : place[i + 1]] for i in range(model.n)}
        for r in model.couplings.relations():
            u = sum(f * z[place[j]] for j, f in r.inner.items())
            value = sum(f * z[place[j]] for j, f in r.linear.items())
            value = value + sum(c * u**p for p, c in enumerate(r.polynomial))
            parts[r.joint] = jnp.asarray(value, z.dtype)[None]
        return jnp.concatenate([parts[i] for i in range(model.n)])

    def G(z):
        def moved(d):
            there = positions(jd.integrate(model, z, d))
            return jd.difference(tree, positions(z), there)

        return jax.jacfwd(moved)(jnp.zeros(model.nv))

    rate = jax.jvp(lambda t: G(jd.integrate(model, q, t * qd)), (0.0,), (1.0,))[1]
    return positions(q), G(q), rate


def close(a, b, tolerance):
    scale = max(1.0, float(jnp.abs(jnp.asarray(b)).max()))
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * scale)


def test_coordinates(model):
    followers = sum(j == "coupled" for j in model.joints)
    assert followers and model.nv == model.tree.nv - followers
    assert model.damping.shape == (model.nv,) and model.lower.shape == (model.nq,)
    again = model.tree
    assert not again.couplings and again.damping.shape == (again.nv,)


def test_kinematics_and_forces_are_those_of_the_tree(model):
    q, qd, qdd, _ = state(model)
    tree = model.tree
    joints, G, Gdot = projection(model, q, qd)
    v, a = G @ qd, G @ qdd + Gdot @ qd
    for ours, theirs in [
        (jd.forward_kinematics(model, q), jd.forward_kinematics(tree, joints)),
        (jd.body_velocities(model, q, qd), jd.body_velocities(tree, joints, v)),
        (
            jd.body_accelerations(model, q, qd, qdd),
            jd.body_accelerations(tree, joints, v, a),
        ),
        (jd.kinetic_energy(model, q, qd), jd.kinetic_energy(tree, joints, v)),
        (jd.potential_energy(model, q), jd.potential_energy(tree, joints)),
        (jd.gibbs_function(model, q, qd, qdd), jd.gibbs_function(tree, joints, v, a)),
        (jd.jacobian(model, q, 5), jd.jacobian(tree, joints, 5) @ G),
        (
            jd.jacobian_dot_qd(model, q, qd, 5),
            jd.jacobian_dot_qd(tree, joints, v, 5)
            + jd.jacobian(tree, joints, 5) @ (Gdot @ qd),
        ),
        (
            jd.centroidal_momentum_matrix(model, q),
            jd.centroidal_momentum_matrix(tree, joints) @ G,
        ),
        (jd.natural_complement(model, q), jd.natural_complement(tree, joints) @ G),
        (
            jd.inverse_dynamics(model, q, qd, qdd),
            G.T @ jd.inverse_dynamics(tree, joints, v, a),
        ),
        (
            jd.bias_forces(model, q, qd),
            G.T @ jd.inverse_dynamics(tree, joints, v, Gdot @ qd),
        ),
        (jd.gravity_forces(model, q), G.T @ jd.gravity_forces(tree, joints)),
        (jd.mass_matrix(model, q), G.T @ jd.mass_matrix(tree, joints) @ G),
        (
            jd.coriolis_matrix(model, q, qd),
            G.T @ jd.coriolis_matrix(tree, joints, v) @ G
            + G.T @ jd.mass_matrix(tree, joints) @ Gdot,
        ),
        (
            jd.regressor(model, q, qd, qdd),
            G.T @ jd.regressor(tree, joints, v, a),
        ),
    ]:
        jax.tree.map(lambda x, y: close(x, y, 1e-12), ours, theirs)
    assert model.nv == G.shape[1]


def test_regressor_and_parameters(model):
    q, qd, qdd, _ = state(model)
    pi = jd.dynamic_parameters(model)
    assert len(jd.parameter_names(model)) == len(pi)
    close(
        jd.regressor(model, q, qd, qdd) @ pi,
        jd.inverse_dynamics(model, q, qd, qdd),
        1e-12,
    )


@pytest.mark.parametrize("method", FORWARD)
def test_forward_dynamics_undo_inverse_dynamics(model, method):
    q, qd, qdd, _ = state(model)
    tau = jd.inverse_dynamics(model, q, qd, qdd)
    close(jd.forward_dynamics(model, q, qd, tau, method=method), qdd, 1e-10)


@pytest.mark.parametrize("method", INVERSE)
def test_methods_of_inverse_dynamics(model, method):
    q, qd, qdd, _ = state(model)
    close(
        jd.inverse_dynamics(model, q, qd, qdd, method=method),
        jd.inverse_dynamics(model, q, qd, qdd),
        1e-12,
    )


@pytest.mark.parametrize("method", INERTIA)
def test_methods_of_the_inertia_matrix(model, method):
    q, *_ = state(model)
    close(jd.mass_matrix(model, q, method=method), jd.mass_matrix(model, q), 1e-12)


def test_factor(model):
    q, qd, qdd, tau = state(model)
    M = jd.mass_matrix(model, q)
    factor = jd.factor(model, q)
    close(M @ factor.solve(tau), tau, 1e-11)
    close(factor.inverse() @ M, np.eye(model.nv), 1e-10)
    y = factor.half(tau)
    close(y @ y, tau @ jnp.linalg.solve(M, tau), 1e-10)
    close(factor.other_half(y), jnp.linalg.solve(M, tau), 1e-10)


def test_euler_lagrange(model):
    """tau = d/dt dL/dqd - dL/dq, on a fixed base where q are coordinates."""
    if model.topology.quaternion_q.size:
        pytest.skip("q are not coordinates")
    q, qd, qdd, _ = state(model)
    still = replace(model, damping=0 * model.damping, friction=0 * model.friction)
    x = model.couplings
    still = replace(
        still,
        couplings=replace(x, damping=0 * x.damping, friction=0 * x.friction),
    )
    L = lambda q, qd: jd.lagrangian(still, q, qd)  # noqa: E731
    p = lambda q, qd: jax.grad(L, 1)(q, qd)  # noqa: E731
    rate = jax.jvp(p, (q, qd), (qd, qdd))[1]
    close(jd.inverse_dynamics(still, q, qd, qdd), rate - jax.grad(L)(q, qd), 1e-11)


def test_derivatives(model):
    q, qd, _, tau = state(model)

    def qdd(d, rate, drive):
        return jd.forward_dynamics(
            model, jd.integrate(model, q, d), qd + rate, tau + drive
        )

    zero = [jnp.zeros(model.nv)] * 3
    forward = jax.jacfwd(qdd, (0, 1, 2))(*zero)
    reverse = jax.jacrev(qdd, (0, 1, 2))(*zero)
    for a, b in zip(forward, reverse, strict=True):
        close(a, b, 1e-10)
    h = 1e-5
    rng = np.random.default_rng(0)
    for k in range(3):
        e = jnp.asarray(rng.normal(size=model.nv))
        ends = [[s * h * e if j == k else 0 * e for j in range(3)] for s in (1, -1)]
        up, down = (qdd(*end) for end in ends)
        close(forward[k] @ e, (up - down) / (2 * h), 1e-8)
    A, B = jd.linearize(model, q, qd, tau)
    close(A[model.nv :, : model.nv], forward[0], 1e-9)
    close(B[model.nv :], forward[2], 1e-10)


def test_power_and_energy(model):
    q, qd, _, tau = state(model)
    qdd = jd.forward_dynamics(model, q, qd, tau)
    energy = lambda t: (  # noqa: E731
        jd.kinetic_energy(
            model, jd.integrate(model, q, t * qd + 0.5 * t**2 * qdd), qd + t * qdd
        )
        + jd.potential_energy(model, jd.integrate(model, q, t * qd))
    )
    rate = jax.jvp(energy, (0.0,), (1.0,))[1]
    power = jd.power(model, q, qd, tau)
    close(power.actuators - power.dissipated, rate, 1e-10)
    close(power.actuators, tau @ qd, 1e-14)
