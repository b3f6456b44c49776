import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.program._lanes import cut_lanes
from jaxdyn.program._walk import collect, from_parents, inward, outward, spread


def random_parents(rng, n, depth_first=False):
    if depth_first:
        return np.arange(-1, n - 1)
    return np.array([rng.integers(-1, i) if i else -1 for i in range(n)])


@pytest.mark.parametrize("n", [1, 2, 7, 60])
def test_outward_gives_each_node_the_sum_along_its_path(n, rng):
    parents, x = random_parents(rng, n), rng.normal(size=n)
    lanes = cut_lanes(parents)

    def step(parent, own):
        return parent + own, parent + own

    laned = outward(lanes, step, jnp.zeros(()), spread(lanes, jnp.asarray(x)))
    expected = np.zeros(n)
    for i, p in enumerate(parents):
        expected[i] = x[i] + (expected[p] if p >= 0 else 0)
    np.testing.assert_allclose(collect(lanes, laned), expected, atol=1e-14)


@pytest.mark.parametrize("n", [1, 2, 7, 60])
def test_inward_gives_each_node_the_sum_over_its_subtree(n, rng):
    parents, x = random_parents(rng, n), rng.normal(size=n)
    lanes = cut_lanes(parents)

    def step(children, own):
        return children + own, children + own

    base, laned = inward(lanes, step, jnp.zeros(()), spread(lanes, jnp.asarray(x)))
    expected = x.copy()
    for i in range(n - 1, -1, -1):
        if parents[i] >= 0:
            expected[parents[i]] += expected[i]
    np.testing.assert_allclose(collect(lanes, laned), expected, atol=1e-14)
    np.testing.assert_allclose(base, expected[parents < 0], atol=1e-13)


def test_a_chain_needs_no_gather():
    lanes = cut_lanes(np.arange(-1, 20))
    jaxpr = str(
        jax.make_jaxpr(lambda x: collect(lanes, spread(lanes, x)))(jnp.ones(21))
    )
    assert "gather" not in jaxpr


def test_collect_inverts_spread_for_some_nodes(rng):
    lanes = cut_lanes(random_parents(rng, 30))
    x, some = jnp.asarray(rng.normal(size=(30, 3))), np.array([4, 0, 17])
    np.testing.assert_array_equal(collect(lanes, spread(lanes, x), some), x[some])


def test_from_parents_gives_the_root_to_first_nodes():
    values = from_parents(
        np.array([-1, 0, -1, 1]), jnp.array([1.0, 2, 3, 4]), jnp.array(9.0)
    )
    assert values.tolist() == [9, 1, 9, 2]
