from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.motion import inverse_kinematics
from tests.models import every_joint
from tests.reference import load


def pose(model, q, body):
    poses = jd.forward_kinematics(model, q)
    i = model.body(body)
    return poses.p[i], poses.R[i]


@cache
def two_links(lower=-np.pi, upper=np.pi):
    """Two links of one metre in a plane, the second with limits."""
    b = jd.ModelBuilder("two_links")
    rod = jd.Inertial.rod(1.0, (0, 0, 0), (1, 0, 0))
    b.add_body("upper", inertial=rod)
    b.add_body("lower", "upper", p=(1, 0, 0), inertial=rod, lower=lower, upper=upper)
    b.add_frame("tip", "lower", p=(1.0, 0, 0))
    return b.build()


@pytest.mark.reference
def test_it_finds_all_eight_solutions_of_the_puma():
    arm, data = jd.robots.puma_560(), load("mata_puma_line")
    q = jnp.asarray(data["all_initial_ik_solutions"])
    position, rotation = (jnp.asarray(data["path"][x]) for x in ("p0", "R_tool"))
    near = q + 0.1 * jnp.sin(jnp.arange(48.0)).reshape(8, 6)
    found = jax.vmap(
        lambda q: inverse_kinematics(arm, q, "tool", position, rotation, throw=False)
    )(near)
    assert found.converged.all()
    np.testing.assert_allclose(found.q, q, atol=1e-11)
    assert found.error.max() < 1e-12


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "what", ["both", *(pytest.param(x, marks=SLOW) for x in ("position", "rotation"))]
)
def test_it_works_for_every_joint(what):
    model = every_joint(1, branched=False)
    q0, q1 = (jd.random_configuration(model, jax.random.key(k)) for k in (0, 1))
    body = model.names[-1]
    p, R = pose(model, q1, body)
    goal = {"position": p, "rotation": R}
    goal = goal if what == "both" else {what: goal[what]}
    found = inverse_kinematics(model, q0, body, **goal)
    there = pose(model, found.q, body)
    assert found.converged and found.steps > 1
    if what != "rotation":
        np.testing.assert_allclose(there[0], p, atol=1e-9)
    if what != "position":
        np.testing.assert_allclose(there[1], R, atol=1e-9)
    np.testing.assert_allclose(
        jd.integrate(model, found.q, jnp.zeros(model.nv)), found.q, atol=1e-14
    )


def test_several_frames_at_once():
    model = jd.robots.gripper()
    q = jnp.array([0.3, 0.4, -0.5, 1.0])
    tips = ("link2_2", 3)
    goals = [pose(model, q, tip) for tip in tips]
    position, rotation = (jnp.stack(x) for x in zip(*goals, strict=True))
    found = inverse_kinematics(model, jnp.zeros(4), tips, position, rotation)
    np.testing.assert_allclose(found.q, q, atol=1e-9)


@pytest.mark.parametrize("n", [7, pytest.param(6, marks=SLOW)])
def test_derivatives_are_the_least_change_in_both_modes(n):
    arm, q = jd.robots.chain(n), 0.4 + 0.1 * jnp.arange(float(n))
    body = f"link{n}"
    p, R = pose(arm, q, body)

    def solved(d):
        return inverse_kinematics(arm, q, body, p + d, R, throw=False).q

    J = jd.jacobian(arm, q, body)
    expected = jnp.linalg.pinv(J)[:, :3]
    both = jax.jit(lambda d: (jax.jacfwd(solved)(d), jax.jacrev(solved)(d)))
    for slope in both(jnp.zeros(3)):
        np.testing.assert_allclose(slope, expected, atol=1e-11)


def test_the_length_of_a_link_has_a_derivative_that_is_finite_where_it_is_stretched():
    arm = two_links()

    def solved(length, p, q0):
        tip = jnp.array([[1.0, 0, 0]]) * length
        longer = eqx.tree_at(lambda m: m.frame_p, arm, tip)
        return inverse_kinematics(longer, q0, "tip", p, throw=False).q

    slope = jax.jit(jax.jacrev(solved, (0, 1)))
    x = jnp.array([1.2, 0.5, 0.0]), jnp.array([0.2, 0.6])
    q = solved(1.0, *x)
    lower = jnp.array([jnp.cos(q.sum()), jnp.sin(q.sum())])
    J = jd.jacobian(arm, q, "tip")[:2]
    np.testing.assert_allclose(
        slope(1.0, *x)[0], -np.linalg.solve(J, lower), atol=1e-12
    )
    for p in ((2.0, 0.0, 0.0), (2.1, 0.0, 0.0)):
        assert all(np.isfinite(d).all() for d in slope(1.0, jnp.array(p), jnp.zeros(2)))


