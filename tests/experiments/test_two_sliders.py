import numpy as np
import pytest

import experiments.parts.two_sliders_steps as steps
from experiments import two_sliders


@pytest.fixture
def case(rng):
    m = rng.uniform(0.1, 10.0, 2)
    return steps.Case(m, rng.normal(size=(2, 2)), rng.normal(size=2))


def test_six_equations_give_the_closed_form(case):
    exact = steps.closed_form(case)
    assert steps.difference(steps.with_multipliers(case), exact) < 1e-13


def test_library_gives_accelerations_and_multipliers(case):
    found = steps.by_library(steps.with_masses(case.m), case)
    assert steps.difference(found, steps.closed_form(case)) < 1e-13


def test_recursion_gives_the_closed_form_in_its_steps(case):
    found, exact = steps.recursion(case), steps.closed_form(case)
    np.testing.assert_allclose([found["x1dd"], found["y2dd"]], exact.qdd, rtol=1e-13)
    np.testing.assert_allclose(
        [found["lambda1"], found["lambda2"]], exact.multipliers, atol=1e-13
    )


def test_a_hand_feels_the_articulated_inertia():
    m = np.array([2.0, 3.0])
    np.testing.assert_allclose(steps.felt_inertia(m), np.diag([5.0, 2.0]), atol=1e-14)


def test_stored_values_are_met(config):
    assert two_sliders.stored_error(config.reference) < 1e-14


@pytest.mark.slow
def test_all_claims_are_reproduced(config, tmp_path):
    report = two_sliders.run(config, tmp_path)
    assert "not reproducible" not in [x.finding for x in report.verdicts]
    assert (tmp_path / "motion.png").is_file()
