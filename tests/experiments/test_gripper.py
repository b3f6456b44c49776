import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from experiments import gripper
from experiments.parts import gripper_motions


def test_settings_are_those_of_the_paper(config):
    assert config.motion.end == (60.0, 80.0, 80.0, 120.0)
    assert config.fall.step == 0.001


def test_both_readings_differ_in_the_place_of_one_finger():
    middle, tip = gripper_motions.readings()
    assert middle.topology == tip.topology
    apart = np.asarray(tip.p - middle.p)
    np.testing.assert_allclose(apart[3], [0.05, 0.0, 0.0], atol=1e-16)
    assert not apart[:3].any()


@pytest.mark.slow
def test_elimination_by_modules_gives_the_inertia_matrix(rng):
    model = jd.robots.gripper()
    q = jnp.asarray(rng.normal(size=4))
    U, D = gripper_motions.by_modules(model, q)
    factor = jd.factor(model, q)
    np.testing.assert_allclose(U @ D @ U.T, factor.matrix(), rtol=1e-12, atol=1e-17)
    inside = np.asarray(factor.U)[1:3, 1:3]  # of module 2, which has two links
    block = inside @ np.diag(factor.D[1:3]) @ inside.T
    np.testing.assert_allclose(D[1:3, 1:3], block, rtol=1e-12)


def test_numbers_of_other_instants_are_refused():
    found = np.zeros((2, 4)), np.array([0.1, 0.2])
    with pytest.raises(ValueError, match="share no instant"):
        gripper_motions.difference(*found, np.zeros((1, 4)), [0.15])


@pytest.mark.slow
def test_no_claim_but_that_of_time_is_beyond_reproduction(config, tmp_path):
    report = gripper.run(config, tmp_path)
    assert [x.finding for x in report.verdicts].count("not reproducible") == 1
    assert all((tmp_path / figure.file).is_file() for figure in report.figures)
