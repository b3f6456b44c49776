import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn import motion

MODEL = jd.robots.chain(2).replace(effort=jnp.array([2.0, 0.5]))
Q0, QD0, DT = jnp.array([0.3, -0.2]), jnp.array([0.1, 0.4]), 1e-2


def wave(t, q, qd):
    return jnp.array([0.5, -0.4]) * jnp.sin(30 * t) + 0.2 * q


def test_a_driven_policy_is_sampled_delayed_followed_cut_and_lags():
    kp, kd, lag = 40.0, 0.5, jnp.array([0.02, 0.05])
    options = dict(every=3, delay=2, servo=(kp, kd), lag=lag, saturate=True)
    law = motion.driven(MODEL, wave, DT, **options)
    at, force, samples = (Q0, QD0), jnp.zeros(2), [Q0, Q0]
    q, qd, memory = jd.rollout(
        MODEL, *at, law, DT, steps=9, memory=law.start(Q0)
    )  # fmt: skip
    was_cut = False
    for k in range(9):
        held = samples[-1] if k % 3 else wave(k * DT, *at)
        samples.append(held)
        u = kp * (samples[-3] - at[0]) - kd * at[1]
        cut = jnp.clip(u, -MODEL.effort, MODEL.effort)
        was_cut |= bool((cut != u).any())
        force = cut + jnp.exp(-DT / lag) * (force - cut)
        at = jd.step(MODEL, *at, force, DT)
        np.testing.assert_allclose(q[k + 1], at[0], rtol=1e-12)
        np.testing.assert_allclose(qd[k + 1], at[1], rtol=1e-11)
    assert was_cut
    np.testing.assert_allclose(memory.output, force, rtol=1e-12)


def test_its_numbers_are_parameters():
    def end(lag, kp):
        law = motion.driven(MODEL, wave, DT, every=2, servo=(kp, 0.5), lag=lag)
        found = jd.rollout(MODEL, Q0, QD0, law, DT, steps=4, memory=law.start(Q0))
        return found[0][-1].sum()

    value = jax.jit(jax.value_and_grad(end, (0, 1)))
    lag, kp, h = 0.03, 10.0, 1e-5
    by_lag, by_kp = value(lag, kp)[1]
    difference = value(lag + h, kp)[0] - value(lag - h, kp)[0]
    np.testing.assert_allclose(by_lag, difference / (2 * h), rtol=1e-6)
    difference = value(lag, kp + 1e-3)[0] - value(lag, kp - 1e-3)[0]
    np.testing.assert_allclose(by_kp, difference / 2e-3, rtol=1e-6)


def test_a_policy_keeps_its_own_memory_and_forces_their_size():
    def counts(t, q, qd, memory):
        return memory * jnp.ones(1), memory + 1

    law = motion.driven(MODEL, counts, DT, every=2, delay=1)
    memory, seen = law.start(Q0, jnp.zeros(())), []
    for _ in range(5):
        force, memory = law(0.0, Q0, QD0, memory)
        seen.append(float(force[0]))
    assert seen == [0, 0, 0, 1, 1] and memory.inner == 3


def test_wrong_numbers_are_errors_that_name_them():
    for options, message in (
        (dict(every=0), "every is 0, expected a whole number of steps, 1 or more"),
        (dict(delay=1.5), "delay is 1.5, expected a whole number"),
        (dict(lag=-1.0), "lag is -1.0, expected numbers that are not negative"),
        (dict(servo=(1.0, jnp.ones(3))), r"kd has shape \(3,\), expected one number"),
    ):
        with pytest.raises(ValueError, match=message):
            motion.driven(MODEL, wave, DT, **options)
