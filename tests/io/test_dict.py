import copy
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn import robots
from jaxdyn.io import from_dict, to_dict, to_urdf
from jaxdyn.model import JOINT_TYPES, Inertial, ModelBuilder

DATA = Path(__file__).parents[1] / "data"
NOTES = {"dh", "tool_frame", "sequence", "units", "independent", "actuated"}


def read_models():
    """Every model of the reference data, by its file and its place there."""
    for path in sorted(DATA.glob("*.json")):
        data = json.loads(path.read_text())
        for i, case in enumerate(data.get("cases", [data])):
            if "model" in case:
                yield f"{path.stem} {i}", case["model"]


MODELS = dict(read_models())


def arm():
    """A small model as a dictionary, new at each call."""
    joint = {"type": "revolute", "placement": {"R": np.eye(3).tolist(), "p": [0, 0, 1]}}
    inertia = np.diag([0.1, 0.2, 0.25]).tolist()
    link = {"joint": joint, "mass": 1.5, "com": [0, 0, 0.5], "inertia": inertia}
    bodies = [{"name": "a", "parent": -1} | link, {"name": "b", "parent": 0} | link]
    return copy.deepcopy({"name": "arm", "bodies": bodies})


def changed(path, value):
    """The small model with the entry at `path` replaced, or removed for None."""
    data = entry = arm()
    *way, last = path
    for key in way:
        entry = entry[key]
    if value is None:
        del entry[last]
    else:
        entry[last] = value
    return data


def every_effect(joint):
    """A model with one joint, and a value for each of its effects and limits."""
    kind = JOINT_TYPES[joint]
    options = {"axis": (0, 0, 1)} if kind.axes else {}
    options |= {"axis2": (1, 0, 0)} if kind.axes == 2 else {}
    options |= {"pitch": 0.25} if joint == "helical" else {}
    keys = "armature damping friction friction_speed stiffness effort velocity".split()
    values = {key: 0.5 + i + np.arange(kind.nv) for i, key in enumerate(keys)}
    rest = 0.1 * np.arange(1, kind.nq + 1)
    limits = {"rest": rest, "lower": rest - 2, "upper": rest + 2}
    builder = ModelBuilder("one", gravity=(0, 1, 2), base="ground")
    body = Inertial.box(2.0, (0.1, 0.2, 0.3))
    builder.add_body("link", None, joint, inertial=body, **options, **values, **limits)
    return builder.build()


def with_frames_and_loops():
    builder = ModelBuilder("closed")
    builder.add_body("a", joint_name="shoulder")
    builder.add_body("b", "a", p=(1, 0, 0))
    builder.add_body("c", p=(0, 2, 0))
    R = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]])
    builder.add_frame("tool", "b", R=R, p=(0, 0, 0.3))
    builder.add_frame("camera", None, joint_name="mount")
    builder.add_loop("b", (1, 0, 0), "c", (0, 0, 1), axes=(0, 2))
    return builder.build()


def same(a, b):
    """Whether two models agree in structure and in every digit."""
    alike = jax.tree.map(np.array_equal, a, b)
    return repr(a.topology) == repr(b.topology) and all(jax.tree.leaves(alike))


@pytest.mark.reference
@pytest.mark.filterwarnings("ignore:model 'puma.* will move")
@pytest.mark.parametrize("name", MODELS)
def test_reference_models_come_back_exactly(name):
    data = MODELS[name]
    model = from_dict(data)
    assert to_dict(model) == {k: v for k, v in data.items() if k not in NOTES}


@pytest.mark.parametrize("joint", JOINT_TYPES)
def test_axes_effects_and_limits_survive(joint):
    model = every_effect(joint)
    assert same(from_dict(to_dict(model)), model)


def test_names_frames_and_loops_survive():
    model = with_frames_and_loops()
    assert same(from_dict(to_dict(model)), model)


@pytest.mark.parametrize("joint", ["revolute", "spherical", "free"])
def test_rest_without_a_spring_survives(joint):
    rest = JOINT_TYPES[joint].neutral[::-1] + 0.5
    builder = ModelBuilder()
    builder.add_body("a", joint=joint, rest=rest)
    data = to_dict(builder.build())
    assert data["bodies"][0]["joint"]["rest"] == rest.tolist()
    np.testing.assert_array_equal(from_dict(data).rest, rest)


def test_rest_at_the_neutral_position_is_not_written():
    builder = ModelBuilder()
    builder.add_body("a", joint="free", stiffness=1.0)
    assert "rest" not in to_dict(builder.build())["bodies"][0]["joint"]


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_the_usual_friction_speed_is_not_written(dtype):
    builder = ModelBuilder()
    builder.add_body("a", friction=1.0)
    assert "friction_speed" not in to_dict(builder.build(dtype))["bodies"][0]["joint"]


def test_joint_names_of_frames_are_written_unless_they_are_the_default():
    frames = to_dict(with_frames_and_loops())["frames"]
    assert [frame.get("joint_name") for frame in frames] == [None, "mount"]


def test_a_parent_may_be_an_integer_of_numpy():
    data = changed(("bodies", 1, "parent"), np.int64(0))
    assert same(from_dict(data), from_dict(arm()))


