import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.algorithms.derivatives import inverse_gradient
from tests.models import every_joint, moving_base, random_state, with_effects

MODELS = {
    "chain": lambda: jd.robots.chain(5),
    "every joint": lambda: every_joint(3),
    "tree": lambda: jd.robots.random_tree(
        2, 8, joints=("revolute", "free", "spherical")
    ),
}
OFTEN = {("every joint", True), ("chain", False)}  # every joint, on a tree
CASES = [
    pytest.param(*case, marks=[] if case in OFTEN else [pytest.mark.slow])
    for case in itertools.product(MODELS, (True, False))
]


def state(name, is_driven, rng):
    model = with_effects(MODELS[name](), rng)
    q, qd, qdd = random_state(model, rng)
    f_ext = base = None
    if is_driven:
        base = moving_base(rng)
        f_ext = jnp.asarray(rng.normal(size=(model.n, 6)))
    return model, jnp.asarray(rng.normal(size=model.nv)), q, qd, qdd, f_ext, base


@pytest.mark.first
@pytest.mark.parametrize("name, is_driven", CASES)
def test_the_gradient_in_closed_form_is_that_of_inverse_dynamics(name, is_driven, rng):
    model, rate, q, qd, qdd, f_ext, base = x = state(name, is_driven, rng)

    def forces(q, qd):
        return jd.inverse_dynamics(model, q, qd, qdd, f_ext=f_ext, base=base)

    expected = jax.jit(lambda: jax.vjp(forces, q, qd)[1](rate))()
    for ours, theirs in zip(jax.jit(inverse_gradient)(*x), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-14 * np.abs(theirs).max())
