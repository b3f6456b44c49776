import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from experiments import rope
from experiments.parts import rope_falls


def test_settings_are_those_of_the_paper(config):
    assert config.duration == 1.75
    assert (config.published.denoc, config.published.articulated) == (3.44, 4.54)


def test_pictures_after_the_fall_are_refused(config):
    with pytest.raises(ValueError, match="instants has 2.0, expected times from 0"):
        rope.Config(config.reference, 1.75, 3, [0.0, 2.0], 1e-8, config.published)


def test_shapes_reach_from_the_fixed_end_to_the_tip():
    model = jd.robots.rope(3)
    points, pivots = rope_falls.shapes(model, jnp.zeros((1, model.nq)))
    expected = np.arange(4)[:, None] * np.array([0.05, 0.0, 0.0])
    np.testing.assert_allclose(points[0], expected, atol=1e-17)
    assert (pivots > 0).all()


def test_tip_error_is_that_of_instants_that_both_have():
    tip = np.array([[0.0, 0.0, 0.0], [3.0, 4.0, 0.0]])
    given = {"t": [1.0, 1.5], "tip": [[0.0, 0.0, 0.0], [9.0, 9.0, 9.0]]}
    assert rope_falls.tip_error(np.array([0.0, 1.0]), tip, given) == 5.0
    with pytest.raises(ValueError, match="share no instant"):
        rope_falls.tip_error(np.array([0.0, 2.0]), tip, given)


@pytest.mark.slow
def test_energy_is_kept_and_the_tip_is_where_it_should_be(config, tmp_path):
    report = rope.run(config, tmp_path)
    findings = [x.finding for x in report.verdicts[:3]]
    assert "not reproducible" not in findings
    assert (tmp_path / "animation.html").stat().st_size < 8e6
