from dataclasses import replace

import numpy as np
import pytest

import jaxdyn as jd
from experiments import loop_cost
from experiments.parts import ladder_programs
from experiments.parts.ladder_programs import AT_BASE, METHODS, SEQUENTIAL


def measured(power=1, iterations=(10, 10)):
    times = {(x, m): np.full(3, 1e-6 * m**3) for x in METHODS for m in (50, 100)}
    for x in ("recursive", SEQUENTIAL):
        times |= {(x, m): np.full(3, 1e-5 * m**power) for m in (50, 100)}
    zero = np.zeros(3)
    pairs = zip((50, 100), iterations, strict=True)
    given = {m: ladder_programs.Start(zero, zero, k, 9.0, m) for m, k in pairs}
    orders = loop_cost.orders(times, given, 50)
    apart = {(x, 50): (1e-14, 1e-14) for x in METHODS}
    return orders, times, given, apart


def test_every_method_is_measured_beside_range_space(config):
    reference = set(config.sizes["range_space"])
    assert set(config.sizes) == set(METHODS)
    assert all(set(sizes) <= reference for sizes in config.sizes.values())
    assert reference <= set(config.iterations)


def test_findings_follow_the_slopes():
    findings = [v.finding for v in loop_cost.verdicts(*measured())]
    assert findings == [
        *("reproduced",) * 2,
        "reproduced in a different form",
        *("reproduced",) * 2,
    ]
    findings = [v.finding for v in loop_cost.verdicts(*measured(4, (10, 20)))]
    assert findings[2:] == ["not reproducible"] * 3
    fewer = loop_cost.verdicts(*measured(1, (40, 10)))  # but longer ones
    assert fewer[3].finding == "not reproducible" and "slope 3.00 of" in fewer[3].ours


def test_rates_of_joints_are_differences_of_rates_of_bars():
    model = jd.robots.ladder(2)
    qd = ladder_programs.turns(model) @ np.arange(1.0, 7.0)
    np.testing.assert_array_equal(qd, [1, 2, 3 - 1, 4 - 3, 5 - 3, 6 - 4])


@pytest.mark.slow
def test_it_runs(config, tmp_path):
    sizes = {x: [1, 3] for x in METHODS}
    short = replace(
        config, turns=2, seconds=0.0, order_from=1, iterations=[1, 3], sizes=sizes
    )
    report = loop_cost.run(short, tmp_path)
    assert (tmp_path / "cost.png").is_file()
    agreement = report.tables[3].rows
    assert len(agreement) == 2 * (len(METHODS) - 1)
    for method, _, *errors in agreement:
        errors = [float(x) for x in errors if x != "others"]
        assert len(errors) == (1 if method == AT_BASE else 2)
        assert max(errors) < (1e-9 if method == SEQUENTIAL else 1e-12)
