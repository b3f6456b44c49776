import numpy as np
import pytest

from jaxdyn.model import JOINT_TYPES, Topology

# name: nq, nv, how many axes the user gives
TABLE = {
    "revolute": (1, 1, 1),
    "prismatic": (1, 1, 1),
    "helical": (1, 1, 1),
    "universal": (2, 2, 2),
    "cylindrical": (2, 2, 1),
    "planar": (3, 3, 2),
    "spherical": (4, 3, 0),
    "free": (7, 6, 0),
    "fixed": (0, 0, 0),
}
every_type = pytest.mark.parametrize("name", TABLE)


def of_joints(*joints, parents=None):
    """The topology with one body per joint, by default in a chain."""
    n = len(joints)
    names = tuple(f"b{i}" for i in range(n))
    parents = tuple(range(-1, n - 1)) if parents is None else parents
    return Topology("robot", "base", names, names, parents, joints)


def test_the_joint_types_are_the_nine_of_the_conventions():
    assert list(JOINT_TYPES) == list(TABLE)


@every_type
def test_numbers_of_coordinates_and_axes(name):
    kind = JOINT_TYPES[name]
    assert (kind.nq, kind.nv, kind.axes) == TABLE[name]


@every_type
def test_a_joint_has_one_step_for_each_velocity_and_at_least_one(name):
    kind = JOINT_TYPES[name]
    assert len(kind.steps) == max(1, kind.nv)


@every_type
def test_only_a_quaternion_has_more_positions_than_velocities(name):
    kind = JOINT_TYPES[name]
    assert kind.nq - kind.nv == (kind.quaternion is not None)


@every_type
def test_a_step_that_moves_turns_or_slides_but_not_both_unless_helical(name):
    kind = JOINT_TYPES[name]
    moves = [(s.turn != 0) + (s.slide != 0) for s in kind.steps]
    expected = {"helical": 2, "fixed": 0}.get(name, 1)
    assert moves == [expected] * len(moves)


@pytest.mark.parametrize(
    "name, directions",
    [
        ("universal", ["axis", "axis2"]),
        ("cylindrical", ["axis", "axis"]),
        ("planar", ["plane", "axis3", "axis"]),
        ("spherical", ["x", "y", "z"]),
        ("free", ["x", "y", "z", "x", "y", "z"]),
    ],
)
def test_steps_come_in_the_order_of_the_velocities(name, directions):
    assert [s.direction for s in JOINT_TYPES[name].steps] == directions


def test_a_free_joint_is_linear_first_in_position_and_velocity():
    free = JOINT_TYPES["free"]
    slides = [step.slide for step in free.steps]
    assert (free.position, free.quaternion, slides) == (0, 3, [1, 1, 1, 0, 0, 0])


def test_coordinates_follow_body_order():
    t = of_joints("free", "fixed", "universal", "spherical", "revolute")
    assert (t.q_start, t.v_start) == ((0, 7, 7, 9, 13, 14), (0, 6, 6, 8, 11, 12))


@every_type
def test_every_velocity_drives_exactly_one_step(name):
    t = of_joints("revolute", name, "revolute")
    driven = np.sort(t.steps.v[t.steps.v < t.nv])
    np.testing.assert_array_equal(driven, np.arange(t.nv))


@every_type
def test_plain_quaternion_and_displacement_coordinates_make_up_q(name):
    t = of_joints("revolute", name, "free")
    parts = t.plain_q, t.quaternion_q.ravel(), t.position_q.ravel()
    places = np.sort(np.concatenate(parts))
    np.testing.assert_array_equal(places, np.arange(t.nq))


@every_type
def test_plain_angular_and_linear_velocities_make_up_qd(name):
    t = of_joints("revolute", name, "free")
    parts = t.plain_v, t.quaternion_v.ravel(), t.position_v.ravel()
    places = np.sort(np.concatenate(parts))
    np.testing.assert_array_equal(places, np.arange(t.nv))


def test_the_first_step_of_a_joint_hangs_on_the_last_step_of_the_parent():
    t = of_joints("universal", "planar", "fixed", "revolute", parents=(-1, 0, 0, 1))
    np.testing.assert_array_equal(t.steps.parent, [-1, 0, 1, 2, 3, 1, 4])


def test_the_last_step_of_a_joint_carries_its_body():
    t = of_joints("universal", "planar", "fixed", "revolute", parents=(-1, 0, 0, 1))
    np.testing.assert_array_equal(t.steps.last, [1, 4, 5, 6])


def test_support_is_the_path_of_steps_from_tip_to_base():
    t = of_joints("universal", "planar", "fixed", "revolute", parents=(-1, 0, 0, 1))
    np.testing.assert_array_equal(t.support(3), [6, 4, 3, 2, 1, 0])
