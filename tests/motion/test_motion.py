"""What all motions have in common, for every joint type."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn import motion
from tests.models import every_joint, random_state

NAMES = ("cycloidal", "polynomial", "spline")
each_motion = pytest.mark.parametrize("name", NAMES)


def ends(dtype=None, joint=None):
    rng = np.random.default_rng(0)
    model = every_joint(1, branched=False)
    if joint is not None:
        model = jd.robots.random_tree(0, 1, joints=(joint,))
    states = [random_state(model, rng) for _ in range(3)]
    if dtype is not None:
        model, states = jax.tree.map(lambda x: x.astype(dtype), (model, states))
    return model, states


def built(name, model, states, duration):
    (q0, qd0, qdd0), (q1, qd1, qdd1), (q2, _, _) = states
    if name == "cycloidal":
        return motion.cycloidal(model, q0, q1, duration)
    if name == "polynomial":
        rates = dict(qd0=qd0, qd1=qd1, qdd0=qdd0, qdd1=qdd1)
        return motion.polynomial(model, q0, q1, duration, **rates)
    times = jnp.asarray([0.0, 0.4, 1.0], q0.dtype) * duration
    return motion.spline(model, times, jnp.stack([q0, q1, q2]), qd0=qd0, qd1=qd1)


@cache
def example(name):
    return built(name, *ends(), 2.0)


def at(move, ts):
    return jax.vmap(move)(jnp.asarray(ts))


@pytest.mark.first
@each_motion
def test_qd_is_the_rate_of_q_and_qdd_that_of_qd(name):
    move, h = example(name), 2e-3
    model = move.model
    m = at(move, 0.7 + h * np.arange(-3, 4))
    weights = np.array([-1, 9, -45, 0, 45, -9, 1]) / (60 * h)
    steps = jax.vmap(lambda q: jd.difference(model, m.q[3], q))(m.q)
    np.testing.assert_allclose(weights @ steps, m.qd[3], atol=1e-9)
    np.testing.assert_allclose(weights @ m.qd, m.qdd[3], atol=1e-9)


@each_motion
def test_it_rests_at_its_ends_before_and_after(name):
    move = example(name)
    m = at(move, [-1.0, 0.0, 2.0, 2.1, -9.0, -8.0, -7.0])
    outside = np.array([0, 3])
    assert float(move.duration) == 2.0
    np.testing.assert_array_equal(m.q[outside], m.q[np.array([1, 2])])
    assert not m.qd[outside].any() and not m.qdd[outside].any()


@each_motion
def test_it_stays_in_single_precision_whatever_the_type_of_the_time(name):
    model, states = ends(jnp.float32)
    move = jax.eval_shape(lambda: built(name, model, states, 2.0))
    m = jax.eval_shape(lambda move, t: move(t), move, jnp.asarray(0.5))
    leaves = jax.tree.leaves((move, m))
    assert {x.dtype for x in leaves} == {jnp.dtype("float32")}


SLOW = pytest.mark.slow


@pytest.mark.slow
@pytest.mark.first
@pytest.mark.parametrize(
    "name, joint",
    [
        ("cycloidal", "spherical"),
        ("polynomial", "revolute"),
        ("spline", "revolute"),
        *(pytest.param(name, None, marks=SLOW) for name in NAMES),
    ],
)
def test_its_gradient_is_right(name, joint):
    model, states = ends(joint=joint)
    combination = np.random.default_rng(1).normal(size=model.nv)

    def total(duration, d, t):
        (q0, *rates), *others = states
        moved = [(jd.integrate(model, q0, d), *rates), *others]
        m = built(name, model, moved, duration)(t)
        return (jd.difference(model, q0, m.q) + m.qd + m.qdd) @ combination

    x = jnp.asarray(2.0), jnp.zeros(model.nv), jnp.asarray(0.7)
    dx = jnp.asarray(0.3), jnp.asarray(combination) / 10, jnp.asarray(0.5)
    gradient = jax.jit(jax.grad(total, (0, 1, 2)))(*x)
    slope = sum(jnp.vdot(a, b) for a, b in zip(gradient, dx, strict=True))

    @jax.jit
    def near(k):
        return total(*(a + k * 2e-3 * b for a, b in zip(x, dx, strict=True)))

    rows = ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))
    expected = sum(c * (near(k * 1.0) - near(-k * 1.0)) for k, c in rows) / 2e-3
    np.testing.assert_allclose(slope, expected, rtol=1e-8)


def test_new_values_do_not_compile_anew(rng):
    model, traces = jd.robots.gripper(), []
    states = [random_state(model, rng) for _ in range(3)]

    @jax.jit
    def run(move, t):
        traces.append(t)
        return move(t)

    for duration in (1.0, 2.0):
        run(built("polynomial", model, states, duration), duration / 3)
    assert len(traces) == 1


def test_a_time_is_one_number(without_type_checker):
    with pytest.raises(ValueError, match=r"t has shape \(3,\), expected \(\)"):
        example("cycloidal")(jnp.ones(3))
