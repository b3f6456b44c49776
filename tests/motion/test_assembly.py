from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.model import CUT_JOINTS
from jaxdyn.motion._assembly import loop_errors
from tests.mechanisms import forest
from tests.models import random_rotation

HELD = (
    "fourbar.crank",
    *("fivebar.left_proximal", 5),
    "j_slider_crank.crank",
    *("planar_3rrr.leg1_proximal", "planar_3rrr.leg2_proximal", 14),
    "stewart_gough.platform",
)


@cache
def four_bar(joint=None):
    """The four-bar linkage; with a revolute joint three of its five rows depend."""
    model = jd.robots.four_bar()
    if joint is None:
        return model
    ends = (0.8, 0.0, 0.0), (0.6, 0.0, 0.0)
    return model.without_loops().with_loop(1, ends[0], 2, ends[1], joint, name="pin")


@cache
def floating(*joints):
    """Free bodies, each with a cut joint to the world at a place of its own."""
    rng = np.random.default_rng(3)
    b = jd.ModelBuilder("floating")
    for k, joint in enumerate(joints):
        b.add_body(joint, None, "free", inertial=jd.Inertial.box(1.0, (1, 2, 3)))
        places = [(random_rotation(rng), rng.normal(size=3)) for _ in range(2)]
        b.add_loop(k, places[0], None, places[1], joint, name=f"{joint} loop")
    return b.build()


@pytest.mark.reference
def test_mechanisms_are_assembled_about_the_joints_that_are_held(rng):
    model, q = forest().model, forest().at(0, "q")
    bodies = [x.removeprefix("j_") if isinstance(x, str) else x for x in HELD]
    d = 0.1 * rng.normal(size=model.nv)
    for body in bodies:
        d[model.v_slice(body)] = 0
    guess = jd.integrate(model, q, jnp.asarray(d))
    found = jd.close_loops(model, guess, hold=HELD)
    for body in bodies:
        place = model.q_slice(body)
        np.testing.assert_allclose(found.q[place], q[place], rtol=0, atol=1e-16)
    np.testing.assert_allclose(found.q, q, atol=1e-13)
    assert found.converged and found.error.shape == (len(model.loops), 2)
    assert found.error.max() < 1e-14


@pytest.mark.slow
def test_every_cut_joint_is_closed_from_far_away_and_none_is_flipped(rng):
    model = floating(*CUT_JOINTS)
    close = jax.jit(lambda q: jd.close_loops(model, q, throw=False))
    for k in range(3):
        guess = jd.random_configuration(model, jax.random.key(k))
        found = close(guess)
        assert found.converged and found.error.max() < 1e-12
        assert np.abs(jd.loop_residual(model, found.q)).max() < 1e-13
        R = jd.forward_kinematics(model, found.q).R
        for loop in model.loops:
            A, B = R[loop.body_a] @ loop.R_a, loop.R_b
            if "rx" in loop.rows:
                np.testing.assert_allclose(A[:, 2], B[:, 2], atol=1e-12)
            if "rz" in loop.rows:
                np.testing.assert_allclose(A, B, atol=1e-12)


@pytest.mark.slow
def test_a_flipped_joint_has_no_residual_but_is_no_solution():
    model = floating("revolute")
    loop = model.loops[0]
    closed = jd.close_loops(model, jd.neutral(model)).q
    # half a turn about an axis of the frame that is not the joint's own
    turn = np.pi * np.asarray(loop.R_a)[:, 0]
    flipped = jd.integrate(model, closed, jnp.append(jnp.zeros(3), turn))
    pose = jd.forward_kinematics(model, flipped)
    back = pose.R[0].T @ (loop.p_b - pose.p[0]) - loop.p_a
    flipped = jd.integrate(model, flipped, jnp.append(back, jnp.zeros(3)))
    np.testing.assert_allclose(jd.loop_residual(model, flipped), 0, atol=1e-14)
    with pytest.raises(
        ValueError, match="revolute loop is open .* 3.14 rad .*opposite"
    ):
        jd.check_loops(model, flipped)
    held = jd.close_loops(model, flipped, hold=0, throw=False)
    assert not held.converged
    np.testing.assert_allclose(held.error, [[0, np.pi]], atol=1e-7)
    near = jd.integrate(model, flipped, jnp.full(6, 1e-3))
    jd.check_loops(model, jd.close_loops(model, near).q)


def assembled(model, x):
    """The four-bar with a crank angle and a length of the coupler."""
    tip = x[1] * jnp.array([1.0, 0.0, 0.0])
    longer = eqx.tree_at(lambda m: m.loops[0].p_a, model, tip)
    guess = jnp.array([0.0, 0.4, 1.2]).at[0].set(x[0])
    return jd.close_loops(longer, guess, hold="crank", throw=False).q


