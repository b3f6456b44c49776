"""Refinement, accuracy that is told, and the choice of a method."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from experiments.parts.fifty_digits import chain_accelerations
from experiments.parts.hard_chains import hard_chains
from jaxdyn.dynamics import FORWARD
from jaxdyn.dynamics import _methods as methods
from tests.models import random_state

HARD = list(hard_chains(4))


@pytest.mark.slow
@pytest.mark.first
@pytest.mark.parametrize(
    "method",
    [
        pytest.param(m, marks=[] if m in ("denoc", "parallel") else [pytest.mark.slow])
        for m in FORWARD
    ],
)
def test_refinement_of_every_method_ends_at_rounding(method, rng):
    model = jd.robots.random_tree(2, 12, branching=0.3).astype(jnp.float32)
    q, qd, tau = (x.astype(jnp.float32) for x in random_state(model, rng))
    options = dict(method=method, refine=2, chunk=4 if method == "parallel" else None)
    found = jd.forward_dynamics(model, q, qd, tau, **options)
    inputs = [x.astype(jnp.float64) for x in (q, qd, tau)]
    exact = jd.forward_dynamics(model.astype(jnp.float64), *inputs)
    error = np.abs(np.asarray(found, float) - exact).max() / np.abs(exact).max()
    assert error < 2e-6


@pytest.mark.slow
def test_loops_are_refined_too():
    bar = jd.robots.four_bar()
    q = jd.close_loops(bar, jnp.array([0.9, -0.4, 1.5]), hold=["crank"]).q
    state = q, jnp.zeros(3), jnp.ones(3)
    found = jd.forward_dynamics(bar, *state, method="parallel", refine=1)
    np.testing.assert_allclose(found, jd.forward_dynamics(bar, *state), rtol=1e-10)


CASES = [
    pytest.param(
        k,
        dtype,
        marks=[] if k in ("protein", "rope with a load") else [pytest.mark.slow],
    )
    for k in HARD
    for dtype in ("float64", "float32")
]


@pytest.mark.first
@pytest.mark.parametrize("name, dtype", CASES)
def test_chains_of_1024_joints_with_50_digits(name, dtype):
    model, *state = hard_chains(1024)[name]
    model = model.astype(dtype)
    state = [np.asarray(x, dtype) for x in state]
    exact = chain_accelerations(model, *state)
    run = jax.jit(lambda *x: jd.forward_dynamics(*x, method="parallel", refine=1))
    found = np.asarray(run(model, *map(jnp.asarray, state)), float)
    error = np.abs(found - exact).max() / np.abs(exact).max()
    assert error < {"float64": 5e-14, "float32": 5e-5}[dtype]


def test_residual_and_correction_are_small_where_all_is_well(rng):
    model = jd.robots.random_tree(3, 10)
    found = jd.checked_dynamics(model, *random_state(model, rng))
    assert jnp.abs(found.residual).max() < 1e-11
    assert found.correction < 1e-13
    assert 1e-3 < found.pivot <= 1
    assert found.error < 1e-12


def test_joints_that_hardly_any_inertia_resists_are_told():
    model = jd.robots.protein_chain("AAAA")
    thin = eqx.tree_at(
        lambda m: (m.inertia, m.com),
        model,
        (model.inertia * 1e-12, model.com * jnp.array([[1e-6, 1e-6, 1.0]])),
    )
    state = jnp.ones(8), jnp.ones(8), jnp.ones(8)
    for method in ("denoc", "parallel"):
        found = jd.checked_dynamics(thin, *state, method=method)
        assert found.pivot < 1e-9
        assert found.error > 1e-7
    assert jd.checked_dynamics(model, *state).error < 1e-12


@pytest.mark.parametrize(
    "options, words",
    [
        (dict(refine=-1), "refine is -1, expected a whole number from 0 on"),
        (dict(refine=True), "refine is True, expected a whole number from 0 on"),
        (
            dict(method="parallel", chunk=0),
            "chunk is 0, expected a whole number",
        ),
        (dict(chunk=8), "chunk is 8 for method 'denoc', expected None"),
        (dict(method="fast"), "method is 'fast', expected one of"),
    ],
)
def test_wrong_options_are_told(options, words):
    model = jd.robots.chain(2)
    with pytest.raises(ValueError, match=words):
        jd.forward_dynamics(model, *jnp.ones((3, 2)), **options)
    with pytest.raises(ValueError, match="expected one of: walk, parallel"):
        jd.forward_kinematics(model, jnp.ones(2), method="fast")


@pytest.mark.parametrize(
    "backend, n, states, expected",
    [
        ("cpu", methods.GPU_DEPTH, 1, "denoc"),
        ("gpu", methods.GPU_DEPTH - 1, 1, "denoc"),
        ("gpu", methods.GPU_DEPTH, 1, "parallel"),
        ("gpu", methods.GPU_DEPTH, methods.GPU_LANES, "denoc"),
    ],
)
def test_the_choice_looks_at_depth_states_and_device(
    backend, n, states, expected, monkeypatch
):
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    model = jd.robots.chain(n)
    chosen = []

    def look(q):
        chosen.append(methods.automatic("auto", "denoc", model, q))
        return q

    q = jnp.zeros(n)
    if states == 1:
        look(q)
    else:
        jax.jit(jax.vmap(jax.vmap(look)))(jnp.zeros((2, states // 2, n)))
    assert chosen == [expected]


def test_auto_is_a_method(rng):
    model = jd.robots.chain(3)
    state = random_state(model, rng)
    found = jd.forward_dynamics(model, *state, method="auto", chunk=2)
    np.testing.assert_array_equal(found, jd.forward_dynamics(model, *state))


@pytest.mark.slow
def test_masses_that_differ_by_powers_of_ten_need_refinement_and_are_told(rng):
    base, pieces = jd.robots.chain(12), dict(method="parallel", chunk=1)
    state = [jnp.asarray(x) for x in rng.normal(size=(3, 12))]

    @jax.jit
    def found(powers):
        share = 10**powers
        bodies = base.mass * share, base.inertia * share[:, None, None]
        model = eqx.tree_at(lambda m: (m.mass, m.inertia), base, bodies)
        refined = [
            jd.forward_dynamics(model, *state, refine=1, **x) for x in ({}, pieces)
        ]
        return *refined, jd.checked_dynamics(model, *state, **pieces)

    spread = rng.uniform(-1, 1, 12)
    expected, refined, told = found(4 * spread)
    size = np.abs(expected).max()
    assert np.abs(refined - expected).max() < 1e-13 * size
    assert told.error > 0.1 * np.abs(told.qdd - expected).max() / size > 1e-13
    assert found(9 * spread)[2].error > 1e-3
