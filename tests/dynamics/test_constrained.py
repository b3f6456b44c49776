from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import jaxdyn as jd
from jaxdyn.model import CUT_JOINTS, loop_plan
from tests.mechanisms import MECHANISMS as BY_NAME
from tests.mechanisms import forest
from tests.models import closed, random_rotation
from tests.reference import relative_error
from tests.slopes import both_modes, jacobians

METHODS = ("kkt", "range_space", "recursive", "sequential_regularization")
MECHANISMS = list(BY_NAME.values())
FOUR_BAR = MECHANISMS[0]
TWO_METHODS = pytest.mark.parametrize(  # in every run; the others in `make test-all`
    "method",
    [
        pytest.param(m, marks=[pytest.mark.slow] if m in METHODS[::3] else [])
        for m in METHODS
    ],
)


def state_of(case, k=0):
    state = case["states"][k]
    return tuple(jnp.asarray(state[name]) for name in ("q", "qd", "tau"))


@pytest.mark.reference
@pytest.mark.parametrize("method", METHODS[:3])
def test_every_method_agrees_with_independent_software(method):
    together = forest()
    for k in range(3):
        given = (together.at(k, name) for name in ("q", "qd", "tau"))
        qdd, forces = jd.constrained_dynamics(together.model, *given, method=method)
        for name, case in BY_NAME.items():
            state = case["states"][k]
            assert relative_error(qdd[together.v[name]], state["qdd_fd"]) < 1e-13
            found = together.forces_of(name, forces)
            assert relative_error(found, state["loop_forces"]) < 1e-13


@pytest.mark.slow
@pytest.mark.first
@pytest.mark.reference
@pytest.mark.parametrize(
    "case",
    [
        # it takes long to compile: the smallest and the largest
        pytest.param(case, marks=[pytest.mark.slow] if 0 < k < 4 else [], id=name)
        for k, (name, case) in enumerate(BY_NAME.items())
    ],
)
def test_so_does_the_iteration(case):
    model = jd.from_dict(case["model"])
    for k, state in enumerate(case["states"]):
        qdd, forces = jd.constrained_dynamics(
            model, *state_of(case, k), method="sequential_regularization"
        )
        assert relative_error(qdd, state["qdd_fd"]) < 2e-10
        assert relative_error(forces, state["loop_forces"]) < 2e-10


@pytest.mark.slow
@pytest.mark.reference
def test_forward_dynamics_respect_loops_whatever_the_method_for_the_tree():
    model = jd.from_dict(FOUR_BAR["model"])
    expected = FOUR_BAR["states"][0]["qdd_fd"]
    for method in ("denoc", "articulated", "composite"):
        qdd = jd.forward_dynamics(model, *state_of(FOUR_BAR), method=method)
        assert relative_error(qdd, expected) < 1e-13


def on_joints():
    """Bodies that move by joints, and free ones that cut joints leave the same."""
    tree, cut = jd.ModelBuilder("tree"), jd.ModelBuilder("cut")
    box = jd.Inertial.box(2.0, (0.3, 0.2, 0.1)).moved(np.eye(3), np.full(3, 0.1))
    R, p = random_rotation(np.random.default_rng(3)), (0.4, -0.2, 0.5)
    for joint in CUT_JOINTS:
        if joint == "point":
            continue
        two = {"axis2": (1, 0, 0)} if joint in ("universal", "planar") else {}
        tree.add_body(joint, None, joint, inertial=box, R=R, p=p, **two)
        cut.add_body(joint, None, "free", inertial=box)
        frames = (joint, np.zeros(3)), (None, (R, p))
        # the first axis of a universal joint belongs to frame a, here on the world
        a, b = frames[::-1] if joint == "universal" else frames
        cut.add_loop(*a, *b, joint, name=joint)
    return tree.build(), cut.build()


