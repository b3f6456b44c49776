import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import jaxdyn as jd
from jaxdyn.algorithms.derivatives import inverse_slopes
from jaxdyn.algorithms.recursions import newton_euler, passive_forces
from tests.models import every_joint, moving_base, random_state, with_effects

MODELS = {
    "every joint": lambda: every_joint(3),
    "chain": lambda: jd.robots.chain(5),
    "pair": lambda: jd.robots.random_tree(
        3, 2, joints=("spherical", "helical"), branching=0.0
    ),
    "tree": lambda: jd.robots.random_tree(
        2, 8, joints=("revolute", "free", "spherical")
    ),
}
OFTEN = {("every joint", True), ("chain", False)}  # every joint, on a tree
CASES = [
    pytest.param(*case, marks=[] if case in OFTEN else [pytest.mark.slow])
    for case in itertools.product(MODELS, (True, False))
]


def jacobian(f, x):
    """The derivative of f by all entries of x, from one program for one direction."""
    x, rebuilt = ravel_pytree(x)
    push = jax.jit(lambda d: jax.jvp(lambda x: f(*rebuilt(x)), (x,), (d,))[1])
    return np.stack([push(d) for d in np.eye(x.size)], axis=1)


@pytest.mark.first
@pytest.mark.parametrize("name, is_driven", CASES)
def test_derivatives_in_closed_form_are_those_of_inverse_dynamics(name, is_driven, rng):
    model = with_effects(MODELS[name](), rng)
    q, qd, qdd = random_state(model, rng)
    options = {}
    if is_driven:
        options["base"] = moving_base(rng)
        options["f_ext"] = jnp.asarray(rng.normal(size=(model.n, 6)))

    def forces(d, qd, qdd):
        moved = jd.integrate(model, q, d)
        return jd.inverse_dynamics(model, moved, qd, qdd, **options)

    state = jnp.zeros(model.nv), qd, qdd
    expected = np.split(jacobian(forces, state), 3, axis=1)
    result = jd.inverse_dynamics_derivatives(model, q, qd, qdd, **options)
    for ours, theirs in zip(result, expected, strict=True):
        scale = np.abs(theirs).max()
        np.testing.assert_allclose(ours, theirs, atol=2e-14 * scale)


# the closed form, which it solves with, is tested for every joint above
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name == "pair" else [pytest.mark.slow])
        for name in MODELS
    ],
)
def test_linearize_is_the_jacobian_of_forward_dynamics(name, rng):
    model = with_effects(MODELS[name](), rng)
    q, qd, tau = random_state(model, rng)

    def accelerations(d, qd, tau):
        return jd.forward_dynamics(model, jd.integrate(model, q, d), qd, tau)

    state = jnp.zeros(model.nv), qd, tau
    expected = jacobian(accelerations, state)
    A, B = map(np.asarray, jax.jit(jd.linearize)(model, q, qd, tau))
    result = np.concatenate([A[model.nv :], B[model.nv :]], 1)
    np.testing.assert_allclose(result, expected, atol=1e-12 * np.abs(expected).max())


@pytest.mark.slow
def test_many_columns_are_solved_with_the_matrix_and_without_it(rng, monkeypatch):
    from jaxdyn.algorithms.recursions import _factor

    model = jd.robots.random_tree(3, 9)
    q, b = random_state(model, rng)[0], rng.normal(size=(model.nv, 5))
    factor = jd.factor(model, q)
    dense = factor.solve(jnp.asarray(b[:, :4]))
    monkeypatch.setattr(_factor, "DENSE", 0)
    monkeypatch.setattr(_factor, "_removed", None)  # of the dense solution
    columns = factor.solve(jnp.asarray(b))  # five: no program has so many yet
    np.testing.assert_allclose(columns[:, :4], dense, atol=1e-11)


def test_a_coupled_law_of_joint_forces_is_in_the_closed_form_too(rng, monkeypatch):
    from jaxdyn.algorithms.recursions import _joint_forces

    def coupled(model, qd):
        return model.damping * qd + qd[::-1] ** 2

    model = with_effects(jd.robots.chain(3), rng)
    q, qd, qdd = random_state(model, rng)
    monkeypatch.setattr(_joint_forces, "dissipative_forces", coupled)

    def forces(qd):  # none of these is compiled by itself, with the other law
        return newton_euler(model, q, qd, qdd) + passive_forces(model, q, qd)

    def both(qd):
        return inverse_slopes(model, q, qd, qdd)[1], jax.jacfwd(forces)(qd)

    found, expected = jax.jit(both)(qd)
    np.testing.assert_allclose(found, expected, atol=2e-14 * np.abs(expected).max())
