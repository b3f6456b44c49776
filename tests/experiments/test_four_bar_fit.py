from dataclasses import replace

import numpy as np
import pytest

from experiments import four_bar_fit


@pytest.mark.slow
def test_lengths_are_found_and_known(config):
    small = replace(config, samples=12)
    start = four_bar_fit.linkage(small.start)
    guess, _ = four_bar_fit.turned(small, start)
    true = four_bar_fit.turned(small, four_bar_fit.linkage(small.true))
    exact = four_bar_fit.fitted(small, start, guess, true, None)
    truth = four_bar_fit.truth(small, exact)
    np.testing.assert_allclose(exact.values, truth, rtol=1e-9)
    assert not exact.unknown
    noisy = four_bar_fit.fitted(small, start, guess, true, np.random.default_rng(0))
    assert (np.abs(noisy.values - truth) < 4 * noisy.std).all()


@pytest.mark.slow
def test_it_runs(config, tmp_path):
    report = four_bar_fit.run(replace(config, repetitions=3), tmp_path)
    assert all((tmp_path / figure.file).is_file() for figure in report.figures)
