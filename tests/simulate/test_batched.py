import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.simulate import _batched


@pytest.fixture
def four_cores(monkeypatch):
    monkeypatch.setattr(_batched, "_available", lambda: 4)
    monkeypatch.setattr(_batched, "SMALL", 2)


@pytest.mark.parametrize("size", [1, 3, 16, 101])
def test_parts_on_several_cores_are_the_whole(size, rng, four_cores):
    model = jd.robots.puma_560()
    x = [jnp.asarray(rng.normal(size=(size, 6))) for _ in range(3)]
    result = jd.batched(jd.forward_dynamics)(model, *x)
    whole = jax.vmap(jd.forward_dynamics, (None, 0, 0, 0))(model, *x)
    np.testing.assert_allclose(result, whole, rtol=1e-11, atol=1e-11)


def test_trees_of_results_shared_arguments_and_options(rng, four_cores):
    def function(a, b, *, c):
        return {"sum": a["x"][None] + b, "c": c}

    a, b, c = {"x": jnp.arange(9.0)}, jnp.ones(3), jnp.arange(9.0)
    result = jd.batched(function, (0, None))(a, b, c=c)
    np.testing.assert_array_equal(result["sum"], np.arange(9.0)[:, None] + np.ones(3))
    np.testing.assert_array_equal(result["c"], c)


def test_inside_jit_and_under_derivatives_it_is_vmap(rng, four_cores):
    q = jnp.asarray(rng.normal(size=(7, 6)))
    model = jd.robots.puma_560()
    energy = jd.batched(jd.potential_energy)
    gradient = jax.jit(jax.grad(lambda q: energy(model, q).sum()))(q)
    expected = jax.vmap(jd.gravity_forces, (None, 0))(model, q)
    np.testing.assert_allclose(gradient, expected, atol=1e-12)


def test_tracers_in_closures_and_nested_batches(four_cores):
    x = jnp.arange(16.0)
    product = jax.grad(lambda m: jd.batched(lambda x: x * m)(x).sum())
    assert product(2.0) == jax.jit(product)(2.0) == x.sum()
    inner = jd.batched(lambda x: 2 * x)
    nested = jd.batched(lambda y: y + inner(x)[1])(x)
    np.testing.assert_array_equal(nested, x + 2)


def test_each_type_is_traced_once_and_not_by_every_thread(four_cores):
    traces = []

    def double(x):
        traces.append(x.dtype)
        time.sleep(0.05)  # long enough for all threads to come here
        return 2 * x

    function = jd.batched(double)
    for dtype in (jnp.float64, jnp.float32, jnp.float64, jnp.int32):
        x = jnp.arange(16).astype(dtype)
        np.testing.assert_array_equal(function(x), 2 * x)
    assert traces == [jnp.float64, jnp.float32, jnp.int32]


def test_settings_of_the_caller_count(four_cores):
    x = np.arange(16.0)
    with jax.enable_x64(False):
        assert jd.batched(lambda x: x * 1.1)(x).dtype == jnp.float32
    assert jd.batched(lambda x: x * 1.1)(x).dtype == jnp.float64


def test_what_cannot_be_is_named(without_type_checker):
    with pytest.raises(ValueError, match="cores is 0, expected a whole number from 1"):
        jd.batched(jnp.sin, cores=0)
    with pytest.raises(ValueError, match="cores is 1.0, expected a whole number"):
        jd.batched(jnp.sin, cores=1.0)
    with pytest.raises(ValueError, match=r"in_axes is \(1,\), expected 0 or None"):
        jd.batched(jnp.sin, (1,))(jnp.ones((2, 2)))
    with pytest.raises(ValueError, match="leading axes of 2, 3 states"):
        jd.batched(jnp.add)(jnp.ones(2), jnp.ones(3))
    with pytest.raises(ValueError, match="leading axes of no states"):
        jd.batched(jnp.add, (None, None))(1.0, 2.0)
