from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from tests.mechanisms import MECHANISMS, PLANAR, forest
from tests.reference import relative_error
from tests.slopes import both_modes, jacobians


@cache
def mechanism(name):
    return jd.from_dict(MECHANISMS[name]["model"])


def motion(name, k=0):
    """A reference state with accelerations that keep the loops closed."""
    state = MECHANISMS[name]["states"][k]
    given = state["q"], state["qd"], state["inverse"]["qdd"]
    return tuple(jnp.asarray(x) for x in given)


def motion_of(mechanisms, k):
    """The same of all mechanisms in a model."""
    return tuple(
        mechanisms.at(k, *path) for path in (["q"], ["qd"], ["inverse", "qdd"])
    )


@cache
def spatial_four_bar():
    """The four-bar closed by a revolute joint: two of its five rows are needed."""
    tree = mechanism("fourbar").without_loops()
    ends = (0.8, 0.0, 0.0), (0.6, 0.0, 0.0)
    return tree.with_loop(1, ends[0], 2, ends[1], "revolute", name="pin")


def on_all_joints(model, q, qd, qdd):
    return jd.constrained_inverse_dynamics(model, q, qd, qdd)


@pytest.mark.reference
def test_actuator_forces_are_those_of_the_reference_and_produce_the_motion():
    together, parts = forest(), (forest(*PLANAR), forest("stewart_gough"))
    actuated = [sum(part.coordinates("actuated").values(), []) for part in parts]
    for k in range(3):
        found = [
            jd.constrained_inverse_dynamics(part.model, *motion_of(part, k), actuated=a)
            for part, a in zip(parts, actuated, strict=True)
        ]
        for part, forces in zip(parts, found, strict=True):
            for name, place in part.v.items():
                state, model = MECHANISMS[name]["states"][k], MECHANISMS[name]["model"]
                expected = np.zeros(model["nv"])
                expected[model["actuated"]] = state["inverse"]["tau_actuated"]
                assert relative_error(forces.tau[place], expected) < 1e-14
            assert np.abs(forces.residual).max() < 1e-12
            assert forces.tau_is_determinate.all()
            assert forces.loop_force_is_determinate.all()
        q, qd, qdd = motion_of(together, k)
        tau, loop_forces = (
            np.concatenate([getattr(forces, key) for forces in found])
            for key in ("tau", "loop_forces")
        )
        back, expected = jd.constrained_dynamics(
            together.model, q, qd, jnp.asarray(tau)
        )
        for name in MECHANISMS:
            v, c = together.v[name], together.c[name]
            assert relative_error(back[v], qdd[v]) < 1e-12
            assert relative_error(loop_forces[c], expected[c]) < 1e-13


def test_redundant_actuators_share_the_load_with_least_norm():
    model, x = mechanism("fourbar"), motion("fourbar")
    found = on_all_joints(model, *x)
    Psi = np.asarray(jd.loop_jacobian(model, x[0]))
    t = np.asarray(jd.inverse_dynamics(model, *x))
    # tau = t - Psi^T lambda is least for the lambda of least squares
    loop_forces = np.linalg.lstsq(Psi.T, t)[0]
    np.testing.assert_allclose(found.tau, t - Psi.T @ loop_forces, atol=1e-13)
    np.testing.assert_allclose(found.loop_forces, loop_forces, atol=1e-12)
    assert not found.tau_is_determinate.any()
    assert not found.loop_force_is_determinate.any()
    qdd = jd.forward_dynamics(model, *x[:2], found.tau)
    np.testing.assert_allclose(qdd, x[2], atol=1e-12)


