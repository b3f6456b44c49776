"""Rollouts under functions of the state."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxdyn as jd
from tests.models import random_state


class Spring(eqx.Module):
    kp: jax.Array
    kd: jax.Array

    def __call__(self, t, q, qd):
        return -self.kp * q - self.kd * qd + jnp.sin(t)


MODEL = jd.robots.chain(2)
SPRING = Spring(jnp.array([1.0, 0.5]), jnp.array([0.1, 0.2]))
STATE = jnp.array([0.3, -0.2]), jnp.array([0.1, 0.4])


def test_a_policy_is_a_scan_of_steps_to_the_bit():
    @jax.jit
    def scanned(model, q, qd, policy):
        def advance(state, k):
            state = jd.step(model, *state, policy(1e-2 * k, *state), 1e-2)
            return state, state

        return lax.scan(advance, (q, qd), jnp.arange(20.0))[1]

    ours = jd.rollout(MODEL, *STATE, SPRING, 1e-2, steps=20)
    for a, b in zip(ours, scanned(MODEL, *STATE, SPRING), strict=True):
        np.testing.assert_array_equal(a[1:], b)


def test_gradients_by_all_that_a_rollout_depends_on_are_differences(rng):
    stops = jd.joint_stops(MODEL, stiffness=50.0, damping=0.5)
    model = MODEL.replace(
        friction=jnp.array([0.1, 0.2]), lower=jnp.array([-1.0, -0.21])
    ).with_force(stops)
    x = model, *STATE, SPRING, jnp.asarray(1e-2)

    def loss(x):
        *others, dt = x
        q, qd = jd.rollout(*others, dt, steps=6)
        return (q[-1] ** 2).sum() + (qd[-1] ** 3).sum()

    dx = jax.tree.map(lambda a: jnp.asarray(rng.normal(size=a.shape)), x)
    dx = jax.tree.map(lambda a, d: jnp.where(jnp.isfinite(a), d, 0) * 1e-2, x, dx)

    @jax.jit
    def all_of_it(x):
        value, gradient = jax.value_and_grad(loss)(x)
        return value, gradient, jax.jvp(loss, (x,), (dx,))[1]

    def along(s):
        moved = jax.tree.map(lambda a, d: jnp.where(d == 0, a, a + s * d), x, dx)
        return all_of_it(moved)[0]

    _, gradient, forward = all_of_it(x)
    terms = jax.tree.map(lambda g, d: jnp.where(d == 0, 0, g * d).sum(), gradient, dx)
    reverse = sum(jax.tree.leaves(terms))
    h = 1e-3
    difference = 8 * (along(h) - along(-h)) - (along(2 * h) - along(-2 * h))
    np.testing.assert_allclose(forward, reverse, rtol=1e-9)
    np.testing.assert_allclose(reverse, difference / (12 * h), rtol=1e-6)


def test_values_that_a_function_closes_over_have_gradients_too():
    def total(kp):
        def policy(t, q, qd):
            return -kp * q - 0.1 * qd

        return jd.rollout(MODEL, *STATE, policy, 1e-2, steps=5)[0][-1].sum()

    kp, h = jnp.array([1.0, 0.5]), 1e-5
    gradient = jax.grad(total)(kp)
    np.testing.assert_array_equal(gradient, jax.jit(jax.grad(total))(kp))
    shift = jnp.array([h, 0])
    difference = (total(kp + shift) - total(kp - shift)) / (2 * h)
    np.testing.assert_allclose(gradient[0], difference, rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(total)(jnp.stack([kp]))[0], total(kp))


def test_a_policy_with_a_memory():
    def delayed(t, q, qd, memory):
        return -memory[0], jnp.concatenate([memory[1:], q[None] + qd[None]])

    first = jnp.ones((3, 2))
    q, qd, memory = jd.rollout(MODEL, *STATE, delayed, 1e-2, steps=6, memory=first)
    at, seen = STATE, list(first)
    for k in range(6):
        seen.append(at[0] + at[1])
        at = jd.step(MODEL, *at, -seen[k], 1e-2)
        np.testing.assert_allclose(q[k + 1], at[0], rtol=1e-13)
    np.testing.assert_allclose(memory, seen[-3:], rtol=1e-12)
    some = jd.rollout(MODEL, *STATE, delayed, 1e-2, steps=6, memory=first, every=3)
    for a, b in zip(some, (q[::3], qd[::3], memory), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)


@pytest.mark.first
@pytest.mark.parametrize("kind", ["coupling", "loop"])
def test_policies_drive_mechanisms_with_loops_and_couplings(kind):
    def push(t, q, qd):
        return 0.5 * jnp.cos(q[:1]) * jnp.eye(model.nv)[0] - 0.1 * qd

    if kind == "loop":
        model = jd.robots.four_bar()
        q = jd.close_loops(model, jnp.array([0.9, -0.4, 1.5]), hold=["crank"]).q
    else:
        model = jd.robots.chain(3).with_coupling("link3", {"link2": 0.5})
        q = jnp.array([0.3, -0.2])
    at = q, jnp.zeros(model.nv)
    qs, qds = jd.rollout(model, *at, push, 1e-2, steps=4)
    for k in range(4):
        at = jd.step(model, *at, push(0, *at), 1e-2)
        np.testing.assert_allclose(qs[k + 1], at[0], rtol=1e-12)
        np.testing.assert_allclose(qds[k + 1], at[1], rtol=1e-11)
    np.testing.assert_allclose(jd.loop_residual(model, qs[-1]), 0, atol=1e-14)


def test_wrenches_and_the_base_may_be_functions():
    wind, lift = jnp.array([[1.0, 0, 0, 0, 0, 0]] * 2), jnp.array([0.0, 1.0, 0.0])
    options = dict(f_ext=lambda t, q, qd: t * wind)
    options |= dict(base=lambda t, q, qd: jd.BaseMotion(dv=q[0] * lift))
    q, qd = jd.rollout(MODEL, *STATE, SPRING, 1e-2, steps=3, t0=0.5, **options)
    at = STATE
    for k in range(3):
        t = 0.5 + 1e-2 * k
        base = jd.BaseMotion(dv=at[0][0] * lift)
        tau = SPRING(t, *at)
        at = jd.step(MODEL, *at, tau, 1e-2, f_ext=t * wind, base=base)
        np.testing.assert_allclose(q[k + 1], at[0], rtol=1e-13)


def test_another_policy_of_the_same_kind_compiles_nothing(caplog):
    with jax.log_compiles():
        jd.rollout(MODEL, *STATE, SPRING, 1e-2, steps=4)
        caplog.clear()
        other = jax.tree.map(lambda x: 2 * np.asarray(x), SPRING)
        jd.rollout(MODEL, *STATE, other, 2e-2, steps=4)
    assert "Compiling" not in caplog.text


def test_friction_of_coupled_joints(rng):
    geared = jd.robots.chain(3).with_coupling("link3", {"link2": 0.5})
    q, qd, _ = random_state(geared, rng)
    geared = geared.replace(friction=jnp.array([0.5, 0.5]))
    a = jd.step(geared, q, qd, jnp.zeros(2), 1e-6)[1]
    expected = jd.forward_dynamics(geared, q, qd, jnp.zeros(2))
    np.testing.assert_allclose((a - qd) / 1e-6, expected, rtol=1e-3, atol=1e-3)


def test_errors_name_the_policy_and_the_shapes():
    def wrong(t, q, qd):
        return jnp.zeros(3)

    run = jd.rollout
    with pytest.raises(ValueError, match=r"control wrong returned shape \(3,\), exp"):
        run(MODEL, *STATE, wrong, 1e-2, steps=2)
    with pytest.raises(ValueError, match="steps is None, expected how many"):
        run(MODEL, *STATE, SPRING, 1e-2)
    with pytest.raises(ValueError, match="returned a .*, expected a pair"):
        run(MODEL, *STATE, lambda *x: x[1], 1e-2, steps=2, memory=STATE[0])
    with pytest.raises(ValueError, match="control is a str, expected an array"):
        run(MODEL, *STATE, "none", 1e-2)
    with pytest.raises(ValueError, match="steps is 3, expected 2, the rows of control"):
        run(MODEL, *STATE, jnp.zeros((2, 2)), 1e-2, steps=3)
    with pytest.raises(ValueError, match="without actuators, expected False"):
        run(MODEL, *STATE, SPRING, 1e-2, steps=2, actuated=True)
    with pytest.raises(ValueError, match="memory is given, but control is an array"):
        run(MODEL, *STATE, jnp.zeros((2, 2)), 1e-2, memory=jnp.zeros(1))