def closed_form(x):
    """The same by the intersection of two circles."""
    tip = 0.3 * jnp.array([jnp.cos(x[0]), jnp.sin(x[0])])
    pivot = jnp.array([0.9, 0.0])
    s = pivot - tip
    d2 = s @ s
    a = (x[1] ** 2 - 0.6**2 + d2) / 2
    along, across = a / d2, jnp.sqrt(x[1] ** 2 * d2 - a**2) / d2
    pin = tip + along * s + across * jnp.array([-s[1], s[0]])
    coupler = jnp.arctan2(*(pin - tip)[::-1])
    return jnp.array([x[0], coupler - x[0], jnp.arctan2(*(pin - pivot)[::-1])])


@pytest.mark.slow
@pytest.mark.parametrize(
    "joint", [None, pytest.param("revolute", marks=pytest.mark.slow)]
)
def test_first_and_second_derivatives_are_those_of_the_closed_form(joint):
    model, x = four_bar(joint), jnp.array([0.5, 0.8])

    def all_of_it(f):
        @jax.jit
        def slopes(x, weights, along):
            def slope(x):
                q, pull = jax.vjp(f, x)
                return pull(weights)[0], q

            return jax.jvp(slope, (x,), (along,))

        return [slopes(x, w, along) for w in jnp.eye(3) for along in jnp.eye(2)]

    found = all_of_it(lambda x: assembled(model, x))
    expected = all_of_it(closed_form)
    for a, b in zip(*map(jax.tree.leaves, (found, expected)), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-13)


@pytest.mark.slow
def test_many_crank_angles_are_assembled_at_once():
    x = jnp.stack([jnp.linspace(0, 2, 5), jnp.full(5, 0.8)], axis=1)
    model = four_bar()
    found = jax.jit(jax.vmap(lambda x: assembled(model, x)))(x)
    np.testing.assert_allclose(found, jax.vmap(closed_form)(x), atol=1e-13)


@pytest.mark.slow
def test_a_loop_that_stays_open_is_reported_with_its_name():
    model = eqx.tree_at(lambda m: m.loops[0].p_a, four_bar(), jnp.array([2.0, 0, 0]))
    guess = jnp.array([0.5, 0.4, 1.2])
    found = jd.close_loops(model, guess, hold="crank", throw=False)
    assert not found.converged and found.q[0] == 0.5
    # stretched out, the coupler passes through the pivot of the rocker
    tip = 0.3 * np.array([np.cos(0.5), np.sin(0.5)])
    gap = 2.0 - 0.6 - np.hypot(0.9 - tip[0], tip[1])
    np.testing.assert_allclose(found.error, [[gap, 0]], atol=1e-7)
    message = f"loop 0 of model 'fourbar' stays open by {gap:.3g} m and 0 rad"
    with pytest.raises(RuntimeError, match=message):
        jd.close_loops(model, guess, hold="crank")
    with pytest.raises(RuntimeError, match="loop 0 of model 'fourbar' stays open"):
        close = jax.jit(lambda q: jd.close_loops(model, q, hold="crank").q)
        jax.block_until_ready(close(guess))


def test_limits_decide_between_the_two_ways_to_close():
    model, guess = four_bar(), jnp.array([0.5, -0.5, -0.5])
    raised = eqx.tree_at(lambda m: m.lower, model, model.lower.at[1].set(0.0))
    for limited, sign in ((model, -1), (raised, 1)):
        q = jd.close_loops(limited, guess, hold="crank", limits=True).q
        assert sign * q[1] > 0
        assert np.abs(jd.loop_residual(model, q)).max() < 1e-13
    at = float(jd.close_loops(model, jnp.array([0.5, 0.4, 1.2]), hold="crank").q[1])
    touching = eqx.tree_at(lambda m: m.upper, model, model.upper.at[1].set(at - 1e-11))
    guess = jnp.array([0.5, 0.4, 1.2])
    q = jd.close_loops(touching, guess, hold="crank", limits=True).q
    assert q[1] <= touching.upper[1]
    lowered = eqx.tree_at(lambda m: m.upper, model, model.upper.at[1].set(-0.1))
    # the guess is on the wrong side
    q = jd.close_loops(lowered, guess, hold="crank", limits=True, throw=False).q
    assert q[1] == lowered.upper[1]


def test_what_is_closed_or_has_no_loops_or_no_free_joint_stays():
    model, guess = four_bar(), jnp.array([0.5, 0.4, 1.2])
    found = jd.close_loops(model, guess, hold=(0, 1, 2), throw=False)
    np.testing.assert_array_equal(found.q, guess)
    assert not found.converged
    tree = jd.close_loops(model.without_loops(), guess)
    np.testing.assert_array_equal(tree.q, guess)
    assert tree.converged and tree.error.shape == (0, 2)
    jd.check_loops(model.without_loops(), guess)


def test_what_was_found_is_kept_where_the_last_steps_would_spoil_it():
    b = jd.ModelBuilder("stretched")
    rod = jd.Inertial.rod(1.0, (0, 0, 0), (1, 0, 0))
    b.add_body("upper", inertial=rod)
    b.add_body("lower", "upper", p=(1, 0, 0), inertial=rod)
    b.add_loop("lower", (1, 0, 0), None, (2 + 9e-10, 0, 0), axes=(0, 1))
    model = b.build()
    found = jd.close_loops(model, jnp.array([1e-3, -2e-3]))
    np.testing.assert_array_equal(found.error, loop_errors(model, found.q))
    assert found.converged and found.error.max() < 1e-9


