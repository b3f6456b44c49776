import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import Literal

from jaxdyn.spatial import (
    Mat3,
    Sym3,
    Vec3,
    cross,
    cross_columns,
    dot,
    inverse,
    outer,
    similarity,
    skew,
    skew_square,
    square,
    symmetric,
    turn_z,
)


def skew_matrix(a):
    return np.cross(a, np.eye(3), axisb=0, axisc=0)


def about_z(t):
    c, s = np.cos(t), np.sin(t)
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])


def turned(R, S):
    return R @ S @ R.T


# what is computed, from: v vector, m matrix, s symmetric matrix, r rotation, 1 number
OPERATIONS = {
    "v + v": ("vv", lambda a, b: a + b, lambda a, b: a + b),
    "v - v": ("vv", lambda a, b: a - b, lambda a, b: a - b),
    "-v": ("v", lambda a: -a, lambda a: -a),
    "v * 1": ("v1", lambda a, k: a * k, lambda a, k: a * k),
    "1 * v": ("1v", lambda k, a: k * a, lambda k, a: a * k),
    "m + m": ("mm", lambda a, b: a + b, lambda a, b: a + b),
    "m - m": ("mm", lambda a, b: a - b, lambda a, b: a - b),
    "-m": ("m", lambda a: -a, lambda a: -a),
    "m * 1": ("m1", lambda a, k: a * k, lambda a, k: a * k),
    "1 * m": ("1m", lambda k, a: k * a, lambda k, a: a * k),
    "m @ v": ("mv", lambda a, b: a @ b, lambda a, b: a @ b),
    "m @ m": ("mm", lambda a, b: a @ b, lambda a, b: a @ b),
    "m.T": ("m", lambda a: a.T, lambda a: a.T),
    "s + s": ("ss", lambda a, b: a + b, lambda a, b: a + b),
    "s - s": ("ss", lambda a, b: a - b, lambda a, b: a - b),
    "-s": ("s", lambda a: -a, lambda a: -a),
    "s * 1": ("s1", lambda a, k: a * k, lambda a, k: a * k),
    "1 * s": ("1s", lambda k, a: k * a, lambda k, a: a * k),
    "s @ v": ("sv", lambda a, b: a @ b, lambda a, b: a @ b),
    "s @ m": ("sm", lambda a, b: a @ b, lambda a, b: a @ b),
    "s.mat()": ("s", lambda a: a.mat(), lambda a: a),
    "Sym3.diagonal": ("1", Sym3.diagonal, lambda k: k * np.eye(3)),
    "dot": ("vv", dot, np.dot),
    "cross": ("vv", cross, np.cross),
    "outer": ("vv", outer, np.outer),
    "skew": ("v", skew, skew_matrix),
    "cross_columns": ("vm", cross_columns, lambda a, m: skew_matrix(a) @ m),
    "inverse": ("r", inverse, np.linalg.inv),
    "symmetric": ("m", symmetric, lambda m: m + m.T),
    "square": ("v", square, lambda a: np.outer(a, a)),
    "square, scaled": ("v1", square, lambda a, k: k * np.outer(a, a)),
    "skew_square": (
        "v1",
        skew_square,
        lambda a, k: -k * skew_matrix(a) @ skew_matrix(a),
    ),
    "similarity": ("rs", similarity, turned),
    "turn_z": (
        "m1",
        lambda m, t: turn_z(m, jnp.cos(t), jnp.sin(t)),
        lambda m, t: m @ about_z(t),
    ),
}
PRODUCTS = (
    "m @ m",
    "s @ v",
    "cross_columns",
    "square, scaled",
    "skew_square",
    "similarity",
    "turn_z",
)
every_operation = pytest.mark.parametrize(
    "kinds, function, expected", OPERATIONS.values(), ids=OPERATIONS
)


def draw(rng, kind, batch=()):
    if kind == "1":
        return rng.normal(size=batch)
    if kind == "v":
        return rng.normal(size=(*batch, 3))
    m = rng.normal(size=(*batch, 3, 3))
    if kind == "s":
        return m + np.swapaxes(m, -1, -2)
    if kind == "r":
        q = np.linalg.qr(m)[0]
        return q * np.linalg.det(q)[..., None, None]
    return m


def on_arrays(kinds, function):
    """The function between component types as a function between arrays."""
    read = {"1": lambda x: x, "v": Vec3.of, "m": Mat3.of, "r": Mat3.of, "s": Sym3.of}

    def result(*arrays):
        y = function(*(read[k](a) for k, a in zip(kinds, arrays, strict=True)))
        return y if isinstance(y, jax.Array) else y.array()

    return result


def count(function, kinds, names):
    """How often the primitives occur, products with a constant left out."""
    shapes = {"1": (), "v": (3,)}
    read = {"1": lambda x: x, "v": Vec3.of, "m": Mat3.of, "s": Sym3.of}
    args = [read[k](jnp.ones(shapes.get(k, (3, 3)))) for k in kinds]
    equations = jax.make_jaxpr(function)(*args).jaxpr.eqns
    return sum(
        e.primitive.name in names and not any(isinstance(x, Literal) for x in e.invars)
        for e in equations
    )


