import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.identify import Parameters, choose, definite
from tests.models import every_joint, fork, massless_middle


def second_moments(model):
    inertia = np.asarray(model.inertia)
    trace = np.trace(inertia, axis1=1, axis2=2)[:, None, None]
    return trace / 2 * np.eye(3) - inertia


EVERYTHING = (
    "*.inertial",
    "*.p",
    "*.R",
    "*.axis*",
    "*.pitch",
    "*.rest",
    "*.armature",
    "gravity",
)


@pytest.mark.slow
def test_coordinates_zero_are_the_nominal_model():
    model = every_joint()
    chosen = choose(model, EVERYTHING, start={"*.armature": 0.3})
    made = chosen.model(jnp.zeros_like(chosen.theta))
    assert np.abs(made.inertia - model.inertia).max() < 1e-15
    for leaf in ("mass", "com", "R", "p", "pitch", "rest", "gravity"):
        assert (getattr(made, leaf) == getattr(model, leaf)).all(), leaf
    norm = np.linalg.norm(model.axis, axis=1, keepdims=True)
    assert np.abs(made.axis - model.axis / norm).max() < 1e-15
    assert np.allclose(made.armature, 0.3, rtol=1e-14)  # zero in the model
    values = dict(zip(chosen.names, chosen.nominal_values, strict=True))
    assert values["j_revolute.armature"] == 0


@pytest.mark.parametrize("size", [0.5, 3.0, 30.0, 1e6])
def test_every_number_gives_bodies_that_can_exist(rng, size):
    model = fork()
    chosen = choose(model, ["*.inertial", "*.damping"])
    make = jax.jit(lambda theta: chosen.model(theta))
    for _ in range(20):
        theta = size * rng.normal(size=chosen.theta.shape)
        made = make(jnp.asarray(theta))
        assert (made.mass > 0).all() and (made.damping > 0).all()
        assert np.isfinite(made.com).all()
        assert np.linalg.eigvalsh(second_moments(made)).min() > 0


def test_bodies_have_the_pseudo_inertia_of_their_log_cholesky_factor(rng):
    model = fork()
    chosen = choose(model, "trunk.inertial")
    theta = jnp.asarray(rng.normal(size=10))
    from jaxdyn.identify._coordinates import body_factor

    pi0 = jd.inertial_parameters(model)[0]
    U0 = np.linalg.cholesky(np.asarray(jd.pseudo_inertia(pi0))[::-1, ::-1])[::-1, ::-1]
    U = U0 @ np.asarray(body_factor(theta))
    found = jd.pseudo_inertia(jd.inertial_parameters(chosen.model(theta))[0])
    np.testing.assert_allclose(found, U @ U.T, rtol=1e-12, atol=1e-14)


def test_values_are_the_numbers_of_the_model(rng):
    model = every_joint()
    chosen = choose(model, ["*.inertial", "j_universal.p", "*.damping", "j_*.axis2"])
    theta = jnp.asarray(0.1 * rng.normal(size=chosen.theta.shape))
    values = dict(zip(chosen.names, chosen.values(theta), strict=True))
    made = chosen.model(theta)
    i = model.body("helical")
    assert values["helical.mass"] == made.mass[i]
    assert values["helical.com_z"] == made.com[i, 2]
    assert values["helical.inertia_xz"] == made.inertia[i, 0, 2]
    k = model.v_slice("universal").start
    joint = model.joint_names[model.body("universal")]
    assert values[f"{joint}.damping[1]"] == made.damping[k + 1]
    assert values[f"{joint}.axis2_y"] == made.axis2[model.body("universal"), 1]