@pytest.mark.slow
def test_cut_joints_move_as_joints_of_the_tree_do(rng):
    tree, cut = on_joints()
    q = jd.random_configuration(tree, jax.random.key(1))
    qd = jnp.asarray(rng.normal(size=tree.nv))
    at, moved = jd.forward_kinematics(tree, q), jd.body_velocities(tree, q, qd)
    turns = jnp.asarray(Rotation.from_matrix(np.asarray(at.R)).as_quat())
    q_cut = jnp.concatenate([at.p, turns], axis=1).ravel()
    in_body = [jnp.einsum("nij,ni->nj", at.R, x) for x in (moved.v, moved.w)]
    qd_cut = jnp.concatenate(in_body, axis=1).ravel()
    np.testing.assert_allclose(jd.loop_residual(cut, q_cut), 0, atol=1e-14)
    np.testing.assert_allclose(jd.loop_jacobian(cut, q_cut) @ qd_cut, 0, atol=1e-13)
    f_ext = jnp.asarray(rng.normal(size=(tree.n, 6)))
    states = (tree, q, qd), (cut, q_cut, qd_cut)
    one, other = (
        jd.body_accelerations(
            *state, jd.forward_dynamics(*state, jnp.zeros_like(state[2]), f_ext=f_ext)
        )
        for state in states
    )
    np.testing.assert_allclose(one.dv, other.dv, atol=1e-12)
    np.testing.assert_allclose(one.dw, other.dw, atol=1e-12)


def spatial_four_bar():
    """The four-bar, held by a revolute joint in space: three of five rows depend."""
    model = jd.from_dict(FOUR_BAR["model"]).without_loops()
    return model.with_loop("coupler", (0.8, 0, 0), "rocker", (0.6, 0, 0), "revolute")


@pytest.mark.slow
@TWO_METHODS
def test_dependent_rows_change_nothing(method):
    qdd, forces = jd.constrained_dynamics(
        spatial_four_bar(), *state_of(FOUR_BAR), method=method
    )
    state = FOUR_BAR["states"][0]
    assert relative_error(qdd, state["qdd_fd"]) < 1e-10
    expected = [*state["loop_forces"], 0, 0, 0]
    np.testing.assert_allclose(forces, expected, atol=2e-9)


def test_rank_and_mobility_are_told():
    model, (q, _, _) = spatial_four_bar(), state_of(FOUR_BAR)
    found = jd.loop_condition(model, q)
    assert (int(found.rank), int(found.mobility)) == (2, 1)
    assert 1 < float(found.condition_number) < 100


def at_dead_centre():
    """A four-bar with all bars in one line: its loop cannot turn the crank."""
    model = jd.robots.four_bar()
    place = model.p.at[2, 0].set(0.5)  # 0.3 + 0.8 - 0.6
    return eqx.tree_at(lambda m: m.p, model, place), jnp.zeros(3), jnp.zeros(3)


@pytest.mark.first
@pytest.mark.parametrize("method", METHODS)
def test_a_singular_posture_gives_a_finite_result(method):
    model, q, qd = at_dead_centre()
    tau = jnp.array([0.1, 0.2, 0.3])
    qdd, forces = jd.constrained_dynamics(model, q, qd, tau, method=method)
    assert np.isfinite(qdd).all() and np.isfinite(forces).all()
    equation = jd.mass_matrix(model, q) @ qdd + jd.bias_forces(model, q, qd) - tau
    Psi = jd.loop_jacobian(model, q)
    np.testing.assert_allclose(equation, Psi.T @ forces, atol=1e-8)
    np.testing.assert_allclose(Psi @ qdd, 0, atol=1e-8)
    assert float(forces[0]) == pytest.approx(0, abs=1e-9)  # of least norm
    assert int(jd.loop_condition(model, q).rank) == 1


def test_near_a_singular_posture_the_condition_number_is_large():
    model, q, _ = at_dead_centre()
    near = jd.project_configuration(model, q + jnp.array([1e-6, 0.0, 0.0]))
    found = jd.loop_condition(model, near)
    assert int(found.rank) == 2 and float(found.condition_number) > 1e4


