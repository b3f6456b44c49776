from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from experiments import puma_fit
from jaxdyn import identify
from jaxdyn.motion import fourier


@pytest.fixture(scope="module")
def fourier_log(config):
    """A random motion instead of an improved one, which takes a minute."""
    model, rng = puma_fit.puma(config), np.random.default_rng(1)
    size = np.array([0.5, 0.5, 0.5, 1.0, 0.6, 1.0]) / np.arange(1, 6)[:, None]
    sines, cosines = jnp.asarray(rng.normal(size=(2, 5, 6)) * size)
    q0 = jnp.array([0.0, 1.5, -1.5, 0.5, 0.0, 0.0])
    motion = fourier(model, q0, sines, cosines, config.motion.duration)
    return model, puma_fit.sampled(config, model, motion)


@pytest.mark.slow
def test_intervals_are_honest_only_with_all_precautions(config, fourier_log, rng):
    few = replace(config, repetitions=15, projected=2)
    model, exact = fourier_log
    base = identify.base_parameters(model)
    studies, fits = puma_fit.repeated(few, model, base, exact, rng)
    shares = [x.is_inside.mean() for x in studies.values()]
    assert 0.92 < shares[0] < 0.98
    assert shares[2] < 0.7
    found = puma_fit.projected(few, model, base, fits, exact, rng)
    assert found["smallest"].min() > 0
    assert found["projected"].max() < 0.02 < found["nominal"].min()


@pytest.mark.slow
def test_it_runs(config, tmp_path):
    motion = replace(config.motion, steps=20)
    few = replace(config, repetitions=30, motion=motion)
    report = puma_fit.run(few, tmp_path)
    assert all((tmp_path / figure.file).is_file() for figure in report.figures)