@pytest.mark.slow
def test_derivatives_of_the_model_are_finite_and_right(rng):
    chosen = choose(every_joint(), ["*.inertial", "*.R", "*.axis", "gravity"])

    def total(theta):
        leaves = jax.tree.leaves(chosen.model(theta))
        return sum(jnp.where(jnp.isfinite(x), x, 0).sum() for x in leaves)

    slope = jax.jit(jax.grad(total))
    x, d = chosen.theta, jnp.asarray(rng.normal(size=chosen.theta.shape))
    h = 1e-5
    difference = (total(x + h * d) - total(x - h * d)) / (2 * h)
    np.testing.assert_allclose(slope(x) @ d, difference, rtol=1e-7)
    second = jax.jit(jax.jvp, static_argnums=0)(jax.grad(total), (x,), (d,))[1]
    assert np.isfinite(second).all()


def test_tied_bodies_are_equal_and_mirrored_ones_are_images(rng):
    model = fork()
    chosen = choose(model, "*.inertial", tied=[("left.inertial", "right.inertial")])
    theta = jnp.asarray(rng.normal(size=chosen.theta.shape))
    made = chosen.model(theta)
    assert made.mass[1] == made.mass[2]
    assert (made.inertia[1] == made.inertia[2]).all()
    names = ("left.inertial", "right.inertial", "y")
    made = choose(model, "*.inertial", mirrored=[names]).model(theta)
    mirror = np.diag([1.0, -1.0, 1.0])
    np.testing.assert_array_equal(made.com[2], mirror @ made.com[1])
    np.testing.assert_array_equal(made.inertia[2], mirror @ made.inertia[1] @ mirror)


def test_parts_of_a_body_that_is_chosen_as_a_whole_are_not_chosen_twice():
    chosen = choose(fork(), ["trunk.inertial", "trunk.mass", "*.com_x"])
    assert [x.name for x in chosen.chosen] == [
        "trunk.inertial",
        "left.com_x",
        "right.com_x",
    ]


def test_a_search_starts_where_it_is_told():
    chosen = choose(
        fork(), ["left.mass", "left.com_x"], start={"*.mass": 3.0, "*.com_x": 0.05}
    )
    values = dict(zip(chosen.names, chosen.values(chosen.theta), strict=True))
    assert abs(values["left.mass"] - 3.0) < 1e-14
    assert abs(values["left.com_x"] - 0.05) < 1e-15


def test_loops_and_frames_can_be_chosen():
    model = jd.robots.four_bar()
    chosen = choose(model, ["*.p_a_x", "j_coupler.p_x"])
    made = chosen.model(chosen.theta + 1.0)
    assert abs(made.loops[0].p_a[0] - model.loops[0].p_a[0] - 0.1) < 1e-15
    assert made.loops[0].p_a[1] == model.loops[0].p_a[1]
    turned = choose(model, "*.R_b").model(jnp.asarray([0.0, 0.0, 1.0]))
    angle = np.arctan2(turned.loops[0].R_b[1, 0], turned.loops[0].R_b[0, 0])
    assert abs(angle - 0.1) < 1e-15


def test_tied_loops_move_together_and_are_written_back(rng):
    b = jd.ModelBuilder("legs")
    for name in ("left", "right"):
        b.add_body(name, inertial=jd.Inertial.box(1.0, (0.1, 0.2, 0.3)))
        b.add_loop(name, rng.normal(size=3), None, (1.0, 0.0, 0.0), "revolute")
    pairs = [(f"loop 0.{x}", f"loop 1.{x}") for x in ("p_a", "R_b")]
    chosen = choose(b.build(), ["loop*.p_a", "loop*.R_b"], tied=pairs)
    assert {x.name.partition(".")[0] for x in chosen.chosen} == {"loop 0"}
    made = chosen.model(jnp.asarray(rng.normal(size=6)))
    for first, other in (made.loops, jd.from_dict(jd.to_dict(made)).loops):
        assert (first.p_a == other.p_a).all() and (first.R_b == other.R_b).all()
        np.testing.assert_array_equal(other.p_a, made.loops[0].p_a)
    assert (made.loops[0].p_a != chosen.nominal.loops[0].p_a).all()


