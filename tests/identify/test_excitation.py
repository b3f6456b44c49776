from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxdyn as jd
from jaxdyn.identify import base_parameters, excite, random_excitation
from jaxdyn.identify.excitation._aim import Aim

OPTIONS = dict(duration=4.0, harmonics=3, samples=40)
NAMES = ("lower", "upper", "velocity", "effort", "damping", "friction")
LIMITS = dict(lower=[-2, -1.5], upper=[2, 1.0], velocity=[2, 3.0], effort=[20, 8.0])


def with_leaves(model, *values):
    arrays = [jnp.asarray(x, model.dtype) for x in values]
    where = NAMES[: len(arrays)]
    return eqx.tree_at(lambda m: [getattr(m, name) for name in where], model, arrays)


@cache
def arm():
    """Two links that turn about z and y, with friction and all limits."""
    b, parent, reach = jd.ModelBuilder("arm"), None, 0.0
    for name, axis, length in (("inner", (0, 0, 1), 0.4), ("outer", (0, 1, 0), 0.3)):
        bar = jd.Inertial.box(5 * length, (length, 0.1, 0.1))
        bar = bar.moved(np.eye(3), np.array([length / 2, 0.0, 0.0]))
        b.add_body(name, parent, axis=axis, p=(reach, 0, 0), inertial=bar)
        parent, reach = name, length
    return with_leaves(b.build(), *LIMITS.values(), [0.5, 0.2], [0.6, 0.3])


@cache
def found(form="fourier"):
    return excite(arm(), **OPTIONS, form=form, steps=60, starts=2)


@cache
def drawn(key=0, each_joint=False, form="fourier"):
    options = OPTIONS | dict(key=jax.random.key(key), each_joint=each_joint, form=form)
    return random_excitation(arm(), **options)


def fine(excitation):
    """The motion at many more times than its limits were looked at."""
    ts = jnp.linspace(0, OPTIONS["duration"], 4001)
    m = jax.jit(jax.vmap(excitation.motion))(ts)
    tau = jax.jit(jax.vmap(lambda *x: jd.inverse_dynamics(arm(), *x)))
    return m, tau(m.q, m.qd, m.qdd)


both_forms = pytest.mark.parametrize(
    "form", ["fourier", pytest.param("spline", marks=pytest.mark.slow)]
)


@pytest.mark.first
@pytest.mark.parametrize("make", [found, lambda: drawn(form="spline")])
def test_it_keeps_all_limits_and_starts_and_ends_at_rest(make):
    excitation = make()
    m, tau = fine(excitation)
    assert (m.q >= jnp.array([LIMITS["lower"]])).all()
    assert (m.q <= jnp.array([LIMITS["upper"]])).all()
    assert (jnp.abs(m.qd) <= jnp.array([LIMITS["velocity"]])).all()
    assert (jnp.abs(tau) <= jnp.array([LIMITS["effort"]])).all()
    np.testing.assert_allclose(m.qd[::4000], np.zeros((2, 2)), atol=1e-13)
    np.testing.assert_allclose(m.qdd[::4000], np.zeros((2, 2)), atol=1e-12)
    assert excitation.violation == dict(position=0, velocity=0, effort=0)


def test_it_uses_its_limits():
    for excitation in (found(), drawn(), drawn(each_joint=True)):
        assert 0.99 < max(x.max() for x in excitation.used.values()) <= 1
    # scaled joint by joint, each uses its range or its rate, but for a common factor
    used = drawn(each_joint=True).used
    own = np.maximum(used["position"], used["velocity"])
    assert own.min() > 0.95


@both_forms
def test_it_is_better_than_what_it_came_from(form):
    excitation = found(form)
    assert excitation.after < excitation.before - 0.1
    assert excitation.history.shape == (60,)
    np.testing.assert_allclose(excitation.history[0], excitation.before, atol=0.1)
    # close to the largest standard deviation: no less, and by the twelfth's eighth root
    worst = np.log(excitation.scaled_std.max())
    assert worst < excitation.after < worst + np.log(12) / 8