@every_operation
def test_operation_agrees_with_numpy_under_jit_and_vmap(rng, kinds, function, expected):
    args = [draw(rng, kind, (5,)) for kind in kinds]
    got = jax.jit(jax.vmap(on_arrays(kinds, function)))(*args)
    want = np.stack([expected(*one) for one in zip(*args, strict=True)])
    np.testing.assert_allclose(got, want, rtol=1e-14, atol=1e-14 * abs(want).max())


@pytest.mark.parametrize("name", PRODUCTS)
def test_reverse_derivative_is_the_transpose_of_the_forward_one(rng, name):
    kinds, function, _ = OPERATIONS[name]
    args, d = (tuple(draw(rng, kind) for kind in kinds) for _ in range(2))
    f = on_arrays(kinds, function)

    @jax.jit
    def both_ways(args, d):
        y, dy = jax.jvp(f, args, d)
        back = jax.vjp(f, *args)[1](y)
        return jnp.vdot(y, dy), sum(map(jnp.vdot, back, d))

    forward, reverse = both_ways(args, d)
    np.testing.assert_allclose(forward, reverse, rtol=1e-12)


@every_operation
def test_float32_stays_float32(rng, kinds, function, expected):
    args = [jnp.asarray(draw(rng, kind), jnp.float32) for kind in kinds]
    assert jax.eval_shape(on_arrays(kinds, function), *args).dtype == jnp.float32


@pytest.mark.parametrize(
    "function, kinds, multiplications, additions",
    [
        (dot, "vv", 3, 2),
        (cross, "vv", 6, 3),
        (outer, "vv", 9, 0),
        (cross_columns, "vm", 18, 9),
        (lambda m, v: m @ v, "mv", 9, 6),
        (lambda m, n: m @ n, "mm", 27, 18),
        (lambda s, v: s @ v, "sv", 9, 6),
        (lambda s, m: s @ m, "sm", 27, 18),
        (symmetric, "m", 0, 6),
        (square, "v", 6, 0),
        (square, "v1", 9, 0),
        (similarity, "ms", 31, 30),
        (turn_z, "m11", 12, 6),
    ],
)
def test_operation_counts_are_the_documented_ones(
    function, kinds, multiplications, additions
):
    counts = [count(function, kinds, names) for names in ({"mul"}, {"add", "sub"})]
    assert counts == [multiplications, additions]


@pytest.mark.parametrize("kind, type_", [("v", Vec3), ("m", Mat3), ("s", Sym3)])
def test_arrays_survive_the_way_to_components_and_back(rng, kind, type_):
    a = draw(rng, kind, (4, 2))
    np.testing.assert_array_equal(type_.of(jnp.asarray(a)).array(), a)


def test_a_matrix_is_kept_as_its_columns(rng):
    a = draw(rng, "m")
    np.testing.assert_array_equal(Mat3.of(jnp.asarray(a)).y.array(), a[:, 1])


def test_sym3_of_is_the_symmetric_part(rng):
    a = draw(rng, "m")
    got = Sym3.of(jnp.asarray(a)).array()
    np.testing.assert_allclose(got, (a + a.T) / 2, rtol=1e-14)


@pytest.mark.parametrize(
    "constant, expected",
    [
        (Vec3.zero, np.zeros(3)),
        (Mat3.identity, np.eye(3)),
        (Sym3.zero, np.zeros((3, 3))),
    ],
)
def test_constants_have_the_given_dtype(constant, expected):
    got = constant(jnp.float32).array()
    np.testing.assert_array_equal(got, expected.astype(np.float32), strict=True)


def test_components_may_be_python_numbers():
    assert cross(Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0)) == Vec3(0.0, 0.0, 1.0)


@pytest.mark.parametrize(
    "value",
    [
        Vec3(1.0, 2.0, 3.0),
        Mat3(Vec3(1.0, 2.0, 3.0), Vec3(4.0, 5.0, 6.0), Vec3(7.0, 8.0, 9.0)),
        Sym3(1.0, 2.0, 3.0, 4.0, 5.0, 6.0),
    ],
    ids=["Vec3", "Mat3", "Sym3"],
)
def test_a_numpy_array_on_the_left_multiplies_the_components(value):
    factor = np.array([1.0, 2.0])
    got = factor * value
    assert type(got) is type(value)
    parts, want = jax.tree.leaves(got), jax.tree.leaves(value)
    np.testing.assert_array_equal(parts, [x * factor for x in want])


def test_components_of_any_shape_are_worked_on_in_place(rng):
    a, b = draw(rng, "v", (4, 2)), draw(rng, "v", (4, 2))
    got = cross(Vec3.of(jnp.asarray(a)), Vec3.of(jnp.asarray(b))).array()
    np.testing.assert_allclose(got, np.cross(a, b), atol=1e-14)


def test_similarity_keeps_the_eigenvalues(rng):
    r, s = draw(rng, "r"), draw(rng, "s")
    got = jax.jit(on_arrays("rs", similarity))(r, s)
    want = np.linalg.eigvalsh(s)
    np.testing.assert_allclose(np.linalg.eigvalsh(got), want, atol=1e-13)


def test_gradients_are_taken_through_the_pytrees(rng):
    a, b = (Vec3.of(jnp.asarray(draw(rng, "v"))) for _ in range(2))
    gradient = jax.grad(lambda x: dot(x, x) + dot(x, b))(a)
    np.testing.assert_allclose(gradient.array(), 2 * a.array() + b.array(), rtol=1e-14)
