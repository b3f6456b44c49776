from dataclasses import replace

import numpy as np
import pytest

import rope_fit


@pytest.mark.slow
def test_stiffness_and_damping_are_found_and_known(config, tmp_path):
    small = replace(config, cylinders=2, samples=21, repetitions=3)
    model, log, tips = rope_fit.swing(small)
    exact = rope_fit.fitted(small, model, log, tips)
    np.testing.assert_allclose(
        exact.values, [small.damping, small.stiffness], rtol=1e-3
    )
    report = rope_fit.run(small, tmp_path)
    assert all((tmp_path / figure.file).is_file() for figure in report.figures)


def test_all_joints_of_the_rope_have_one_spring(config):
    small = replace(config, cylinders=3)
    chosen = rope_fit.chosen(small, rope_fit.rope(small, 1e-3, 1e-3))
    model = chosen.model(chosen.theta)
    assert len(chosen.theta) == 2
    np.testing.assert_allclose(model.stiffness, small.start[0], rtol=1e-12)
    np.testing.assert_allclose(model.damping, small.start[1], rtol=1e-12)
