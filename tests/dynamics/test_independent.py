import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from tests.reference import cases, relative_error


@pytest.mark.reference
@pytest.mark.parametrize(
    "case",
    cases("closed_loops", "stewart_gough"),
    ids=lambda case: case["model"]["name"],
)
def test_reduced_inertia_agrees_with_independent_software(case):
    model, independent = jd.from_dict(case["model"]), case["model"]["independent"]
    for state in case["states"]:
        q = jnp.asarray(state["q"])
        found = jd.reduced_mass_matrix(model, q, independent)
        assert relative_error(found, state["reduced_M"]) < 1e-13
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
