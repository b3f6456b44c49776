import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.model import JOINT_TYPES, Inertial, ModelBuilder

AXES = {1: {"axis": (1, 2, 3)}, 2: {"axis": (0, 0, 1), "axis2": (1, 0, 0)}, 0: {}}
PITCH = {"helical": {"pitch": 0.1}}


def started():
    """A builder with the bodies a and b and the frame tool."""
    builder = ModelBuilder("arm")
    builder.add_body("a")
    builder.add_body("b", "a")
    builder.add_frame("tool", "b")
    return builder


def of_type(joint, **effects):
    builder = ModelBuilder()
    options = AXES[JOINT_TYPES[joint].axes] | PITCH.get(joint, {}) | effects
    builder.add_body("link", joint=joint, **options)
    return builder.build()


def built(**options):
    """The model with one body c on the body b; a and b have no mass."""
    builder = started()
    builder.add_body("c", "b", **options)
    return builder.build(check_inertia=False)


BODY_ERRORS = [
    ({"name": ""}, "a body has the name '', expected a text"),
    ({"name": "a"}, "body 'a' has a name that is taken: .* must all differ"),
    ({"name": "base"}, "body 'base' has a name that is taken"),
    ({"name": "tool"}, "body 'tool' has a name that is taken"),
    (
        {"joint_name": "j_a"},
        "body 'c': the joint name 'j_a' is taken: names of joints must differ",
    ),
    (
        {"parent": "z"},
        r"body 'c' refers to body 'z', .* added so far \(a, b\).*parents precede",
    ),
    (
        {"parent": 2},
        "body 'c' refers to body 2, expected .* 2 bodies added .*parents precede",
    ),
    ({"parent": False}, "body 'c' refers to body False, expected the base"),
    ({"joint_name": 5}, "body 'c': its joint has the name 5, expected a text"),
    ({"parent": -2}, "body 'c' refers to body -2, expected the base"),
    ({"joint": "ball"}, "joint type 'ball' is not known, expected one of: revolute, "),
    ({"joint": "spherical", "axis": (0, 0, 1)}, "a spherical joint has no axis"),
    ({"axis2": (0, 0, 1)}, "a revolute joint has no axis2"),
    ({"joint": "universal"}, "a universal joint needs axis2"),
    ({"joint": "planar"}, "a planar joint needs axis2"),
    ({"joint": "universal", "axis2": (0, 0, -3)}, "universal joint are parallel"),
    ({"joint": "planar", "axis2": (1, 0, 1)}, "planar joint is not perpendicular"),
    ({"axis": (0, 0, 0)}, "axis is .* expected a direction, not zero"),
    ({"axis": (0, 1)}, r"axis is \(0, 1\), expected 3 numbers"),
    ({"axis": (0, 0, np.nan)}, "axis is .*nan.*, expected finite numbers"),
    ({"p": (0, 1)}, r"placement p is \(0, 1\), expected 3 numbers"),
    ({"p": (0, 0, np.inf)}, "placement p is .*inf.*, expected finite numbers"),
    ({"R": np.eye(2)}, "(?s)placement R is .*, expected 3 x 3 numbers"),
    ({"R": 1.001 * np.eye(3)}, "placement R .* is not a rotation"),
    ({"R": np.diag([1, 1, -1])}, "not a rotation .*determinant -1.*right-handed"),
    ({"joint": "helical"}, "a helical joint needs a pitch"),
    ({"joint": "helical", "pitch": np.inf}, "pitch is inf, expected finite"),
    ({"pitch": 0.1}, "a revolute joint has no pitch, but 0.1 was given"),
    ({"inertial": Inertial(-1.0)}, "body 'c': mass is -1.0"),
    ({"inertial": Inertial(1.0, inertia=np.diag([1, 1, 3]))}, "triangle inequality"),
    ({"mass": 1.0}, "'mass' is not known, expected one of: armature, damping, "),
    ({"damping": (1, 2)}, r"damping is \(1, 2\), expected one number or 1"),
    ({"rest": np.nan}, "rest is nan, expected finite numbers"),
    (
        {"joint": "spherical", "rest": 0.0},
        "rest is 0.0, expected 4 numbers with a quaternion that is not zero: leave it",
    ),
    (
        {"joint": "free", "rest": (1, 0, 0, 0, 0, 0, 0)},
        r"rest is \[1.0, 0.*\], expected 7 numbers with a quaternion that is not zero",
    ),
    ({"armature": -1.0}, "armature is -1.0, expected zero or more"),
    ({"friction_speed": 0.0}, "friction_speed is 0.0, expected more than zero: leave"),
    ({"friction_speed": np.inf}, "friction_speed is inf, expected finite numbers"),
    (
        {"friction_speed": (1, 2)},
        r"friction_speed is \(1, 2\), expected one number or 1",
    ),
    ({"effort": -1.0}, "effort is -1.0, expected zero or more"),
    (
        {"lower": 1.0, "upper": 0.0},
        r"lower limit \[1.0\] exceeds the upper limit \[0.0\]",
    ),
]
LOOP_ERRORS = [
    ({"body_b": "a"}, "loop 0 joins body 'a' to itself"),
    ({"body_b": "z"}, r"loop 0 refers to body 'z', .* added so far \(a, b\)"),
    ({"body_a": 2}, "loop 0 refers to body 2, expected .* 2 bodies added so far"),
    ({"body_a": "base", "body_b": -1}, "loop 0 joins the world to itself"),
    ({"joint": "helical"}, "loop 0: a cut joint of type 'helical' is not known"),
    ({"joint": "revolute", "axes": (0, 1)}, r"axes are \(0, 1\) for a revolute joint"),
    ({"name": ""}, "a loop has the name '', expected a text"),
    (
        {"axes": (0, 3)},
        r"loop 0: axes are \(0, 3\), expected some of 0, 1, 2, once each",
    ),
    ({"axes": (0.9,)}, r"loop 0: axes are \(0.9,\), expected some of 0, 1, 2"),
    ({"axes": (True,)}, r"loop 0: axes are \(True,\)"),
    ({"axes": (1, 1)}, r"loop 0: axes are \(1, 1\)"),
    ({"axes": ()}, r"loop 0: axes are \(\)"),
    ({"placement_a": (0, 0)}, "frame a of loop 'loop 0': placement R is 0, expected"),
    ({"placement_a": 1.0}, "frame a of loop 'loop 0': the placement is 1.0, expected"),
    ({"placement_b": (0, 0, np.nan)}, "frame b of loop 'loop 0': .*nan.* finite"),
    (
        {"placement_b": (2 * np.eye(3), (0, 0, 0))},
        "frame b of loop 'loop 0': placement R .* is not a rotation",
    ),
]
FRAME_ERRORS = [
    ({"name": ""}, "a frame has the name '', expected a text"),
    ({"name": "a"}, "frame 'a' has a name that is taken: .* must all differ"),
    ({"name": "base"}, "frame 'base' has a name that is taken"),
    ({"name": "tool"}, "frame 'tool' has a name that is taken"),
    ({"body": "z"}, "frame 'f' refers to body 'z'"),
    ({"body": 5}, "frame 'f' refers to body 5, expected the base"),
    ({"joint_name": ""}, "frame 'f': its joint has the name '', expected a text"),
    ({"R": -np.eye(3)}, "'f': placement R .* is not a rotation"),
    ({"p": 0.0}, "'f': placement p is 0.0, expected 3 numbers"),
]


