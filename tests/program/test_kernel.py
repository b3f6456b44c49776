import subprocess
import sys

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import jaxdyn as jd
from jaxdyn.program import _jax
from tests.kernels import kernel


def f(a, b):
    x = jnp.sin(a["x"]) * b[None] + a["y"][:1]
    total, rows = jax.lax.scan(lambda c, r: (c + r, c * r), jnp.zeros(3), x)
    return {"total": total, "rows": rows}


def arguments(rng, *batch):
    a = {"x": rng.normal(size=(*batch, 4, 3)), "y": rng.normal(size=(*batch, 2, 3))}
    return jax.tree.map(jnp.asarray, (a, rng.normal(size=(*batch, 3))))


def assert_same(a, b, atol=1e-14):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, atol=atol)


def is_tagged(function, *args):
    return "xla_cpu_small_call" in jax.jit(function).lower(*args).as_text()


@pytest.mark.parametrize("jit", [jax.jit, lambda f: f], ids=["jit", "plain"])
def test_a_kernel_has_the_values_of_its_function(jit, rng):
    args = arguments(rng)
    assert_same(jit(kernel(f))(*args), f(*args))


@pytest.mark.parametrize("size", [0, 1, 5, 64, 65, 200])
def test_batches_of_any_size_are_the_loop(size, rng):
    a, b = arguments(rng, size)
    batch = jax.jit(jax.vmap(kernel(f)))(a, b)
    assert_same(batch, jax.vmap(f)(a, b))
    one = jnp.ones(3)
    shared = jax.jit(jax.vmap(kernel(f), (0, None)))(a, one)
    assert_same(shared, jax.vmap(f, (0, None))(a, one))


@pytest.mark.parametrize("axes", [((0, 0), (0, 0)), ((0, None), (None, 0))])
def test_a_batch_of_batches_is_the_nested_loop(axes, rng):
    a, b = arguments(rng, 3)
    b = jnp.broadcast_to(b, (3, *b.shape)) if axes[0][1] == 0 else b
    a = jax.tree.map(lambda x: jnp.stack([x] * 3), a) if axes[1][0] == 0 else a
    nested = jax.vmap(jax.vmap(kernel(f), axes[1]), axes[0])
    plain = jax.vmap(jax.vmap(f, axes[1]), axes[0])
    assert_same(jax.jit(nested)(a, b), plain(a, b))


def loss(function):
    def value(*args):
        return sum((x**2).sum() for x in jax.tree.leaves(function(*args)))

    return value


@pytest.mark.first
@pytest.mark.parametrize("mode", [jax.jacfwd, jax.jacrev])
def test_derivatives_of_any_order_and_mode_are_those_of_the_function(mode, rng):
    args = arguments(rng)
    own, plain = loss(kernel(f)), loss(f)
    assert_same(jax.jit(mode(own, (0, 1)))(*args), mode(plain, (0, 1))(*args), 1e-12)
    for outer in (jax.jacfwd, jax.jacrev):
        expected = outer(mode(plain, 1), 1)(*args)
        assert_same(jax.jit(outer(mode(own, 1), 1))(*args), expected, 1e-11)


def test_derivatives_of_a_batch_and_batches_of_derivatives_agree(rng):
    a, b = arguments(rng, 100)
    each = jax.jit(jax.vmap(jax.grad(loss(kernel(f)), (0, 1)), (0, None)))(a, b[0])
    batch = jax.grad(loss(jax.vmap(kernel(f), (0, None))), (0, 1))
    whole = jax.jit(batch)(a, b[0])
    assert_same(each[0], whole[0], 1e-12)
    assert_same(each[1].sum(axis=0), whole[1], 1e-11)


def test_slopes_that_do_not_depend_on_the_batch(rng):
    x, d = jnp.asarray(rng.normal(size=(100, 3))), jnp.ones(3)
    batch = jax.vmap(kernel(lambda x, d: (jnp.round(x) + d, x > 0)), (0, None))
    _, (slope, _) = jax.jit(lambda x, d: jax.jvp(batch, (x, d), (x, d)))(x, d)
    np.testing.assert_array_equal(slope, np.ones((100, 3)))
    gradient = jax.jit(jax.grad(lambda d: batch(x, d)[0].sum()))(d)
    np.testing.assert_array_equal(gradient, np.full(3, 100.0))


