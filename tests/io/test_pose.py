import numpy as np
import pytest

from jaxdyn.io._pose import matrix_to_rpy, rpy_to_matrix

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
