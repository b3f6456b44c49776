import dataclasses
import json
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments import puma_line
from experiments.parts import line_motion, puma_line_verdicts


def cubic(t):
    return np.stack([1 + t - t**2, t**3], axis=-1)


def torques(kind):
    starts, lengths = line_motion.intervals(0.25, 0.1)
    u = np.linspace(0, 1, 4)
    knots = (starts[:, None] + lengths[:, None] * u).ravel()
    law = line_motion.pieces(starts, lengths, u, cubic(knots), kind)
    return jax.vmap(law)(jnp.array([0.03, 0.1, 0.225]))


def test_the_last_interval_ends_with_the_motion():
    starts, lengths = line_motion.intervals(0.25, 0.1)
    np.testing.assert_allclose(starts, [0, 0.1, 0.2])
    np.testing.assert_allclose(lengths, [0.1, 0.1, 0.05])
    assert len(line_motion.intervals(5.0, 0.1)[0]) == 50


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("exact", cubic(np.array([0.03, 0.1, 0.225]))),
        ("held", cubic(np.array([0.0, 0.1, 0.2]))),
        (
            "linear",
            [
                0.7 * cubic(np.array(0.0)) + 0.3 * cubic(np.array(0.1)),
                cubic(np.array(0.1)),
                0.5 * cubic(np.array(0.2)) + 0.5 * cubic(np.array(0.25)),
            ],
        ),
    ],
)
def test_torques_are_exact_linear_or_held(kind, expected):
    np.testing.assert_allclose(torques(kind), expected, rtol=0, atol=1e-14)


@pytest.mark.reference
def test_attitude_and_durations_are_those_of_the_references(config):
    length = np.linalg.norm(np.subtract(config.end, config.start))
    for speed in config.speeds:
        path = json.loads(speed.reference.read_text(encoding="utf-8"))["path"]
        R = line_motion.attitude(config.attitude)
        np.testing.assert_allclose(R, path["R_tool"], rtol=0, atol=1e-15)
        assert speed.seconds(length) == pytest.approx(path["duration"], rel=1e-14)


def test_mean_errors_are_taken_at_equal_distances():
    rows = np.arange(11.0)[:, None]
    zero = np.zeros((11, 1))
    line = SimpleNamespace(
        ts=rows[:, 0], wanted=SimpleNamespace(q=zero, qd=zero, qdd=zero)
    )
    found = SimpleNamespace(q=-rows, qd=rows, qdd=2 * rows)
    means = line_motion.mean_errors(line, found, 3)  # rows 0, 5 and 10
    assert [float(means[key][0]) for key in ("q", "qd", "qdd")] == [5, 5, 10]


def test_both_statements_about_the_speed_hold_only_on_a_line_of_their_product(config):
    verdict = puma_line_verdicts.speed_verdict(0.3286, config)
    assert verdict.finding == "not reproducible"
    assert puma_line_verdicts.speed_verdict(0.5, config).finding == "reproduced"


def test_simulations_by_independent_software_are_found_by_kind_of_torque(config):
    known = puma_line.references(config)
    assert set(known) == {("5 s", kind) for kind in line_motion.TORQUES}
    assert known["5 s", "exact"]["function_evaluations"] == 392


def test_a_speed_needs_a_duration_or_a_speed(config):
    neither = dataclasses.replace(config.speeds[0], duration=None)
    with pytest.raises(ValueError, match="'5 s' has neither"):
        neither.seconds(1.0)


@pytest.mark.slow
def test_methods_agree_and_the_tables_do_not(config, tmp_path):
    report = puma_line.run(config, tmp_path)
    assert all((tmp_path / figure.file).is_file() for figure in report.figures)
    findings = {v.claim: v.finding for v in report.verdicts}
    (same,) = (f for claim, f in findings.items() if "practically" in claim)
    (counts,) = (f for claim, f in findings.items() if "evaluations" in claim)
    assert (same, counts) == ("reproduced", "not reproducible")
