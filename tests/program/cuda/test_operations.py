"""Operations of programs as C, one by one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxdyn.program._kernel import bind, traced
from jaxdyn.program.cuda._kernel import print_kernel
from jaxdyn.program.cuda._types import UnknownError
from tests.program.cuda import host
from tests.program.cuda.host import evaluate, needs_gcc, run

pytestmark = needs_gcc


def kernel(function, *args):
    """A function of arrays with one row for each state, as one kernel."""
    flags = [True] * len(args)
    return bind(traced(function, args, flags, True), args, len(args[0]), flags)


def check(function, *args, tolerance=1e-14):
    """A kernel and the function itself, for all states."""
    found = evaluate(lambda *args: kernel(function, *args), *args)
    expected = jax.vmap(function)(*args)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def numbers(x):
    y, i = jnp.abs(x) + 0.1, jnp.round(3 * x).astype(jnp.int32)
    floats = [x + y, x - y, x * y, x / y, -x, jnp.sqrt(y), lax.rsqrt(y), jnp.abs(x)]
    floats += [jnp.sin(x), jnp.cos(x), jnp.tan(x), jnp.arctan2(x, y), jnp.tanh(x)]
    floats += [jnp.exp(x), jnp.expm1(x), jnp.log(y), jnp.log1p(y), jnp.cbrt(x)]
    floats += [jnp.arcsin(jnp.tanh(x)), jnp.arccos(jnp.tanh(x)), jnp.arctan(x), y**x]
    floats += [x**2, x**5, y**-3, jnp.square(x), jnp.sign(x), jnp.floor(x), jnp.ceil(x)]
    floats += [jnp.round(2 * x), jnp.maximum(x, y), jnp.minimum(x, 0), x.clip(-1, 1)]
    floats += [jnp.where(x < 0, x, y), jnp.fmod(x, y), jnp.sinh(x), jnp.cosh(x)]
    floats += [jax.nn.sigmoid(x), lax.erf(x), lax.select_n(abs(i) % 3, x, y, x * y)]
    flags = (x < y) & (x != 0) | ~(x >= 0.5) ^ jnp.isfinite(x)
    whole = [i + 1, -i, i * i, lax.rem(i, jnp.int32(2)), lax.div(i, jnp.int32(2)), ~i]
    return jnp.stack(floats), flags, jnp.stack(whole), x.astype(jnp.int32)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_scalar_operations(dtype, rng):
    x = rng.normal(size=(5, 9)).astype(dtype)
    check(numbers, x, tolerance=1e-14 if dtype == "float64" else 2e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_quotients_that_share_a_reciprocal_have_the_bits_of_divisions(dtype, rng):
    x = np.exp(rng.uniform(-20, 20, (400, 40))) * rng.choice([-1, 1], (400, 40))
    y = np.exp(rng.uniform(-20, 20, 400))
    x[:, :6] = 0, -0.0, 1, np.inf, -np.inf, np.nan
    y[:7] = 0, -0.0, 1, np.inf, -np.inf, np.nan, -3
    x, y = x.astype(dtype), y.astype(dtype)
    x[:, 7] = y

    def quotients(x, y):
        return kernel(lambda x, y: (x / y, x / 3, 1 / y, x / 4), x, y)

    with np.errstate(all="ignore"):
        expected = x / y[:, None], x / dtype(3), 1 / y, x / dtype(4)
    for found, exact in zip(evaluate(quotients, x, y), expected, strict=True):
        np.testing.assert_array_equal(found, exact)


def places(x, k):
    y = jnp.pad(x[:, ::-1].T, ((1, 0), (0, 2)), constant_values=0.5)
    z = jnp.concatenate([y[1:3], jnp.full((1, y.shape[1]), 2.0)])
    taken = x[jnp.array([2, 0, 2])], x[:, k], x[k, 1:], x.at[:, 1].get()
    cut = lax.dynamic_slice(x, (k, k), (2, 2))
    changed = lax.dynamic_update_slice(x, cut, (0, k))
    sums = x.sum(), x.max(axis=0), x.prod(axis=1), jnp.cumsum(x, axis=0)
    parts = x @ x.T, jnp.einsum("ij,kj->ik", x, z[:, :4])
    return y, z, taken, cut, changed, sums, parts, jnp.iinfo(jnp.int32).min + k


@pytest.mark.parametrize("rows", [4, 80])
def test_places_and_sums(rows, rng):
    x = rng.normal(size=(3, rows, 4))
    check(places, x, np.array([0, 2, 9]), tolerance=1e-13)


def test_loops_with_large_and_small_carries(rng):
    def step(carry, row):
        return (carry[1], jnp.sin(carry[0]) + row), (carry[0] * row, row, jnp.ones(2))

    def walk(x):
        rows = jnp.tile(x, (60, 1))
        back = lax.scan(step, (x[0], x[1]), rows, reverse=True)
        wide = jnp.tile(x, (1, 30))
        return back, lax.scan(step, (wide[0], wide[1]), jnp.tile(wide, (9, 1)))

    check(walk, rng.normal(size=(4, 3, 3)), tolerance=1e-13)


def test_conditions_and_branches(rng):
    def power(state):
        return state[0] + 1, state[1] * state[1]

    def many(x):
        start = 0, x + 1
        squared = lax.while_loop(lambda s: (s[0] < 5) & (s[1].max() < 9), power, start)
        cases = [jnp.sin, lambda x: 2 * x, jnp.negative]
        chosen = lax.switch(jnp.int32(3 * x[0, 0]), cases, x)
        return squared, chosen, lax.cond(x[0, 0] > 0, jnp.cos, jnp.exp, x)

    check(many, rng.normal(size=(6, 3, 3)))


def test_long_loops_are_loops_of_few_lines(rng):
    def long(x):
        return lax.scan(lambda c, r: (jnp.sin(c) * r, c), x[0], x)

    size = {}
    for n in (300, 3000):
        closed, _ = traced(long, [np.zeros((1, n, 3))], [True], True)
        size[n] = print_kernel(closed, [True]).source().text.count("\n")
    assert size[300] == size[3000] < 40


def test_packed_matrices_are_few_lines(rng):
    """Rows of a triangle begin anywhere; what is not in it is zero."""
    n = 120
    rows, columns = np.tril_indices(n)
    places = np.zeros((n, n), np.int32)
    places[rows, columns] = np.arange(1, len(rows) + 1)

    def packed(x):
        triangle = x[rows, columns]
        square = jnp.concatenate([jnp.zeros(1), triangle])[places]
        return triangle, square, jnp.where(places > 0, square, 1.0) + square.T

    check(packed, rng.normal(size=(3, n, n)))
    (source,) = evaluate.sources
    assert source.text.count("\n") < 100


def test_a_carry_may_change_places(rng):
    def swapped(x):
        return lax.fori_loop(
            0, 2001, lambda _, c: (c[1], c[0], c[1] + 0 * c[2]), tuple(x)
        )

    check(swapped, rng.normal(size=(3, 3)))


def test_nan_wins_and_infinity_is_a_number():
    x = np.array([[np.nan, 1.0, np.inf], [2.0, np.nan, -np.inf]])
    check(lambda x: (jnp.maximum(x[0], x[1]), x.min(), jnp.where(x > 1, jnp.inf, x)), x)


def test_an_operation_that_is_not_known_is_named():
    def sorted_rows(x):
        return jnp.sort(x)

    closed, _ = traced(sorted_rows, [np.zeros((1, 3))], [True], True)
    with pytest.raises(UnknownError, match="the operation sort"):
        print_kernel(closed, [True])
    with pytest.raises(UnknownError, match="the type float16"):
        closed, _ = traced(jnp.sin, [np.zeros((1, 3), np.float16)], [True], True)
        print_kernel(closed, [True])


def there_and_back(x):
    last, kept = lax.scan(lambda c, r: (c * r, jnp.sin(c)), x[0], x)
    flags = lax.scan(lambda c, r: (c + r, c > r), last, kept)[1]
    turned = jnp.where(flags, kept, -kept)
    return lax.scan(lambda c, r: (c + r, None), x[0], turned, reverse=True)[0]


@pytest.mark.parametrize("sanitized", [False, True])
def test_large_arrays_of_threads_are_in_the_memory_of_the_device(
    rng, monkeypatch, sanitized
):
    """One block runs the states of two, so threads use their rooms again."""
    monkeypatch.setattr(run, "sanitized", sanitized)
    monkeypatch.setattr(host, "OUTSIDE", 8 * 2000 * 3)
    x = rng.normal(size=(130, 2000, 3))
    check(there_and_back, x, tolerance=1e-12)
    (source,) = evaluate.sources
    assert source.room >= host.OUTSIDE


def test_no_access_is_out_of_bounds(rng, monkeypatch):
    monkeypatch.setattr(run, "sanitized", True)
    check(places, rng.normal(size=(3, 80, 4)), np.array([0, 2, 9]))
