import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from tests.mechanisms import MECHANISMS, forest
from tests.reference import relative_error


@pytest.mark.reference
def test_reduced_inertia_agrees_with_independent_software():
    together = forest()
    model, chosen = together.model, together.coordinates("independent")
    independent = sum(chosen.values(), [])
    for k in range(3):
        q = together.at(k, "q")
        found = np.asarray(jd.reduced_mass_matrix(model, q, independent))
        for name, case in MECHANISMS.items():
            own = [independent.index(i) for i in chosen[name]]
            expected = case["states"][k]["reduced_M"]
            assert relative_error(found[np.ix_(own, own)], expected) < 1e-13
        G = jd.loop_complement(model, q, independent)
        np.testing.assert_allclose(jd.loop_jacobian(model, q) @ G, 0, atol=1e-13)


def test_independent_coordinates_may_be_named_and_are_counted():
    model, q = jd.robots.four_bar(), jnp.array([0.9, -0.4, 1.5])
    by_name = jd.loop_complement(model, q, "crank")
    np.testing.assert_array_equal(by_name, jd.loop_complement(model, q, 0))
    with pytest.raises(ValueError, match="has 0 of the 3 .* at least 1: .*loop 0"):
        jd.loop_complement(model, q, ())
    with pytest.raises(ValueError, match="independent has 3, expected the name of a"):
        jd.loop_complement(model, q, 3)