@pytest.fixture(scope="module")
def random_mechanism():
    rng = np.random.default_rng(2)
    joints = ("revolute", "spherical", "universal")
    model = jd.robots.random_tree(3, 10, joints=joints)
    q = jd.random_configuration(model, jax.random.key(1))
    for loop in ((9, 2, "spherical"), (-1, 8, "point"), (7, 4, "planar")):
        model = closed(model, q, *loop, rng)
    qd, tau = (jnp.asarray(rng.normal(size=model.nv)) for _ in range(2))
    return model, q, jd.project_velocity(model, q, qd), tau


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    [
        "recursive",
        *(pytest.param(m, marks=pytest.mark.slow) for m in METHODS[::3]),
    ],
)
def test_methods_agree_on_a_random_mechanism_in_space(random_mechanism, method):
    model, q, qd, tau = random_mechanism
    wind = jnp.asarray(np.random.default_rng(0).normal(size=(model.n, 6)))
    base = jd.BaseMotion(dv=jnp.array([0.1, 0.2, 0.3]), w=jnp.array([0.5, 0.1, 0.0]))
    given = dict(f_ext=wind, base=base)
    qdd, forces = jd.constrained_dynamics(model, q, qd, tau, **given, method=method)
    others = jd.constrained_dynamics(model, q, qd, tau, **given)
    bar = 1e-8 if method == "sequential_regularization" else 1e-11
    assert relative_error(qdd, others[0]) < bar
    assert relative_error(forces, others[1]) < bar
    equation = jd.inverse_dynamics(model, q, qd, qdd, **given) - tau
    Psi = jd.loop_jacobian(model, q)
    assert relative_error(equation, Psi.T @ forces) < bar
    np.testing.assert_allclose(Psi @ qdd, jd.loop_bias(model, q, qd), atol=100 * bar)


@pytest.mark.slow
def test_projected_rates_are_the_nearest_in_kinetic_energy(random_mechanism):
    model, q, qd, _ = random_mechanism
    before = qd + 0.3
    found = jd.project_velocity(model, q, before)
    Psi, M = jd.loop_jacobian(model, q), jd.mass_matrix(model, q)
    np.testing.assert_allclose(Psi @ found, 0, atol=1e-12)
    kept = found - qd  # both are possible, and so is their difference
    assert abs(float(kept @ M @ (found - before))) < 1e-11


@pytest.mark.slow
def test_a_configuration_slightly_open_is_closed(random_mechanism):
    model, q, qd, _ = random_mechanism
    near = jd.integrate(model, q, 1e-3 * (qd + 1.0))
    assert float(jnp.abs(jd.loop_residual(model, near)).max()) > 1e-4
    found = jd.project_configuration(model, near)
    np.testing.assert_allclose(jd.loop_residual(model, found), 0, atol=1e-13)


@pytest.mark.slow
def test_a_closed_configuration_has_the_slopes_of_differences(rng):
    model = jd.from_dict(FOUR_BAR["model"])
    q, qd, _ = state_of(FOUR_BAR)
    near, step = q + 1e-2, jnp.asarray(rng.normal(size=3))  # open by a centimetre

    def closed_at(h):
        longer = eqx.tree_at(lambda m: m.p, model, model.p.at[1, 0].add(0.1 * h))
        at = jd.project_configuration(longer, near + h * step)
        return jnp.stack([at, jd.project_velocity(longer, at, qd + h * step)])

    run, h = jax.jit(lambda h: jax.jvp(closed_at, (h,), (1.0,))), 1e-4
    far_down, down, (_, slope), up, far_up = (run(k * h) for k in range(-2, 3))
    difference = (8 * (up[0] - down[0]) - far_up[0] + far_down[0]) / (12 * h)
    np.testing.assert_allclose(slope, difference, atol=1e-8)


@pytest.mark.slow  # long to compile
def test_second_slopes_of_a_closed_configuration_keep_the_loops_closed(rng):
    model, (q, _, _) = jd.from_dict(FOUR_BAR["model"]), state_of(FOUR_BAR)
    step = jnp.asarray(rng.normal(size=3))

    def at(h):
        found = jd.project_configuration(model, q + h * step)
        return jnp.concatenate([found, jd.loop_residual(model, found)])

    def along(f):
        return lambda h: jax.jvp(f, (h,), (jnp.ones_like(h),))

    run, h = jax.jit(along(along(at))), 1e-3
    slopes = {k: run(k * h)[0][1] for k in range(-3, 4)}
    rows = ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))
    difference = sum(c * (slopes[k] - slopes[-k]) for k, c in rows) / h
    second = run(0.0)[1][1]
    np.testing.assert_allclose(second, difference, atol=1e-9)
    np.testing.assert_allclose(second[3:], 0, atol=1e-13)


