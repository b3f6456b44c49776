from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from experiments import closed_loops
from experiments.parts import loop_motions


@pytest.fixture(scope="module")
def four_bar(config):
    given = loop_motions.mechanisms(config.planar, config.spatial)[:1]
    steps = replace(config.steps, duration=0.2, step=0.002)
    return given[0], steps, loop_motions.motions(given, steps)[0]


def test_every_mechanism_starts_closed(config):
    given = loop_motions.mechanisms(config.planar, config.spatial)
    assert [x.name for x in given] == list(loop_motions.MECHANISMS)
    for x in given:
        assert np.abs(jd.loop_residual(x.model, jnp.asarray(x.q))).max() < 1e-14


@pytest.mark.slow
def test_projection_keeps_the_four_bar_closed(four_bar):
    mechanism, _, found = four_bar
    opening = {care: rows.residual.max() for care, rows in found.items()}
    assert opening["projection"] < 1e-15
    assert max(opening["Baumgarte"], opening["none"]) < 1e-8
    assert np.abs(found["projection"].drift).max() < 2e-8
    assert loop_motions.from_reference(mechanism, found["projection"]) < 1e-8


@pytest.mark.slow
def test_loop_forces_act_as_external_forces_on_the_cut_tree(four_bar):
    mechanism, _, found = four_bar
    (left,) = loop_motions.balances([mechanism], [found["projection"]], 3)
    assert max(left.motion, left.closure, left.cut) < 1e-12


def test_tables_and_verdicts_of_one_mechanism(four_bar):
    mechanism, _, found = four_bar
    left = loop_motions.Balance(1e-15, 1e-15, 1e-14)
    verdicts = closed_loops.verdicts([mechanism], [found], [left])
    assert [v.finding for v in verdicts] == [
        *("reproduced",) * 3,
        "reproduced in a different form",
    ]
    lost = loop_motions.Balance(1e-3, 1e-15, 1e-3)
    verdicts = closed_loops.verdicts([mechanism], [found], [lost])
    assert [v.finding for v in verdicts][:3] == ["not reproducible"] * 3
    assert len(closed_loops.drift_table([mechanism], [found], "").rows) == 3


@pytest.mark.slow
def test_it_runs(config, tmp_path):
    short = replace(config, steps=replace(config.steps, duration=0.1, step=0.002))
    report = closed_loops.run(short, tmp_path)
    assert all((tmp_path / figure.file).is_file() for figure in report.figures)
    assert "not reproducible" not in {v.finding for v in report.verdicts}
