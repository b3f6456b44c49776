from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from experiments import linkage_design
from experiments.parts import linkage_fits


def test_the_loop_is_closed_at_every_crank_angle(config):
    model = linkage_fits.shaped(jd.robots.four_bar(), (0.25, 0.88))
    angles = linkage_design.crank_angles(24)
    passive = jnp.asarray(config.passive)
    program = jax.jit(linkage_fits.assembled)
    start = program(model, passive, angles[:1])[0, 1:]
    qs = program(model, start, angles)
    np.testing.assert_array_equal(qs[:, 0], angles)
    residual = jax.vmap(lambda q: jd.loop_residual(model, q))(qs)
    assert np.abs(residual).max() < 1e-14


@pytest.mark.slow
def test_masses_are_found_from_accelerations(config):
    few = replace(config.identification, samples=4, steps=8)
    small = replace(config, identification=few)
    model, passive = jd.robots.four_bar(), jnp.asarray(config.passive)
    found = linkage_design.identified(small, model, passive)
    np.testing.assert_allclose(found.found, few.true, rtol=1e-7)
    assert linkage_design.relative(found) < 1e-8


@pytest.mark.slow
def test_it_runs(config, tmp_path):
    report = linkage_design.run(config, tmp_path)
    assert all((tmp_path / figure.file).is_file() for figure in report.figures)
    assert [v.finding for v in report.verdicts] == ["reproduced"]
