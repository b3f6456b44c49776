from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from experiments import rope_fit


@pytest.mark.slow
def test_stiffness_and_damping_are_found_and_known(config, tmp_path):
    small = replace(config, cylinders=2, samples=21, repetitions=3)
    model, log, tips = rope_fit.swing(small)
    exact = rope_fit.fitted(small, model, log, tips)
    true = rope_fit.known(exact, small.stiffness, small.damping)
    np.testing.assert_allclose(exact.values, true, rtol=1e-3)
    report = rope_fit.run(small, tmp_path)
    assert all((tmp_path / figure.file).is_file() for figure in report.figures)


@pytest.mark.parametrize("order", [1, -1])
def test_tables_follow_the_order_of_the_fit(order, config):
    small = replace(config, stiffness=2.0, damping=0.2, start=[3.0, 0.3])
    fit = SimpleNamespace(
        names=("j.damping[0]", "j.stiffness[0]")[::order],
        values=np.array([0.21, 2.1])[::order],
        std=np.array([0.1, 1.0])[::order],
        interval=lambda: np.array([[0.15, 0.25], [1.5, 2.5]])[::order],
        losses=[1.0],
    )
    found = {row[0]: row[1:] for row in rope_fit.found_table(small, [fit]).rows}
    assert [float(x) for x in found["damping (N m s/rad)"][:3]] == [0.3, 0.2, 0.21]
    assert [float(x) for x in found["stiffness (N m/rad)"][:3]] == [3.0, 2.0, 2.1]
    rows = rope_fit.coverage_table(small, [fit, fit]).rows
    assert {row[0]: row[1] for row in rows} == {
        "damping": "2 of 2",
        "stiffness": "2 of 2",
    }


def test_all_joints_of_the_rope_have_one_spring(config):
    small = replace(config, cylinders=3)
    chosen = rope_fit.chosen(small, rope_fit.rope(small, 1e-3, 1e-3))
    model = chosen.model(chosen.theta)
    assert len(chosen.theta) == 2
    np.testing.assert_allclose(model.stiffness, small.start[0], rtol=1e-12)
    np.testing.assert_allclose(model.damping, small.start[1], rtol=1e-12)