def test_a_kernel_has_no_kernels_inside_but_what_cannot_be_one_has(rng):
    inner = kernel(jnp.sin)

    def factored(x):
        return jnp.linalg.cholesky(inner(x) * 0 + jnp.eye(3))

    def kernels(function):
        program = jax.make_jaxpr(kernel(function))(jnp.ones((3, 3)))
        return str(program).count("jaxdyn_kernel")

    assert kernels(lambda x: inner(x) + 1) == 1
    assert kernels(factored) == 2


def products(a, b):
    """Products along one axis and along two, with axes in common and without."""
    both = jnp.einsum("ijk,jlk->jil", a, b)
    return both, jnp.tensordot(a, b[:3], [[1, 2], [1, 2]]), a[0] @ b[0, 0]


def test_small_products_of_matrices_are_part_of_a_kernel(rng):
    a, b = (jnp.asarray(rng.normal(size=s)) for s in ((5, 3, 4, 2), (4, 4, 2)))
    own = jax.jit(jax.vmap(kernel(products), (0, None)))
    assert "dot_general" not in own.lower(a, b).as_text()
    assert_same(own(a, b), jax.vmap(products, (0, None))(a, b))


def test_derivatives_of_what_cannot_be_one_sum_over_states_in_each_step(rng):
    def network(w, x):
        return jax.lax.scan(lambda x, _: (jnp.tanh(w @ x), None), x, length=3)[0]

    w, x = (jnp.asarray(rng.normal(size=s)) for s in ((30, 30), (5, 30)))

    def slope(function):
        batch = jax.vmap(function, (None, 0))
        return jax.grad(lambda w: (batch(w, x) ** 2).sum())

    assert "5,30,30" not in str(jax.make_jaxpr(slope(kernel(network)))(w))
    assert_same(jax.jit(slope(kernel(network)))(w), slope(network)(w), 1e-13)


def test_traced_values_of_the_caller_become_arguments():
    def total(c):
        return kernel(lambda x: x * c)(jnp.arange(3.0)).sum()

    assert jax.grad(total)(2.0) == jax.jit(jax.grad(total))(2.0) == 3
    np.testing.assert_array_equal(jax.vmap(total)(jnp.arange(4.0)), 3 * np.arange(4.0))


@pytest.mark.first
@pytest.mark.parametrize("name", ["forward_dynamics", "inverse_dynamics"])
def test_the_recursions_and_their_gradients_are_kernels(name, rng):
    model = jd.robots.puma_560()
    state = [jnp.asarray(rng.normal(size=6)) for _ in range(3)]
    function = getattr(jd, name)

    def total(*args):
        return function(*args).sum()

    assert is_tagged(function, model, *state)
    text = jax.jit(jax.grad(total, (0, 1, 2))).lower(model, *state).as_text()
    assert "scatter" not in text
    assert not np.any(np.isnan(jax.jit(jax.grad(total, 1))(model, *state)))


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_a_batch_is_split_over_axes_of_any_kind(kind, rng):
    a, b = arguments(rng, 2)
    mesh = jax.make_mesh((1,), ("states",), axis_types=(kind,))
    along = NamedSharding(mesh, PartitionSpec("states"))
    split = jax.device_put(a, along), b[0]
    own, plain = (jax.vmap(x, (0, None)) for x in (kernel(f), f))
    if kind == AxisType.Explicit and jax.__version_info__ < (0, 12):
        with pytest.raises(ValueError, match=r"over the explicit axes .*JAX 0\.12"):
            own(*split)
        return
    results = jax.jit(own)(*split)
    assert_same(results, plain(a, b[0]))
    if kind == AxisType.Explicit:
        specs = {x.sharding.spec[0] for x in jax.tree.leaves(results)}
        assert specs == {"states"}
    slopes = jax.jit(jax.grad(loss(own), (0, 1)))(*split)
    assert_same(slopes, jax.grad(loss(plain), (0, 1))(a, b[0]), 1e-12)


