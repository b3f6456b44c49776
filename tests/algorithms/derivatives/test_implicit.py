import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import jacfwd, jacrev, jvp, vjp

import jaxdyn as jd
from jaxdyn.dynamics import FORWARD
from tests.models import random_state, with_effects

MODES = {"forward": jacfwd, "reverse": jacrev}


@pytest.fixture(scope="module")
def chain():
    rng = np.random.default_rng(0)
    model = jd.robots.random_tree(3, 2, joints=("spherical", "helical"), branching=0.0)
    model = with_effects(model, rng)
    return model, random_state(model, rng), jnp.asarray(rng.normal(size=model.nv))


def scalar(chain, method="denoc"):
    """A number that depends on state, torque and inertia through one vector x."""
    model, (q, qd, tau), weights = chain

    def f(x):
        moved = jd.integrate(model, q, x[: model.nv])
        pi = jd.inertial_parameters(model) * (1 + x[model.nv])
        heavier = jd.with_inertial_parameters(model, pi)
        qdd = jd.forward_dynamics(heavier, moved, qd, tau * x[-1], method=method)
        return weights @ qdd

    return f, jnp.zeros(model.nv + 2).at[-1].set(1.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "outer, inner",
    [
        ("forward", "reverse"),
        pytest.param("reverse", "forward", marks=pytest.mark.slow),
        pytest.param("forward", "forward", marks=pytest.mark.slow),
        pytest.param("reverse", "reverse", marks=pytest.mark.slow),
    ],
)
def test_second_derivatives_are_right_in_every_order_of_modes(outer, inner, chain):
    f, x = scalar(chain)
    h, x, axes, one = 1e-4, np.asarray(x), np.eye(x.size), np.ones(())
    found, expected = [], []

    @jax.jit
    def slope_and_bend(x, a, b):
        def slope(x):  # along a
            if inner == "forward":
                return jvp(f, (x,), (a,))[1]
            return vjp(f, x)[1](one)[0] @ a

        if outer == "forward":
            return jvp(slope, (x,), (b,))
        value, pull = vjp(slope, x)
        return value, pull(one)[0] @ b

    for a, b in itertools.product(axes, axes):
        near, far = (
            slope_and_bend(x + k * h * b, a, b)[0]
            - slope_and_bend(x - k * h * b, a, b)[0]
            for k in (1, 2)
        )
        expected.append((8 * near - far) / (12 * h))
        found.append(slope_and_bend(x, a, b)[1])
    scale = np.abs(found).max()
    np.testing.assert_allclose(found, expected, atol=1e-9 * scale)


@pytest.fixture(scope="module")
def gradient(chain):
    f, x = scalar(chain)
    return jax.jit(jax.grad(f))(x)


@pytest.mark.slow
@pytest.mark.first
@pytest.mark.parametrize("method", sorted(FORWARD.keys() - {"denoc"}))
def test_derivatives_do_not_depend_on_the_method(method, chain, gradient):
    other, x = scalar(chain, method)
    scale = 1e-11 * np.abs(gradient).max()
    np.testing.assert_allclose(jax.jit(jax.grad(other))(x), gradient, atol=scale)


@pytest.mark.slow
def test_hessians_of_a_batch_are_those_of_its_members(chain):
    f, x = scalar(chain)
    batch = jnp.stack([x, 1.1 * x])
    hessian = jax.jit(jax.hessian(f))
    found = jax.jit(jax.vmap(jax.hessian(f)))(batch)
    for row, x in zip(found, batch, strict=True):
        np.testing.assert_allclose(row, hessian(x), atol=1e-11 * np.abs(row).max())


@pytest.fixture(scope="module")
def alone():
    """Weighted accelerations as functions of qd, tau and external wrenches alone."""
    rng = np.random.default_rng(1)
    model = jd.robots.random_tree(2, 2, joints=("revolute",), branching=0.0)
    q, qd, tau = random_state(model, rng)
    x = {"qd": qd, "tau": tau, "f_ext": jnp.asarray(rng.normal(size=(2, 6)))}

    def f(name, value):
        given = {**x, name: value}
        return jd.forward_dynamics(model, q, **given) @ jnp.array([1.0, -2.0])

    return f, x


@pytest.mark.slow
def test_second_derivatives_by_velocities_alone_are_second_differences(alone):
    f, x = alone
    g, at = jax.jit(lambda qd: f("qd", qd)), x["qd"]
    second = jax.jit(lambda at: jax.jvp(jax.grad(g), (at,), (at,))[1] @ at)(at)
    expected = g(2 * at) - 2 * g(at) + g(0 * at)  # exact: g is quadratic
    np.testing.assert_allclose(second, expected, atol=1e-12)


@pytest.mark.first
@pytest.mark.parametrize(
    "name, outer, inner",
    [(name, "forward", "reverse") for name in ("qd", "tau", "f_ext")]
    + [("tau", outer, "forward") for outer in MODES]
    + [("tau", "reverse", "reverse")],
)
def test_second_derivatives_by_one_argument_alone_exist_in_all_modes(
    name, outer, inner, alone
):
    f, x = alone
    second = MODES[outer](MODES[inner](lambda y: f(name, y)))
    assert jax.eval_shape(second, x[name]).shape == 2 * x[name].shape


@pytest.mark.slow
def test_solutions_with_the_factor_of_forward_dynamics_vary_with_the_inertia():
    model = jd.robots.random_tree(2, 2, joints=("revolute",), branching=0.0)
    q, b, v = jnp.array([0.3, -0.4]), jnp.array([1.0, 2.0]), jnp.array([0.5, 1.5])

    def handed_out(q):
        _, solve = FORWARD["denoc"].solution(model, q, b, b, None, None)
        return solve(b, model, q)

    def eliminated(q):
        return jd.factor(model, q).solve(b)

    slopes = jax.jit(
        lambda q: [jax.jvp(f, (q,), (v,))[1] for f in (handed_out, eliminated)]
    )
    found, expected = slopes(q)
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(found, expected, rtol=1e-11)