@pytest.mark.slow
def test_single_precision_stays_single_and_converges():
    model = four_bar().astype(jnp.float32)
    found = jd.close_loops(model, jnp.array([0.5, 0.4, 1.2], jnp.float32), hold=0)
    assert found.q.dtype == found.error.dtype == jnp.float32
    assert found.converged and found.error.max() < 1e-6
    jd.check_loops(model, found.q.at[0].add(1e-5))
    with pytest.raises(ValueError, match="loop 0 is open .*, expected at most 0.0001"):
        jd.check_loops(model, found.q.at[0].add(1e-3))


def test_dependent_rows_are_named():
    q = closed_form(jnp.array([0.5, 0.8]))
    assert jd.dependent_rows(four_bar(), q) == ()
    assert jd.dependent_rows(four_bar("revolute"), q) == (
        "pin: Z",
        "pin: rx",
        "pin: ry",
    )
    twice = four_bar("revolute").with_loop(1, (0.8, 0, 0), 2, (0.6, 0, 0), axes=(1, 0))
    assert jd.dependent_rows(twice, q)[-2:] == ("loop 1: Y", "loop 1: X")
    assert jd.dependent_rows(four_bar().without_loops(), q) == ()


def test_loops_that_are_open_or_stop_all_motion_are_named():
    model, q = four_bar(), closed_form(jnp.array([0.5, 0.8]))
    jd.check_loops(model, q)
    with pytest.raises(ValueError, match=r"loop 0 is open .* \(rows: X .*, Y "):
        jd.check_loops(model, q.at[0].add(0.01))
    jd.check_loops(model, q.at[0].add(0.01), tolerance=0.1)
    tip = jd.forward_kinematics(model, q).p[1]
    stopped = model.with_loop(0, (0.3, 0, 0), None, tip, axes=(0, 1), name="stop")
    with pytest.raises(ValueError, match="stop takes the last of the 3 freedoms.*more"):
        jd.check_loops(stopped, q)
    with pytest.raises(ValueError, match="check_loops got traced values"):
        jax.jit(lambda q: jd.check_loops(model, q))(q)


def test_wrong_input_is_an_error_that_names_it(without_type_checker):
    model, q = four_bar(), jnp.zeros(3)
    for options, message in (
        ({"hold": "motor"}, "hold has 'motor', which model 'fourbar' has not, .*crank"),
        ({"hold": (3,)}, "hold has 3, .*expected an index from 0 to 2"),
        ({"tolerance": 0.0}, "tolerance is 0.0, expected a positive"),
        ({"max_steps": 0}, "max_steps is 0, expected a positive"),
    ):
        with pytest.raises(ValueError, match=message):
            jd.close_loops(model, q, **options)
    with pytest.raises(ValueError, match=r"q_guess has shape \(2,\), expected \(3,\)"):
        jd.close_loops(model, q[:2])


def test_a_name_with_two_meanings_is_an_error():
    b = jd.ModelBuilder("twins")
    rod = jd.Inertial.rod(1.0, (0, 0, 0), (1, 0, 0))
    b.add_body("one", joint_name="two", inertial=rod)
    b.add_body("two", joint_name="one", inertial=rod)
    with pytest.raises(ValueError, match="hold has 'one', which names a joint"):
        jd.close_loops(b.build(), jnp.zeros(2), hold="one")


@pytest.mark.slow
def test_a_state_as_typed_is_closed_nearby():
    model = four_bar()
    exact = jd.close_loops(model, jnp.array([0.5, 0.4, 1.2]), hold="crank").q
    rates = jd.project_velocity(model, exact, jnp.array([1.0, 0.0, 0.0]))
    q, qd = jd.motion.closed_state(model, exact.round(3), rates.round(3))
    np.testing.assert_allclose(jd.loop_residual(model, q), 0, atol=1e-9)
    np.testing.assert_allclose(jd.loop_jacobian(model, q) @ qd, 0, atol=1e-12)
    np.testing.assert_allclose(q, exact, atol=2e-3)
    np.testing.assert_allclose(qd, rates, atol=1e-2)


def test_a_state_that_opens_a_loop_is_an_error_that_names_it():
    model = four_bar()
    q = jd.close_loops(model, jnp.array([0.5, 0.4, 1.2]), hold="crank").q
    with pytest.raises(ValueError, match="^q: loop 0 is open by .* no closed pose"):
        jd.motion.closed_state(model, jnp.array([1.0, 1.0, -2.0]), jnp.zeros(3))
    with pytest.raises(ValueError, match="^qd: loop 0 opens with .* nearest are"):
        jd.motion.closed_state(model, q, jnp.array([1.0, 0.0, 0.0]))


def test_a_state_of_a_tree_stays_as_it_is():
    q, qd = jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])
    found = jd.motion.closed_state(jd.robots.chain(2), q, qd)
    np.testing.assert_array_equal(found, (q, qd))
