from functools import cache, partial

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


@pytest.mark.slow
@pytest.mark.first
@pytest.mark.parametrize(
    "make", [lambda: every_joint(1, branched=False), jd.robots.puma_560]
)
def test_a_rollout_is_a_loop_of_semi_implicit_steps(make, rng):
    model = make()
    q, qd, _ = random_state(model, rng)
    taus = jnp.asarray(rng.normal(size=(4, model.nv)))
    expected = stepped(model, q, qd, taus, 1e-3)
    for ours, theirs in zip(
        jd.rollout(model, q, qd, taus, 1e-3), expected, strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-11)


ORDERS = {"implicit": 1, "semi_implicit_euler": 1, "implicit_midpoint": 2, "rk4": 4}


@pytest.mark.first
@pytest.mark.parametrize("integrator", ORDERS)
def test_half_the_step_is_a_fraction_of_the_error_by_the_order(integrator, rng):
    model = jd.robots.random_tree(0, 1, joints=("spherical",))
    q, qd, tau = random_state(model, rng)
    taus = jnp.broadcast_to(tau, (80, model.nv))

    def end(steps):  # the same program for all steps: the rows after the end are unused
        qs, _ = jd.rollout(model, q, qd, taus, 0.2 / steps, integrator=integrator)
        return qs[steps]

    def error(a, b):
        return float(jnp.abs(jd.difference(model, a, b)).max())

    coarse, middle, fine = (end(steps) for steps in (20, 40, 80))
    ratio = error(coarse, middle) / error(middle, fine)
    assert abs(np.log2(ratio) - ORDERS[integrator]) < 0.15


@pytest.mark.slow
def test_the_energy_of_midpoint_steps_wavers_and_does_not_drift():
    model = jd.robots.chain(2)
    q = jnp.array([-1.0, 0.3])
    taus = jnp.zeros((20_000, 2))
    qs, qds = jd.rollout(model, q, 0 * q, taus, 2e-3, integrator="implicit_midpoint")
    kinetic = jax.vmap(jd.kinetic_energy, (None, 0, 0))(model, qs, qds)
    energy = kinetic + jax.vmap(jd.potential_energy, (None, 0))(model, qs)
    first, *_, last = (jnp.abs(e - energy[0]).max() for e in jnp.split(energy[1:], 4))
    assert last < 2 * first < 0.02 * kinetic.max()


def test_midpoint_steps_take_stiff_joints_and_say_where_they_fail():
    b = jd.ModelBuilder("stiff", gravity=(0.0, -9.81, 0.0))
    rod = jd.Inertial.rod(1.0, (0, 0, 0), (1, 0, 0))
    b.add_body("rod", inertial=rod, damping=1e6)
    model, q = b.build(), jnp.array([0.3])
    options = dict(integrator="implicit_midpoint")
    qs, _ = jd.rollout(model, q, 0 * q, jnp.zeros((50, 1)), 0.1, **options)
    creep = -9.81 / 2 * np.cos(0.3) / 1e6
    np.testing.assert_allclose((qs[-1] - qs[0]) / 5, creep, rtol=1e-2)
    wrong = jnp.full((2, 1), jnp.nan)
    assert jnp.isnan(jd.rollout(model, q, 0 * q, wrong, 0.1, **options)[0][1:]).all()


@pytest.mark.parametrize(
    "integrator",
    ["rk4", pytest.param("implicit_midpoint", marks=pytest.mark.slow)],
)
def test_gradients_of_other_integrators_are_differences(integrator, rng):
    model = jd.robots.chain(2)
    q, qd, tau = random_state(model, rng)
    dq = jnp.asarray(rng.normal(size=2))

    def loss(q):
        taus = jnp.stack([1e-3 * tau] * 3)
        qs, qds = jd.rollout(model, q, qd, taus, 1e-2, integrator=integrator)
        return (qs[-1] ** 2).sum() + (qds[-1] ** 2).sum()

    value, h = jax.jit(jax.value_and_grad(loss)), 1e-4
    difference = (value(q + h * dq)[0] - value(q - h * dq)[0]) / (2 * h)
    np.testing.assert_allclose(value(q)[1] @ dq, difference, rtol=1e-6)


@pytest.mark.slow
def test_its_gradient_is_that_of_the_loop(rng):
    model = jd.robots.puma_560()
    q, qd, _ = random_state(model, rng)
    taus = jnp.asarray(rng.normal(size=(3, 6)))

    def loss(run, model, q, qd, taus, dt):
        return (run(model, q, qd, taus, dt)[0][-1] ** 2).sum()

    x = model, q, qd, taus, jnp.asarray(1e-2)
    run = partial(jd.rollout, integrator="semi_implicit_euler")
    ours = jax.jit(jax.grad(lambda *x: loss(run, *x), range(5)))(*x)
    theirs = jax.grad(lambda *x: loss(stepped, *x), range(5))(*x)
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)


