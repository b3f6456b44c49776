import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from tests.models import every_joint, random_state


def stepped(model, q, qd, taus, dt):
    qs, qds = [q], [qd]
    step = jax.jit(jd.forward_dynamics)
    for tau in taus:
        qd = qd + dt * step(model, q, qd, tau)
        q = jd.integrate(model, q, dt * qd)
        qs.append(q)
        qds.append(qd)
    return jnp.stack(qs), jnp.stack(qds)


@pytest.mark.parametrize("make", [jd.robots.puma_560, lambda: every_joint(1)])
def test_a_rollout_is_a_loop_of_semi_implicit_steps(make, rng):
    model = make()
    q, qd, _ = random_state(model, rng)
    taus = jnp.asarray(rng.normal(size=(4, model.nv)))
    expected = stepped(model, q, qd, taus, 1e-3)
    for ours, theirs in zip(
        jd.rollout(model, q, qd, taus, 1e-3), expected, strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-11)


def test_its_gradient_is_that_of_the_loop(rng):
    model = jd.robots.puma_560()
    q, qd, _ = random_state(model, rng)
    taus = jnp.asarray(rng.normal(size=(3, 6)))

    def loss(run, model, q, qd, taus, dt):
        return (run(model, q, qd, taus, dt)[0][-1] ** 2).sum()

    x = model, q, qd, taus, jnp.asarray(1e-2)
    ours = jax.jit(jax.grad(lambda *x: loss(jd.rollout, *x), range(5)))(*x)
    theirs = jax.grad(lambda *x: loss(stepped, *x), range(5))(*x)
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)


def test_quaternions_stay_of_unit_length_and_float32_float32(rng):
    model = every_joint(1).astype(jnp.float32)
    q, qd, _ = (x.astype(jnp.float32) for x in random_state(model, rng))
    taus = jnp.zeros((20, model.nv), jnp.float32)
    qs, qds = jd.rollout(model, q, qd, taus, 1e-2)
    assert qs.dtype == qds.dtype == jnp.float32
    length = jnp.linalg.norm(qs[:, model.topology.quaternion_q], axis=-1)
    np.testing.assert_allclose(length, 1, atol=1e-6)


def test_wrong_shapes_are_named():
    model = jd.robots.puma_560()
    q = jd.neutral(model)
    with pytest.raises(ValueError, match=r"taus has shape \(3, 5\), expected \(3, 6\)"):
        jd.rollout(model, q, q, jnp.zeros((3, 5)), 0.1)
    with pytest.raises(ValueError, match=r"qd0 has shape \(5,\), expected \(6,\)"):
        jd.rollout(model, q, q[:5], jnp.zeros((3, 6)), 0.1)
    with pytest.raises(ValueError, match=r"q0 has shape \(4,\), expected \(6,\)"):
        jd.rollout(model, q[:4], q, jnp.zeros((3, 6)), 0.1)
    with pytest.raises(ValueError, match=r"dt has shape \(3,\), expected one number"):
        jd.rollout(model, q, q, jnp.zeros((3, 6)), jnp.ones(3))


def test_the_memory_of_its_gradient_grows_by_a_few_numbers_a_step():
    model = jd.robots.chain(4)
    q = jnp.ones(4)

    def total(q, qd, taus):
        return (jd.rollout(model, q, qd, taus, 1e-3)[0][-1] ** 2).sum()

    def size(steps):
        gradient = jax.jit(jax.grad(total, (0, 1, 2)))
        program = gradient.lower(q, q, jnp.ones((steps, 4))).compile()
        return program.memory_analysis().temp_size_in_bytes

    numbers = (size(1010) - size(10)) / 1000 / 8
    assert round(numbers, 1) == 3 * model.nv + model.nq  # but for alignment
