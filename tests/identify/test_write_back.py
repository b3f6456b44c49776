"""A model that was fitted is written to files and read from them again."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd

INERTIAL = ("mass", "com", "inertia")


def fitted(rng, *effects):
    """A chain whose inertial leaves and joint effects have been changed."""
    model = jd.robots.chain(3)
    boxes = [
        jd.Inertial.box(rng.uniform(0.5, 3.0), rng.uniform(0.1, 0.6, 3)).moved(
            np.eye(3), rng.uniform(-0.2, 0.2, 3)
        )
        for _ in range(3)
    ]
    values = [np.array([getattr(x, key) for x in boxes], float) for key in INERTIAL]
    values += [rng.uniform(0.1, 1.0, 3) for _ in effects]
    names = [*INERTIAL, *effects]
    changed = [jnp.asarray(x) for x in values]
    return eqx.tree_at(lambda m: [getattr(m, x) for x in names], model, changed)


def test_urdf_keeps_every_digit_of_a_fit(rng):
    model = fitted(rng, "damping", "friction")
    again = jd.load_urdf(jd.to_urdf(model))
    for name in (*INERTIAL, "damping", "friction", "friction_speed"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    np.testing.assert_array_equal(
        jd.dynamic_parameters(again), jd.dynamic_parameters(model)
    )


@pytest.mark.parametrize("effect", ["armature", "stiffness"])
def test_urdf_does_not_lose_a_fitted_effect_in_silence(effect, rng):
    model = fitted(rng, effect)
    with pytest.raises(ValueError, match=f"has {effect}, which URDF cannot hold: keep"):
        jd.to_urdf(model)
    again = jd.load_urdf(jd.to_urdf(model, drop=[effect]))
    np.testing.assert_array_equal(getattr(again, effect), np.zeros(3))
    np.testing.assert_array_equal(again.inertia, model.inertia)


def test_dictionary_keeps_every_digit_of_all_effects(rng):
    names = ("armature", "damping", "friction", "friction_speed", "stiffness", "rest")
    model = fitted(rng, *names)
    again = jd.from_dict(json.loads(json.dumps(jd.to_dict(model))))
    assert repr(again.topology) == repr(model.topology)
    jax.tree.map(np.testing.assert_array_equal, again, model)
