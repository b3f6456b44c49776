"""Forward dynamics by pieces: any tree, any cut, and its derivatives."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from tests.models import (
    every_joint,
    massless_middle,
    moving_base,
    random_state,
    with_effects,
)


@cache
def forest():
    """Three trees of one, two and five bodies, the last with two branches."""
    parents = [-1, -1, 1, -1, 3, 4, 3, 6]
    single = jd.to_dict(jd.robots.random_tree(5, 8, branching=0.0))["bodies"]
    bodies = [b | {"parent": p} for b, p in zip(single, parents, strict=True)]
    for body in bodies:
        body.pop("idx_q"), body.pop("idx_v")
    return jd.from_dict({"name": "forest", "bodies": bodies})


MODELS = {
    "every joint": lambda: every_joint(branched=False),
    "forest": forest,
    "massless middle": massless_middle,
    "fan": lambda: jd.robots.random_tree(4, 14, branching=1.0, floating_base=True),
}


def relative(found, exact):
    found, exact = np.asarray(found), np.asarray(exact)
    return float(np.abs(found - exact).max() / np.abs(exact).max())


@pytest.mark.slow
@pytest.mark.first
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name == "fan" else [])
        for name in MODELS
    ],
)
def test_pieces_of_any_size_give_the_same_accelerations(name, rng):
    model = MODELS[name]()
    if name != "massless middle":
        model = with_effects(model, rng)
    q, qd, tau = random_state(model, rng)
    f_ext = jnp.asarray(rng.normal(size=(model.n, 6)))
    base = moving_base(rng)

    @jax.jit
    def run(model):
        def accelerations(**options):
            given = dict(f_ext=f_ext, base=base, **options)
            return jd.forward_dynamics(model, q, qd, tau, **given)

        pieces = [accelerations(method="parallel", chunk=c, refine=1) for c in (1, 3)]
        return accelerations(), *pieces

    exact, *found = run(model)
    assert max(relative(x, exact) for x in found) < 2e-13


def test_one_body_and_pieces_without_joins(rng):
    model = jd.robots.random_tree(0, 1, joints=("spherical",))
    q, qd, tau = random_state(model, rng)
    found = jd.forward_dynamics(model, q, qd, tau, method="parallel", chunk=1)
    assert relative(found, jd.forward_dynamics(model, q, qd, tau)) < 1e-13


@pytest.fixture(scope="module")
def snake():
    """A chain of 32 joints in pieces of eight, a state, and all of it as one vector."""
    rng = np.random.default_rng(0)
    model = jd.robots.random_tree(7, 32, branching=0.0)
    q, qd, tau = (0.3 * x for x in random_state(model, rng))
    return model, (q, qd, tau), jnp.asarray(rng.normal(size=model.nv))


def scaled(model, x):
    """The model with all masses, inertias, offsets and gravity scaled by 1 + x."""
    names = ("mass", "inertia", "p", "gravity", "com")
    values = [getattr(model, k) * (1 + 0.1 * x) for k in names]
    return eqx.tree_at(lambda m: [getattr(m, k) for k in names], model, values)


def number(snake, method, **options):
    """A number that depends on the state and the parameters, along one direction."""
    model, (q, qd, tau), w = snake

    def f(x, y):
        inputs = q + 0.1 * x * w, qd + x * w[::-1], tau + x * w
        moved = scaled(model, y)
        qdd = jd.forward_dynamics(moved, *inputs, method=method, **options)
        return jnp.vdot(w, qdd)

    return f


def difference(f, h):
    """Sixth-order central difference at zero."""
    rows = ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))
    return sum(c * (f(k * h) - f(-k * h)) for k, c in rows) / h


def assert_slopes(snake, size):
    f = number(snake, "parallel", chunk=8, refine=1)
    push = jax.jit(lambda at, along: jax.jvp(f, at, along))
    reverse = jax.jit(jax.grad(f, (0, 1)))(0.0, 0.0)
    for along, b in zip(((1.0, 0.0), (0.0, 1.0)), reverse, strict=True):
        a = push((0.0, 0.0), along)[1]
        c = difference(lambda h: push((h * along[0], h * along[1]), along)[0], 2e-3)  # noqa: B023
        np.testing.assert_allclose(a, b, rtol=1e-9)  # a sum that cancels: 1.2e-10 seen
        np.testing.assert_allclose(a, c, rtol=size)


@pytest.mark.slow
def test_derivatives_by_state_and_parameters_are_differences(snake):
    assert_slopes(snake, 1e-8)


@pytest.mark.slow
def test_they_are_so_at_256_joints():
    rng = np.random.default_rng(0)
    model = jd.robots.protein_chain("A" * 128)
    q = jnp.asarray(np.where(np.arange(256) % 2, -0.82, -1.0))
    w = jnp.asarray(rng.normal(size=256))
    assert_slopes((model, (q, 0.1 * w, w[::-1]), w), 1e-8)


def test_gradients_are_those_of_the_sequential_method(snake):
    model, state, w = snake

    def gradient(**options):
        def f(*state):
            return w @ jd.forward_dynamics(model, *state, **options)

        return jax.jit(jax.grad(f, (0, 1, 2)))(*state)

    pairs = zip(gradient(method="parallel", chunk=8), gradient(), strict=True)
    assert max(relative(x, y) for x, y in pairs) < 1e-10


@pytest.mark.slow
def test_second_derivatives_are_those_of_the_sequential_method(rng):
    model = jd.robots.random_tree(8, 3, branching=0.0)
    state, w = random_state(model, rng), jnp.ones(3)

    def parallel(*state):
        return w @ jd.forward_dynamics(model, *state, method="parallel", chunk=1)

    @jax.jit
    def bent(*state):
        return jax.jvp(jax.grad(parallel), state, (w, w, w))[1]

    @jax.jit
    def expected(axis, *state):  # forward in forward mode compiles in less time
        def slope(q, qd, tau):
            return jax.jvp(
                lambda q: w @ jd.forward_dynamics(model, q, qd, tau), (q,), (axis,)
            )[1]

        return jax.jvp(slope, state, (w, w, w))[1]

    rows = [expected(axis, *state) for axis in np.eye(3)]
    assert relative(bent(*state), rows) < 1e-11


def test_a_batch_is_the_loop(snake):
    model, state, _ = snake

    def run(*state):
        return jd.forward_dynamics(model, *state, method="parallel", chunk=8)

    batch = [np.stack([x, -x, 2 * x]) for x in map(np.asarray, state)]
    found, one = jax.jit(jax.vmap(run))(*batch), jax.jit(run)
    for k in range(3):
        assert relative(found[k], one(*(x[k] for x in batch))) < 1e-12