def test_the_worst_standard_deviation_shrinks_by_three_against_random_motions():
    random = [drawn(key).scaled_std.max() for key in range(5)]
    assert np.median(random) > 3 * found().scaled_std.max()
    np.testing.assert_array_equal(drawn(1).scale, found().scale)


def test_its_numbers_are_those_of_least_squares():
    excitation, log = found(), found().log
    base = base_parameters(arm())
    Y = jax.vmap(lambda *x: jd.regressor(arm(), *x))(log.q, log.qd, log.qdd)
    Y = np.asarray(Y)
    tau = Y @ np.asarray(jd.dynamic_parameters(arm()))
    np.testing.assert_allclose(log.tau, tau, atol=1e-12)
    noise = 0.01 * np.array(LIMITS["effort"])
    A = (Y[..., base.columns] / noise[:, None]).reshape(80, -1)[:, base.independent]
    M = A.T @ A
    np.testing.assert_allclose(excitation.information, M, rtol=1e-9, atol=1e-9)
    std = np.sqrt(np.diag(np.linalg.inv(M)))
    np.testing.assert_allclose(excitation.std, std, rtol=1e-10)
    condition = np.linalg.cond(A * excitation.scale)
    np.testing.assert_allclose(excitation.condition, condition, rtol=1e-10)
    assert excitation.names == tuple(base.names[k] for k in base.independent)
    ts = np.linspace(0, 4, 40)
    np.testing.assert_array_equal(log.ts, ts)
    np.testing.assert_allclose(log.q, jax.vmap(excitation.motion)(ts).q, atol=1e-14)


def test_its_result_is_told_in_words():
    text = found().result
    assert text.startswith("Fourier motion of 4 s with 40 samples for 12 base")
    assert "in 60 steps; limits kept" in text and "100 % of" in text


def test_the_same_key_gives_the_same_motion():
    again = excite(arm(), **OPTIONS, steps=60, starts=2, key=jax.random.key(0))
    np.testing.assert_array_equal(again.log.q, found().log.q)


def aim(criterion):
    return Aim(jnp.ones(2), jnp.ones(4), (0, 2, 3, 5), criterion)


@pytest.mark.slow
def test_criteria_are_those_of_the_ellipsoid_of_errors(rng):
    Y = jnp.asarray(rng.normal(size=(9, 2, 6)))
    A = np.asarray(Y)[..., [0, 2, 3, 5]].reshape(18, 4)
    M, s = A.T @ A, np.linalg.svd(A, compute_uv=False)
    std = np.sqrt(np.diag(np.linalg.inv(M)))
    for criterion, expected in (
        ("log_det", -np.log(np.linalg.det(M)) / 8),
        ("condition", np.log(s[0] / s[-1])),
        ("worst", np.log((std**8).sum()) / 8),
    ):
        value = aim(criterion).value(aim(criterion).information(Y))
        np.testing.assert_allclose(value, expected, rtol=1e-10)


@pytest.mark.parametrize("criterion", ["log_det", "condition", "worst"])
def test_criteria_have_right_derivatives_and_finite_ones_where_nothing_is_known(
    criterion, rng
):
    A, dA = jnp.asarray(rng.normal(size=(2, 18, 4)))

    @jax.jit
    def value(A):
        return aim(criterion).value(A.T @ A)

    slope = jnp.vdot(jax.grad(value)(A), dA)
    h = 1e-3
    rows = ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))
    near = [c * (value(A + k * h * dA) - value(A - k * h * dA)) for k, c in rows]
    np.testing.assert_allclose(slope, sum(near) / h, rtol=1e-7)
    assert jnp.isfinite(jax.grad(value)(A.at[:, 2:].set(0))).all()
    assert jnp.isfinite(value(A.at[:, 2:].set(A[:, :2])))


def turning(dtype=None):
    """A ball joint, its limits and what is asked of it."""
    ball = jd.robots.random_tree(0, 1, joints=("spherical",), dtype=dtype)
    limits = dict(velocity=[1.0, 2, 3], effort=[40.0, 40, 40], noise=0.5)
    return ball, OPTIONS | limits | dict(parameters="*.inertial")


