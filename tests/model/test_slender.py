import json
from pathlib import Path

import numpy as np
import pytest

from jaxdyn.model import Inertial, SlenderRods

PUMA = Path(__file__).parents[1] / "data" / "puma_mohan_saha.json"
X, Z = np.array([1.0, 0, 0]), np.array([0, 0, 1.0])


def skew_matrix(a):
    return np.cross(a, np.eye(3), axisb=0, axisc=0)


def about_origin(inertial):
    """First moment and inertia about the origin of the link."""
    S = skew_matrix(inertial.com)
    return inertial.mass * inertial.com, inertial.inertia + inertial.mass * S.T @ S


def flat(inertial):
    return np.concatenate([[inertial.mass], inertial.com, inertial.inertia.ravel()])


LENGTHS = [(0.432, 0.149), (0.3, 0.0), (0.0, 0.2), (0.7, 1.3)]


@pytest.mark.parametrize("a, b", LENGTHS)
def test_inertia_about_the_origin_is_that_of_the_paper(a, b):
    mass = 15.7
    rho = mass / (a + b)
    C3, C4, C5 = rho * b**2 * (b / 3 + a), rho * a**3 / 3, rho * a**2 * b / 2
    x, z = skew_matrix(X), skew_matrix(Z)
    want = C3 * z.T @ z + C4 * x.T @ x + C5 * (z.T @ x + x.T @ z)
    got = about_origin(SlenderRods(mass).inertial(a, b))[1]
    np.testing.assert_allclose(got, want, atol=1e-14)


@pytest.mark.parametrize("a, b", LENGTHS)
def test_first_moment_is_that_of_the_paper(a, b):
    mass = 15.7
    rho = mass / (a + b)
    C1, C2 = rho * b * (b / 2 + a), rho * a**2 / 2
    got = about_origin(SlenderRods(mass).inertial(a, b))[0]
    np.testing.assert_allclose(got, C1 * Z + C2 * X, atol=1e-14)


def test_a_payload_is_a_point_at_the_end(rng):
    a, b, payload = 0.4, 0.3, 2.0
    got = about_origin(SlenderRods(5.0, payload=payload).inertial(a, b))[1]
    S = skew_matrix(np.array([a, 0, b]))
    rods = about_origin(SlenderRods(5.0).inertial(a, b))[1]
    np.testing.assert_allclose(got, rods + payload * S.T @ S, atol=1e-14)


def test_a_payload_is_part_of_the_mass():
    assert SlenderRods(5.0, payload=2.0).inertial(0.4, 0.3).mass == 7.0


def test_a_hub_adds_inertia_about_the_joint_axis_only():
    rods = SlenderRods(5.0).inertial(0.4, 0.3)
    want = Inertial(rods.mass, rods.com, rods.inertia + np.diag([0, 0, 0.2]))
    got = SlenderRods(5.0, hub=0.2).inertial(0.4, 0.3)
    np.testing.assert_allclose(flat(got), flat(want), rtol=1e-14)


@pytest.mark.parametrize("a, b", [(-0.4, 0.3), (0.4, -0.3), (-0.4, -0.3)])
def test_a_negative_length_mirrors_the_link(a, b):
    mirror = np.diag(np.sign([a, 1, b]))
    positive = SlenderRods(5.0, payload=1.0).inertial(abs(a), abs(b))
    want = positive.moved(mirror, np.zeros(3))
    got = SlenderRods(5.0, payload=1.0).inertial(a, b)
    np.testing.assert_allclose(flat(got), flat(want), atol=1e-15)


def test_rods_with_mass_need_a_length():
    with pytest.raises(ValueError, match="a and b are both 0, but the mass .* is 5.0"):
        SlenderRods(5.0).inertial(0.0, 0.0)


@pytest.mark.parametrize("key", ["mass", "payload", "hub"])
@pytest.mark.parametrize("value", [-1.0, np.inf, np.nan])
def test_masses_and_hub_are_finite_and_not_negative(key, value):
    with pytest.raises(ValueError, match=f"{key} is {value}, expected a finite"):
        SlenderRods(**{"mass": 1.0, key: value})


def test_a_payload_needs_no_length():
    got = SlenderRods(0.0, payload=2.0).inertial(0.0, 0.0)
    want = Inertial.point(2.0, np.zeros(3))
    np.testing.assert_array_equal(flat(got), flat(want))


@pytest.mark.reference
@pytest.mark.parametrize("link", range(6))
def test_links_of_the_published_robot(link):
    data = json.loads(PUMA.read_text())
    table = data["parameters"]
    keys = "m", "hub_inertia_about_joint_axis", "a", "b"
    mass, hub, a, b = (float(table[key][link]) for key in keys)
    body = data["model"]["bodies"][link]
    want = [np.ravel(body[key]) for key in ("mass", "com", "inertia")]
    # a link without mass has no centre; the file puts it at the origin
    got = SlenderRods(mass, hub=hub).inertial(a, b)
    np.testing.assert_allclose(flat(got), np.concatenate(want), rtol=1e-14, atol=1e-14)
