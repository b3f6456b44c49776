from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxdyn as jd
from experiments.parts import link_frames
from jaxdyn.analysis import (
    OperationCount,
    Polynomial,
    count_operations,
    operation_polynomials,
)
from jaxdyn.analysis._interpreter import Interpreter, Symbols
from jaxdyn.dynamics import forward_dynamics, inverse_dynamics, mass_matrix
from jaxdyn.spatial import (
    Mat3,
    Sym3,
    Vec3,
    cross,
    dot,
    outer,
    similarity,
    square,
)

X, Y, Z = np.ones(3), np.ones(6), np.ones((3, 3))


def _count(f, *arrays, model=None):
    count = count_operations(lambda model, *x: f(*x), model, *arrays)
    return count.M, count.A


def _vec(f):
    return lambda *arrays: f(*map(Vec3.of, arrays))


@pytest.mark.parametrize(
    ("f", "arrays", "expected"),
    [
        (_vec(cross), (X, X + 1), (6, 3)),
        (_vec(dot), (X, X), (3, 2)),
        (_vec(outer), (X, X), (9, 0)),
        (_vec(square), (X,), (6, 0)),
        # 31, and two halvings
        (lambda r, m: similarity(Mat3.of(r), Sym3(*m)), (Z, Y), (33, 30)),
        (lambda a, b: a @ b, (Z, Z), (27, 18)),
        (lambda a, b: a @ b, (Z, X), (9, 6)),
        (jnp.cumsum, (Y,), (0, 5)),
        (jnp.sum, (Z,), (0, 8)),
        (lambda a: a**3, (1.0,), (2, 0)),
        (lambda a, b: a / b, (X, X), (3, 0)),
    ],
)
def test_known_formulas_cost_what_their_docstrings_say(f, arrays, expected):
    assert _count(f, *arrays) == expected


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda x, y: x * 0 + y, (0, 0)),
        (lambda x, y: x * 1 - 0 * y, (0, 0)),
        (lambda x, y: -(x * -y), (1, 0)),
        (lambda x, y: (x - y) * (y - x), (1, 1)),
        (lambda x, y: (x * y) + (y * x), (1, 1)),
        (lambda x, y: x - x + y, (0, 0)),
        (lambda x, y: x + x, (0, 1)),
        (lambda x, y: 2 * x, (1, 0)),
        (lambda x, y: x / 2, (1, 0)),
        (lambda x, y: jnp.where(True, x, x * y), (0, 0)),
        (lambda x, y: jnp.stack([x, y, x])[::-1][1] * x, (1, 0)),
        (lambda x, y: jnp.zeros(3).at[1].set(x).at[2].add(y).sum(), (0, 1)),
        (lambda x, y: lax.cond(True, lambda: x * y, lambda: x + y), (1, 0)),
    ],
)
def test_zeros_ones_signs_and_moves_are_free_and_equal_expressions_are_one(f, expected):
    assert _count(f, 1.0, 1.0) == expected


def test_what_depends_on_the_model_alone_is_off_line():
    count = count_operations(lambda m, x: jnp.sin(m) ** 2 * m * x, 0.3, 1.0)
    assert count == OperationCount(multiplications=1)


def test_zero_leaves_of_the_model_are_zeros_of_the_count():
    count = count_operations(lambda m, x: m @ x, np.array([0.0, 2.0, 1.0]), X)
    assert (count.M, count.A) == (1, 1)


def test_what_no_result_needs_is_not_counted():
    def f(x, y):
        unused = x * y + jnp.sin(x)
        return jnp.stack([x + y, unused])[0]

    assert _count(f, 1.0, 1.0) == (0, 1)


def test_a_scan_knows_the_zero_it_starts_from():
    def f(x):
        return lax.scan(lambda s, x: (s * x + x, None), jnp.zeros(()), x)[0]

    assert _count(f, np.ones(5)) == (4, 4)


def test_a_reversed_scan_keeps_its_results_in_place():
    def f(x):
        step = lambda s, x: (s + x, s)  # noqa: E731
        return lax.scan(step, jnp.zeros(()), x, reverse=True)[1][0]

    assert _count(f, np.ones(5)) == (0, 3)


def test_vmap_jit_and_custom_derivatives_are_looked_into():
    @jax.custom_jvp
    def f(x, y):
        return x * y

    f.defjvp(lambda x, dx: (f(*x), f(*dx)))
    assert _count(jax.jit(jax.vmap(f)), X, X) == (3, 0)


def test_functions_and_choices_are_counted_apart():
    count = count_operations(
        lambda m, x: jnp.sqrt(x) + jnp.cos(x) * jnp.abs(x), None, 1.0
    )
    assert count == OperationCount(1, 0, 1, trigonometric=1, functions=1, choices=1)


def test_divisions_are_multiplications_of_the_papers():
    count = count_operations(lambda m, x: x[0] / x[1] * x[2], None, X)
    assert (count.multiplications, count.divisions, count.M) == (1, 1, 2)


def test_a_cholesky_factor_costs_a_sixth_of_the_cube():
    f = lambda m, a: jax.scipy.linalg.cho_factor(a, lower=True)[0]  # noqa: E731
    found = operation_polynomials(f, lambda n: (None, np.eye(n)), range(1, 8))
    assert str(found.M) == "1/6 n^3 + 1/2 n^2 - 2/3 n"
    assert str(found.A) == "1/6 n^3 - 1/6 n"