def test_baumgarte_drives_openings_to_zero():
    model = jd.from_dict(FOUR_BAR["model"])
    q, qd, tau = state_of(FOUR_BAR)
    q, qd = q + 1e-2, qd + 1e-2
    law = jd.Baumgarte(frequency=7.0, damping=0.8)
    qdd, _ = jd.constrained_dynamics(model, q, qd, tau, baumgarte=law)
    Psi = jd.loop_jacobian(model, q)
    second = Psi @ qdd - jd.loop_bias(model, q, qd)
    rate, opening = Psi @ qd, jd.loop_residual(model, q)
    np.testing.assert_allclose(
        second, -2 * 0.8 * 7.0 * rate - 49.0 * opening, atol=1e-12
    )


def weighed(method):
    """One number of accelerations and loop forces, as a function of all inputs."""

    def value(model, d, qd, tau, q):
        at = jd.integrate(model, q, d)
        qdd, forces = jd.constrained_dynamics(model, at, qd, tau, method=method)
        return qdd @ jnp.arange(1.0, 1 + len(qdd)) + forces @ jnp.cos(
            jnp.arange(1.0, 1 + len(forces))
        )

    return value


@pytest.mark.first
@pytest.mark.parametrize(
    "method, case",
    [
        ("range_space", 0),
        ("recursive", 2),
        pytest.param("range_space", 4, marks=pytest.mark.slow),
        *(pytest.param(m, 0, marks=pytest.mark.slow) for m in (METHODS[0], METHODS[3])),
    ],
)
def test_gradients_equal_differences_for_state_forces_lengths_and_masses(
    method, case, rng
):
    case = MECHANISMS[case]
    model, (q, qd, tau) = jd.from_dict(case["model"]), state_of(case)
    value_and_slope = jax.jit(jax.value_and_grad(weighed(method), (0, 1, 2, 3)))
    d = jnp.zeros(model.nv)
    _, slope = value_and_slope(model, d, qd, tau, q)
    steps = [jnp.asarray(rng.normal(size=model.nv)) for _ in range(3)]
    still = jax.tree.map(jnp.zeros_like, model)
    moved = [jnp.asarray(rng.normal(size=x.shape)) for x in (model.mass, model.p)]
    by_model = eqx.tree_at(
        lambda m: (m.mass, m.p, m.loops[0].p_a, m.gravity),
        still,
        (*moved, jnp.array([0.3, -0.2, 0.1]), jnp.array([0.1, 0.2, 0.3])),
    )

    def at(h):
        changed = jax.tree.map(lambda x, s: x + h * s, model, by_model)
        new = [x + h * s for x, s in zip((d, qd, tau), steps, strict=True)]
        return float(value_and_slope(changed, *new, q)[0])

    h = 1e-4
    difference = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
    pairs = zip(
        jax.tree.leaves(slope), jax.tree.leaves((by_model, *steps)), strict=True
    )
    along = float(sum((a * b).sum() for a, b in pairs))
    bar = 1e-6 if method == "sequential_regularization" else 1e-8
    assert along == pytest.approx(difference, rel=bar)


def test_forward_mode_equals_reverse_mode_and_no_slope_is_nan_at_rest():
    model = jd.from_dict(FOUR_BAR["model"])
    q, _, tau = state_of(FOUR_BAR)

    def both(x):
        return jnp.concatenate(jd.constrained_dynamics(model, q, x[:3], x[3:]))

    at_rest = jnp.concatenate([jnp.zeros(3), tau])
    forward, reverse = jacobians(both_modes(both), at_rest, 5)
    np.testing.assert_allclose(forward, reverse, atol=1e-12)
    np.testing.assert_allclose(forward[:, :3], 0, atol=1e-12)  # quadratic in qd


