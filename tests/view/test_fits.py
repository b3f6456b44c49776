import matplotlib
import matplotlib.pyplot
import numpy as np
import pytest
from PIL import Image

from jaxdyn.view import (
    _fits,
    plot_correlation,
    plot_deviations,
    plot_fit,
    plot_history,
    plot_intervals,
)


def drawn(path):
    """The size of a picture that has something on it."""
    with Image.open(path) as picture:
        assert picture.format == "PNG"
        assert np.ptp(np.asarray(picture.convert("L"))) > 150
        return picture.size


def forces(rng, columns, rows=50):
    tau = rng.normal(size=(rows, columns))
    return np.linspace(0, 1, rows), tau, tau + 0.1 * rng.normal(size=tau.shape)


def test_pictures_are_saved_and_nothing_global_is_touched(tmp_path, rng):
    before = matplotlib.pyplot.get_fignums(), matplotlib.get_backend()
    names, values, std = list("abc"), rng.normal(size=3), np.full(3, 0.05)
    ends = np.stack([values - 0.1, values + 0.1], axis=1)
    ends[1] = -np.inf, np.inf
    paths = [
        plot_fit(tmp_path / "a.png", names, *forces(rng, 3), held=10, unit="N m"),
        plot_intervals(tmp_path / "b.png", names, values + 0.2, values, std, ends),
        plot_correlation(
            tmp_path / "c.png", names, np.corrcoef(rng.normal(size=(3, 9)))
        ),
        plot_history(tmp_path / "d.png", 1 / np.arange(1, 9), 1 / np.arange(1, 4)),
        plot_history(tmp_path / "e.png", 1 / np.arange(1, 90)),
        plot_deviations(
            tmp_path / "f.png", names, {"best": values**2, "other": 2 * values**2}
        ),
    ]
    assert [path.stem for path in paths] == list("abcdef")
    for path in paths:
        assert drawn(path)[0] > 400
    assert (matplotlib.pyplot.get_fignums(), matplotlib.get_backend()) == before


@pytest.mark.slow
def test_pictures_of_large_robots_stay_small(tmp_path, rng):
    count = 200
    names = [f"link{k}.mass" for k in range(count)]
    values = rng.uniform(1, 2, count)
    ends = np.stack([values - 0.1, values + 0.1], axis=1)
    sizes = [
        drawn(plot_fit(tmp_path / "a.png", names, *forces(rng, count))),
        drawn(plot_intervals(tmp_path / "b.png", names, *[values] * 3, ends)),
        drawn(plot_correlation(tmp_path / "c.png", names, np.eye(count))),
        drawn(plot_deviations(tmp_path / "d.png", names, {"best": values})),
    ]
    assert np.max(sizes) < 3000


def test_zero_parameters_have_a_place(tmp_path):
    zero = np.zeros(2)
    drawn(plot_intervals(tmp_path / "a.png", ["a", "b"], *[zero] * 3, np.zeros((2, 2))))


def test_parameters_are_drawn_at_their_change_in_standard_deviations():
    nominal, values = np.array([0, 0, 2.0, 2.0]), np.array([-3e-31, 0.3, 2.5, 1.0])
    std = np.array([10.0, 0.1, 0.5, 0.0])
    found = _fits.in_deviations(values, nominal, values, std)
    np.testing.assert_allclose(found, [0, 3, 1, -0.5e6], atol=1e-15)


def test_rows_of_several_logs_are_counted(tmp_path):
    even = np.linspace(0, 1, 9)
    assert not _fits._jumps(even)
    assert _fits._jumps(np.append(even, even + 3))