def test_an_unknown_primitive_is_an_error_that_names_it():
    with pytest.raises(ValueError, match="'sort'"):
        _count(jnp.sort, X)


def test_a_branch_that_depends_on_the_state_is_an_error():
    with pytest.raises(ValueError, match="branch"):
        _count(lambda x: lax.cond(x > 0, lambda: x, lambda: x * x), 1.0)


def test_a_place_that_depends_on_the_state_is_an_error():
    with pytest.raises(ValueError, match="place"):
        _count(lambda x: x[(x[0] > 0).astype(int)], X)


def test_a_number_cut_to_a_whole_one_is_another_number():
    assert _count(lambda x: x - x.astype(int).astype(x.dtype), 1.0) == (0, 1)


@pytest.mark.parametrize("wrap", [jax.checkpoint, jax.jit, jax.vmap])
def test_calls_are_looked_into(wrap):
    assert _count(wrap(lambda x: x * x), X) == (3, 0)


def test_a_custom_reverse_rule_is_looked_into():
    f = jax.custom_vjp(lambda x: x * x)
    f.defvjp(lambda x: (f(x), x), lambda x, g: (g * x,))
    assert _count(f, X) == (3, 0)


def _evaluated(f, model, *arrays):
    """The results of the graph of scalars that is counted, as numbers."""
    interpreter = Interpreter()
    leaves, values = [], [None]
    for x in jax.tree.leaves(arrays):
        ids = [interpreter.scalars.variable() for _ in range(x.size)]
        leaves.append(Symbols(np.array(ids).reshape(x.shape)))
        values.extend(np.ravel(x))
    known = [np.asarray(x) for x in jax.tree.leaves(model)]
    program = jax.make_jaxpr(f)(model, *arrays)
    (result,) = interpreter.run(program, [*known, *leaves])
    compute = {"add": np.add, "mul": np.multiply, "div": np.divide, "sqrt": np.sqrt}
    compute |= {"sin": np.sin, "cos": np.cos}
    numbers = []
    for kind, *args in interpreter.scalars._nodes:
        if kind in ("constant", "variable"):
            numbers.append(args[0] if kind == "constant" else values[len(numbers)])
        else:
            args = [np.sign(k) * numbers[abs(k)] for k in args]
            numbers.append(compute[kind](*args))
    numbers = np.array(numbers)
    return np.sign(result.ids) * numbers[np.abs(result.ids)]


@pytest.mark.first
@pytest.mark.parametrize("f", [inverse_dynamics, mass_matrix, forward_dynamics])
def test_the_graph_that_is_counted_computes_the_dynamics(f, rng):
    model = jd.robots.random_tree(1, 5, branching=0.7)
    arrays = rng.normal(size=(1 if f is mass_matrix else 3, model.nv))
    expected = jax.jit(f)(model, *arrays)
    np.testing.assert_allclose(_evaluated(f, model, *arrays), expected, rtol=1e-10)


@pytest.mark.first
@pytest.mark.parametrize(
    ("f", "count"),
    [
        (link_frames.link_newton_euler, 3),
        (link_frames.link_gibbs_appell, 3),
        (link_frames.link_inertia_composite, 1),
        (link_frames.link_inertia_gibbs_appell, 1),
        (link_frames.link_forward_dynamics, 3),
    ],
)
def test_the_graph_of_a_robot_with_zeros_computes_its_dynamics(f, count, rng):
    links = link_frames.link_frames(jd.robots.puma_560())
    arrays = rng.normal(size=(count, 6))
    expected = jax.jit(f)(links, *arrays)
    np.testing.assert_allclose(_evaluated(f, links, *arrays), expected, atol=1e-11)


def test_forward_dynamics_by_a_dense_factor_can_be_counted():
    model = jd.robots.chain(3)
    f = lambda m, q: forward_dynamics(m, q, q, q, method="composite")  # noqa: E731
    assert count_operations(f, model, np.ones(3)).functions == 3


def test_polynomials_are_exact():
    def f(model, x):
        return jnp.outer(x, x) * model.sum() + x[0]

    found = operation_polynomials(f, lambda n: (np.ones(n), np.ones(n)), range(2, 7))
    assert found.M == Polynomial.of({2: 1, 1: 1})
    assert found.A == Polynomial.of({2: Fraction(1, 2), 1: Fraction(1, 2)})
    assert str(found) == "(n^2 + n)M (1/2 n^2 + 1/2 n)A (0)T"


def test_polynomials_print_as_in_the_papers():
    assert str(Polynomial.of({"1": "94", "0": "-81"})) == "94n - 81"
    assert str(Polynomial.of({2: "23/2", 0: -1})) == "23/2 n^2 - 1"
    assert Polynomial.of({2: "23/2", 1: "39/2", 0: -49})(6) == 482


def test_counts_that_are_not_polynomial_are_an_error():
    with pytest.raises(ValueError, match="not a polynomial"):
        Polynomial.through({n: 2**n for n in range(8)})


def test_too_few_sizes_prove_nothing():
    with pytest.raises(ValueError, match="more sizes"):
        Polynomial.through({1: 1, 2: 3})