@pytest.mark.slow
def test_a_rotation_needs_no_range_and_single_precision_stays():
    ball, options = turning(jnp.float32)
    excitation = random_excitation(ball, **options)
    types = {x.dtype for x in jax.tree.leaves(excitation.motion)}
    assert types == {jnp.dtype("float32")}
    assert 0.99 < max(x.max() for x in excitation.used.values()) <= 1
    rates = jax.vmap(excitation.motion)(jnp.linspace(0, 4, 40, dtype=jnp.float32)).qd
    np.testing.assert_allclose(rates, excitation.log.qd, atol=1e-4)


@pytest.mark.slow
def test_rotations_are_improved_too_by_any_optimizer():
    ball, options = turning()
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.02))
    excitation = excite(ball, **options, steps=20, starts=2, optimizer=optimizer)
    assert excitation.after < excitation.before - 0.01
    assert not any(excitation.violation.values())


def test_what_cannot_be_is_an_error_that_says_what_to_do(without_type_checker):
    model = arm()
    endless = with_leaves(model, [-2, -jnp.inf], [2, jnp.inf])
    looped = model.with_loop("outer", (0.3, 0, 0), None, (0.7, 0, 0))
    ball = jd.robots.random_tree(0, 1, joints=("spherical",))
    for robot, options, message in (
        (endless, {}, r"lower of j_outer.q is -inf, expected a finite number: give"),
        (model, dict(velocity=[1, np.inf]), r"velocity of j_outer.qd is inf, expected"),
        (
            model,
            dict(effort=[0.0, 1]),
            r"effort of j_inner.tau is 0, expected a finite",
        ),
        (model, dict(upper=[2.0]), r"upper has shape \(1,\), expected \(\) or \(2,\)"),
        (model, dict(lower=[-2.0, 1.0]), "lower of j_outer.q is 1, expected less than"),
        (model, dict(effort=[20.0, 0.1]), "none of 8 random motions .* larger effort"),
        (model, dict(duration=0.0), "duration is 0.0, expected a positive number"),
        (
            model,
            dict(criterion="best"),
            "criterion is 'best', expected one of: log_det",
        ),
        (model, dict(form="line"), "form is 'line', expected one of: fourier, spline"),
        (model, dict(noise=[1.0, 0.0]), "noise is .*, expected finite positive"),
        (model, dict(noise=np.ones(3)), r"noise has shape \(3,\), expected \(\) or"),
        (model, dict(samples=7), "samples is 7, expected 8 or more for 12 parameters"),
        (model, dict(samples=0), "samples is 0, expected 8 or more"),
        (model, dict(harmonics=0), "harmonics is 0, expected one or more"),
        (model, dict(parameters="x.m"), "'x.m', which fits no parameter"),
        (looped, {}, "has loops"),
        (ball, dict(form="spline"), "joints with quaternions, .* use form='fourier'"),
    ):
        with pytest.raises(ValueError, match=message):
            random_excitation(robot, **OPTIONS | options)
    with pytest.raises(ValueError, match="starts is 0, expected one or more"):
        excite(model, **OPTIONS, starts=0)


@pytest.mark.slow
def test_the_worst_standard_deviation_of_a_puma_shrinks_by_five():
    model = jd.robots.puma_560(rotors=True)
    degrees = dict(
        lower=[-160, -45, -225, -110, -100, -266],
        upper=[160, 225, 45, 170, 100, 266],
        velocity=[82, 74, 122, 228, 241, 228],
    )
    limits = {name: np.deg2rad(x) for name, x in degrees.items()}
    limits |= dict(effort=np.array([97.6, 186.4, 89.4, 24.2, 20.1, 21.3]))
    friction = [5, 7, 4, 0.3, 0.3, 0.2], [6, 8, 5, 1, 1, 0.8]
    model = with_leaves(model, *limits.values(), *friction)
    best = excite(model, duration=10.0)
    random = [
        random_excitation(model, duration=10.0, key=jax.random.key(k)) for k in range(7)
    ]
    worst = [x.scaled_std.max() for x in random]
    assert len(best.names) == 48 and not any(best.violation.values())
    assert np.median(worst) > 5 * best.scaled_std.max()
    assert np.median([x.std.max() for x in random]) > 5 * best.std.max()
