import operator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.spatial import Mat3, Twist, Vec3, Wrench, dot


def random(rng, kind):
    """A twist or wrench of NumPy numbers: nothing here needs a compiler."""
    a = rng.normal(size=6)
    return kind(Vec3(*a[:3]), Vec3(*a[3:]))


def numbers(rng):
    return random(rng, Twist), random(rng, Wrench)


def values(x):
    return np.array(jax.tree.leaves(x))


@pytest.mark.parametrize("kind", [Twist, Wrench])
def test_the_linear_part_comes_first_in_arrays(rng, kind):
    a = jnp.asarray(rng.normal(size=(2, 6)))
    linear, angular = vars(kind.of(a)).values()
    np.testing.assert_array_equal(linear.array(), a[:, :3])
    np.testing.assert_array_equal(angular.array(), a[:, 3:])
    np.testing.assert_array_equal(kind.of(a).array(), a)


@pytest.mark.parametrize("kind", [Twist, Wrench])
def test_the_algebra_is_that_of_six_numbers(rng, kind):
    x, y = random(rng, kind), random(rng, kind)
    a, b = values(x), values(y)
    got = np.stack([values(z) for z in (x + y, x - y, -x, x * 0.7, 0.7 * x)])
    np.testing.assert_array_equal(got, [a + b, a - b, -a, a * 0.7, a * 0.7])


@pytest.mark.parametrize("join", [operator.add, operator.sub, dot])
def test_twists_and_wrenches_do_not_mix(rng, join):
    t, w = numbers(rng)
    for a, b in ((w, t), (t, w)):
        if (join, a) == (dot, t):
            continue  # the power
        with pytest.raises(TypeError):
            join(a, b)


@pytest.mark.parametrize("kind", [Twist, Wrench])
def test_the_product_of_two_of_a_kind_is_an_error(rng, kind):
    x = random(rng, kind)
    with pytest.raises(TypeError, match="a Twist and a Wrench"):
        dot(x, x)


def test_the_power_is_the_same_about_every_origin(rng):
    t, w = numbers(rng)
    a = Vec3(*rng.normal(size=3))
    np.testing.assert_allclose(dot(t.shift(a), w), dot(t, w.shift(a)), rtol=1e-13)


def test_the_power_is_the_same_in_all_axes(rng):
    t, w = numbers(rng)
    Q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    R = Mat3(*(Vec3(*Q[:, k]) for k in range(3)))
    np.testing.assert_allclose(dot(t.rotate(R), w.rotate(R)), dot(t, w), rtol=1e-12)


def test_the_velocity_at_a_point_is_that_of_a_turning_body(rng):
    (v, w), a = rng.normal(size=(2, 3)), rng.normal(size=3)
    moved = Twist(Vec3(*v), Vec3(*w)).shift(Vec3(*a))
    np.testing.assert_allclose(values(moved), [*(v + np.cross(w, a)), *w], rtol=1e-13)


def test_the_motion_cross_product_does_not_depend_on_the_origin(rng):
    t, u = random(rng, Twist), random(rng, Twist)
    a = Vec3(*rng.normal(size=3))
    got, want = t.shift(a).cross(u.shift(a)), t.cross(u).shift(a)
    np.testing.assert_allclose(values(got), values(want), rtol=1e-12, atol=1e-13)