def test_limits_on_some_coordinates_only_survive():
    builder = ModelBuilder()
    builder.add_body("a", joint="cylindrical", lower=(-1, -np.inf), effort=(3, np.inf))
    model = builder.build()
    assert same(from_dict(to_dict(model)), model)


def test_a_dictionary_survives_as_json_text():
    data = to_dict(with_frames_and_loops())
    assert json.loads(json.dumps(data)) == data


def test_what_is_left_out_has_its_default():
    model = from_dict({"bodies": arm()["bodies"]})
    got = model.name, model.topology.base, model.gravity.tolist(), model.joint_names
    assert got == ("robot", "base", [0, 0, -9.81], ("j_a", "j_b"))


def test_places_need_not_be_given():
    model = from_dict(arm())
    assert (model.nq, model.v_slice("b")) == (2, slice(1, 2))


@pytest.mark.parametrize("note", sorted(NOTES))
def test_notes_are_accepted_and_not_kept(note):
    assert note not in to_dict(from_dict(arm() | {note: "anything"}))


def test_leaves_have_the_asked_dtype():
    leaves = jax.tree.leaves(from_dict(arm(), dtype=jnp.float32))
    assert {leaf.dtype for leaf in leaves} == {jnp.dtype(jnp.float32)}


def test_an_impossible_inertia_is_kept_with_a_warning():
    inertia = np.diag([1.0, 1.0, 3.0]).tolist()
    data = changed(("bodies", 0, "inertia"), inertia)
    with pytest.warns(UserWarning, match="inertia a: kept as given: .* 1, 1, 3 viol"):
        model = from_dict(data)
    np.testing.assert_array_equal(model.inertia[0], inertia)
    assert [note.place for note in model.report] == ["a"]


def test_an_impossible_inertia_is_replaced_on_request():
    data = changed(("bodies", 0, "inertia"), np.diag([1.0, 1.0, 3.0]).tolist())
    with pytest.warns(UserWarning, match="inertia a: nearest possible one"):
        model = from_dict(data, inertia="nearest")
    np.testing.assert_allclose(model.inertia[0], np.diag([1.5, 1.5, 3]), atol=1e-15)


def test_impossible_inertias_are_one_error_on_request():
    data = changed(("bodies", 0, "inertia"), np.diag([1.0, 1.0, 3.0]).tolist())
    data["bodies"][1]["inertia"] = np.diag([1.0, 1.0, -1.0]).tolist()
    with pytest.raises(ValueError, match="body 'a': .* viol.*; body 'b': .* negative"):
        from_dict(data, inertia="error")
    with pytest.raises(ValueError, match="^body 'b': .* negative"):
        from_dict(data, strict=True)
    with pytest.raises(ValueError, match="inertia is 'some', expected one of: as giv"):
        from_dict(data, inertia="some")


FIRST = ("bodies", 0)
JOINT = (*FIRST, "joint")
FRAME = {"name": "tool", "body": 0}
LOOP = {"body_a": 0, "p_a": [0, 0, 0], "body_b": 1, "p_b": [0, 0, 0]}


