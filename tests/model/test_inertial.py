import numpy as np
import pytest

from jaxdyn.model import Inertial


def random_rotation(rng):
    q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    return q * np.linalg.det(q)


def of_cloud(masses, points):
    """Mass, centre of mass and inertia of point masses, written out."""
    mass = masses.sum()
    com = masses @ points / mass
    r = points - com
    spread = np.einsum("k,ki,kj->ij", masses, r, r)
    return Inertial(mass, com, np.trace(spread) * np.eye(3) - spread)


def random_cloud(rng, n=6):
    return rng.uniform(0.5, 2, size=n), rng.normal(size=(n, 3))


def flat(inertial):
    return np.concatenate([[inertial.mass], inertial.com, inertial.inertia.ravel()])


def interval(low, high):
    """Gauss-Legendre nodes and weights, exact to the ninth power."""
    x, w = np.polynomial.legendre.leggauss(5)
    return low + (x + 1) * (high - low) / 2, w * (high - low) / 2


def product(*rules):
    points = np.meshgrid(*(x for x, _ in rules), indexing="ij")
    weights = np.meshgrid(*(w for _, w in rules), indexing="ij")
    return [x.ravel() for x in points], np.prod(weights, axis=0).ravel()


CIRCLE = np.arange(8) * np.pi / 4, np.full(8, np.pi / 4)  # exact for the squares


def box_points(size):
    (x, y, z), w = product(*(interval(-s / 2, s / 2) for s in size))
    return np.stack([x, y, z], -1), w


def cylinder_points(radius, length):
    (r, t, z), w = product(
        interval(0, radius), CIRCLE, interval(-length / 2, length / 2)
    )
    return np.stack([r * np.cos(t), r * np.sin(t), z], -1), w * r


def ball_points(radius, low=-1, high=1):
    """The part of a ball with `low` <= cos(latitude from z) <= `high`."""
    (r, t, c), w = product(interval(0, radius), CIRCLE, interval(low, high))
    s = np.sqrt(1 - c * c)
    return np.stack([r * s * np.cos(t), r * s * np.sin(t), r * c], -1), w * r * r


def ellipsoid_points(radii):
    points, w = ball_points(1.0)
    return points * radii, w


def capsule_points(radius, length):
    up = np.array([0, 0, length / 2])
    (top, w), (bottom, _) = ball_points(radius, 0, 1), ball_points(radius, -1, 0)
    middle, w_middle = cylinder_points(radius, length)
    return np.concatenate([top + up, bottom - up, middle]), np.concatenate(
        [w, w, w_middle]
    )


SOLIDS = {
    "box": (Inertial.box, box_points, ([0.2, 0.5, 0.9],)),
    "ellipsoid": (Inertial.ellipsoid, ellipsoid_points, ([0.2, 0.5, 0.9],)),
    "cylinder": (Inertial.cylinder, cylinder_points, (0.3, 0.8)),
    "capsule": (Inertial.capsule, capsule_points, (0.3, 0.8)),
}


@pytest.mark.parametrize("solid, points, size", SOLIDS.values(), ids=SOLIDS)
def test_solids_agree_with_integrals_over_their_volume(solid, points, size):
    x, w = points(*size)
    want = of_cloud(w * (2.5 / w.sum()), x)
    np.testing.assert_allclose(flat(solid(2.5, *size)), flat(want), atol=1e-14)


def test_a_rod_is_its_integral_along_the_line(rng):
    a, b = rng.normal(size=(2, 3))
    s, w = interval(0, 1)
    want = of_cloud(3.0 * w, a + s[:, None] * (b - a))
    np.testing.assert_allclose(flat(Inertial.rod(3.0, a, b)), flat(want), atol=1e-14)


def test_a_capsule_is_a_cylinder_between_two_half_balls():
    mass, r, length = 3.0, 0.4, 1.1
    cylinder = mass * length / (length + 4 / 3 * r)
    half = (mass - cylinder) / 2
    side = 2 / 5 * half * r**2 - half * (3 / 8 * r) ** 2
    inertia = np.diag([side, side, 2 / 5 * half * r**2])
    center = np.array([0, 0, length / 2 + 3 / 8 * r])
    caps = Inertial(half, center, inertia) + Inertial(half, -center, inertia)
    want = Inertial.cylinder(cylinder, r, length) + caps
    np.testing.assert_allclose(
        flat(Inertial.capsule(mass, r, length)), flat(want), atol=1e-14
    )


def test_a_capsule_of_length_zero_is_a_ball():
    got = Inertial.capsule(2.0, 0.3, 0.0)
    want = Inertial.ellipsoid(2.0, (0.3, 0.3, 0.3))
    np.testing.assert_allclose(flat(got), flat(want), rtol=1e-14)


def test_a_cylinder_of_radius_zero_is_a_rod():
    got = Inertial.cylinder(2.0, 0.0, 0.6)
    want = Inertial.rod(2.0, (0.0, 0.0, -0.3), (0.0, 0.0, 0.3))
    np.testing.assert_allclose(flat(got), flat(want), rtol=1e-14)


def test_a_sum_joins_clouds_of_points(rng):
    (m_a, x_a), (m_b, x_b) = random_cloud(rng), random_cloud(rng)
    got = of_cloud(m_a, x_a) + of_cloud(m_b, x_b)
    want = of_cloud(np.append(m_a, m_b), np.concatenate([x_a, x_b]))
    np.testing.assert_allclose(flat(got), flat(want), atol=1e-13)


def test_a_cloud_is_the_sum_of_its_points(rng):
    masses, points = random_cloud(rng)
    got = sum(
        (Inertial.point(*x) for x in zip(masses, points, strict=True)), Inertial()
    )
    np.testing.assert_allclose(flat(got), flat(of_cloud(masses, points)), atol=1e-13)