@pytest.mark.slow
@pytest.mark.first
@pytest.mark.parametrize("leaf", ("tau", "mass"))
def test_reverse_mode_by_what_does_not_change_the_loops(leaf):
    model = jd.from_dict(FOUR_BAR["model"])
    q, qd, tau = state_of(FOUR_BAR)

    def both(x):
        changed = eqx.tree_at(lambda m: m.mass, model, x) if leaf == "mass" else model
        force = x if leaf == "tau" else tau
        return jnp.concatenate(jd.constrained_dynamics(changed, q, qd, force))

    at = tau if leaf == "tau" else model.mass
    forward, reverse = jacobians(both_modes(both), at, 5)
    np.testing.assert_allclose(forward, reverse, atol=1e-12)
    back = jax.jit(jax.vmap(lambda x, dy: jax.vjp(both, x)[1](dy)[0], (0, None)))
    batch = jnp.stack([at, at + 0.1])
    rows = np.stack([back(batch, dy)[0] for dy in jnp.eye(5)])
    np.testing.assert_allclose(rows, reverse, atol=1e-12)


@pytest.mark.slow
def test_second_derivatives_equal_differences_of_first_ones(rng):
    model = jd.from_dict(FOUR_BAR["model"])
    q, qd, tau = state_of(FOUR_BAR)
    value = weighed("range_space")
    step = jnp.asarray(rng.normal(size=3))

    def slope(d):
        return jax.grad(value, 1)(model, d, qd, tau, q)

    compiled = jax.jit(slope)
    second = jax.jit(lambda d: jax.jvp(slope, (d,), (step,))[1])(jnp.zeros(3))
    h = 1e-5
    difference = (compiled(h * step) - compiled(-h * step)) / (2 * h)
    np.testing.assert_allclose(second, difference, rtol=1e-6, atol=1e-5)


def test_tangent_dynamics_with_loops_are_slopes_of_forward_dynamics(rng):
    model = jd.from_dict(FOUR_BAR["model"])
    q, qd, tau = state_of(FOUR_BAR)
    A, B = jd.linearize(model, q, qd, tau)
    step = jnp.asarray(rng.normal(size=(3, 3)))
    h = 1e-5
    one, other = (
        jd.forward_dynamics(model, q + s * step[0], qd + s * step[1], tau + s * step[2])
        for s in (h, -h)
    )
    rates = A @ jnp.concatenate([step[0], step[1]]) + B @ step[2]
    np.testing.assert_allclose(rates[:3], step[1], atol=1e-15)
    np.testing.assert_allclose(rates[3:], (one - other) / (2 * h), rtol=1e-7)


@pytest.mark.slow
def test_light_mechanisms_move_as_heavy_ones_do():
    model = jd.from_dict(FOUR_BAR["model"])
    light = eqx.tree_at(
        lambda m: (m.mass, m.inertia), model, replace_fn=lambda x: 1e-6 * x
    ).astype(jnp.float32)
    q, qd, _ = (x.astype(jnp.float32) for x in state_of(FOUR_BAR))
    found = jd.constrained_dynamics(light, q, qd, jnp.zeros_like(qd), method="kkt")[0]
    q, qd, _ = state_of(FOUR_BAR)
    expected = jd.constrained_dynamics(model, q, qd, jnp.zeros(3))[0]
    assert relative_error(found, expected) < 1e-5


def near_singular(angle):
    """A parallelogram whose cranks have nearly turned onto its base, moving."""
    b = jd.ModelBuilder("parallelogram")
    for name, parent, x, length in (
        ("crank", None, 0.0, 0.3),
        ("coupler", "crank", 0.3, 0.9),
        ("follower", None, 0.9, 0.3),
    ):
        rod = jd.Inertial.rod(length, (0, 0, 0), (length, 0, 0))
        b.add_body(name, parent, p=(x, 0, 0), inertial=rod)
    ends = (0.9, 0, 0), "follower", (0.3, 0, 0)
    model = b.build().with_loop("coupler", *ends, "point", axes=(0, 1))
    turn = jnp.array([1.0, -1.0, 1.0])
    return model, angle * turn, turn, jnp.array([0.5, 0.0, 0.2])


