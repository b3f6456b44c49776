import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from experiments import single_precision

METHODS = ("denoc", "articulated", "composite", "gibbs_appell", "noc")


def swing(**errors):
    exact = np.array([1.0, 2.0])
    off = {m: exact + np.array([0, errors.get(m, 1e-4)]) for m in METHODS}
    return {"q2": np.zeros(2), "exact": exact} | off


def forward(lost):
    found = {}
    for system in ("PUMA of slender rods", "chain, n = 1000"):
        for dtype in single_precision.DTYPES:
            found |= {(system, m, dtype): 1e-13 for m in METHODS}
        found[system, "rounded inputs", "float32"] = 1e-13
    return found | {("chain, n = 1000", "composite", "float64"): lost * 1e-13}


def test_rows_are_systems_in_two_precisions():
    table = single_precision.table("T", forward(np.nan))
    assert table.head[0:2] == ("system", "precision")
    assert [row[:2] for row in table.rows][:2] == [
        ("PUMA of slender rods", "float32"),
        ("PUMA of slender rods", "float64"),
    ]
    assert table.rows[-1][4] == "no result"
    assert table.rows[-1][-1] == ""  # inputs are rounded for single precision only


def test_findings_follow_the_numbers(config):
    formed = dict(composite=0.5, gibbs_appell=0.6, noc=0.5)
    found = single_precision.verdicts(
        swing(**formed), forward(1e6), config.two_link.published
    )
    assert [v.finding for v in found] == [
        "reproduced",
        "reproduced",  # a mean of 0.25, printed 0.275
        "not reproducible",
        "reproduced in a different form",
        "reproduced",
    ]
    found = single_precision.verdicts(swing(), forward(1), config.two_link.published)
    assert [v.finding for v in found] == [
        "not reproducible",
        "not reproducible",
        "reproduced",
        "not reproducible",
        "reproduced",
    ]


def test_smaller_is_not_a_little_larger(config):
    smaller = swing(gibbs_appell=1e-5)
    found = single_precision.verdicts(smaller, forward(1), config.two_link.published)
    assert found[2].finding == "not reproducible"
    assert "0.1 times as large" in found[2].ours


def test_the_worst_state_counts_and_states_can_be_rounded(config):
    model = type("Double", (), {"dtype": jnp.dtype("float64")})()
    states = [{"q": [0.1], "qdd": [0.1]}, {"q": [0.1], "qdd": [0.2]}]

    def same(model, q):
        return q

    keys = ("q",), "qdd"
    assert single_precision.worst(same, model, states, *keys) == pytest.approx(0.5)
    rounded = single_precision.worst(same, model, states[:1], *keys, through=np.float32)
    assert 1e-9 < rounded < 1e-7


@pytest.mark.slow
def test_recursive_methods_keep_the_digits_of_the_two_link_arm(config):
    found = single_precision.two_link(config.two_link, ["denoc", "composite"])
    errors = single_precision.swing_errors(found)
    assert errors["denoc"][0] < 1e-3 < 0.1 < errors["composite"][0]


@pytest.mark.slow
def test_it_runs(config, tmp_path):
    short = dataclasses.replace(config, inverse=["newton_euler"])
    report = single_precision.run(short, tmp_path)
    assert (tmp_path / "chains.png").is_file()
    assert len(report.tables) == 3
