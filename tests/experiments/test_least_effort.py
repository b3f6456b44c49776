from dataclasses import replace

import numpy as np
import pytest

from experiments import least_effort


@pytest.mark.slow
def test_the_effort_of_a_slider_is_the_closed_form(config):
    found = least_effort.slide(config.slider)
    steps, continuous = least_effort.least_effort(config.slider)
    np.testing.assert_allclose(least_effort.effort(found.taus), steps, rtol=1e-4)
    np.testing.assert_allclose(steps, continuous, rtol=5e-3)


@pytest.mark.slow
def test_it_runs(config, tmp_path):
    few = dict(steps=20, evaluations=40)
    small = replace(
        config,
        gripper=replace(config.gripper, **few, round_evaluations=10),
        puma=replace(config.puma, **few, weights=[1e4]),
    )
    report = least_effort.run(small, tmp_path)
    assert all((tmp_path / figure.file).is_file() for figure in report.figures)
    assert len(report.tables) == 3
