import json

import pytest

from experiments import operation_counts
from experiments.operation_counts import Claim, Row
from experiments.parts import counted_methods
from jaxdyn.analysis import Polynomial


@pytest.fixture(scope="module")
def published(config):
    return json.loads(config.published.read_text(encoding="utf-8"))


def row(source, name, slope, **more):
    M = Polynomial.of({1: slope, 0: -1})
    return Row(source, name, counted_methods.INVERSE, M, M, more.pop("stated", {}))


OURS = [row("ours", "best", 80), row("ours", "other", 90)]


def test_every_claim_names_a_count_in_print_and_one_of_ours(config, published):
    printed = {
        (r.source, r.name) for r in operation_counts.in_print(published["table"])
    }
    ours = {f"{method}, {kind}" for _, method, _, _, kind in counted_methods.OURS}
    for claim in config.claims:
        assert (claim.source, claim.item) in printed
        assert claim.ours in ours


def test_a_count_quoted_without_its_steps_is_not_reproducible():
    found = operation_counts.verdict(row("[Mata]", "x", 93), OURS, [])
    assert found.finding == "not reproducible"
    assert found.ours.startswith("best: (80n - 1)M (80n - 1)A, 78 fewer M, 78 fewer A")


@pytest.mark.parametrize(
    ("slope", "finding"), [(90, "reproduced"), (93, "reproduced in a different form")]
)
def test_a_count_with_steps_is_compared_with_its_counterpart(slope, finding):
    claims = [Claim("[Mata]", "x", "other", "screws")]
    found = operation_counts.verdict(row("[Mata]", "x", slope), OURS, claims)
    assert found.finding == finding


def test_numbers_beside_a_polynomial_are_checked():
    wrong = row("[Mata]", "x", 93, stated={"6": [557, 556]})
    found = operation_counts.verdict(wrong, OURS, [])
    assert found.ours.endswith("Misprint: 93n - 1 is 557 at n = 6, printed 556.")


def test_steps_of_mohan_and_saha_add_to_their_sum_and_two_crossings_do_not(published):
    rows = operation_counts.in_print(published["table"])
    found = operation_counts.mohan_verdicts(published["mohan_saha_steps"], rows)
    words = {True: "reproduced", False: "not reproducible"}
    expected = [words[x] for x in (True, True, True, True, False, False)]
    assert [verdict.finding for verdict in found] == expected


@pytest.mark.slow
def test_it_runs(config, tmp_path):
    report = operation_counts.run(config, tmp_path)
    assert (tmp_path / "counts.png").is_file()
    assert "from n = 9 on" in report.text
    assert len(report.verdicts) == 57