def test_quaternions_stay_of_unit_length_and_float32_float32(rng):
    model = jd.robots.random_tree(0, 2, joints=("free", "spherical"))
    model = model.astype(jnp.float32)
    q, qd, _ = (x.astype(jnp.float32) for x in random_state(model, rng))
    taus = jnp.zeros((20, model.nv), jnp.float32)
    qs, qds = jd.rollout(model, q, qd, taus, 1e-2)
    assert qs.dtype == qds.dtype == jnp.float32
    length = jnp.linalg.norm(qs[:, model.topology.quaternion_q], axis=-1)
    np.testing.assert_allclose(length, 1, atol=1e-6)


def test_wrong_shapes_are_named(without_type_checker):
    model = jd.robots.puma_560()
    q = jd.neutral(model)
    with pytest.raises(
        ValueError, match=r"control has shape \(3, 5\), expected \('steps', 6\)"
    ):
        jd.rollout(model, q, q, jnp.zeros((3, 5)), 0.1)
    with pytest.raises(ValueError, match=r"qd0 has shape \(5,\), expected \(6,\)"):
        jd.rollout(model, q, q[:5], jnp.zeros((3, 6)), 0.1)
    with pytest.raises(ValueError, match=r"q0 has shape \(4,\), expected \(6,\)"):
        jd.rollout(model, q[:4], q, jnp.zeros((3, 6)), 0.1)
    with pytest.raises(ValueError, match="integrator is 'euler', expected one of"):
        jd.rollout(model, q, q, jnp.zeros((3, 6)), 0.1, integrator="euler")
    with pytest.raises(ValueError, match=r"dt has shape \(3,\), expected one number"):
        jd.rollout(model, q, q, jnp.zeros((3, 6)), jnp.ones(3))
    for every in (2, 0, -1, 6, 1.0, 3.0, True):
        with pytest.raises(ValueError, match=f"every is {every} for 3 steps"):
            jd.rollout(model, q, q, jnp.zeros((3, 6)), 0.1, every=every)


@pytest.mark.parametrize(
    "integrator",
    [
        pytest.param(x, marks=[] if x == "semi_implicit_euler" else [pytest.mark.slow])
        for x in ORDERS
        if x != "implicit"
    ],
)
def test_some_of_the_states_are_those_of_all(integrator, rng):
    model = jd.robots.random_tree(0, 2, joints=("spherical", "revolute"))
    q, qd, _ = random_state(model, rng)
    taus = jnp.asarray(rng.normal(size=(6, model.nv)))
    run = partial(jd.rollout, model, q, qd, taus, 1e-2, integrator=integrator)
    for some, all_of_them in zip(run(every=3), run(), strict=True):
        np.testing.assert_allclose(some, all_of_them[::3], rtol=1e-13, atol=1e-14)


@pytest.mark.slow
def test_so_is_their_gradient(rng):
    model = jd.robots.chain(2)
    q, qd, _ = random_state(model, rng)
    taus, weights = (jnp.asarray(rng.normal(size=(n, 2))) for n in (6, 3))

    def loss(model, q, qd, taus, dt, every):
        qs, qds = jd.rollout(model, q, qd, taus, dt, every=every)
        return (weights * (qs + qds**2)[:: 3 // every]).sum()

    x = model, q, qd, taus, jnp.asarray(1e-2)
    gradient = jax.jit(jax.grad(loss, range(5)), static_argnums=5)
    some, all_of_them = (jax.tree.leaves(gradient(*x, every)) for every in (3, 1))
    for a, b in zip(some, all_of_them, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


@pytest.mark.slow
def test_the_memory_of_its_gradient_grows_by_a_few_numbers_a_step():
    model = jd.robots.chain(2)
    q = jnp.ones(2)

    @cache
    def size(steps, every=1):
        def total(q, qd, taus):
            return (jd.rollout(model, q, qd, taus, 1e-3, every=every)[0][-1] ** 2).sum()

        gradient = jax.jit(jax.grad(total, (0, 1, 2)))
        program = gradient.lower(q, q, jnp.ones((steps, 2))).compile()
        return program.memory_analysis().temp_size_in_bytes

    numbers = (size(1010) - size(10)) / 1000 / 8
    assert round(numbers, 1) == 4 * model.nv + 2 * model.nq  # but for alignment
    # by pieces: a few for each step of one and for each of them, thus as the root
    short, middle, long = (size(k**2, every=k) for k in (20, 40, 80))
    np.testing.assert_allclose(long - middle, 2 * (middle - short), rtol=0.01)
    assert long < size(1010) / 2