@pytest.mark.parametrize("method", ["kkt", "recursive"])
def test_no_digit_is_lost_near_a_singular_posture(method):
    state = near_singular(1e-6)
    expected = jd.constrained_dynamics(*state)
    found = jd.constrained_dynamics(*state, method=method)
    for ours, theirs in zip(found, expected, strict=True):
        assert relative_error(ours, theirs) < 1e-14


def test_iterations_that_do_not_converge_are_an_error():
    model, q, qd, tau = near_singular(1e-4)

    @jax.jit
    @jax.vmap
    def run(q):
        method = "sequential_regularization"
        return jd.constrained_dynamics(model, q, qd, tau, method=method)

    found = run(5000 * q[None])[0][0]  # half a radian from there
    expected = jd.constrained_dynamics(model, 5000 * q, qd, tau)[0]
    assert relative_error(found, expected) < 1e-9
    with pytest.raises(Exception, match="did not reach its tolerance in 10000"):
        jax.block_until_ready(run(q[None]))


@pytest.mark.first
@TWO_METHODS
def test_vmap_is_the_loop_and_float32_stays(method):
    model = jd.from_dict(FOUR_BAR["model"])
    states = [state_of(FOUR_BAR, k) for k in range(3)]
    batch = [jnp.stack(x) for x in zip(*states, strict=True)]
    run = partial(jd.constrained_dynamics, model, method=method)
    rows = jax.jit(jax.vmap(run))(*batch)
    for k, state in enumerate(states):
        for one, all_rows in zip(run(*state), rows, strict=True):
            np.testing.assert_allclose(all_rows[k], one, rtol=1e-9)
    small = [x.astype(jnp.float32) for x in states[0]]
    found = jd.constrained_dynamics(model.astype(jnp.float32), *small, method=method)
    assert {x.dtype for x in found} == {jnp.dtype("float32")}
    assert relative_error(found[0], FOUR_BAR["states"][0]["qdd_fd"]) < 2e-4


def test_loops_that_close_early_leave_the_recursion_narrow():
    topology = jd.robots.chain(40).topology
    near = tuple((i, i + 3, 2) for i in range(0, 36, 2))
    far = tuple((-1, i, 2) for i in range(0, 36, 2))
    narrow, wide = loop_plan(topology, near), loop_plan(topology, far)
    assert (narrow.slots, narrow.at_base.size) == (4, 0)
    assert (wide.slots, wide.at_base.size) == (36, 36)


@pytest.mark.parametrize(
    "options, message",
    [
        (
            {"method": "fast"},
            "method is 'fast', expected one of: kkt, range_space, rec",
        ),
        (
            {"tolerance": 1e-3},
            "tolerance is 0.001 for method 'range_space', which does",
        ),
        (
            {"method": "sequential_regularization", "tolerance": 2.0},
            "tolerance is 2.0, expected a number from 0 to 1",
        ),
    ],
)
def test_wrong_options_are_named(options, message):
    model = jd.from_dict(FOUR_BAR["model"])
    with pytest.raises(ValueError, match=message):
        jd.constrained_dynamics(model, *state_of(FOUR_BAR), **options)


@pytest.mark.slow
def test_a_model_without_loops_has_no_loop_forces():
    model, q = jd.robots.gripper(), jnp.ones(4)
    qdd, forces = jd.constrained_dynamics(model, q, q, q)
    np.testing.assert_array_equal(qdd, jd.forward_dynamics(model, q, q, q))
    assert forces.shape == (0,)
    np.testing.assert_array_equal(jd.project_velocity(model, q, q), q)
    np.testing.assert_array_equal(jd.project_configuration(model, q), q)
    assert jd.loop_residual(model, q).shape == (0,)
    assert jd.loop_bias(model, q, q).shape == (0,)
    assert jd.loop_jacobian(model, q).shape == (0, 4)
    assert jd.loop_wrenches(model, q, forces).shape == (0, 6)
    assert int(jd.loop_condition(model, q).mobility) == 4