def test_some_forces_are_determinate_and_others_are_not():
    # a pendulum hangs from the coupler of the four-bar
    data = jd.to_dict(mechanism("fourbar"))
    b = data["bodies"]
    pendulum = jd.to_dict(jd.robots.chain(1))["bodies"][0]
    b.append(pendulum | {"name": "pendulum", "parent": 1, "idx_q": 3, "idx_v": 3})
    data |= {"nq": 4, "nv": 4}
    model = jd.from_dict(data)
    q, qd, qdd = (jnp.append(x, 0.3) for x in motion("fourbar"))
    found = jd.constrained_inverse_dynamics(
        model, q, qd, qdd, actuated=["crank", 2, "pendulum"]
    )
    np.testing.assert_array_equal(found.tau_is_determinate, [False, True, False, True])
    A = np.asarray(jnp.concatenate([jnp.eye(4), jd.loop_jacobian(model, q)]).T)
    A = A[:, [0, 2, 3, 4, 5]]  # the forces that act, and two loop forces
    null = np.linalg.svd(A)[2][4:]
    is_free = (np.abs(null) > 1e-9).any(axis=0)
    np.testing.assert_array_equal(
        is_free[:3], ~found.tau_is_determinate[jnp.array([0, 2, 3])]
    )
    np.testing.assert_array_equal(is_free[3:], ~found.loop_force_is_determinate)


@pytest.mark.slow
def test_dependent_rows_of_a_spatial_cut_change_no_force_of_the_actuators():
    x = motion("fourbar", 1)
    plane = jd.constrained_inverse_dynamics(mechanism("fourbar"), *x, actuated="crank")
    space = jd.constrained_inverse_dynamics(spatial_four_bar(), *x, actuated="crank")
    np.testing.assert_allclose(space.tau, plane.tau, atol=1e-13)
    np.testing.assert_allclose(space.loop_forces[:2], plane.loop_forces, atol=1e-12)
    np.testing.assert_allclose(space.loop_forces[2:], 0, atol=1e-13)
    np.testing.assert_array_equal(
        space.loop_force_is_determinate, [True, True, False, False, False]
    )
    assert space.tau_is_determinate.all()


def test_reactions_and_loop_wrenches_balance_the_bodies():
    model, x = mechanism("fourbar"), motion("fourbar")
    found = jd.constrained_inverse_dynamics(model, *x, actuated=[0])
    np.testing.assert_allclose(
        found.wrenches, jd.loop_wrenches(model, x[0], found.loop_forces), atol=1e-14
    )
    # joints turn about z: only actuated ones have a moment about it
    np.testing.assert_allclose(found.reactions[:, 5], found.tau, atol=1e-13)
    # all that moves is carried by the two joints on the ground
    poses, at = jd.forward_kinematics(model, x[0]), jd.body_accelerations(model, *x)
    R, dw, w = poses.R, at.dw, jd.body_velocities(model, *x[:2]).w
    r = jnp.einsum("kij,kj->ki", R, model.com)
    dv = at.dv + jnp.cross(dw, r) + jnp.cross(w, jnp.cross(w, r))
    force = (model.mass[:, None] * (dv - model.gravity[None])).sum(axis=0)
    ground = found.reactions[0, :3] + found.reactions[2, :3]
    np.testing.assert_allclose(ground, force, atol=1e-12)


@pytest.mark.slow
def test_a_load_is_borne_and_a_model_without_loops_is_driven_as_a_tree(rng):
    model, x = mechanism("fourbar"), motion("fourbar")
    f_ext = jnp.asarray(rng.normal(size=(3, 6)))
    found = jd.constrained_inverse_dynamics(model, *x, actuated=[0], f_ext=f_ext)
    qdd, _ = jd.constrained_dynamics(model, *x[:2], found.tau, f_ext=f_ext)
    np.testing.assert_allclose(qdd, x[2], atol=1e-11)
    tree = model.without_loops()
    found = jd.constrained_inverse_dynamics(tree, *x, f_ext=f_ext)
    tau = jd.inverse_dynamics(tree, *x, f_ext=f_ext)
    np.testing.assert_allclose(found.tau, tau, atol=1e-14)
    assert found.wrenches.shape == (0, 6) and found.tau_is_determinate.all()


def test_what_the_actuators_cannot_do_is_the_residual():
    # a loop that holds nothing in the plane leaves the last bar a free pendulum
    model, x = mechanism("fourbar").without_loops(), motion("fourbar")
    model = model.with_loop(0, (0.3, 0, 0), None, (0.3, 0, 0), axes=(2,), name="slot")
    solve = jax.jit(jd.constrained_inverse_dynamics, static_argnames="actuated")
    found = solve(model, *x, actuated=(0, 1))
    t = jd.inverse_dynamics(model, *x)
    np.testing.assert_allclose(found.tau + found.residual, t, atol=1e-14)
    np.testing.assert_array_equal(found.residual[:2], 0)
    np.testing.assert_array_equal(found.tau[2:], 0)


