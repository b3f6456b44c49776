import jax
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.model import JOINT_TYPES
from tests.reference import cases, load

robots = jd.robots
(FOUR_BAR, FIVE_BAR, SLIDER_CRANK, THREE_RRR) = cases("closed_loops")
BOX, SLENDER = cases("mata_two_link")
MIDDLE, TIP = cases("gripper")
PAIRS = {
    "puma_mohan_saha": (robots.puma_mohan_saha, load("puma_mohan_saha")),
    "puma_560": (robots.puma_560, load("mata_puma_line")),
    "mata_two_link": (robots.mata_two_link, BOX),
    "mata_two_link_slender": (lambda: robots.mata_two_link(slender=True), SLENDER),
    "gripper": (robots.gripper, MIDDLE),
    "gripper_at_tip": (lambda: robots.gripper(at_tip=True), TIP),
    "rope": (robots.rope, load("rope")),
    "lecture_tree": (robots.lecture_tree, load("lecture_tree")),
    "featherstone_2p": (robots.featherstone_2p, load("featherstone_2p")),
    "four_bar": (robots.four_bar, FOUR_BAR),
    "five_bar": (robots.five_bar, FIVE_BAR),
    "slider_crank": (robots.slider_crank, SLIDER_CRANK),
    "three_rrr": (robots.three_rrr, THREE_RRR),
    "stewart_gough": (robots.stewart_gough, *cases("stewart_gough")),
} | {
    f"protein_{i}": (lambda s=case["model"]["sequence"]: robots.protein_chain(s), case)
    for i, case in enumerate(cases("protein_chain"))
}


@pytest.mark.reference
@pytest.mark.filterwarnings("ignore:model 'puma.* will move as its file says")
@pytest.mark.parametrize("name", PAIRS)
def test_robot_equals_its_reference_model(name):
    make, case = PAIRS[name]
    model, expected = make(), jd.from_dict(case["model"])
    for key in ("name", "names", "joints", "parents"):
        assert getattr(model, key) == getattr(expected, key)
    assert jax.tree.structure(model.loops) == jax.tree.structure(expected.loops)
    keys = ("gravity", "R", "p", "axis", "axis2", "mass", "com", "inertia", "loops")
    for key in keys:
        pairs = zip(
            jax.tree.leaves(getattr(model, key)),
            jax.tree.leaves(getattr(expected, key)),
            strict=True,
        )
        for a, b in pairs:
            np.testing.assert_allclose(a, b, atol=1e-15 * max(1, np.abs(b).max()))


@pytest.mark.reference
def test_rotors_of_the_puma_560_equal_the_reference():
    expected = load("mata_puma_line")["model_with_rotor_inertia_armature"]
    np.testing.assert_allclose(
        robots.puma_560(rotors=True).armature, expected, rtol=1e-15
    )


def test_random_trees_hold_any_mix_of_joints_and_repeat_by_seed():
    a, b = (robots.random_tree(5, 40, joints=tuple(JOINT_TYPES)) for _ in range(2))
    assert set(a.joints) == set(JOINT_TYPES)
    assert a.topology == b.topology
    assert all(jax.tree.leaves(jax.tree.map(lambda x, y: bool((x == y).all()), a, b)))


def test_random_trees_are_not_numbered_depth_first():
    parents = robots.random_tree(0, 30, branching=1.0).parents
    assert any(p != i - 1 and p >= 0 for i, p in enumerate(parents))


def test_an_unknown_joint_or_residue_is_an_error():
    with pytest.raises(ValueError, match="'rotary' is not known"):
        robots.random_tree(0, joints=("rotary",))
    with pytest.raises(ValueError, match="residue 1 is 'B'"):
        robots.protein_chain("AB")


def test_a_protein_is_a_text_of_residues(without_type_checker):
    with pytest.raises(ValueError, match="sequence is 1000, expected a text .* 'A' *"):
        robots.protein_chain(1000)


def test_chain_has_the_length_asked_for():
    assert (robots.chain(7).n, robots.chain(7).nv) == (7, 7)


@pytest.mark.slow
def test_a_ladder_hangs_closed_and_each_cell_moves():
    for local in (True, False):
        model = robots.ladder(4, local=local)
        q = jd.neutral(model)
        np.testing.assert_allclose(jd.loop_residual(model, q), 0, atol=1e-15)
        loops = jd.loop_condition(model, q)
        assert (model.nv, model.nc, int(loops.mobility)) == (12, 8, 4)
    with pytest.raises(ValueError, match="a ladder of 0 cells"):
        robots.ladder(0)


@pytest.mark.slow
def test_both_trees_of_a_ladder_are_one_mechanism(rng):
    near, far = robots.ladder(3), robots.ladder(3, local=False)
    step = 0.1 * rng.normal(size=near.nv)
    q = jax.jit(jd.project_configuration)(near, step)
    qd = jax.jit(jd.project_velocity)(near, q, rng.normal(size=near.nv))
    f_ext = np.zeros((near.n, 6))
    f_ext[:, [0, 1, 5]] = rng.normal(size=(near.n, 3))
    # angles of the bars in the plane are sums of those of their joints
    poses = jd.forward_kinematics(near, q)
    w = np.asarray(jd.body_velocities(near, q, qd).w)[:, 2]
    angles = np.arctan2(poses.R[:, 1, 0], poses.R[:, 0, 0])

    def joints(bars):
        above = np.concatenate([bars, [0.0]])
        return bars - above[np.array(far.parents)]

    @jax.jit
    def moved(model, q, qd):
        tau = np.zeros(model.nv)
        qdd, _ = jd.constrained_dynamics(model, q, qd, tau, f_ext=f_ext)
        at = jd.body_accelerations(model, q, qd, qdd)
        return at.dv, at.dw

    expected = moved(near, q, qd)
    for x, y in zip(moved(far, joints(angles), joints(w)), expected, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-11 * np.abs(y).max())
