import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.program._jumps import jump_tables
from jaxdyn.program._path_sums import path_product, path_sum, subtree_sum
from jaxdyn.spatial import Mat3
from tests.model.test_contraction import NAMES, families


def ancestors(parents):
    """[n, n] whether j is i or on its path to the base."""
    above = np.eye(len(parents))
    for i, p in enumerate(parents):
        if p >= 0:
            above[i] += above[p]
    return above


@pytest.mark.parametrize("name", NAMES)
def test_sums_are_products_with_the_matrix_of_ancestors(name, rng):
    parents = families(37)[name]
    jumps, above, x = jump_tables(parents), ancestors(parents), rng.normal(size=37)

    @jax.jit
    def run(x):
        slopes = jax.jacrev(lambda x: path_sum(jumps, x))(x)
        return path_sum(jumps, x), subtree_sum(jumps, x), slopes

    path, subtree, slopes = run(jnp.asarray(x))
    np.testing.assert_allclose(path, above @ x, atol=1e-14)
    np.testing.assert_allclose(subtree, above.T @ x, atol=1e-14)
    np.testing.assert_array_equal(slopes, above)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_short_chains_fill_no_block(n, rng):
    x = rng.normal(size=n)
    found = path_sum(jump_tables(np.arange(n) - 1), jnp.asarray(x))
    np.testing.assert_allclose(found, np.cumsum(x), atol=1e-15)


@pytest.mark.parametrize("name, block", [("chain", 1), ("chain", 4), ("random", 4)])
def test_products_of_rotations_and_their_derivatives(name, block, rng):
    parents = families(21)[name]
    jumps = jump_tables(parents, block)
    C = jnp.asarray(np.linalg.qr(rng.normal(size=(21, 3, 3)))[0])
    weights = jnp.asarray(rng.normal(size=C.shape))

    def one_by_one(C):
        R = []
        for i, p in enumerate(parents):
            R.append(C[i] if p < 0 else jnp.matmul(R[p], C[i], precision="highest"))
        return jnp.stack(R)

    def at_once(C):
        return path_product(jumps, Mat3.of(C)).array()

    def three(product):
        def f(C):
            return jnp.vdot(weights, product(C))

        curvature = jax.jvp(jax.grad(f), (C,), (weights,))[1]  # not along rotations
        return product(C), jax.grad(f)(C), curvature

    found, expected = jax.jit(lambda: three(at_once))(), three(one_by_one)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-12)
