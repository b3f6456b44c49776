import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxdyn.program._linear_map import linear_map
from jaxdyn.program._states import LIMIT
from tests.kernels import kernel


def sizes(jaxpr):
    """How many numbers each reduction of a program has, inner programs included."""
    found = []
    for eqn in jaxpr.eqns:
        if eqn.primitive.name.startswith("reduce_"):
            found.append(eqn.invars[0].aval.size)
        for x in jax.tree.leaves(eqn.params, is_leaf=lambda x: hasattr(x, "eqns")):
            inner = getattr(x, "jaxpr", x)
            found += sizes(inner) if hasattr(inner, "eqns") else []
    return found


def stacked(x):
    """Reductions of all kinds, in a loop, a branch, a rule and a map of our own."""
    matrix = (x[:, :, None] * x[:, None, :]).sum(axis=0)
    total, _ = lax.scan(lambda c, row: (c + (x * row[None]).max(), None), 0.0, x[:2])
    chosen = lax.cond(x[0, 0] > 0, lambda x: x.min(), lambda x: x.prod(), x)
    ruled = jax.custom_jvp(lambda x: (x > 0).all())
    ruled.defjvps(None)
    mapped = linear_map(
        lambda fixed, x: (fixed * x[0]).sum(),
        lambda fixed, y: [fixed * y],
        x,
        [x],
        like=x[0, 0],
    )
    return matrix, total, chosen, ruled(x), mapped


@pytest.mark.parametrize("rows", [5, 1001, 2048])
def test_reductions_of_any_size_are_those_of_the_function(rows, rng):
    x = jnp.asarray(rng.uniform(0.9, 1.1, size=(rows, 3)))
    own, plain = jax.jit(kernel(stacked))(x), jax.jit(stacked)(x)
    for a, b in zip(own, plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_axes_may_be_numbers_of_numpy():
    total = kernel(lambda x: lax.reduce_sum(x, (np.int64(0), np.int64(1))))
    assert jax.jit(total)(jnp.ones((1001, 3))) == 3003


def test_none_is_large_enough_for_a_library(rng):
    from jaxdyn.program._cpu import _for_one_call

    x = jnp.asarray(rng.uniform(0.9, 1.1, size=(1001, 3)))
    inner = jax.make_jaxpr(stacked)(x)

    def batch(x):
        return _for_one_call(x, jaxpr=inner, size=4, batched=(True,))

    assert max(sizes(inner.jaxpr)) > 3 * LIMIT
    program = jax.make_jaxpr(batch)(jnp.stack([x] * 4)).jaxpr
    # a reduced axis of one entry is a reshape; others stay below 4096 numbers
    assert max(sizes(program)) < 4096
