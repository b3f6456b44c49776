"""Models as URDF."""

import contextlib
import inspect
from functools import partial

import jax
import numpy as np
import pytest

from jaxdyn import robots
from jaxdyn.io import load_urdf, to_urdf
from jaxdyn.model import Inertial, ModelBuilder
from tests.io.urdf_texts import (
    INERTIAL,
    assert_same_models,
    fixed_tool,
    random_model,
    random_rotation,
)

SHIPPED = {name: x for name, x in vars(robots).items() if inspect.isfunction(x)} | {
    "chain": lambda: robots.chain(7),
    "random_tree": lambda: robots.random_tree(1),
}
LOOPED = "five_bar four_bar ladder slider_crank stewart_gough three_rrr".split()


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_robots_survive_the_round_trip_or_say_why_not(name):
    model = SHIPPED[name]()
    if name in LOOPED:
        with pytest.raises(ValueError, match="has loops, which URDF cannot hold"):
            to_urdf(model)
        model = model.without_loops()
    doubtful = pytest.warns(
        UserWarning, match="link3: kept as given: principal inertias 0.0125"
    )
    with doubtful if name == "puma_560" else contextlib.nullcontext():
        read = load_urdf(to_urdf(model), gravity=np.asarray(model.gravity))
    if set(model.joints) <= {"revolute", "prismatic"}:
        assert read.topology == model.topology
        close = partial(np.testing.assert_allclose, atol=1e-14)
        jax.tree.map(close, read, model)
    assert read.nv == model.nv
    np.testing.assert_allclose(read.mass.sum(), model.mass.sum(), rtol=1e-14)


def test_model_survives_the_round_trip(rng):
    joints = "free revolute prismatic revolute free prismatic revolute".split()
    model = random_model(rng, joints, base="ground").build()
    assert_same_models(load_urdf(to_urdf(model)), model)


def test_fixed_bodies_survive_the_round_trip_unmerged(rng):
    model = random_model(rng, ("revolute", "fixed", "prismatic", "fixed")).build()
    assert_same_models(load_urdf(to_urdf(model), merge_fixed=False), model)


def test_frames_survive_the_round_trip(rng):
    builder = random_model(rng, ("revolute", "revolute"))
    builder.add_frame("tool", "b1", R=random_rotation(rng), p=rng.normal(size=3))
    builder.add_frame(
        "camera",
        None,
        R=random_rotation(rng),
        p=rng.normal(size=3),
        joint_name="mount",
    )
    model = builder.build()
    assert_same_models(load_urdf(to_urdf(model)), model)


def test_merged_fixed_joints_keep_their_names():
    model = load_urdf(fixed_tool(INERTIAL))
    assert model.topology.frame_joint_names == ("f",)
    assert '<joint name="f" type="fixed">' in to_urdf(model)


@pytest.mark.parametrize("joint", ["revolute", "prismatic"])
@pytest.mark.parametrize("lower, upper", [(-1.0, 2.0), (-np.inf, 2.0), (-1.0, np.inf)])
def test_limits_survive_the_round_trip(joint, lower, upper):
    builder = ModelBuilder()
    builder.add_body("arm", joint=joint, lower=lower, upper=upper)
    model = builder.build()
    assert_same_models(load_urdf(to_urdf(model)), model)


def test_hub_without_mass_survives_the_round_trip():
    builder = ModelBuilder()
    builder.add_body("hub", inertial=Inertial(inertia=np.diag([0, 0, 0.35])))
    model = builder.build()
    assert_same_models(load_urdf(to_urdf(model)), model)


def test_numbers_keep_every_digit(rng):
    model = random_model(rng, ("prismatic",)).build()
    again = load_urdf(to_urdf(model))
    for key in ("p", "mass", "com", "damping", "effort"):
        np.testing.assert_array_equal(getattr(again, key), getattr(model, key))


