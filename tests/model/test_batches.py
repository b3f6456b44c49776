import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd


def test_leaves_by_name():
    model = jd.robots.puma_560()
    other = model.replace(damping=0.5, mass=2 * model.mass)
    assert (other.damping == 0.5).all() and (other.mass == 2 * model.mass).all()
    with pytest.raises(ValueError, match="no leaf 'damp', did you mean 'damping'"):
        model.replace(damp=1.0)
    with pytest.raises(ValueError, match=r"mass has shape \(5,\), expected \(6,\)"):
        model.replace(mass=np.ones(5))
    with pytest.raises(ValueError, match="has no leaf 'topology'"):
        model.replace(topology=1.0)


def test_random_models_are_a_batch_of_models_that_can_exist():
    model, key = jd.robots.puma_560(), jax.random.key(0)
    spread = {"mass": 0.2, "damping": (0.5, 2.0), "com": 1e-3, "gravity": 0.01}
    model = model.replace(damping=1.0)
    many = jd.randomize(model, key, spread, 16)
    ratio = np.asarray(many.mass)[:, 1:] / np.asarray(model.mass)[1:]
    assert (
        ratio.shape == (16, 5) and 0.8 < ratio.min() < 0.85 < 1.15 < ratio.max() < 1.2
    )
    scaled = ratio[3][:, None, None] * np.asarray(model.inertia)[1:]
    np.testing.assert_allclose(many.inertia[3, 1:], scaled, rtol=1e-12)
    assert 0.5 <= many.damping.min() <= many.damping.max() <= 2
    assert np.abs(np.asarray(many.com) - np.asarray(model.com)).max() <= 1e-3
    along = jd.axes(many, *spread, "inertia")
    q = jnp.ones(6)
    M = jax.vmap(jd.mass_matrix, (along, None))(many, q)
    fifth = jax.tree.map(lambda a, x: x if a is None else x[5], along, many,
                         is_leaf=lambda x: x is None)  # fmt: skip
    np.testing.assert_allclose(M[5], jd.mass_matrix(fifth, q), rtol=1e-12)
    assert jd.randomize(model, key, {"mass": 0.1}).mass.shape == (6,)


@pytest.mark.parametrize(
    ("spread", "message"),
    [
        ({"weight": 0.1}, "'weight' of model .* cannot vary"),
        ({"R": 0.1}, "'R' of model .* cannot vary"),
        ({"mass": 1.5}, "not negative"),
        ({"mass": (2.0, 1.0)}, "expected a number or a range"),
    ],
)
def test_a_wrong_spread_is_named(spread, message):
    with pytest.raises(ValueError, match=message):
        jd.randomize(jd.robots.puma_560(), jax.random.key(0), spread)