def test_an_actuator_that_cannot_move_the_mechanism_leaves_a_finite_residual():
    # crank and coupler in line: the rocker pushes along both
    model, across = mechanism("fourbar"), 0.3 + 0.8
    crank = np.arccos((across**2 + 0.9**2 - 0.6**2) / (2 * across * 0.9))
    tip = across * np.array([np.cos(crank), np.sin(crank)]) - (0.9, 0)
    q = jnp.array([crank, 0.0, np.arctan2(tip[1], tip[0])])
    rest = jnp.zeros(3)
    np.testing.assert_allclose(jd.loop_residual(model, q), 0, atol=1e-15)
    found = jd.constrained_inverse_dynamics(model, q, rest, rest, actuated="rocker")
    t, Psi = jd.inverse_dynamics(model, q, rest, rest), jd.loop_jacobian(model, q)
    balance = found.tau + found.residual + Psi.T @ found.loop_forces
    np.testing.assert_allclose(balance, t, atol=1e-13)
    assert 1 < np.abs(found.residual).max() < np.abs(t).max()
    assert np.abs(found.loop_forces).max() < 100


@pytest.mark.slow
def test_derivatives_are_those_of_finite_differences_in_both_modes():
    # with dependent rows, and one actuator more than needed
    model, x = spatial_four_bar(), motion("fourbar")

    def forces(scale):
        q, qd, qdd = (scale[k] * x[k] for k in range(3))
        heavy = eqx.tree_at(lambda m: m.mass, model, scale[3] * model.mass)
        loops = lambda m: m.loops[0].p_a  # noqa: E731
        long = eqx.tree_at(loops, heavy, scale[4] * model.loops[0].p_a)
        found = jd.constrained_inverse_dynamics(long, q, qd, qdd, actuated=[0, 1])
        return jnp.concatenate([found.tau, found.loop_forces])

    ones, h, run = jnp.ones(5), 1e-5, both_modes(forces)
    slopes, reverse = jacobians(run, ones, 8)

    def f(scale):
        return np.asarray(run(scale, ones, jnp.ones(8))[0])

    differences = [(f(ones + d) - f(ones - d)) / (2 * h) for d in h * jnp.eye(5)]
    np.testing.assert_allclose(slopes, np.transpose(differences), atol=1e-8)
    np.testing.assert_allclose(reverse, slopes, atol=1e-12)


@pytest.mark.slow
def test_single_precision_stays_single():
    model = mechanism("fourbar").astype(jnp.float32)
    x = [v.astype(jnp.float32) for v in motion("fourbar")]
    found = jd.constrained_inverse_dynamics(model, *x, actuated="crank")
    expected = MECHANISMS["fourbar"]["states"][0]["inverse"]["tau_actuated"]
    assert found.tau.dtype == found.loop_forces.dtype == jnp.float32
    np.testing.assert_allclose(found.tau[:1], expected, rtol=1e-5)
    assert found.tau_is_determinate.all()


@pytest.mark.parametrize(
    ("name", "actuated", "message"),
    [
        ("fourbar", ["motor"], "actuated has 'motor', which model 'fourbar' has not"),
        ("fourbar", [3], "actuated has 3, expected .* from 0 to 2"),
        ("fourbar", [-1], "actuated has -1, expected .* from 0 to 2"),
        ("fourbar", ["crank", 0], "coordinate 0 of qd more than once"),
        ("fourbar", [], r"has 0 of the 3 .* at least 1: its loops \(loop 0\) take 2"),
        ("fivebar", [0], "has 1 of the 4 coordinates .* expected at least 2"),
    ],
)
def test_wrong_actuators_are_an_error_that_names_them(name, actuated, message):
    x = motion(name)
    with pytest.raises(ValueError, match=message):
        jd.constrained_inverse_dynamics(mechanism(name), *x, actuated=actuated)


def test_dependent_rows_take_no_freedom_for_which_no_actuator_is_needed():
    with pytest.raises(ValueError, match=r"at least 1: its loops \(pin\) take 2"):
        jd.constrained_inverse_dynamics(
            spatial_four_bar(), *motion("fourbar"), actuated=[]
        )
