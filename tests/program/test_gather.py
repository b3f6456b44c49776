import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.program._gather import exchange, put, take

PLACES = {
    "all": np.arange(5),
    "reversed": np.arange(5)[::-1],
    "a run": np.array([2, 3, 4]),
    "with repetitions": np.array([0, 0, 0, 3, 1, 3]),
    "beyond the end": np.array([5, 1, 7, 0]),
    "none": np.zeros(0, int),
    "a table": np.array([[0, 4], [4, 5]]),
}
every_place = pytest.mark.parametrize("index", PLACES.values(), ids=PLACES.keys())


def taken(x, index):
    padded = np.concatenate([np.asarray(x), np.zeros((1, *x.shape[1:]))])
    return padded[np.minimum(index, len(x))]


@every_place
@pytest.mark.parametrize("stored", [False, True])
def test_take_picks_rows_and_zero_beyond_the_end(index, stored, rng):
    x = jnp.asarray(rng.normal(size=(5, 2)))
    result = jax.jit(lambda x: take(x, index, stored))(x)
    np.testing.assert_array_equal(result, taken(x, index))


@every_place
def test_put_is_the_transpose_of_take(index, rng):
    x = jnp.asarray(rng.normal(size=(5, 2)))
    y = jnp.asarray(rng.normal(size=(*index.shape, 2)))
    there, back = take(x, index), put(y, index, 5)
    np.testing.assert_allclose(jnp.vdot(there, y), jnp.vdot(x, back), atol=1e-14)


@every_place
def test_derivatives_of_both_modes_are_the_map_and_its_transpose(index, rng):
    x = jnp.asarray(rng.normal(size=(5, 2)))
    slope = jax.jacfwd(lambda x: take(x, index))(x)
    np.testing.assert_array_equal(slope, jax.jacrev(lambda x: take(x, index))(x))
    np.testing.assert_allclose(jnp.tensordot(slope, x, 2), take(x, index), atol=1e-15)


@every_place
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_vmap_over_any_axis_is_the_loop(index, axis, rng):
    x = jnp.asarray(rng.normal(size=(3, 5, 2)))
    moved = jnp.moveaxis(x, 0, axis)
    result = jax.vmap(lambda x: take(x, index), in_axes=axis)(moved)
    np.testing.assert_array_equal(result, jnp.stack([take(each, index) for each in x]))


def test_exchange_replaces_rows(rng):
    x, new = jnp.asarray(rng.normal(size=(5, 2))), jnp.ones((2, 2))
    result = exchange(x, np.array([3, 1]), new)
    np.testing.assert_array_equal(result, x.at[np.array([3, 1])].set(new))


def test_neither_the_map_nor_its_derivatives_scatter(rng):
    index = np.array([0, 0, 0, 3, 1, 3, 9])
    gradient = jax.grad(lambda x: (take(x, index) ** 3).sum())
    text = jax.jit(gradient).lower(jnp.ones((5, 2))).as_text()
    assert "scatter" not in text


def test_many_rows_on_one_cost_no_more_than_twice_their_number():
    index = np.zeros(1000, int)
    cost = jax.jit(lambda x: put(x, index, 1000)).lower(jnp.ones(1000)).cost_analysis()
    assert cost["flops"] < 3000
