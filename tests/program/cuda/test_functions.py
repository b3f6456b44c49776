"""Public functions as kernels for a GPU: the same values as on the CPU."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.program.cuda._types import UnknownError
from tests.models import every_joint, fork_with_massless_body, random_state
from tests.program.cuda.host import evaluate, needs_gcc, run
from tests.test_contract import FUNCTIONS, arrays, scalar

pytestmark = needs_gcc
OTHER = {
    "joint_constraints",
    "rollout_by_implicit_midpoint",
}  # dense solvers; no kernels:
OTHER |= {"to_pi", "from_pi", "pseudo_inertia", "from_log_cholesky", "neutral"}
OTHER |= {"inertial_parameters", "dynamic_parameters", "to_mujoco", "from_mujoco"}
QUICK = {"inverse_dynamics", "mass_matrix", "forward_dynamics", "integrate"}
QUICK |= {"forward_kinematics", "rollout"}
SLOPES = {"linearize", "inverse_dynamics_derivatives"}
STATES = 3


def each(quick):
    return pytest.mark.parametrize(
        "name",
        [
            pytest.param(n, marks=[] if n in quick else [pytest.mark.slow])
            for n in FUNCTIONS
            if n not in OTHER
        ],
    )


@cache
def joints():
    return every_joint(1)


def inputs(name, model, rng):
    rows = [arrays(name, model, rng) for _ in range(STATES)]
    return tuple(np.stack(x) for x in zip(*rows, strict=True))


def compare(function, *args, tolerance):
    """Both, relative to the largest entry of each array."""
    found, expected = evaluate(function, *args), jax.jit(function)(*args)
    assert evaluate.sources
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        b = np.asarray(b)
        if b.size and b.dtype != jax.dtypes.float0:
            assert a.dtype == b.dtype
            finite = np.isfinite(b)
            scale = max(1.0, np.abs(b[finite]).max(initial=0))
            np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * scale)


@each(QUICK)
def test_values(name, rng):
    model, function = fork_with_massless_body(), FUNCTIONS[name][0]
    loose = 1e-10 if name == "forward_dynamics_by_parallel" else 1e-12  # of its method
    batch = jax.vmap(lambda *args: function(model, *args), axis_size=STATES)
    compare(batch, *inputs(name, model, rng), tolerance=loose)


@each(set())
def test_no_access_is_out_of_bounds(name, rng, monkeypatch):
    monkeypatch.setattr(run, "sanitized", True)
    test_values(name, rng)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(QUICK | {"power", "jacobian"}))
def test_all_types_of_joints(name, rng):
    model, function = joints(), FUNCTIONS[name][0]
    batch = jax.vmap(lambda *args: function(model, *args))
    compare(batch, *inputs(name, model, rng), tolerance=1e-12)


@each(set())
def test_gradients_by_the_model_and_all_arrays(name, rng):
    if name == "mass_matrix_by_denoc":
        pytest.skip("its transpose scatters, which is compiled as written")
    if name in SLOPES:
        pytest.skip("its slopes are curvatures: test_second_derivatives")
    model = fork_with_massless_body()
    combination = scalar(name, model, rng)
    slope = jax.grad(combination, (0, 1), allow_int=True)
    batch = jax.vmap(lambda *args: slope(model, args), axis_size=STATES)
    loose = 1e-9 if name == "forward_dynamics_by_parallel" else 1e-11
    compare(batch, *inputs(name, model, rng), tolerance=loose)


def test_large_results_are_written(rng):
    model = jd.robots.chain(20)
    q = rng.normal(size=(STATES, 20))
    batch = jax.vmap(lambda q: jd.mass_matrix(model, q))
    compare(batch, q, tolerance=1e-12)


def test_single_precision(rng):
    model = jax.tree.map(lambda x: np.asarray(x, np.float32), jd.robots.chain(3))
    q, qd, tau = rng.normal(size=(3, STATES, 3)).astype(np.float32)
    batch = jax.vmap(lambda *args: jd.forward_dynamics(model, *args))
    compare(batch, q, qd, tau, tolerance=1e-5)


def test_gradients_of_a_rollout(rng):
    model = jd.robots.chain(2)
    q, qd = rng.normal(size=(2, STATES, 2))
    taus = rng.normal(size=(STATES, 150, 2))

    def loss(q, qd, taus):
        qs, qds = jd.rollout(model, q, qd, taus, 1e-3)
        return (qs**2).sum() + (qds[-1] ** 2).sum()

    compare(jax.vmap(jax.grad(loss, (0, 2))), q, qd, taus, tolerance=1e-12)


@pytest.mark.slow
def test_second_derivatives(rng):
    model = jd.robots.chain(2)
    q, qd = rng.normal(size=(2, STATES, 2))
    bent = jax.vmap(jax.hessian(lambda *args: jd.forward_dynamics(model, *args).sum()))
    compare(bent, q, qd, qd, tolerance=1e-12)


def test_a_policy_of_two_layers_is_in_the_kernel_of_its_rollout(rng):
    model = jd.robots.chain(2)
    weights = [rng.normal(size=s) / 8 for s in ((64, 4), (64, 64), (2, 64))]
    q, qd = rng.normal(size=(2, STATES, 2))

    def run(weights, q, qd):
        a, b, c = weights

        def control(t, q, qd):
            return c @ jnp.tanh(b @ jnp.tanh(a @ jnp.concatenate([q, qd])))

        return jd.rollout(model, q, qd, control, 1e-3, steps=20)

    compare(jax.vmap(run, (None, 0, 0)), weights, q, qd, tolerance=1e-12)
    assert len(evaluate.sources) == 1


def test_batches_of_models_one_state_and_blocks_that_are_not_full(rng):
    model = fork_with_massless_body()
    q, qd, tau = random_state(model, rng)
    compare(lambda q: jd.forward_dynamics(model, q, qd, tau), q, tolerance=1e-12)
    masses = np.outer(np.linspace(0.9, 1.1, 130), model.mass)

    def heavier(mass):
        other = eqx.tree_at(lambda m: m.mass, model, mass)
        return jd.forward_dynamics(other, q, qd, tau)

    compare(jax.vmap(heavier), masses, tolerance=1e-12)


def test_dense_solvers_are_named(rng):
    model = fork_with_massless_body()
    batch = jax.vmap(lambda q: jd.joint_constraints(model, q))
    with pytest.raises(UnknownError, match="the operation lu"):
        evaluate(batch, *inputs("joint_constraints", model, rng))
