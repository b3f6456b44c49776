import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from experiments import tree
from experiments.parts import tree_figures, tree_recursion


def test_speeds_must_begin_at_rest(config):
    with pytest.raises(ValueError, match="speeds is .* expected 0 and two or more"):
        tree.Config(config.reference, [], [], [0.1, 1.0], config.motion)


@pytest.mark.slow
def test_printed_formulas_hold_at_rest_and_only_there():
    b = jd.ModelBuilder("y")
    rod = jd.Inertial.box(1.0, (0.3, 0.1, 0.2)).moved(np.eye(3), np.full(3, 0.2))
    b.add_body("trunk", axis=(0, 1, 1), inertial=rod)
    b.add_body("left", "trunk", axis=(1, 0, 0), p=(0.3, 0, 0), inertial=rod)
    b.add_body("right", "trunk", axis=(0, 0, 1), p=(0, 0.3, 0), inertial=rod)
    model = b.build()
    q, tau, up = jnp.array([0.3, -0.5, 0.7]), jnp.ones(3), -np.asarray(model.gravity)
    found = tree_recursion.as_printed(model, q, tau, up)
    rest, moving = (
        jd.forward_dynamics(model, q, speed * jnp.ones(3), tau) for speed in (0.0, 1.0)
    )
    np.testing.assert_allclose(found, rest, rtol=1e-12)
    assert np.abs(found - moving).max() > 1e-3


def test_leaves_of_a_drawn_tree_stand_side_by_side():
    x, y = tree_figures.places((-1, 0, 0, 1))
    assert list(y) == [1, 2, 2, 3, 0]
    assert list(x) == [0.5, 0, 1, 0, 0.5]


@pytest.mark.slow
def test_only_the_claim_about_gyroscopic_moments_fails(config, tmp_path):
    report = tree.run(config, tmp_path)
    failed = [x.claim for x in report.verdicts if x.finding == "not reproducible"]
    assert len(failed) == 1 and failed[0].startswith("no ω x I ω")
    assert all((tmp_path / figure.file).is_file() for figure in report.figures)
