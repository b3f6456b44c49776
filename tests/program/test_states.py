import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxdyn.program._states import States


def walk(x, y, k):
    """A loop that starts from a constant, a loop in it, a branch, rows and sums."""

    def step(c, row):
        inner, _ = lax.scan(lambda a, b: (a * b + y, None), row.sum(), row)
        return (c[0] + inner, c[1] + 1), (c[0] * k, c[1])

    (end, count), (kept, _) = lax.scan(step, (0.0, 0.0), x, reverse=True)
    chosen = lax.cond(end > 0, lambda z: z, lambda z: -z, kept)
    return end, count, jnp.concatenate([chosen, x[:, 0]]), jnp.where(x > y, x, k)


@pytest.mark.parametrize("flags", [(1, 1, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)])
def test_many_states_are_those_of_vmap(flags, rng):
    args = rng.normal(size=(4, 3)), rng.normal(), rng.normal()
    program = jax.make_jaxpr(walk)(*args)
    axes = [0 if flag else None for flag in flags]
    many = [
        rng.normal(size=(5, *np.shape(x))) if flag else x
        for x, flag in zip(args, flags, strict=True)
    ]
    own = jax.jit(lambda *args: States(5, 2048, {}).run(program, args, axes))(*many)
    expected = jax.jit(jax.vmap(walk, axes))(*many)
    for a, b in zip(own, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_no_operation_is_bound_twice():
    def step(c, x):  # that the carry varies shows only at the end of a step
        return x, jnp.sin(c + x)

    program = jax.make_jaxpr(lambda x: lax.scan(step, 0.0, x))(np.ones(3))
    bound = []

    def sine(x, **_):
        bound.append(1)
        return [lax.tanh(x)]

    states = States(5, 2048, {"sin": sine})
    jax.make_jaxpr(lambda x: states.run(program, [x], [0]))(np.ones((5, 3)))
    assert len(bound) == 1