@pytest.mark.parametrize("options, message", BODY_ERRORS)
def test_add_body_says_what_is_wrong(options, message, without_type_checker):
    builder = started()
    with pytest.raises(ValueError, match=message):
        builder.add_body(**({"name": "c", "parent": "b"} | options))


@pytest.mark.parametrize("options, message", BODY_ERRORS)
def test_a_refused_body_is_not_kept(options, message, without_type_checker):
    builder = started()
    with pytest.raises(ValueError):
        builder.add_body(**({"name": "c", "parent": "b"} | options))
    assert builder.names == ["a", "b"]


@pytest.mark.parametrize("options, message", LOOP_ERRORS)
def test_add_loop_says_what_is_wrong(options, message, without_type_checker):
    origin = (0, 0, 0)
    loop = {"body_a": "a", "placement_a": origin, "body_b": "b", "placement_b": origin}
    builder = started()
    with pytest.raises(ValueError, match=message):
        builder.add_loop(**(loop | options))


@pytest.mark.parametrize("options, message", FRAME_ERRORS)
def test_add_frame_says_what_is_wrong(options, message):
    builder = started()
    with pytest.raises(ValueError, match=message):
        builder.add_frame(**({"name": "f", "body": "b"} | options))


def test_a_model_needs_a_body():
    with pytest.raises(ValueError, match="model 'arm' has no bodies"):
        ModelBuilder("arm").build()