def test_a_part_without_mass_adds_its_inertia_only(rng):
    body = of_cloud(*random_cloud(rng))
    hub = np.diag([0, 0, 0.2])
    got = body + Inertial(0.0, np.ones(3), hub)
    want = Inertial(body.mass, body.com, body.inertia + hub)
    np.testing.assert_array_equal(flat(got), flat(want))


def test_the_sum_of_two_parts_without_mass_has_no_nan():
    hub = np.diag([0, 0, 0.2])
    got = Inertial(inertia=hub) + Inertial(inertia=hub)
    np.testing.assert_array_equal(flat(got), flat(Inertial(inertia=2 * hub)))


def test_moved_moves_the_points(rng):
    masses, points = random_cloud(rng)
    R, p = random_rotation(rng), rng.normal(size=3)
    got = of_cloud(masses, points).moved(R, p)
    want = of_cloud(masses, points @ R.T + p)
    np.testing.assert_allclose(flat(got), flat(want), atol=1e-13)


def test_scaled_keeps_the_shape(rng):
    masses, points = random_cloud(rng)
    got = of_cloud(masses, points).scaled(7.0)
    want = of_cloud(masses * (7.0 / masses.sum()), points)
    np.testing.assert_allclose(flat(got), flat(want), rtol=1e-13, atol=1e-13)


def test_a_body_without_mass_cannot_be_scaled():
    with pytest.raises(ValueError, match="without mass has no shape to scale to 2.0"):
        Inertial(inertia=np.diag([0, 0, 0.2])).scaled(2.0)


def test_inertial_data_are_compared_by_identity():
    one, two = Inertial.point(1.0, (0, 0, 1)), Inertial.point(1.0, (0, 0, 1))
    assert one == one and one != two and len({one, two, one}) == 2


@pytest.mark.parametrize(
    "inertial",
    [
        Inertial(),
        Inertial.point(1.0, (1.0, 2.0, 3.0)),
        Inertial.rod(1.0, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0)),
        Inertial(inertia=np.diag([0, 0, 0.2])),
        Inertial(1.0, np.zeros(3), np.diag([1.0, 2.0, 3.0])),
    ],
    ids=["nothing", "point", "rod", "hub without mass", "flat plate"],
)
def test_check_accepts_what_a_link_may_have(inertial):
    checked = inertial.check("link")
    np.testing.assert_array_equal(checked.inertia, inertial.inertia)


BAD = np.full((3, 3), np.nan)


@pytest.mark.parametrize(
    "inertial, message",
    [
        (Inertial(-1.0), "body 'link': mass is -1.0, expected zero or more"),
        (Inertial(np.nan), "mass is nan, expected finite numbers"),
        (Inertial(1.0, np.zeros(2)), r"com is array\(.*\), expected 3 numbers"),
        (Inertial(1.0, np.array([0, np.inf, 0])), "com is .*inf.* finite numbers"),
        (Inertial(1.0, inertia=np.zeros(3)), "inertia is .*, expected 3 x 3 numbers"),
        (Inertial(1.0, inertia=BAD), "inertia is .*nan.* finite numbers"),
        (Inertial(1.0, inertia=np.eye(3) + np.eye(3, k=1)), "is not symmetric"),
        (Inertial(1.0, inertia=np.diag([1, 1, -0.1])), "negative principal value -0.1"),
        (Inertial(0.0, inertia=np.diag([1, 1, -0.1])), "negative principal value"),
        (Inertial(1.0, inertia=np.diag([1, 1, 2.1])), "triangle inequality"),
    ],
)
def test_check_says_what_is_wrong(inertial, message):
    with pytest.raises(ValueError, match=message):
        inertial.check("link")


def test_check_lets_the_triangle_inequality_pass_on_request():
    inertial = Inertial(1.0, inertia=np.diag([1, 1, 2.1]))
    assert inertial.check("link", triangle=False).mass == 1.0


def test_bodies_given_by_plain_numbers_add(without_type_checker):
    one = Inertial(1, (0, 0, 1)) + Inertial(3, [0, 0, 0], np.eye(3, dtype=int))
    np.testing.assert_allclose(one.com, [0, 0, 0.25], rtol=1e-15)
    np.testing.assert_allclose(one.inertia, np.diag([1.75, 1.75, 1]), rtol=1e-15)


def test_nearest_inertia_is_possible_and_no_other_is_nearer(rng):
    def second(inertial):
        I = inertial.inertia
        return np.trace(I) / 2 * np.eye(3) - I

    A = rng.normal(size=(3, 3))
    given = Inertial(1.0, inertia=A + A.T)
    near = given.nearest()
    assert given.doubt() and not near.doubt()
    np.testing.assert_allclose(near.nearest().inertia, near.inertia, atol=1e-14)
    least = np.linalg.norm(second(near) - second(given))
    for scale in (1e-3, 1e-2, 0.1, 1.0):
        step = scale * rng.normal(size=(100, 3, 3))
        values, axes = np.linalg.eigh(second(near) + step + step.swapaxes(-1, -2))
        others = (axes * np.maximum(values, 0)[:, None, :]) @ axes.swapaxes(-1, -2)
        assert np.linalg.norm(others - second(given), axis=(1, 2)).min() > least


def test_a_possible_inertia_is_its_own_nearest():
    box = Inertial.box(2.0, (0.1, 0.2, 0.3))
    np.testing.assert_allclose(box.nearest().inertia, box.inertia, rtol=1e-14)
    assert box.without_rounding() is box
