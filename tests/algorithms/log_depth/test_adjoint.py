"""Gradients of forward dynamics by pieces, of trees and under all loads."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from tests.algorithms.log_depth.test_forward import MODELS, relative
from tests.models import moving_base, random_state, with_effects

CASES = [
    ("every joint", 3),
    ("forest", 1),
    pytest.param("fan", 2, marks=pytest.mark.slow),
]


@pytest.mark.slow
@pytest.mark.first
@pytest.mark.parametrize("name, chunk", CASES)
def test_gradients_of_trees_are_those_of_the_sequential_method(name, chunk, rng):
    model = with_effects(MODELS[name](), rng)
    state = random_state(model, rng)
    w = jnp.asarray(rng.normal(size=model.nv))
    given = dict(
        f_ext=jnp.asarray(rng.normal(size=(model.n, 6))),
        base=moving_base(rng),
    )

    def gradient(**options):
        def f(*state):
            return w @ jd.forward_dynamics(model, *state, **given, **options)

        return jax.jit(jax.grad(f, (0, 1, 2)))(*state)

    found = gradient(method="parallel", chunk=chunk, refine=1)
    for x, y in zip(found, gradient(), strict=True):
        assert relative(x, y) < 1e-12


@pytest.mark.slow
def test_long_chains_keep_their_digits():
    model = jd.robots.protein_chain("A" * 64)
    state = jnp.asarray(np.random.default_rng(0).normal(size=(3, model.nv)))

    def gradient(**options):
        f = lambda *x: jd.forward_dynamics(model, *x, **options).sum()  # noqa: E731
        return jax.jit(jax.grad(f, (0, 1, 2)))(*state)

    for x, y in zip(gradient(method="parallel"), gradient(), strict=True):
        assert relative(x, y) < 1e-11