@pytest.mark.parametrize(
    "path, value, message",
    [
        (("bodies",), None, "model has no 'bodies': add it"),
        (("bodies",), [], "model 'arm' has no bodies"),
        (("bodies",), [5], "body 0 is 5, expected a dictionary"),
        (("bodies",), [None], "body 0 is None, expected a dictionary"),
        (("bodies",), ["name"], "body 0 is 'name', expected a dictionary"),
        (("bodies",), {"a": {}}, "bodies is {'a': {}}, expected a list of bodies"),
        (("bodies",), 5, "bodies is 5, expected a list of bodies"),
        (("bodies", 1), [["name", "b"]], "body 1 is .*, expected a dictionary"),
        (("bodies", 1, "joint", "name"), "j_a", "joint name 'j_a' is taken"),
        (("bodies", 1, "name"), "a", "body 'a' has a name that is taken"),
        (("links",), [], "model has the key 'links', expected only: .*spelling"),
        (("nq",), 3, "model: nq is 3, expected 2 from the joint types"),
        (("nv",), 3, "model: nv is 3, expected 2"),
        (("gravity",), [0, 0], "gravity is .*, expected 3 numbers"),
        ((*FIRST, "name"), None, "body 0 has no 'name': add it"),
        ((*FIRST, "mass"), None, "body 'a' has no 'mass': add it"),
        ((*FIRST, "weight"), 1, "body 'a' has the key 'weight', expected only: "),
        ((*FIRST, "parent"), "base", "body 'a' has parent 'base', expected an index"),
        ((*FIRST, "parent"), 1, "body 'a' refers to body 1, .* parents precede"),
        ((*FIRST, "idx_q"), 1, "body 'a': idx_q is 1, expected 0 from the joint types"),
        ((*FIRST, "nq"), 2, "body 'a': nq is 2, expected 1"),
        (("bodies", 1, "idx_v"), 0, "body 'b': idx_v is 0, expected 1"),
        (("bodies", 1, "nv"), 0, "body 'b': nv is 0, expected 1"),
        ((*FIRST, "mass"), -1.0, "body 'a': mass is -1.0"),
        ((*FIRST, "mass"), "1.0", "body 'a': mass is '1.0', expected one number"),
        ((*FIRST, "mass"), [1.0], r"body 'a': mass is \[1.0\], expected one number"),
        ((*FIRST, "mass"), np.nan, "body 'a': mass is nan, expected finite"),
        ((*FIRST, "com"), ["0", 0, 0], "body 'a': com is .*'0'.*, expected 3 numbers"),
        ((*FIRST, "inertia"), [[1], [1, 2]], "body 'a': inertia is .*expected 3 x 3"),
        ((*FIRST, "com"), [0, 0], "body 'a': com is .*, expected 3 numbers"),
        ((*FIRST, "inertia"), [1, 1, 1], "body 'a': inertia is .*, expected 3 x 3"),
        (JOINT, "revolute", "joint of body 'a' is 'revolute', expected a dictionary"),
        ((*JOINT, "type"), None, "joint of body 'a' has no 'type'"),
        ((*JOINT, "type"), "ball", "joint type 'ball' is not known"),
        ((*JOINT, "origin"), [0, 0, 0], "joint of body 'a' has the key 'origin'"),
        ((*JOINT, "placement"), None, "joint of body 'a' has no 'placement'"),
        ((*JOINT, "placement"), [0, 0], "placement of body 'a' is .*a dictionary"),
        ((*JOINT, "placement", "R"), None, "placement of body 'a' has no 'R'"),
        ((*JOINT, "placement", "q"), 0, "placement of body 'a' has the key 'q'"),
        (("frames",), ["tool"], "frame is 'tool', expected a dictionary"),
        (("frames",), [{"name": "tool"}], "frame has no 'body'"),
        (("frames",), [FRAME | {"x": 0}], "frame has the key 'x'"),
        (("loops",), [[0, 1]], r"loop is \[0, 1\], expected a dictionary"),
        (("loops",), [{"body_a": 0}], "loop has no 'body_b'"),
        (("loops",), [LOOP | {"axis": [0]}], "loop has the key 'axis'"),
        (("loops",), [LOOP | {"body_b": 0}], "loop 0 joins body 'a' to itself"),
        (("loops",), 5, "loops is 5, expected a list of loops"),
        (("frames",), True, "frames is True, expected a list of frames"),
        (
            ("frames",),
            [FRAME | {"body": [0]}],
            r"'tool' refers to body \[0\], expected",
        ),
        (("frames",), [FRAME | {"body": np.arange(2)}], r"'tool' refers to body array"),
        (("loops",), [LOOP | {"joint": [1]}], r"loop 0: a cut joint of type \[1\] is"),
        (("loops",), [LOOP | {"axes": 1}], "loop 0: axes are 1, expected some of 0, 1"),
        (
            ("loops",),
            [LOOP | {"axes": [[0], 1]}],
            r"loop 0: axes are .*expected some o",
        ),
        (("loops",), [LOOP | {"body_a": np.arange(2)}], "loop 0 refers to body array"),
        ((*FIRST, "parent"), True, "body 'a' has parent True, expected an index"),
        ((*FIRST, "mass"), 10**400, "body 'a': mass is 1000.*, expected one number"),
        ((*FIRST, "com"), object(), "body 'a': com is <object.*, expected 3 numbers"),
        ((*FIRST, "nq"), np.arange(2), r"body 'a': nq is \[0 1\], expected 1 from the"),
    ],
)
def test_from_dict_says_what_is_wrong(path, value, message, without_type_checker):
    with pytest.raises(ValueError, match=message):
        from_dict(changed(path, value))


@pytest.mark.parametrize("dtype", ["float", "int32", "x", 5, [1]])
def test_type_that_is_not_of_floating_point_is_an_error(dtype, without_type_checker):
    if dtype == "float":
        assert from_dict(changed(("name",), "a"), dtype=dtype).dtype == jnp.float64
        return
    with pytest.raises(ValueError, match="dtype is .*, expected a floating-point type"):
        from_dict(changed(("name",), "a"), dtype=dtype)


@pytest.mark.parametrize("write", [to_dict, to_urdf])
def test_a_batch_of_models_is_no_model(write):
    batch = jax.tree.map(lambda x: jnp.stack([x, x]), robots.gripper())
    with pytest.raises(ValueError, match=r"leaf .* has shape \(2, .* use jax.vmap for"):
        write(batch)


@pytest.mark.parametrize("seed", range(10))
def test_models_in_single_precision_come_back(seed, rng):
    planar = robots.random_tree(
        seed, 3, joints=("planar", "universal"), dtype=jnp.float32
    )
    builder = ModelBuilder("rod")
    rod = Inertial.rod(1.0, (0.0, 0.0, 0.0), rng.normal(size=3))
    builder.add_body("rod", inertial=rod)
    for model in (planar, builder.build(jnp.float32)):
        same = from_dict(to_dict(model), dtype=jnp.float32)
        close = jax.tree.map(lambda a, b: np.allclose(a, b, atol=1e-6), model, same)
        assert all(jax.tree.leaves(close))
