from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.motion import straight_line
from tests.reference import load

PUMA = ["mata_puma_line", "mata_puma_line_0p1mps"]


@cache
def puma_line(name=PUMA[0], law="constant_speed"):
    path, samples = load(name)["path"], load(name)["samples"]
    start, end, attitude = (jnp.asarray(path[x]) for x in ("p0", "p1", "R_tool"))
    q0 = jnp.asarray(samples["q"][0])
    options = dict(attitude=attitude, q0=q0, law=law)
    arm = jd.robots.puma_560()
    return straight_line(arm, "tool", start, end, path["duration"], **options)


def line(arm, frame, start, end, duration=1.0, **options):
    start, end = jnp.asarray(start, float), jnp.asarray(end, float)
    return straight_line(arm, frame, start, end, duration, **options)


def planar(lower=-np.inf, upper=np.inf):
    """Two links of one metre in a plane."""
    b = jd.ModelBuilder("planar")
    rod = jd.Inertial.rod(1.0, (0, 0, 0), (1, 0, 0))
    b.add_body("upper", inertial=rod, lower=lower, upper=upper)
    b.add_body("lower", "upper", p=(1, 0, 0), inertial=rod)
    b.add_frame("tip", "lower", p=(1.0, 0, 0))
    return b.build()


@pytest.mark.reference
@pytest.mark.parametrize("name", PUMA)
def test_the_line_of_the_puma_has_the_reference_rates(name):
    move, expected = puma_line(name), load(name)["samples"]
    m = jax.vmap(move)(jnp.asarray(expected["t"]))
    for key in ("q", "qd", "qdd"):
        np.testing.assert_allclose(getattr(m, key), expected[key], atol=1e-14)
    singular = load(name)["min_singular_value_of_J"]
    np.testing.assert_allclose(move.singular_value, singular, atol=1e-14)
    assert move.converged and move.error.max() < 1e-14


def rates_by_differences(move, t, h=2e-3):
    ts = t + h * jnp.arange(-3.0, 4.0)
    m = jax.vmap(move)(ts)
    weights = np.array([-1, 9, -45, 0, 45, -9, 1]) / (60 * h)
    q = jax.vmap(lambda q: jd.difference(move.line.model, m.q[3], q))(m.q)
    return weights @ q, weights @ m.qd, jax.tree.map(lambda x: x[3], m)


@pytest.mark.parametrize(
    "law", ["cycloidal", pytest.param("quintic", marks=pytest.mark.slow)]
)
def test_a_law_at_rest_at_both_ends_has_rates_that_fit(law):
    move = puma_line(law=law)
    qd, qdd, m = rates_by_differences(move, 2.0)
    np.testing.assert_allclose(m.qd, qd, atol=1e-10)
    np.testing.assert_allclose(m.qdd, qdd, atol=1e-10)
    ends = jax.vmap(move)(jnp.array([-1.0, 0.0, 5.0, 9.0, 2.5, 2.5, 2.5]))
    np.testing.assert_allclose(ends.qd[:4], np.zeros((4, 6)), atol=1e-15)
    np.testing.assert_allclose(ends.qdd[:4], np.zeros((4, 6)), atol=1e-14)
    middle = jd.frame_poses(move.line.model, ends.q[4]).p[0]
    np.testing.assert_allclose(middle, [0.56, 0.15, 0.08], atol=1e-15)


@pytest.mark.slow
def test_a_redundant_arm_takes_the_least_rates():
    arm = jd.robots.chain(7)
    q0 = 0.4 + 0.1 * jnp.arange(7.0)
    poses = jd.forward_kinematics(arm, q0)
    p, R = poses.p[-1], poses.R[-1]
    move = line(arm, 6, p, p + jnp.array([0.1, -0.2, 0.1]), attitude=R, q0=q0)
    qd, qdd, m = rates_by_differences(move, 0.4)
    J = jd.jacobian(arm, m.q, 6)
    assert np.linalg.norm(m.qd) > 0.1
    np.testing.assert_allclose(m.qd, np.linalg.pinv(J) @ (J @ m.qd), atol=1e-12)
    np.testing.assert_allclose(m.qd, qd, atol=1e-9)
    np.testing.assert_allclose(m.qdd, qdd, atol=1e-8)  # fourth order in the samples


