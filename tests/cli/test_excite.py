import csv
import json
import re

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.cli import _excite, main
from jaxdyn.cli._identify_settings import Excitation
from jaxdyn.io import load_log, load_trajectory, read_config

BASIC = """\
robot = "arm.json"
duration = 2
degrees = true
parameters = ["*.inertial"]
harmonics = 2
samples = 21
rate = 50
steps = 2
starts = 1
limits = {velocity = 200, lower = [-90, -60], upper = 90}
"""


def arm():
    """Two links in a vertical plane."""
    b = jd.ModelBuilder("arm")
    box = jd.Inertial.box(2.0, (0.5, 0.1, 0.1)).moved(np.eye(3), np.array([0.25, 0, 0]))
    more = dict(axis=(0, 1, 0), inertial=box, effort=100.0)
    b.add_body("upper", joint_name="j1", **more)
    b.add_body("lower", "upper", joint_name="j2", p=(0.5, 0, 0), **more)
    return b.build()


@pytest.fixture
def excite(tmp_path, monkeypatch):
    """Writes settings to move.toml, with the arm beside it, and runs them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.json").write_text(json.dumps(jd.to_dict(arm())))

    def run(text, *words):
        (tmp_path / "move.toml").write_text(text)
        return main(["excite", "move.toml", *words])

    return run


@pytest.mark.slow
def test_a_motion_is_shown_saved_and_viewed(excite, tmp_path, capsys):
    assert excite(BASIC) == 0
    shown = capsys.readouterr()
    assert "arm: 2 degrees of freedom, 2 s" in shown.out and shown.err == ""
    assert "open results/move/report.html" in shown.out
    assert re.search("the worst is .* times better than that of a random", shown.out)
    folder = tmp_path / "results" / "move"

    log = load_log(folder / "motion.csv", arm())
    assert len(log.ts) == 101 and log.ts[-1] == 2.0
    for rates in (log.qd, log.qdd):  # from rest to rest
        np.testing.assert_allclose(rates[[0, -1]], 0, atol=1e-9)
    assert np.all(log.q >= np.deg2rad([-90, -60])) and np.all(log.q <= np.pi / 2)
    assert np.abs(log.qd).max() <= np.deg2rad(200) and np.abs(log.tau).max() <= 100
    tau = jd.inverse_dynamics(arm(), log.q[50], log.qd[50], log.qdd[50])
    np.testing.assert_allclose(log.tau[50], tau, rtol=1e-9)
    model, arrays = load_trajectory(folder)
    np.testing.assert_array_equal(arrays["q"], log.q)

    rows = list(csv.DictReader((folder / "deviations.csv").read_text().splitlines()))
    base = jd.identify.base_parameters(arm(), log, parameters=["*.inertial"])
    assert [x["name"] for x in rows] == [base.names[k] for k in base.independent]
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["config"]["limits"]["velocity"] == 200
    assert len(summary["statistics"]["deviations"]) == len(rows)
    page = (folder / "report.html").read_text()
    assert "Excitation of arm" in page and 'href="animation.html"' in page
    assert (folder / "animation.html").exists() and (folder / "positions.png").exists()

    with pytest.raises(SystemExit):
        main(["excite", "--help"])
    listed = capsys.readouterr().out.partition("written to")[2].partition("example")[0]
    files = re.findall(r"[a-z]+\.[a-z]+", listed)
    assert len(files) == 6 and all((folder / name).exists() for name in files)


def options(text, tmp_path):
    (tmp_path / "arm.json").write_text(json.dumps(jd.to_dict(arm())))
    (tmp_path / "move.toml").write_text(text)
    return _excite._options(read_config(tmp_path / "move.toml", Excitation), arm())


def test_limits_are_in_degrees_on_request(tmp_path):
    found = options(BASIC, tmp_path)
    np.testing.assert_allclose(found["velocity"], np.deg2rad([200, 200]))
    np.testing.assert_allclose(found["lower"], np.deg2rad([-90, -60]))
    assert found["effort"] is None and found["noise"] is None
    found = options(BASIC.replace("degrees = true", "noise = 0.5"), tmp_path)
    assert found["velocity"] == [200.0, 200.0] and found["noise"] == [0.5, 0.5]


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("duration = 2", "duration = 0", "duration is 0, expected a number above 0"),
        ("duration = 2", "", "duration is missing, expected"),
        (
            "upper = 90",
            "upper = [90]",
            r"limits.upper has 1 numbers, expected one, or 2",
        ),
        (
            "velocity = 200",
            "velocity = -1",
            "limits.velocity is -1, expected numbers ab",
        ),
        ("rate = 50", "rate = 50.3", "rate is 50.3, expected a whole number of steps"),
        ("rate = 50", "rate = 0.1", "rate is 0.1, expected a whole number of steps"),
        ("rate = 50", "rate = 1e12", "rate is 1e.12, expected 5e.06 at most: 10000000"),
        (", upper = 90", "", "upper of j1.q is inf, expected a finite number"),
        ("lower =", "lowest =", "lowest is not known, .*did you mean limits.lower"),
        (
            "harmonics",
            "form = 'line'\nharmonics",
            "form is 'line', expected .*'spline'",
        ),
        ('"*.inertial"', '"*.wings"', r"parameters has '\*.wings', which fits no"),
    ],
)
def test_wrong_settings_are_reported(old, new, message, excite, tmp_path, capsys):
    assert old in BASIC
    assert excite(BASIC.replace(old, new)) == 2
    error = capsys.readouterr().err
    assert error.startswith("jaxdyn: move.toml: ") and re.search(message, error)
    assert not (tmp_path / "results").exists()
