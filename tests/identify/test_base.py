import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.identify import base_parameters
from jaxdyn.io import Log
from tests.identify.linear_logs import forces, planar, random_log


def test_a_planar_arm_has_its_six_combinations():
    base = base_parameters(planar(), parameters="*.inertial")
    assert base.combinations == (
        "link1.h_x + 0.5 link2.m",
        "link1.h_y",
        "link1.I_zz + 0.25 link2.m",
        "link2.h_x",
        "link2.h_y",
        "link2.I_zz",
    )
    assert "link1.m" in base.no_effect and "link2.I_xy" in base.no_effect
    assert len(base.no_effect) == 20 - 7
    assert base.gap > 1e10


def test_in_a_horizontal_plane_first_moments_of_the_first_link_have_no_effect():
    base = base_parameters(planar((0.0, 0.0, -9.81)), parameters="*.inertial")
    assert base.combinations == (
        "link1.I_zz + 0.25 link2.m",
        "link2.h_x",
        "link2.h_y",
        "link2.I_zz",
    )


def test_a_puma_has_36_and_armature_of_its_first_two_joints_is_not_told_apart():
    model = jd.robots.puma_560()
    base = base_parameters(model, parameters="*.inertial")
    assert base.rank == 36 and base.gap > 1e10
    assert "link6.I_xx - link6.I_yy" in base.combinations
    assert "link5.I_zz + link6.I_yy" in base.combinations
    more = base_parameters(model, parameters=("*.inertial", "*.armature"))
    assert more.rank == 36 + 4
    assert more.combinations[0].endswith("+ j_link1.armature")


def test_models_with_equal_combinations_need_equal_forces(rng):
    model = jd.robots.puma_560()
    base = base_parameters(model, parameters="*.inertial")
    change = rng.normal(size=60)
    change -= np.linalg.pinv(base.B) @ (base.B @ change)
    pi = np.asarray(jd.inertial_parameters(model)) + 3 * change.reshape(6, 10)
    other = jd.with_inertial_parameters(model, jnp.asarray(pi))
    assert np.abs(np.asarray(other.mass - model.mass)).max() > 0.5
    np.testing.assert_allclose(base.of(other), base.of(model), atol=1e-13)
    states = rng.normal(size=(3, 20, 6))
    expected = forces(model, *states)
    np.testing.assert_allclose(forces(other, *states), expected, atol=1e-11)


def test_what_is_preferred_represents_its_combination():
    base = base_parameters(planar(), parameters="*.inertial", prefer="link2.m")
    assert "link2.m + 2 link1.h_x" in base.combinations
    assert "link1.h_x" not in base.combinations


def test_a_log_tells_no_more_than_its_motion(rng):
    log = random_log(planar(), rng)
    still = Log(log.ts, 0 * log.q, 0 * log.qd, 0 * log.qdd)
    base = base_parameters(planar(), still, parameters="*.inertial")
    # gravity on both links at one configuration: two forces, two combinations
    assert base.rank == 2
    assert base_parameters(planar(), log, parameters="*.inertial").rank == 6


@pytest.mark.slow
def test_a_single_precision_model_has_the_same_combinations():
    base = base_parameters(planar().astype(jnp.float32), parameters="*.inertial")
    assert (
        base.combinations
        == base_parameters(planar(), parameters="*.inertial").combinations
    )


@pytest.mark.slow
def test_effects_of_a_joint_with_several_coordinates_are_chosen_together():
    model = jd.robots.random_tree(0, 1, joints=("cylindrical",))
    base = base_parameters(model, parameters=("*.damping", "b0000.m"))
    assert base.names[1:] == tuple(
        f"{model.joint_names[0]}.damping[{k}]" for k in range(2)
    )
    single = base_parameters(model, parameters=base.names[2])
    assert single.names == (base.names[2],)


def test_bad_input_is_explained():
    with pytest.raises(ValueError, match="'link9.m', which fits no parameter"):
        base_parameters(planar(), parameters=("*.h_x", "link9.m"))
    with pytest.raises(ValueError, match="parameters is empty"):
        base_parameters(planar(), parameters=())
    with pytest.raises(ValueError, match="has loops"):
        base_parameters(jd.robots.four_bar())
    with pytest.raises(ValueError, match="log has no qdd: call filtered"):
        base_parameters(
            planar(), Log(np.arange(2.0), np.zeros((2, 2)), np.zeros((2, 2)))
        )
    with pytest.raises(ValueError, match="none of the free parameters has an effect"):
        base_parameters(planar(), parameters="link1.m")
    wrong = eqx.tree_at(
        lambda x: x.q, Log(np.arange(2.0), np.zeros((2, 3))), np.zeros(2)
    )
    with pytest.raises(
        ValueError, match=r"q of the log has shape \(2,\), expected \(times"
    ):
        base_parameters(planar(), wrong)
