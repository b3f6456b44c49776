"""Couplings beside a dense projection of the tree, and all derivatives."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.analysis import count_operations
from jaxdyn.dynamics._methods import FORWARD, INERTIA, INVERSE


def floating():
    """Linear couplings on a floating base: one of two joints, one of that."""
    tree = with_effects(jd.robots.random_tree(3, 4, floating_base=True))
    a, b, c = tree.joint_names[1:]
    m = tree.with_coupling(c, {b: 1.5, a: 0.4})
    return m.with_coupling(b, {a: -0.7}, offset=0.2)


def curved():
    """Polynomials, the matrix of a wrist, and a joint that follows a motor of it."""
    tree = with_effects(jd.robots.random_tree(5, 6, branching=0.3))
    names = tree.joint_names
    m = tree.with_gears(names[3:5], [[0.2, 0.0], [0.3, 0.25]], [0.1, -0.2])
    m = m.with_coupling(
        names[5],
        {names[4]: 0.4},
        polynomial=(0.1, 0.3, -0.1, 0.05, 0.02),
        argument={names[0]: 0.5, names[1]: -1.0},
    )
    return m.with_coupling(names[2], polynomial=(0, -1, 0.2), argument={names[0]: 1.0})


def with_effects(model):
    rng = np.random.default_rng(1)
    names = ("armature", "damping", "friction", "stiffness")
    values = {x: jnp.asarray(rng.uniform(0.1, 1, model.nv)) for x in names}
    return replace(model, **values)


MODELS = {"floating": floating, "curved": curved}
SLOW = [pytest.param("floating", marks=pytest.mark.slow), "curved"]


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


def kinematics_and_forces(at, model, joints, G, Gdot):
    tree, q, qd, qdd = model.tree, *at
    v, a = G @ qd, G @ qdd + Gdot @ qd
    return [
        (jd.forward_kinematics(model, q), jd.forward_kinematics(tree, joints)),
        (
            jd.body_accelerations(model, q, qd, qdd),
            jd.body_accelerations(tree, joints, v, a),
        ),
        (jd.potential_energy(model, q), jd.potential_energy(tree, joints)),
        (jd.jacobian(model, q, 3), jd.jacobian(tree, joints, 3) @ G),
        (
            jd.inverse_dynamics(model, q, qd, qdd),
            G.T @ jd.inverse_dynamics(tree, joints, v, a),
        ),
        (jd.mass_matrix(model, q), G.T @ jd.mass_matrix(tree, joints) @ G),
    ]


def what_follows_from_them(at, model, joints, G, Gdot):
    tree, q, qd, qdd = model.tree, *at
    v, a = G @ qd, G @ qdd + Gdot @ qd
    return [
        (jd.body_velocities(model, q, qd), jd.body_velocities(tree, joints, v)),
        (jd.kinetic_energy(model, q, qd), jd.kinetic_energy(tree, joints, v)),
        (jd.gibbs_function(model, *at), jd.gibbs_function(tree, joints, v, a)),
        (
            jd.jacobian_dot_qd(model, q, qd, 3),
            jd.jacobian_dot_qd(tree, joints, v, 3)
            + jd.jacobian(tree, joints, 3) @ (Gdot @ qd),
        ),
        (
            jd.centroidal_momentum_matrix(model, q),
            jd.centroidal_momentum_matrix(tree, joints) @ G,
        ),
        (jd.natural_complement(model, q), jd.natural_complement(tree, joints) @ G),
        (
            jd.bias_forces(model, q, qd),
            G.T @ jd.inverse_dynamics(tree, joints, v, Gdot @ qd),
        ),
        (jd.gravity_forces(model, q), G.T @ jd.gravity_forces(tree, joints)),
        (
            jd.coriolis_matrix(model, q, qd),
            G.T @ jd.coriolis_matrix(tree, joints, v) @ G
            + G.T @ jd.mass_matrix(tree, joints) @ Gdot,
        ),
        (jd.regressor(model, *at), G.T @ jd.regressor(tree, joints, v, a)),
    ]


@pytest.mark.parametrize("model", SLOW, indirect=True)
@pytest.mark.parametrize(
    "pairs",
    [
        kinematics_and_forces,
        pytest.param(what_follows_from_them, marks=pytest.mark.slow),
    ],
)
def test_functions_are_those_of_the_tree(model, pairs):
    @jax.jit
    def both(*at):
        return pairs(at, model, *projection(model, *at[:2]))

    for ours, theirs in both(*state(model)[:3]):
        jax.tree.map(lambda x, y: close(x, y, 1e-12), ours, theirs)


@pytest.mark.parametrize("model", SLOW, indirect=True)
def test_regressor_and_parameters(model):
    q, qd, qdd, _ = state(model)
    pi = jd.dynamic_parameters(model)
    assert len(jd.parameter_names(model)) == len(pi)
    close(
        jd.regressor(model, q, qd, qdd) @ pi,
        jd.inverse_dynamics(model, q, qd, qdd),
        1e-12,
    )


@pytest.mark.parametrize("model", SLOW, indirect=True)
def test_forward_dynamics_undo_inverse_dynamics(model):
    q, qd, qdd, _ = state(model)
    tau = jd.inverse_dynamics(model, q, qd, qdd)
    close(jd.forward_dynamics(model, q, qd, tau), qdd, 1e-11)


@pytest.mark.slow
def test_methods_agree():
    model = curved()
    q, qd, qdd, _ = state(model)

    @jax.jit
    def found(q, qd, qdd):
        forces = [jd.inverse_dynamics(model, q, qd, qdd, method=x) for x in INVERSE]
        again = [
            jd.forward_dynamics(model, q, qd, forces[0], method=x) for x in FORWARD
        ]
        return forces, [jd.mass_matrix(model, q, method=x) for x in INERTIA], again

    for same in found(q, qd, qdd):
        for other in same[1:]:
            close(other, same[0], 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("model", SLOW, indirect=True)
def test_factor(model):
    q, qd, qdd, tau = state(model)
    M = jd.mass_matrix(model, q)
    factor = jd.factor(model, q)
    close(M @ factor.solve(tau), tau, 1e-11)
    close(factor.inverse() @ M, np.eye(model.nv), 1e-10)
    y = factor.half(tau)
    close(y @ y, tau @ jnp.linalg.solve(M, tau), 1e-10)
    close(factor.other_half(y), jnp.linalg.solve(M, tau), 1e-10)


@pytest.mark.slow
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


@pytest.mark.parametrize("model", SLOW, indirect=True)
def test_derivatives(model):
    q, qd, _, tau = state(model)

    def qdd(d, rate, drive):
        return jd.forward_dynamics(
            model, jd.integrate(model, q, d), qd + rate, tau + drive
        )

    rng = np.random.default_rng(0)
    zero = tuple(jnp.zeros(model.nv) for _ in range(3))
    along = tuple(jnp.asarray(rng.normal(size=model.nv)) for _ in range(3))
    weights = jnp.asarray(rng.normal(size=model.nv))

    @jax.jit
    def slopes(weights):
        reverse = jax.vjp(qdd, *zero)[1](weights)
        return reverse, jd.linearize(model, q, qd, tau)

    reverse, (A, B) = slopes(weights)
    d, rate, drive = along
    found = A[model.nv :] @ jnp.concatenate([d, rate]) + B[model.nv :] @ drive
    whole = sum(x @ y for x, y in zip(reverse, along, strict=True))
    close(whole, found @ weights, 1e-11)
    h = 1e-5
    up, down = (qdd(*(s * h * x for x in along)) for s in (1, -1))
    close(found, (up - down) / (2 * h), 1e-8)


@pytest.mark.slow
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


def with_a_loop(model, axes=(0, 1, 2)):
    q, qd, qdd, tau = state(model)
    tip = np.asarray(jd.forward_kinematics(model, q).p[-1])
    loop = model.with_loop(model.names[-1], (0.0, 0.0, 0.0), None, tip, axes=axes)
    return loop, q, jd.project_velocity(loop, q, qd), tau


@pytest.mark.slow
def test_loops_beside_couplings():
    model = jd.robots.random_tree(5, 4, branching=0.0)
    a, b, c, _ = model.joint_names
    model = model.with_coupling(c, {b: 0.4}, polynomial=(0, -1, 0.2), argument={a: 1.0})
    loop, q, qd, tau = with_a_loop(model, axes=(0, 2))
    Psi = jd.loop_jacobian(loop, q)
    close(Psi @ qd, np.zeros(2), 1e-12)
    qdd, forces = jd.constrained_dynamics(loop, q, qd, tau)
    close(Psi @ qdd, jd.loop_bias(loop, q, qd), 1e-10)
    needed = jd.inverse_dynamics(loop, q, qd, qdd)
    close(needed, tau + Psi.T @ forces, 1e-10)
    dense, _ = jd.constrained_dynamics(loop, q, qd, tau, method="kkt")
    close(dense, qdd, 1e-10)
    found = jd.constrained_inverse_dynamics(loop, q, qd, qdd)
    close(found.tau + Psi.T @ found.loop_forces, needed, 1e-9)
    for method in ("recursive", "sequential_regularization"):
        with pytest.raises(ValueError, match="has couplings, expected one of: range"):
            jd.constrained_dynamics(loop, q, qd, tau, method=method)


@pytest.mark.slow
def test_derivatives_with_loops():
    loop, q, qd, tau = with_a_loop(curved())

    def qdd(tau, qd):
        return jd.forward_dynamics(loop, q, qd, tau)

    forward, reverse = (j(qdd, (0, 1))(tau, qd) for j in (jax.jacfwd, jax.jacrev))
    for a, b in zip(forward, reverse, strict=True):
        close(a, b, 1e-9)
    A, B = jd.linearize(loop, q, qd, tau)
    close(B[loop.nv :], forward[0], 1e-9)


@pytest.mark.slow
def test_a_joint_without_mass_may_follow_one_that_has():
    b = jd.ModelBuilder("hand")
    body = jd.Inertial.rod(1.0, (0, 0, 0), (0.3, 0, 0))
    b.add_body("arm", inertial=body, joint_name="j")
    b.add_body("pointer", "arm", p=(0.3, 0.0, 0.0), joint_name="k")
    b.add_body("tip", "arm", joint_name="l", inertial=body)
    b.add_coupling("k", {"j": -2.0})
    model = b.build()
    assert model.couplings.is_dense and not jd.singular_joints(model)
    assert jd.singular_joints(model.tree) == ("k",)
    assert not jd.singular_joints(model, jnp.zeros(2))
    q, qd, qdd = jnp.array([[0.3, 0.2], [1.0, 2.0], [-1.0, 0.5]])

    @jax.jit
    def found(q, qd, qdd):
        tau = jd.inverse_dynamics(model, q, qd, qdd)
        slope = jax.jacrev(lambda x: jd.forward_dynamics(model, q, qd, x))(tau)
        again = jd.forward_dynamics(model, q, qd, tau)
        return tau, again, slope, jd.mass_matrix(model, q), jd.factor(model, q)

    tau, again, slope, M, factor = found(q, qd, qdd)
    close(again, qdd, 1e-13)
    close(factor.solve(tau), jnp.linalg.solve(M, tau), 1e-13)
    close(slope, jnp.linalg.inv(M), 1e-12)
    checked = jd.checked_dynamics(model, q, qd, tau)
    close(checked.qdd, qdd, 1e-13)
    assert checked.error < 1e-14


@pytest.mark.parametrize("model", SLOW, indirect=True)
def test_single_precision(model):
    q, qd, qdd, _ = (x.astype(jnp.float32) for x in state(model))
    single = model.astype(jnp.float32)
    tau = jd.inverse_dynamics(single, q, qd, qdd)
    found = jd.forward_dynamics(single, q, qd, tau)
    assert found.dtype == tau.dtype == jnp.float32
    close(found, qdd, 1e-3)


@pytest.mark.slow
def test_motion_in_time_keeps_energy_and_equals_the_tree_held_together():
    model = curved()
    x = model.couplings
    names = ("damping", "friction")
    still = {name: 0 * getattr(model, name) for name in names}
    held = replace(x, **{name: 0 * getattr(x, name) for name in names})
    model = replace(model, couplings=held, **still)
    q, qd, *_ = state(model)
    ts = jnp.linspace(0.0, 0.3, 4)
    found = jd.simulate(model, q, qd, ts)
    energy = jax.vmap(lambda q, qd: jd.kinetic_energy(model, q, qd))(found.q, found.qd)
    energy += jax.vmap(lambda q: jd.potential_energy(model, q))(found.q)
    close(energy, energy[0], 1e-7)
    qs, _ = jd.rollout(model, q, qd, jnp.zeros((3000, model.nv)), 1e-4)
    close(qs[-1], found.q[-1], 1e-3)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda m: m.with_coupling("x"), "no body 'x'"),
        (lambda m: m.with_coupling(0, {1: np.inf}), "a ratio is inf, expected a fin"),
        (lambda m: m.with_coupling(0, {1: 1}).with_coupling(1, {0: 1}), "in a circle"),
        (lambda m: m.with_coupling(0).with_coupling(0), "two couplings, expected one"),
        (lambda m: m.with_coupling(0, polynomial=(0, 1)), "polynomial needs an argum"),
        (
            lambda m: m.with_coupling(0, polynomial=[1] * 6, argument={1: 1}),
            "has 6 coefficients, expected at most 5",
        ),
        (
            lambda m: m.with_coupling(0, polynomial=(0, 0, 1), argument={0: 1}),
            "stands in its own polynomial",
        ),
        (lambda m: m.with_gears([0, 1], [[1, 1], [1, 1]]), "gear matrix .* inverse"),
        (lambda m: m.with_gears([0, 1], [1, 1]), r"matrix has shape \(2,\)"),
        (
            lambda m: m.with_coupling(
                0, polynomial=(0, 0, 1), argument={1: 1}
            ).with_coupling(2, polynomial=(0, 0, 1), argument={0: 1}),
            "expected one polynomial for each joint",
        ),
    ],
)
def test_wrong_couplings_are_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call(jd.robots.chain(3))


def test_only_joints_with_one_coordinate_can_be_coupled():
    model = jd.robots.random_tree(0, 3, floating_base=True)
    with pytest.raises(ValueError, match="is free, expected one with a single coord"):
        model.with_coupling(1, {0: 1.0})


def test_forward_dynamics_with_few_couplings_are_linear_in_the_number_of_joints():
    def products(n):
        model = jd.robots.chain(n).with_coupling(n - 1, {0: 0.5})
        model = model.with_coupling(n // 2, {1: -1.0})
        return count_operations(jd.forward_dynamics, model, *[jnp.zeros(n - 2)] * 3).M

    a, b, c = map(products, (8, 16, 32))
    assert c - b == 2 * (b - a)
    alone = count_operations(
        jd.forward_dynamics, jd.robots.chain(32), *[jnp.zeros(32)] * 3
    )
    assert c < 1.25 * alone.M


@pytest.mark.slow
def test_derivatives_by_ratios_and_effects_of_joints_that_follow():
    model = curved()
    q, qd, _, tau = state(model)
    found, tree = eqx.partition(model.couplings, eqx.is_array)

    def qdd(found):
        couplings = eqx.combine(found, tree)
        changed = replace(model, couplings=couplings)
        return jd.forward_dynamics(changed, q, qd, tau).sum()

    rng = np.random.default_rng(0)
    along = jax.tree.map(lambda x: jnp.asarray(rng.normal(size=x.shape)), found)
    zero = jax.tree.map(jnp.zeros_like, found)
    names = ("linear", "inner", "polynomial", "damping", "armature", "stiffness")
    along = replace(zero, **{name: getattr(along, name) for name in names})
    slope = jax.tree.map(jnp.multiply, jax.grad(qdd)(found), along)
    whole = sum(x.sum() for x in jax.tree.leaves(slope))
    up, down = (
        qdd(jax.tree.map(lambda x, d, h=h: x + h * d, found, along))
        for h in (1e-6, -1e-6)
    )
    close(whole, (up - down) / 2e-6, 1e-7)


def test_a_posture_in_which_nothing_resists_a_coupled_robot_is_found():
    b = jd.ModelBuilder("wrist")
    point = jd.Inertial.point(1.0, (0.3, 0.0, 0.0))
    b.add_body("yaw", axis=(0, 0, 1), joint_name="yaw")
    b.add_body("pitch", "yaw", axis=(0, 1, 0), inertial=point, joint_name="pitch")
    b.add_body(
        *("finger", "pitch", "prismatic"),
        axis=(1, 0, 0),
        inertial=point,
        joint_name="f",
    )
    b.add_coupling("f", {"pitch": 0.1})
    model = b.build(check_inertia=False)
    assert jd.singular_joints(model, jnp.array([0.0, 0.5])) == ()
    upright = jnp.array([0.0, -np.pi / 2])  # all masses on the axis of yaw
    assert jd.singular_joints(model, upright) == ("yaw",)
    with pytest.raises(ValueError, match="no inertia resists joint 'yaw' at the given"):
        jd.factor(model, upright)