def test_explicit_axes_that_split_states_themselves_are_named(rng):
    a, b = arguments(rng, 2)
    mesh = jax.make_mesh((1,), ("rows",), axis_types=(AxisType.Explicit,))
    split = jax.device_put(a, NamedSharding(mesh, PartitionSpec(None, "rows")))
    with pytest.raises(ValueError, match="expected along the states alone, its axis 0"):
        jax.vmap(kernel(f))(split, b)


def test_shard_map_splits_batches_with_its_defaults(rng):
    a, b = arguments(rng, 4)
    mesh = jax.make_mesh((1,), ("states",), axis_types=(AxisType.Auto,))
    specs = (PartitionSpec("states"), PartitionSpec())

    def total(function, a, b):
        return loss(jax.vmap(function, (0, None)))(a, b)

    def split(a, b):
        parts = jax.shard_map(
            lambda a, b: jax.lax.psum(total(kernel(f), a, b), "states"),
            mesh=mesh,
            in_specs=specs,
            out_specs=PartitionSpec(),
        )
        return parts(a, b)

    found = jax.jit(jax.value_and_grad(split, (0, 1)))(a, b[0])
    expected = jax.value_and_grad(total, (1, 2))(f, a, b[0])
    assert_same(found, expected, 1e-12)


def test_a_program_is_exported_for_several_platforms(rng):
    args = arguments(rng)
    made = jax.export.export(jax.jit(kernel(f)), platforms=("cpu", "cuda"))(*args)
    assert_same(made.call(*args), f(*args))


def test_a_lowering_that_fails_is_the_plain_one_with_a_warning(rng, monkeypatch):
    def renamed(_):
        raise AttributeError("no such name")

    args = arguments(rng)
    monkeypatch.setattr(_jax, "_constant", renamed)
    with pytest.warns(RuntimeWarning, match=r"not be lowered: .*no such name"):
        found = jax.jit(kernel(f))(*args)
    assert_same(found, f(*args))


def test_what_cannot_be_one_kernel_is_compiled_as_written(rng):
    x = jnp.asarray(rng.normal(size=(4, 4)))
    solve = kernel(lambda x: jnp.linalg.solve(x + 9 * jnp.eye(4), x))
    assert not is_tagged(solve, x)
    assert_same(jax.jit(solve)(x), jnp.linalg.solve(x + 9 * jnp.eye(4), x))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x * 2,  # an argument that is not used
        lambda x, y: x + jnp.where(np.zeros(3, bool), y, 0),  # turns out not to be
        lambda x, y: x + y[:0].sum(),
        lambda x, y: (x, jnp.arange(3)),
        lambda x, y: (),
    ],
    ids=["unused", "dead", "empty", "integers", "no results"],
)
def test_arguments_that_turn_out_to_be_useless_do_no_harm(function):
    x = jnp.ones(3)
    assert_same(jax.jit(kernel(function))(x, x), function(x, x))
    assert_same(jax.jit(lambda y: kernel(function)(x, y))(x), function(x, x))
    assert_same(jax.jit(lambda: kernel(function)(x, x))(), function(x, x))


CODE = """
import jax, jax.numpy as jnp, jaxdyn as jd
jax.config.update("jax_enable_x64", True)
for model, states in ((jd.robots.chain({n}), 100), (jd.robots.random_tree(1, 8), 0)):
    q, z = jd.neutral(model), jnp.zeros(model.nv)
    def total(q):
        M = jd.mass_matrix(model, q)
        return jd.forward_dynamics(model, q, z, z).sum() + M.sum()
    f = jax.value_and_grad(total)
    f, x = (jax.vmap(f), jnp.tile(q, (states, 1))) if states else (f, q)
    assert jnp.isfinite(jax.jit(f)(x)[0]).all()
"""


@pytest.mark.slow
def test_many_cores_and_models_as_constants_compile():
    code = CODE.format(n=72)  # 72² numbers are more than XLA reduces in a kernel
    environment = {"NPROC": "64", "PATH": "/usr/bin:/bin", "JAX_PLATFORMS": "cpu"}
    environment["XLA_FLAGS"] = "--xla_backend_optimization_level=0"  # LLVM's, not XLA's
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
