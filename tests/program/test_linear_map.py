import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.program._linear_map import linear_map


def forward(fixed, x):
    return fixed["A"] @ x[0] + jnp.sin(fixed["b"]) * x[1]


def backward(fixed, y):
    return [fixed["A"].T @ y, jnp.sin(fixed["b"]) * y]


def mapped(A, b, x, y):
    like = jnp.zeros(A.shape[0])
    return linear_map(forward, backward, {"A": A, "b": b}, [x, y], like=like)


def plain(A, b, x, y):
    return forward({"A": A, "b": b}, [x, y])


@pytest.fixture
def args(rng):
    shapes = (3, 2), (3,), (2,), (3,)
    return tuple(jnp.asarray(rng.normal(size=s)) for s in shapes)


def curvature(f):
    return jax.jit(jax.hessian(lambda *x: (f(*x) ** 3).sum(), (0, 1, 2, 3)))


CHANGES = {
    "values": lambda f: f,
    "jit": jax.jit,
    "forward": lambda f: jax.jacfwd(f, (0, 1, 2, 3)),
    "reverse": lambda f: jax.jacrev(f, (0, 1, 2, 3)),
    "curvature": curvature,
    "reverse twice": lambda f: jax.jacrev(jax.jacrev(f, (1, 2)), (0, 3)),
    "reverse of some": lambda f: jax.jacrev(f, 3),
    "batch of x": lambda f: (
        lambda A, b, x, y: jax.vmap(lambda s: f(A, b, s * x, y))(jnp.arange(3.0))
    ),
    "batch of all": lambda f: (
        lambda *x: jax.vmap(jax.grad(lambda s: f(*(s * v for v in x)).sum()))(
            jnp.arange(3.0)
        )
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_it_is_the_function_under_every_transformation(change, args):
    result, expected = (CHANGES[change](f)(*args) for f in (mapped, plain))
    for ours, theirs in zip(*map(jax.tree.leaves, (result, expected)), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-13)


def test_reverse_mode_uses_the_given_transpose_and_traces_nothing_else():
    def never(fixed, x):
        raise AssertionError("the function is not needed")

    def doubled(fixed, y):
        return [2.0 * y]

    def f(x):
        return linear_map(never, doubled, (), [x], like=x)

    x = jnp.ones(3)
    result = jax.jit(lambda x: jax.vjp(f, x)[1](x)[0]).lower(x).compile()(x)
    np.testing.assert_array_equal(result, 2.0 * x)
