"""The principles of mechanics, and every formulation against every other."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.dynamics import FORWARD, INERTIA, INVERSE
from jaxdyn.model import JOINT_TYPES
from tests.models import (
    every_joint,
    moving_base,
    random_state,
    with_effects,
    with_new_numbers,
)

COORDINATES = ("revolute", "prismatic", "helical", "universal", "cylindrical", "planar")


def tree_of_coordinates(rng, n=6):
    """A tree whose q are coordinates, so that qd is dq/dt."""
    seed = int(rng.integers(1 << 30))
    return jd.robots.random_tree(seed, n, joints=COORDINATES)


def options(model, rng):
    """External wrenches and a moving base."""
    base = moving_base(rng)
    return dict(f_ext=jnp.asarray(rng.normal(size=(model.n, 6))), base=base)


def differences(model, q, qd, qdd, f_ext, base):
    """How far the methods are from each other, relative to the largest entry."""
    given = dict(f_ext=f_ext, base=base)
    tau = [jd.inverse_dynamics(model, q, qd, qdd, method=m, **given) for m in INVERSE]
    M = [jd.mass_matrix(model, q, method=m) for m in INERTIA]
    M.append(jd.factor(model, q).matrix())
    accelerations = [
        jd.forward_dynamics(model, q, qd, tau[0], method=m, **given) for m in FORWARD
    ]

    def spread(values, reference):
        apart = jnp.abs(jnp.stack(values) - reference[None])
        return apart.max() / jnp.abs(reference).max()

    return spread(tau, tau[0]), spread(M, M[0]), spread(accelerations, qdd)


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 10))]
)
def test_all_methods_agree_on_twenty_random_trees_of_mixed_joints(seed, rng):
    tree = jd.robots.random_tree(seed, 6, joints=tuple(JOINT_TYPES))
    models = [with_effects(with_new_numbers(tree, rng), rng) for _ in range(20)]
    inputs = [(*random_state(tree, rng), *options(tree, rng).values()) for _ in models]

    def stack(*xs):
        return np.stack(xs)

    batch = jax.tree.map(stack, *models), *jax.tree.map(stack, *inputs)
    tau, M, qdd = jax.jit(jax.vmap(differences))(*batch)
    assert tau.shape == (20,)
    assert max(tau.max(), M.max(), qdd.max()) < 1e-10


def test_the_inertia_matrix_is_the_slope_of_inverse_dynamics(rng):
    model = with_effects(every_joint(), rng)
    q, qd, qdd = random_state(model, rng)
    slope = jax.jit(jax.jacfwd(jd.inverse_dynamics, 3))(model, q, qd, qdd)
    M = jax.jit(jd.mass_matrix)(model, q)
    np.testing.assert_allclose(M, slope, atol=1e-13 * np.abs(M).max())


@pytest.mark.slow
def test_the_gradient_and_hessian_of_gibbs_function_are_forces_and_inertia(rng):
    model = every_joint(3, branched=False)
    q, qd, qdd = random_state(model, rng)

    @jax.jit
    def found(q, qd, qdd):
        def G(qdd):
            return jd.gibbs_function(model, q, qd, qdd)

        inertial = jd.inverse_dynamics(model, q, qd, qdd) - jd.gravity_forces(model, q)
        return jax.grad(G)(qdd), jax.hessian(G)(qdd), inertial, jd.mass_matrix(model, q)

    gradient, hessian, inertial, M = found(q, qd, qdd)
    np.testing.assert_allclose(gradient, inertial, atol=1e-12)
    np.testing.assert_allclose(hessian, M, atol=1e-13 * np.abs(M).max())


@pytest.mark.slow
def test_the_euler_lagrange_expression_is_the_joint_forces(rng):
    model = tree_of_coordinates(rng)
    stiff = jnp.asarray(rng.uniform(0.1, 1.0, model.nv))
    model = eqx.tree_at(lambda m: (m.stiffness, m.armature), model, (stiff, stiff))
    q, qd, qdd = random_state(model, rng)

    @jax.jit
    def found(q, qd, qdd):
        def L(q, qd):
            return jd.lagrangian(model, q, qd)

        momentum = jax.grad(L, 1)
        rate = jax.jvp(momentum, (q, qd), (qd, qdd))[1]
        return rate - jax.grad(L)(q, qd)

    tau = jd.inverse_dynamics(model, q, qd, qdd)
    np.testing.assert_allclose(found(q, qd, qdd), tau, atol=1e-12 * np.abs(tau).max())


def test_gravity_forces_are_the_slope_of_the_potential_energy(rng):
    model = every_joint(4)
    q, _, _ = random_state(model, rng)

    def V(d):
        return jd.potential_energy(model, jd.integrate(model, q, d))

    slope = jax.jit(jax.grad(V))(jnp.zeros(model.nv))
    np.testing.assert_allclose(jd.gravity_forces(model, q), slope, atol=1e-12)


def test_energy_changes_by_the_power_that_flows_in(rng):
    model = with_effects(every_joint(5, branched=False), rng)
    q, qd, tau = random_state(model, rng)
    f_ext = options(model, rng)["f_ext"]

    @jax.jit
    def rates(q, qd, tau):
        qdd = jd.forward_dynamics(model, q, qd, tau, f_ext=f_ext)

        def energy(t):
            q1, qd1 = jd.integrate(model, q, qd * t), qd + qdd * t
            kinetic = jd.kinetic_energy(model, q1, qd1)
            return kinetic + jd.potential_energy(model, q1)

        flow = jd.power(model, q, qd, tau, f_ext=f_ext)
        return jax.grad(energy)(0.0), flow

    rate, flow = rates(q, qd, tau)
    balance = flow.actuators + flow.external - flow.dissipated
    np.testing.assert_allclose(rate, balance, rtol=1e-11)
    assert flow.dissipated > 0


def test_momentum_changes_by_the_external_wrench(rng):
    model = jd.robots.random_tree(3, 5, floating_base=True)
    q, qd, tau = random_state(model, rng)
    tau = tau.at[:6].set(0.0)
    f_ext = options(model, rng)["f_ext"]

    @jax.jit
    def rates(q, qd, tau):
        qdd = jd.forward_dynamics(model, q, qd, tau, f_ext=f_ext)

        def at(t):
            return jd.momentum(model, jd.integrate(model, q, qd * t), qd + qdd * t)

        arms = jd.forward_kinematics(model, q).p - jd.center_of_mass(model, q)[None]
        return jax.jvp(at, (0.0,), (1.0,))[1], arms

    rate, arms = rates(q, qd, tau)
    f_ext = np.asarray(f_ext)
    force = f_ext[:, :3].sum(axis=0) + model.mass.sum() * model.gravity
    moment = (f_ext[:, 3:] + np.cross(arms, f_ext[:, :3])).sum(axis=0)
    np.testing.assert_allclose(rate.linear, force, atol=1e-11)
    np.testing.assert_allclose(rate.angular, moment, atol=1e-11)


def test_joint_reactions_are_in_balance_with_the_motion(rng):
    model = every_joint(6)
    q, qd, qdd = random_state(model, rng)
    given = options(model, rng)
    run = jax.jit(jd.joint_reactions)
    reactions = run(model, q, qd, qdd, **given)
    poses = jd.forward_kinematics(model, q)
    base = given["base"]
    at = jd.body_accelerations(model, q, qd, qdd, base=base)
    w = jd.body_velocities(model, q, qd, base=base).w
    for i in range(model.n):  # Newton and Euler for each free body
        R, m = np.asarray(poses.R[i]), float(model.mass[i])
        c, I = R @ model.com[i], R @ model.inertia[i] @ R.T
        ddc = at.dv[i] + np.cross(at.dw[i], c) + np.cross(w[i], np.cross(w[i], c))
        f = reactions[i, :3] + given["f_ext"][i, :3] + m * model.gravity
        n = reactions[i, 3:] + given["f_ext"][i, 3:] + np.cross(c, m * model.gravity)
        for k in np.flatnonzero(np.array(model.parents) == i):
            f = f - reactions[k, :3]
            arm = poses.p[k] - poses.p[i]
            n = n - reactions[k, 3:] - np.cross(arm, reactions[k, :3])
        np.testing.assert_allclose(f, m * ddc, atol=1e-11)
        spin = I @ at.dw[i] + np.cross(w[i], I @ w[i])
        np.testing.assert_allclose(n, spin + np.cross(c, m * ddc), atol=1e-11)


def test_reactions_along_the_joints_are_the_joint_forces(rng):
    model = every_joint(6)
    q, qd, qdd = random_state(model, rng)

    @jax.jit
    def found(q, qd, qdd):
        _, N_d = jd.denoc_matrices(model, q)
        along = N_d.T @ jd.joint_reactions(model, q, qd, qdd).ravel()
        return along, jd.inverse_dynamics(model, q, qd, qdd)

    along, tau = found(q, qd, qdd)
    np.testing.assert_allclose(along, tau, atol=1e-12 * np.abs(tau).max())


def test_the_base_may_move_as_a_body_would(rng):
    carried = jd.robots.random_tree(1, 4, joints=("revolute",), floating_base=True)
    data = jd.to_dict(carried)["bodies"]
    # the tree on the first body, with that body as its base
    rest = [dict(body, parent=body["parent"] - 1) for body in data[1:]]
    for body in rest:
        body.pop("idx_q"), body.pop("idx_v")
    arm = jd.from_dict({"name": "arm", "bodies": rest})
    carried = eqx.tree_at(
        lambda m: (m.R, m.p),
        carried,
        (carried.R.at[0].set(jnp.eye(3)), carried.p.at[0].set(0.0)),
    )
    q, qd, qdd = random_state(carried, rng)
    q = q.at[:7].set(jd.neutral(carried)[:7])  # the base frame is the world frame
    v, w = qd[:3], qd[3:6]
    base = jd.BaseMotion(v=v, w=w, dv=qdd[:3] + jnp.cross(w, v), dw=qdd[3:6])
    alone = jd.inverse_dynamics(arm, q[7:], qd[6:], qdd[6:], base=base)
    whole = jd.inverse_dynamics(carried, q, qd, qdd)
    np.testing.assert_allclose(alone, whole[6:], atol=1e-12)


@pytest.mark.slow
def test_linearized_dynamics_predict_a_nearby_motion(rng):
    model = with_effects(every_joint(7, branched=False), rng)
    q, qd, tau = random_state(model, rng)
    dx = jnp.asarray(rng.normal(size=3 * model.nv)).reshape(3, -1)

    @jax.jit
    def rates(h):
        """How fast the deviation of a nearby state grows, by its definition."""
        q1 = jd.integrate(model, q, h * dx[0])
        qd1, tau1 = qd + h * dx[1], tau + h * dx[2]

        def apart(t):
            a, b = jd.integrate(model, q, t * qd), jd.integrate(model, q1, t * qd1)
            return jd.difference(model, a, b)

        qdd = jd.forward_dynamics(model, q1, qd1, tau1)
        return jnp.concatenate([jax.jacfwd(apart)(0.0), qdd])

    A, B = jax.jit(jd.linearize)(model, q, qd, tau)
    h = 1e-4
    fourth = 8 * (rates(h) - rates(-h)) - (rates(2 * h) - rates(-2 * h))
    predicted = A @ dx[:2].ravel() + B @ dx[2]
    scale = np.abs(predicted).max()
    np.testing.assert_allclose(fourth / (12 * h), predicted, atol=1e-9 * scale)


@pytest.mark.slow
def test_gradients_of_parameters_are_those_of_differences(rng):
    model = with_effects(every_joint(8, branched=False), rng)
    q, qd, tau = random_state(model, rng)
    weights = jnp.asarray(rng.normal(size=model.nv))

    @jax.jit
    def scalar(model):
        return weights @ jd.forward_dynamics(model, q, qd, tau)

    gradient = jax.jit(jax.grad(scalar))(model)
    for name in ("mass", "com", "inertia", "p", "friction", "damping", "gravity"):
        leaf = np.asarray(getattr(model, name))
        dx = rng.normal(size=leaf.shape)
        if name == "inertia":
            dx = dx + dx.swapaxes(-1, -2)

        def moved(h, name=name, leaf=leaf, dx=dx):
            return scalar(eqx.tree_at(lambda m: getattr(m, name), model, leaf + h * dx))

        h = 1e-4
        difference = (8 * (moved(h) - moved(-h)) - (moved(2 * h) - moved(-2 * h))) / 12
        slope = np.vdot(getattr(gradient, name), dx)
        scale = max(1.0, abs(float(slope)))
        np.testing.assert_allclose(
            difference / h, slope, atol=1e-8 * scale, err_msg=name
        )


def test_an_unknown_method_is_an_error_that_names_the_known_ones():
    model, zero = jd.robots.puma_560(), jnp.zeros(6)
    with pytest.raises(ValueError, match="'fast', expected one of: denoc, articulated"):
        jd.forward_dynamics(model, zero, zero, zero, method="fast")
    with pytest.raises(
        ValueError, match="'fast', expected one of: newton_euler, gibbs"
    ):
        jd.inverse_dynamics(model, zero, zero, zero, method="fast")
    with pytest.raises(
        ValueError, match="'fast', expected one of: composite, gibbs_ap"
    ):
        jd.mass_matrix(model, zero, method="fast")


def test_a_base_motion_may_be_given_in_part():
    model, zero = jd.robots.puma_560(), jnp.zeros(6)
    lift = jd.BaseMotion(dv=-model.gravity)  # twice the weight
    tau = jd.inverse_dynamics(model, zero, zero, zero, base=lift)
    np.testing.assert_allclose(tau, 2 * jd.gravity_forces(model, zero), atol=1e-13)
    model32 = model.astype(jnp.float32)
    z32 = zero.astype(jnp.float32)
    part = jd.BaseMotion(dv=-model32.gravity)
    assert jd.inverse_dynamics(model32, z32, z32, z32, base=part).dtype == jnp.float32


def test_names_that_peers_use_mean_the_same():
    assert jd.rnea is jd.inverse_dynamics
    assert jd.crba is jd.mass_matrix
    assert jd.aba is jd.forward_dynamics