def test_gravity_is_three_numbers():
    with pytest.raises(ValueError, match="gravity is -9.81, expected 3 numbers"):
        ModelBuilder(gravity=-9.81)


@pytest.mark.parametrize(
    "parent, index", [(None, -1), ("base", -1), (-1, -1), ("a", 0), (np.int64(1), 1)]
)
def test_parents_are_names_indices_or_the_base(parent, index):
    builder = started()
    builder.add_body("c", parent)
    assert builder.build().parents == (-1, 0, index)


def test_add_body_returns_its_index():
    assert started().add_body("c") == 2


def test_the_base_may_have_another_name():
    builder = ModelBuilder(base="world")
    builder.add_body("a", "world")
    assert builder.build().parents == (-1,)


def test_joints_are_named_after_their_bodies_unless_named():
    assert built(joint_name="wrist").joint_names == ("j_a", "j_b", "wrist")


def test_a_joint_may_not_have_the_name_another_joint_has_by_default():
    builder = ModelBuilder()
    builder.add_body("a", joint_name="j_b")
    with pytest.raises(ValueError, match="body 'b': the joint name 'j_b' is taken"):
        builder.add_body("b", "a")


def test_frames_stand_on_bodies_or_on_the_world():
    builder = started()
    builder.add_frame("camera", None)
    model = builder.build()
    assert (model.frame_names, model.frame_bodies) == (("tool", "camera"), (1, -1))


def test_frames_keep_their_pose(rng):
    R, p = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1.0]]), rng.normal(size=3)
    builder = started()
    builder.add_frame("f", "a", R=R, p=p)
    model = builder.build()
    got = np.column_stack([model.frame_R[1], model.frame_p[1]])
    np.testing.assert_array_equal(got, np.column_stack([R, p]))


def test_a_model_without_frames_has_empty_frame_leaves():
    model = of_type("revolute")
    assert (model.frame_R.shape, model.frame_p.shape) == ((0, 3, 3), (0, 3))


def test_loops_keep_their_bodies_and_axes():
    builder = started()
    builder.add_loop("a", (0, 0, 1), 1, (0, 0, 2), axes=(0, 2))
    loop = builder.build().loops[0]
    assert (loop.body_a, loop.body_b, loop.axes) == (0, 1, (0, 2))


def test_loops_keep_their_points():
    builder = started()
    builder.add_loop("a", (0, 0, 1), 1, (0, 3, 2))
    loop = builder.build().loops[0]
    got = np.stack([loop.p_a, loop.p_b])
    np.testing.assert_array_equal(got, [[0, 0, 1], [0, 3, 2]])


@pytest.mark.parametrize("dtype", [None, jnp.float32, jnp.float64])
def test_every_leaf_has_the_asked_dtype(dtype):
    builder = started()
    builder.add_loop("a", (0, 0, 1), "b", (0, 0, 2))
    leaves = jax.tree.leaves(builder.build(dtype))
    assert {leaf.dtype for leaf in leaves} == {jnp.dtype(dtype or jnp.float64)}


@pytest.mark.parametrize("joint", JOINT_TYPES)
def test_joints_have_no_effects_and_no_limits_by_default(joint):
    model = of_type(joint)
    nq, nv = model.nq, model.nv
    keys = "armature damping friction stiffness effort velocity lower upper".split()
    got = np.concatenate([getattr(model, key) for key in keys])
    sizes = [4 * nv, 2 * nv, nq, nq]
    np.testing.assert_array_equal(got, np.repeat([0, np.inf, -np.inf, np.inf], sizes))