def test_limits_decide_between_two_elbows():
    p = jnp.array([1.2, 0.5, 0.0])
    for bounds in ((0.0, np.pi), (-np.pi, 0.0)):
        arm = two_links(*bounds)
        q0 = jnp.array([0.0, 0.1 * sum(bounds)])
        found = inverse_kinematics(arm, q0, "tip", p)
        assert arm.lower[1] <= found.q[1] <= arm.upper[1]
        assert found.error[0] < 1e-9


def test_limits_hold_also_where_no_solution_is_within_them():
    arm, p = two_links(0.0, 0.5), jnp.array([0.5, 0.5, 0.0])
    found = inverse_kinematics(arm, jnp.zeros(2), "tip", p, throw=False)
    assert not found.converged and found.error[0] > 0.1
    assert found.q[1] == arm.upper[1]
    free = inverse_kinematics(arm, jnp.array([0.0, 0.3]), "tip", p, limits=False)
    assert free.converged and abs(free.q[1]) > 0.5


def test_what_is_out_of_reach_is_reported():
    arm, far = two_links(), jnp.array([2.5, 0.0, 0.0])
    q0 = jnp.array([0.4, 0.3])
    found = inverse_kinematics(arm, q0, "tip", far, throw=False)
    assert not found.converged
    np.testing.assert_allclose(found.error, [0.5, 0.0], atol=1e-7)
    with pytest.raises(RuntimeError, match="0.5 m and 0 rad away: out of reach"):
        inverse_kinematics(arm, q0, "tip", far)
    with pytest.raises(RuntimeError, match="inverse_kinematics: 'tip' of model"):
        solve = jax.jit(lambda p: inverse_kinematics(arm, q0, "tip", p).q)
        jax.block_until_ready(solve(far))


def test_single_precision_stays_single_and_converges():
    arm = two_links().astype(jnp.float32)
    p = jnp.array([1.2, 0.5, 0.0], jnp.float32)
    found = inverse_kinematics(arm, jnp.array([0.2, 0.6], jnp.float32), "tip", p)
    assert found.q.dtype == found.error.dtype == jnp.float32
    assert found.converged


def test_the_angle_of_the_error_is_that_of_the_rotation():
    arm = two_links(0.0, 0.1)
    R = jd.spatial.axis_angle(jd.spatial.Vec3(0.0, 0.0, 1.0), jnp.asarray(2.0)).array()
    goal = dict(position=jnp.array([2.0, 0.0, 0.0]), rotation=R)
    found = inverse_kinematics(arm, jnp.zeros(2), "tip", **goal, throw=False)
    turned = found.q.sum()
    np.testing.assert_allclose(found.error[1], 2.0 - turned, atol=1e-12)


def test_wrong_input_is_an_error_that_names_it(without_type_checker):
    arm, q, p = two_links(), jnp.zeros(2), jnp.zeros(3)
    R = jnp.eye(3)
    for args, options, message in (
        (("hand", p), {}, "no frame or body 'hand', expected one of: tip, upper"),
        ((7, p), {}, "has no body 7"),
        (((), p), {}, "frame is empty"),
        (("tip",), {}, "position and rotation are None"),
        (("tip", p[:2]), {}, r"position has shape \(2,\), expected \(3,\)"),
        ((("tip", 0), p), {}, r"position has shape \(3,\), expected \(2, 3\)"),
        (("tip", p, 2 * R), {}, "rotation is .* expected a rotation"),
        (("tip", p, -R), {}, "rotation is .* expected a rotation"),
        (("tip", p), {"tolerance": 0.0}, "tolerance is 0.0, expected a positive"),
        (("tip", p), {"max_steps": 0}, "max_steps is 0, expected a positive"),
    ):
        with pytest.raises(ValueError, match=f"(?s){message}"):
            inverse_kinematics(arm, q, *args, **options)
    with pytest.raises(ValueError, match=r"q0 has shape \(3,\), expected \(2,\)"):
        inverse_kinematics(arm, p, "tip", p)
