from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

from experiments import puma_denoc
from experiments.parts import open_loop, puma_forced


def test_transitions_of_a_constant_matrix_are_its_exponential():
    A = jnp.array([[0.0, 1.0], [4.0, 0.0]])
    phi = open_loop.transitions(jnp.broadcast_to(A, (401, 2, 2)), jnp.asarray(0.01))
    c, s = np.cosh(4.0), np.sinh(4.0)
    expected = [[c, s / 2], [2 * s, c]]  # after 2 s, eigenvalues +-2 1/s
    np.testing.assert_allclose(phi[-1], expected, rtol=1e-7)  # fourth order, h = 0.01


def test_a_deviation_is_carried_from_the_row_in_which_it_was_seen():
    phi = np.array([np.diag([2.0**k, 3.0**k]) for k in range(4)])
    later = open_loop.carried(phi, 1, [1.0, 1.0])
    np.testing.assert_allclose(later, [[1, 1], [2, 3], [4, 9]], rtol=1e-15)


def test_a_joint_leaves_at_the_first_error_above_the_threshold_or_that_is_no_number():
    error = np.array([[0, 0, 0], [-2, 0, 0], [0, np.nan, 1.0]])
    found = open_loop.departures([0.0, 0.1, 0.2], error, 1.0)
    np.testing.assert_array_equal(found, [0.1, 0.2, np.nan])


def test_runs_are_timed_in_turns():
    order = []
    runs = {name: lambda name=name: order.append(name) for name in "ab"}
    assert set(open_loop.median_times(runs, 2)) == {"a", "b"}
    assert order == ["a", "b", "a", "b"]


def test_prediction_from_the_probe_finds_when_an_unstable_joint_leaves():
    ts = np.linspace(0, 2, 201)
    c, s = np.cosh(2 * ts), np.sinh(2 * ts)
    phi = np.array([[c, s / 2], [2 * s, c]]).transpose(2, 0, 1)
    growth = puma_forced.Growth(ts, phi, phi, open_loop.growth(phi))
    zero = np.zeros((201, 1))
    wanted = SimpleNamespace(q=zero, qd=zero)
    found = SimpleNamespace(
        ts=ts, q=1e-4 * c[:, None], qd=2e-4 * s[:, None], stats={"num_steps": 0}
    )
    run = puma_forced.Forced("exact", 0.0, 0.0, found, wanted)
    seen = puma_forced.leaving(run, 1e-3)
    linear = puma_forced.leaving_predicted(growth, run, 0.5, 1e-3)
    assert seen == linear == pytest.approx(np.arccosh(10) / 2, abs=0.01)


@pytest.mark.slow
@pytest.mark.reference
def test_torques_and_growth_agree_with_independent_software(config):
    case = puma_forced.Case.of(config)
    known = puma_forced.load_reference(config.reference)
    ts = jnp.linspace(0.0, 0.5, 101)  # every twentieth is in the reference
    at, tau = puma_forced.desired(case, ts)
    found = np.asarray(tau)[::20]
    size = np.abs(np.array(known["tau"])).max()
    assert np.abs(found - np.array(known["tau"])[:6]).max() < 1e-12 * size
    A = open_loop.state_matrices(case.model, at.q, at.qd, tau)
    phi = open_loop.transitions(A, jnp.asarray(0.01))
    assert open_loop.growth(phi)[-1] == pytest.approx(2.229, abs=1e-3)  # four digits


@pytest.mark.slow
def test_the_claims_are_judged_as_the_report_says(config, tmp_path):
    report = puma_denoc.run(config, tmp_path)
    assert all((tmp_path / figure.file).is_file() for figure in report.figures)
    findings = {v.claim: v.finding for v in report.verdicts}
    longer = [f for claim, f in findings.items() if "longer" in claim]
    assert longer == ["not reproducible"] * 2
