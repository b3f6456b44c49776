import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import jacfwd, jacrev

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
    found = jax.jit(MODES[outer](MODES[inner](f)))(x)
    slope, h = jax.jit(jax.grad(f)), 1e-4
    rows = []
    for e in jnp.eye(x.size):
        near, far = ((slope(x + k * h * e) - slope(x - k * h * e)) for k in (1, 2))
        rows.append((8 * near - far) / (12 * h))
    scale = np.abs(found).max()
    np.testing.assert_allclose(found, jnp.stack(rows), atol=1e-9 * scale)


@pytest.fixture(scope="module")
def gradient(chain):
    f, x = scalar(chain)
    return jax.jit(jax.grad(f))(x)


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
