import numpy as np
import pytest

from jaxdyn.io import load_mjcf, load_urdf
from jaxdyn.io._pose import matrix_to_rpy, quaternion_to_matrix, rpy_to_matrix

NEAR = [0.0, *(10.0**k for k in range(-15, -5))]


@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize("eps", NEAR)
def test_rpy_near_vertical_pitch_gives_the_rotation_back(rng, side, eps):
    for roll, yaw in rng.uniform(-np.pi, np.pi, size=(20, 2)):
        R = rpy_to_matrix(np.array([roll, side * (np.pi / 2 - eps), yaw]))
        again = rpy_to_matrix(matrix_to_rpy(R))
        np.testing.assert_allclose(again, R, rtol=0, atol=1e-15)


@pytest.mark.parametrize("side", [-1, 1])
def test_yaw_is_zero_where_roll_and_yaw_are_not_unique(side):
    R = np.array([[0.0, side * 0.6, side * 0.8], [0, 0.8, -0.6], [-side, 0, 0]])
    rpy = matrix_to_rpy(R)
    np.testing.assert_allclose(rpy, [np.arctan2(0.6, 0.8), side * np.pi / 2, 0])
    np.testing.assert_allclose(rpy_to_matrix(rpy), R, rtol=0, atol=1e-15)


@pytest.mark.parametrize("length", [1e-320, 1e-200, 3.0, 1e200, 1.7e308])
def test_quaternions_of_any_length_are_read(length):
    R = quaternion_to_matrix(0.6 * length, 0.0, 0.0, 0.8 * length)
    want = [[1, 0, 0], [0, 0.28, -0.96], [0, 0.96, 0.28]]
    np.testing.assert_allclose(R, want, atol=1e-15 if length > 1e-300 else 1e-3)


@pytest.mark.parametrize("length", ["1e-200", "1e200"])
def test_directions_of_any_length_are_read(length):
    joint = f'<joint name="j" type="planar"><axis xyz="0 0 {length}"/>'
    mass = '<mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    model = load_urdf(
        f'<robot name="r"><link name="a"/><link name="b"><inertial>{mass}</inertial>'
        f'</link>{joint}<parent link="a"/><child link="b"/></joint></robot>'
    )
    np.testing.assert_array_equal(model.axis[0], [0, 0, 1])
    np.testing.assert_array_equal(model.axis2[0], [1, 0, 0])


def test_orientation_that_is_long_in_mjcf_is_read():
    inside = '<joint axis="0 1e100 0"/><geom size="1"/>'
    body = f'<body quat="0 0 3e100 4e100">{inside}</body>'
    model = load_mjcf(f"<mujoco><worldbody>{body}</worldbody></mujoco>")
    np.testing.assert_array_equal(model.axis[0], [0, 1, 0])
    want = [[-1, 0, 0], [0, -0.28, 0.96], [0, 0.96, 0.28]]
    np.testing.assert_allclose(model.R[0], want, atol=1e-15)