@pytest.mark.parametrize(
    "kind, split",
    [
        ("universal", ("revolute", "revolute")),
        ("cylindrical", ("revolute", "prismatic")),
        ("planar", ("prismatic", "prismatic", "revolute")),
    ],
)
def test_joint_with_several_axes_is_split_around_massless_links(rng, kind, split):
    model = random_model(rng, (kind,)).build()
    again = load_urdf(to_urdf(model))
    k = len(split)
    e, e2 = np.asarray(model.axis[0]), np.asarray(model.axis2[0])
    axes = {"universal": [e, e2], "cylindrical": [e, e]}
    axes["planar"] = [e2, np.cross(e, e2), e]
    assert again.names == (*(f"b0_{i}" for i in range(1, k)), "b0")
    assert again.joint_names == tuple(f"joint 0_{i + 1}" for i in range(k))
    assert again.joints == split
    np.testing.assert_allclose(again.axis, axes[kind], atol=1e-15)
    np.testing.assert_array_equal(again.mass, [*[0] * (k - 1), model.mass[0]])
    np.testing.assert_array_equal(again.p[:, 0], [model.p[0, 0], *[0] * (k - 1)])
    np.testing.assert_array_equal(again.damping, model.damping)


def test_file_holds_the_text_and_nothing_else_is_left(rng, tmp_path):
    model = random_model(rng, ("revolute",)).build()
    path = tmp_path / "robot.urdf"
    path.write_text("old")
    text = to_urdf(model, path)
    assert path.read_text() == text
    assert list(tmp_path.iterdir()) == [path]


def built(joint="revolute", loop=False, frame=None, **options):
    builder, ball = ModelBuilder("r"), Inertial.ellipsoid(1.0, (1, 1, 1))
    builder.add_body("a", joint=joint, inertial=ball, **options)
    builder.add_body("b", "a", inertial=ball)
    if frame:
        builder.add_frame(frame, "b")
    if loop:
        builder.add_loop("a", (0, 0, 0), "b", (0, 0, 0))
    return builder.build()


UNHELD = [
    ("armature", {"armature": 1.0}),
    ("stiffness", {"stiffness": 1.0}),
    ("loops", {"loop": True}),
    ("damping", {"joint": "free", "damping": [0, 0, 0, 0, 0, 1]}),
    ("upper", {"joint": "free", "upper": 1.0}),
]


@pytest.mark.parametrize("what, options", UNHELD)
def test_what_urdf_cannot_hold_is_reported(what, options):
    where = "model 'r'" if what == "loops" else "joint 'j_a'"
    with pytest.raises(ValueError, match=rf"{where} has {what}.*drop=\('{what}',\)"):
        to_urdf(built(**options))


@pytest.mark.parametrize("what, options", UNHELD)
def test_what_urdf_cannot_hold_is_left_out_on_request(what, options):
    again = load_urdf(to_urdf(built(**options), drop=(what,)))
    assert_same_models(again, built(options.get("joint", "revolute")))


def test_another_friction_speed_is_reported_where_there_is_friction():
    to_urdf(built(friction_speed=0.1))
    model = built(friction=2.0, friction_speed=0.1)
    with pytest.raises(ValueError, match="joint 'j_a' has friction_speed, which URDF"):
        to_urdf(model)
    again = load_urdf(to_urdf(model, drop="friction_speed"))
    assert_same_models(again, built(friction=2.0))


def test_the_usual_friction_speed_is_not_reported_in_single_precision():
    model = built(friction=2.0).astype(np.float32)
    assert load_urdf(to_urdf(model)).friction[0] == 2.0


@pytest.mark.parametrize(
    "options, message",
    [
        ({"joint": "helical", "pitch": 0.1}, "joint 'j_a' is helical.*to_dict"),
        ({"joint": "spherical"}, "joint 'j_a' is spherical.*to_dict"),
        (
            {
                "joint": "universal",
                "axis2": (1, 0, 0),
                "joint_name": "j_tool",
                "frame": "tool_1",
            },
            "two joints of the URDF .* name 'j_tool_1': rename",
        ),
    ],
)
def test_model_that_urdf_cannot_hold_is_reported(options, message):
    with pytest.raises(ValueError, match=message):
        to_urdf(built(**options))


def test_unknown_name_in_drop_is_reported():
    with pytest.raises(ValueError, match="drop names gravity, expected some of"):
        to_urdf(built(), drop=("gravity",))