@pytest.mark.parametrize("joint", JOINT_TYPES)
def test_rest_is_the_neutral_position_by_default(joint):
    model = of_type(joint)
    want = {"spherical": [0, 0, 0, 1], "free": [0, 0, 0, 0, 0, 0, 1]}
    np.testing.assert_array_equal(model.rest, want.get(joint, [0] * model.nq))


@pytest.mark.parametrize("joint", JOINT_TYPES)
def test_friction_saturates_at_a_thousandth_per_second_by_default(joint):
    model = of_type(joint)
    np.testing.assert_array_equal(model.friction_speed, [1e-3] * model.nv)


@pytest.mark.parametrize("value", [0.3, (0.3, 0.3, 0.3)])
def test_an_effect_is_one_number_or_one_per_degree_of_freedom(value):
    np.testing.assert_array_equal(of_type("planar", damping=value).damping, [0.3] * 3)


@pytest.mark.parametrize("joint", ["revolute", "cylindrical"])
def test_axes_are_normalised(joint):
    want = np.array([[1, 2, 3]]) / np.sqrt(14)
    np.testing.assert_allclose(of_type(joint).axis, want, rtol=1e-15)


def test_a_unit_axis_keeps_every_digit(rng):
    axis = rng.normal(size=3)
    axis /= np.linalg.norm(axis)
    np.testing.assert_array_equal(built(axis=axis).axis[2], axis)


def test_axes_are_z_and_x_by_default():
    model = built()
    got = np.stack([model.axis[2], model.axis2[2]])
    np.testing.assert_array_equal(got, [[0, 0, 1], [1, 0, 0]])


def test_a_rotation_with_printed_digits_is_made_orthonormal(rng):
    R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    R = np.round(R * np.linalg.det(R), 7)
    got = built(R=R).R[2]
    np.testing.assert_allclose(got.T @ got, np.eye(3), atol=1e-15)


def test_a_rotation_keeps_every_digit(rng):
    R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    R *= np.linalg.det(R)
    np.testing.assert_array_equal(built(R=R).R[2], R)


def test_inertial_data_stand_at_their_body():
    model = built(inertial=Inertial.box(2.0, (0.1, 0.2, 0.3)))
    want = Inertial.box(2.0, (0.1, 0.2, 0.3)).inertia
    np.testing.assert_array_equal(model.inertia, [0 * want, 0 * want, want])


def test_an_impossible_inertia_is_accepted_on_request():
    inertial = Inertial(1.0, inertia=np.diag([1.0, 1.0, 3.0]))
    model = built(inertial=inertial, check_inertia=False)
    np.testing.assert_array_equal(model.inertia[2], inertial.inertia)


def test_a_negative_inertia_is_accepted_on_request_alone():
    inertial = Inertial(1.0, inertia=np.diag([1.0, 1.0, -0.5]))
    model = built(inertial=inertial, check_inertia=False)
    np.testing.assert_array_equal(model.inertia[2], inertial.inertia)
    with pytest.raises(ValueError, match="negative principal value -0.5"):
        built(inertial=inertial, check_inertia=None)


@pytest.mark.parametrize(
    "kind, whole",
    [(Inertial.point, (0, 0, -1)), (Inertial.box, (1, 2, 3))],
)
def test_whole_numbers_are_lengths_and_coordinates_too(kind, whole):
    model = built(inertial=kind(2, whole), p=whole, axis=whole, damping=1)
    real = tuple(map(float, whole))
    want = built(inertial=kind(2.0, real), p=real, axis=real, damping=1.0)
    assert jax.tree.all(jax.tree.map(np.array_equal, model, want))


def test_whole_numbers_are_the_ends_of_a_rod_too():
    rod = Inertial.rod(1, (0, 0, 0), (0, 0, -1))
    np.testing.assert_array_equal(built(inertial=rod).com[2], [0, 0, -0.5])


def test_a_whole_number_is_a_pitch_too():
    assert of_type("helical", pitch=2).pitch[0] == 2.0