@pytest.mark.slow
def test_bodies_with_quaternions_follow_a_line_too():
    b = jd.ModelBuilder("ball_and_slider")
    box = jd.Inertial.box(1.0, (0.3, 0.2, 0.1))
    b.add_body("ship", joint="free", inertial=box)
    b.add_body("arm", "ship", "spherical", p=(0.5, 0.1, 0), inertial=box)
    b.add_frame("hand", "arm", p=(0.4, 0.0, 0.1))
    model = b.build()
    q0 = jd.random_configuration(model, jax.random.key(0))
    at = jd.frame_poses(model, q0)
    end = at.p[0] + jnp.array([0.3, 0.5, -0.2])
    move = line(model, "hand", at.p[0], end, attitude=at.R[0], q0=q0, samples=50)
    qd, qdd, m = rates_by_differences(move, 0.6)
    np.testing.assert_allclose(m.qd, qd, atol=1e-9)
    np.testing.assert_allclose(m.qdd, qdd, atol=1e-8)
    hand = jd.frame_poses(model, move(1.0).q)
    np.testing.assert_allclose(hand.p[0], end, atol=1e-13)
    np.testing.assert_allclose(hand.R[0], at.R[0], atol=1e-13)


@pytest.mark.slow
def test_the_gradient_of_a_position_is_that_of_the_inverse_kinematics():
    arm, q0 = planar(), jnp.array([0.3, 0.8])
    start = jd.frame_poses(arm, q0).p[0]

    def half_way(end):
        options = dict(attitude=None, q0=q0, samples=10, throw=False)
        return straight_line(arm, "tip", start, end, 1.0, **options)(0.5)

    end = jnp.array([0.4, 1.2, 0.0])
    slope = jax.jit(jax.jacfwd(lambda end: half_way(end).q))(end)
    J = jd.jacobian(arm, half_way(end).q, "tip")[:2]
    expected = np.linalg.inv(J) / 2
    np.testing.assert_allclose(slope[:, :2], expected, atol=1e-12)


STRETCH = dict(attitude=None, q0=jnp.array([0.6, -1.2]), samples=20)


@pytest.mark.slow
def test_a_line_that_cannot_be_followed_raises():
    reachable = [1.0, 0.5, 0.0], [0.5, 1.2, 0.0]
    assert line(planar(), "tip", *reachable, **STRETCH).converged
    for arm, points, why in (
        (planar(), ([1.0, 0.5, 0.0], [3.0, 0.5, 0.0]), "out of reach"),
        # the tip passes the base: the folded arm would have to turn at once
        (planar(), ([1.0, 1e-3, 0.0], [-1.1, 1e-3, 0.0]), "or meets a singularity"),
        (planar(0.0, 1.5), reachable, "beyond the limits of the joints"),
    ):
        with pytest.raises(RuntimeError, match=f"'tip' .* cannot follow .*{why}"):
            line(arm, "tip", *points, **STRETCH)


def test_a_line_is_nan_where_it_is_out_of_reach():
    points = [1.0, 0.5, 0.0], [3.0, 0.5, 0.0]
    options = STRETCH | dict(law="constant_speed", throw=False)
    move = line(planar(), "tip", *points, **options)
    assert not move.converged and move.error[0] > 0.9
    assert np.isfinite(move(0.2).qdd).all()
    assert np.isnan(move(0.8).q).all()


def test_wrong_input_is_an_error_that_names_it(without_type_checker):
    arm, p = planar(), [1.0, 0.5, 0.0]
    for args, options, message in (
        (("hand", p, p), {}, "no frame or body 'hand'"),
        (("tip", p[:2], p), {}, r"start has shape \(2,\), expected \(3,\)"),
        (("tip", p, p, 0.0), {}, "duration is 0.0, expected a positive"),
        (("tip", p, p), {"law": "fast"}, "law is 'fast', expected one of: constant_"),
        (("tip", p, p), {"samples": 0}, "samples is 0, expected a positive"),
        (
            ("tip", p, p),
            {"attitude": jnp.ones((3, 3))},
            "attitude is .* expected a rot",
        ),
    ):
        with pytest.raises(ValueError, match=f"(?s){message}"):
            line(arm, *args, **(STRETCH | options))
