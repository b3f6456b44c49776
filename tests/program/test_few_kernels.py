"""Programs for devices that launch kernels, here on the CPU by their functions."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.program import _cpu
from jaxdyn.program._states import States
from tests.kernels import kernel


def written_out(function, *args):
    """The program with what such devices run in place of kernels, and its types."""
    program, types = jax.make_jaxpr(function, return_shape=True)(*args)
    rewritten = States(None, sys.maxsize, {"jaxdyn_kernel": _cpu.in_few_kernels})

    def run(*args):
        leaves = jax.tree.leaves(args)
        out = rewritten.run(program, leaves, [None] * len(leaves))
        return jax.tree.unflatten(jax.tree.structure(types), out)

    return run


def assert_same(found, expected):
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True)
    for x, y in pairs:
        np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-11)


@pytest.mark.slow
@pytest.mark.first
@pytest.mark.parametrize("unrolled", [_cpu.UNROLLED, 600, 1])
def test_a_batch_of_rollouts_and_its_gradient_have_the_values_of_the_cpu(
    unrolled, rng, monkeypatch
):
    monkeypatch.setattr(_cpu, "UNROLLED", unrolled)
    model = jd.robots.random_tree(3, 5)
    q = jax.vmap(lambda d: jd.integrate(model, jd.neutral(model), d))(
        jnp.asarray(rng.normal(size=(3, model.nv)))
    )
    qd, taus = rng.normal(size=(3, model.nv)), rng.normal(size=(3, 2, model.nv))

    def loss(model, q, qd, taus):
        roll = jax.vmap(lambda *x: jd.rollout(model, *x, 1e-2))
        return sum((x[:, -1] ** 2).sum() for x in roll(q, qd, taus))

    args = model, q, jnp.asarray(qd), jnp.asarray(taus)
    function = jax.value_and_grad(loss, (0, 1, 2, 3))
    assert_same(jax.jit(written_out(function, *args))(*args), jax.jit(function)(*args))


@pytest.mark.parametrize(("unrolled", "loops"), [(100, 0), (12, 1), (2, 1)])
def test_loops_are_written_out_up_to_a_size_and_in_blocks_beyond(
    unrolled, loops, rng, monkeypatch
):
    monkeypatch.setattr(_cpu, "UNROLLED", unrolled)

    def walk(x):
        def step(c, row):
            return jnp.sin(c) + row, c * row

        return jax.lax.scan(step, jnp.zeros(()), x)

    x = jnp.asarray(rng.normal(size=(4, 7)))  # 7 steps of 3 operations
    function = jax.vmap(kernel(walk))
    run = jax.jit(written_out(function, x))
    assert run.lower(x).as_text().count("stablehlo.while") == loops
    assert_same(run(x), function(x))
