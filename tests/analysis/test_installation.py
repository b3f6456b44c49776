import numpy as np

import jaxdyn as jd
from jaxdyn.analysis import Installation, _installation


def test_a_sound_installation_has_no_problems(monkeypatch):
    monkeypatch.setattr(_installation, "SIZES", (7, 1003))
    monkeypatch.setattr(_installation, "_scan_cost", lambda: "")  # measures time
    found = jd.check_installation()
    assert found.problems == []
    assert {"python", "jax", "jaxlib", "jaxdyn"} <= set(found.versions)
    shown = str(found).splitlines()
    assert "fast path on the CPU                  on" in shown
    assert "forward dynamics in batches, float64  right" in shown


def test_wrong_rows_are_counted(monkeypatch):
    def program(x):
        return x + (np.arange(len(x)) == 1002)[:, None]

    monkeypatch.setattr(_installation, "SIZES", (7, 1003))
    x = np.ones((1003, 2))
    said = _installation._wrong_rows(program, x, x, 0.5)
    assert said == "1 of 1003 rows are wrong: install another jaxlib."


def test_a_scan_that_is_quadratic_is_told(monkeypatch):
    monkeypatch.setattr(_installation, "SCAN", 10)
    clock = iter(np.cumsum([k % 2 * (64.0 if k < 10 else 1.0) for k in range(20)]))
    monkeypatch.setattr(_installation.time, "process_time", lambda: next(clock))
    assert "eight times the steps take 64 times as long" in _installation._scan_cost()


def test_problems_are_listed_and_shown():
    found = Installation(
        {"jax": "0"}, ["1 x cpu: cpu"], "no tag", {"a": "", "b": "bad"}
    )
    assert found.problems == ["fast path: no tag", "b: bad"]
    assert "off: no tag" in str(found)