@pytest.mark.slow
def test_single_precision_stays():
    chosen = choose(fork().astype(np.float32), ["*.inertial", "*.damping"])
    made = chosen.model(chosen.theta)
    assert {x.dtype for x in jax.tree.leaves((made, chosen.theta))} == {np.dtype("f4")}


def test_a_rod_is_no_body_in_any_precision(rng):
    b = jd.ModelBuilder("rods")
    for k, end in enumerate(rng.normal(size=(12, 3))):
        b.add_body(f"rod{k}", inertial=jd.Inertial.rod(2.0**k, (0, 0, 0), end))
    for dtype in (np.float32, np.float64):
        rods = b.build(dtype)
        for name in rods.names:
            with pytest.raises(ValueError, match="expected a mass above 0 and three"):
                choose(rods, f"{name}.inertia")
        assert len(choose(definite(rods), "*.inertial").theta) == 120


def test_definite_gives_a_body_to_what_has_none():
    model = massless_middle()
    with pytest.raises(ValueError, match=r"first.inertial: body 'first' .*definite"):
        choose(model, "*.inertial")
    made = definite(model)
    assert isinstance(choose(made, "*.inertial"), Parameters)
    assert np.linalg.eigvalsh(second_moments(made)).min() > 0
    puma = jd.robots.puma_560()  # link 3 violates the triangle inequality
    fixed = definite(puma, mass=1e-3, radius=0.01)
    assert np.linalg.eigvalsh(second_moments(fixed)).min() > 0
    same = np.array([1, 3, 4, 5])
    assert (fixed.inertia[same] == puma.inertia[same]).all()


@pytest.mark.parametrize(
    ("patterns", "options", "message"),
    [
        ("left.mas", {}, r"'left.mas' fits nothing.*did you mean 'left.mass'"),
        ("zzz", {}, r"names end with one of: gravity.*inertial, mass"),
        ("*.mass", {"without": "*"}, r"leave nothing"),
        ("*.mass", {"start": {"*.mass": -1.0}}, r"left.mass is -1|trunk.mass is -1"),
        ("*.R", {"start": {"*.R": 1.0}}, r"is not one number"),
        ("left.mass", {"tied": [("right.mass", "left.mass")]}, r"not among the chosen"),
        (
            "*.mass",
            {"tied": [("left.mass", "right.com")]},
            r"'left.mass' names left.mass and 'right.com' names right.com_x, right.co",
        ),
        (
            "*.mass",
            {"tied": [("trunk.mass", "left.mass"), ("left.mass", "right.mass")]},
            r"left.mass is followed, and left.mass follows another",
        ),
        (
            "*.mass",
            {"tied": [("trunk.mass", "right.mass"), ("left.mass", "right.mass")]},
            r"right.mass follows more than one other",
        ),
        (
            ["left.inertial", "right.mass"],
            {"tied": [("left.inertial", "right.inertial")]},
            r"right.mass is fitted, and right.inertial follows another",
        ),
        ("*.inertial", {"without": "*.com"}, r"without: '\*.com' fits none of the cho"),
        ("*", {"without": "*.mass"}, r"trunk.mass is a part of trunk.inertial"),
        ("left.mass", {"start": {"right.mass": 1.0}}, r"none of the chosen parameters"),
        ("*.axis", {"mirrored": [("j_left.axis", "j_right.axis", "x")]}, r"no axis"),
        ("*.com", {"mirrored": [("left.com", "right.com", "w")]}, r"normal 'w'"),
    ],
)
def test_wrong_choices_say_what_is_wrong(patterns, options, message):
    with pytest.raises(ValueError, match=message):
        choose(fork(), patterns, **options)


def test_wrong_coordinates_say_their_shape():
    chosen = choose(fork(), "*.mass")
    with pytest.raises(ValueError, match=r"theta has shape \(2,\), expected \(3,\)"):
        chosen.model(jnp.zeros(2))
