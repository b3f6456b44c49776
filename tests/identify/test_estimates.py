import numpy as np
import pytest
import scipy.stats

from jaxdyn.identify import confidence_interval


def test_intervals_of_positive_values_are_those_of_their_logarithms():
    values, std = np.array([2.0, -2.0, 1e-3]), np.array([1.5, 1.5, np.inf])
    positive = [True, False, True]
    ends = confidence_interval(values, std, 7, 0.9, positive=positive)
    t = scipy.stats.t.ppf(0.95, 7)
    expected = [
        [2 * np.exp(-0.75 * t), 2 * np.exp(0.75 * t)],
        [-2 - 1.5 * t, -2 + 1.5 * t],
        [0, np.inf],
    ]
    np.testing.assert_allclose(ends, expected, rtol=1e-14)


@pytest.mark.parametrize("share", [1e-2, 1e-4])
def test_both_kinds_agree_where_values_are_known_well(share):
    values = np.array([1e-3, 1.0, 50.0])
    std = share * values
    by_log = confidence_interval(values, std, 100, positive=True)
    plain = confidence_interval(values, std, 100)
    half = plain[:, 1] - values
    difference = by_log - plain
    expected = np.stack([half**2 / (2 * values)] * 2, axis=1)  # and third powers
    np.testing.assert_allclose(difference, expected, rtol=share)


def test_they_contain_the_truth_as_often_as_they_say(rng):
    """Of a mean of 20 positive numbers, with a scatter of a third of it."""
    draws = 3 + rng.normal(size=(4000, 20))
    mean, std = draws.mean(axis=1), draws.std(axis=1, ddof=1) / np.sqrt(20)
    low, high = confidence_interval(mean, std, 19, 0.9, positive=True).T
    # three standard deviations of the count, and 0.003 for what is of second order
    assert abs(np.mean((low < 3) & (3 < high)) - 0.9) < 0.018


def test_a_level_is_a_share():
    with pytest.raises(ValueError, match="level is 95.0, expected between 0 and 1"):
        confidence_interval([1.0], [1.0], 3, 95.0)
