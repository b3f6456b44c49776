"""Models from URDF."""

import json
import warnings

import jax
import numpy as np
import pytest

from jaxdyn.io import load_urdf
from tests.io.urdf_texts import (
    DATA,
    INERTIA,
    INERTIAL,
    assert_same_models,
    joint,
    link,
    one_joint,
    robot,
)

FILES = (
    "random_serial_chains",
    "random_trees",
    "lecture_tree",
    "gripper",
    "puma_mohan_saha",
    "mata_two_link",
    "mata_puma_line",
    "featherstone_2p",
)


def reference_cases():
    for name in FILES:
        data = json.loads((DATA / f"{name}.json").read_text())
        for i, case in enumerate(data.get("cases", [data])):
            yield pytest.param(case["model"], case["urdf"], id=f"{name}-{i}")


@pytest.mark.reference
@pytest.mark.parametrize("expected, urdf", list(reference_cases()))
def test_urdf_of_a_reference_robot_is_its_dictionary(expected, urdf):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of published inertias that no body has
        model = load_urdf(urdf, gravity=expected["gravity"], strict=True)
    bodies = expected["bodies"]
    assert model.names == tuple(body["name"] for body in bodies)
    assert model.joint_names == tuple(f"j_{body['name']}" for body in bodies)
    assert model.parents == tuple(body["parent"] for body in bodies)
    assert model.joints == tuple(body["joint"]["type"] for body in bodies)
    pairs = {
        "R": [body["joint"]["placement"]["R"] for body in bodies],
        "p": [body["joint"]["placement"]["p"] for body in bodies],
        "axis": [body["joint"]["axis"] for body in bodies],
        **{key: [body[key] for body in bodies] for key in ("mass", "com", "inertia")},
        "gravity": expected["gravity"],
    }
    for key, value in pairs.items():
        np.testing.assert_allclose(getattr(model, key), value, rtol=0, atol=1e-12)


def test_path_and_text_give_the_same_model(tmp_path):
    text = one_joint()
    path = tmp_path / "robot.urdf"
    path.write_text(text)
    for source in (path, str(path), f"\n  {text}"):
        assert_same_models(load_urdf(source), load_urdf(text))


def test_byte_order_mark_before_the_text_is_skipped(tmp_path):
    text = f"\ufeff{one_joint()}"
    path = tmp_path / "robot.urdf"
    path.write_text(text, encoding="utf-8")
    for source in (path, text, f"\ufeff\n{one_joint()}"):
        assert_same_models(load_urdf(source), load_urdf(one_joint()))


def test_root_link_is_the_base():
    model = load_urdf(one_joint())
    assert (model.topology.base, model.names, model.parents) == (
        "base",
        ("arm",),
        (-1,),
    )


def test_axis_is_x_by_default():
    np.testing.assert_array_equal(load_urdf(one_joint()).axis[0], [1, 0, 0])


def test_rpy_turns_about_fixed_axes_roll_first():
    roll_yaw = f'<origin xyz="1 2 3" rpy="{np.pi / 2} 0 {np.pi / 2}"/>'
    model = load_urdf(one_joint(roll_yaw))
    np.testing.assert_allclose(
        model.R[0], [[0, 0, 1], [1, 0, 0], [0, 1, 0]], atol=1e-15
    )
    np.testing.assert_array_equal(model.p[0], [1, 2, 3])


def test_inertia_is_turned_by_the_rpy_of_the_inertial():
    origin = f'<origin xyz="1 2 3" rpy="0 0 {np.pi / 2}"/>'
    body = INERTIAL.replace("<mass", f"{origin}<mass")
    model = load_urdf(one_joint(body=body))
    R = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]])
    np.testing.assert_allclose(model.inertia[0], R @ INERTIA @ R.T, atol=1e-15)
    np.testing.assert_array_equal(model.com[0], [1, 2, 3])


def test_joint_effects_and_limits_are_read():
    inside = (
        '<limit lower="-1" upper="2" effort="3" velocity="4"/>'
        '<dynamics damping="5" friction="6"/>'
    )
    model = load_urdf(one_joint(inside, "revolute"))
    keys = ("lower", "upper", "effort", "velocity", "damping", "friction")
    assert [getattr(model, key).item() for key in keys] == [-1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    "kind, limit, expected",
    [
        ("revolute", '<limit effort="1" velocity="1"/>', (-np.inf, np.inf)),
        ("revolute", '<limit lower="-1"/>', (-1, np.inf)),
        ("prismatic", "", (-np.inf, np.inf)),
        ("continuous", '<limit lower="-1" upper="1"/>', (-np.inf, np.inf)),
    ],
)
def test_limits_that_are_not_given_are_infinite(kind, limit, expected):
    model = load_urdf(one_joint(limit, kind))
    assert (model.lower.item(), model.upper.item()) == expected


@pytest.mark.parametrize(
    "axis, first",
    [("0 0 2", [1, 0, 0]), ("3 0 0", [0, 1, 0]), ("1 1 0", [0.5**0.5, -(0.5**0.5), 0])],
)
def test_first_direction_of_a_planar_joint_is_x_in_the_plane(axis, first):
    model = load_urdf(one_joint(f'<axis xyz="{axis}"/>', "planar"))
    np.testing.assert_allclose(model.axis2[0], first, atol=1e-15)


def test_floating_joint_is_free():
    assert load_urdf(one_joint(kind="floating")).joints == ("free",)


def test_bodies_keep_the_order_of_links_where_parents_are_first():
    joints = joint("j2", "a", "c"), joint("j3", "b", "d"), joint("j1", "a", "b")
    model = load_urdf(robot(*map(link, "acbd"), *joints))
    assert model.names == ("c", "b", "d")
    assert model.joint_names == ("j2", "j1", "j3")


def test_link_before_its_parent_follows_it_at_once():
    joints = joint("j1", "a", "b"), joint("j2", "b", "c"), joint("j3", "a", "d")
    assert load_urdf(robot(*map(link, "cbad"), *joints)).names == ("b", "c", "d")


def test_floating_base_puts_the_root_link_on_a_free_joint():
    urdf = robot(link("base"), link("arm"), joint("j", "base", "arm"))
    model = load_urdf(urdf, floating_base=True)
    assert model.topology.base == "world"
    assert model.names == ("base", "arm")
    assert model.joints == ("free", "revolute")
    assert model.parents == (-1, 0)


def test_floating_base_may_have_its_mass_from_a_link_fixed_to_it():
    fixed = joint("f", "base", "trunk", "fixed")
    urdf = robot(link("base", ""), link("trunk"), fixed)
    assert load_urdf(urdf, floating_base=True).mass.item() == 2


def test_fixed_link_gives_its_mass_to_the_body_that_carries_it():
    tool = (
        '<inertial><origin xyz="0 0 1"/><mass value="1"/><inertia ixx="0.1" ixy="0"'
        ' ixz="0" iyy="0.2" iyz="0" izz="0.3"/></inertial>'
    )
    quarter = f'<origin xyz="3 0 0" rpy="{np.pi / 2} 0 0"/>'
    fixed = joint("f", "arm", "tool", "fixed", quarter)
    model = load_urdf(one_joint(extra=link("tool", tool) + fixed))
    # 2 kg at the origin, 1 kg at (3, -1, 0): the tool's z axis is -y of the arm
    d = np.array([3.0, -1.0, 0.0])
    reduced = 2 / 3 * (d @ d * np.eye(3) - np.outer(d, d))
    assert model.mass.item() == 3
    np.testing.assert_allclose(model.com[0], [1, -1 / 3, 0], atol=1e-15)
    np.testing.assert_allclose(
        model.inertia[0], INERTIA + np.diag([0.1, 0.3, 0.2]) + reduced, atol=1e-14
    )


def test_fixed_link_becomes_a_frame():
    origin = f'<origin xyz="1 2 3" rpy="0 0 {np.pi / 2}"/>'
    fixed = joint("f", "arm", "tool", "fixed", origin)
    model = load_urdf(one_joint(extra=link("tool", "") + fixed))
    assert (model.frame_names, model.frame_bodies) == (("tool",), (0,))
    np.testing.assert_array_equal(model.frame_p[0], [1, 2, 3])
    np.testing.assert_allclose(
        model.frame_R[0], [[0, -1, 0], [1, 0, 0], [0, 0, 1]], atol=1e-15
    )


def test_joint_on_a_fixed_link_is_placed_in_the_body():
    elements = (
        joint("f", "arm", "flange", "fixed", '<origin xyz="1 0 0"/>'),
        joint("k", "flange", "hand", "continuous", '<origin xyz="0 1 0"/>'),
    )
    extra = "".join((link("flange", ""), link("hand"), *elements))
    model = load_urdf(one_joint(extra=extra))
    assert model.parents == (-1, 0)
    np.testing.assert_array_equal(model.p[1], [1, 1, 0])


def test_fixed_links_are_bodies_without_merging():
    extra = link("tool", "") + joint("f", "arm", "tool", "fixed")
    model = load_urdf(one_joint(extra=extra), merge_fixed=False)
    assert model.joints == ("revolute", "fixed")


def test_names_of_the_xacro_language_alone_are_accepted():
    text = one_joint(body=INERTIAL + '<visual name="$(x)"><xacro:x/></visual>')
    text = text.replace("<robot", '<robot xmlns:xacro="http://www.ros.org/wiki/xacro"')
    assert load_urdf(text, strict=True).nv == 1


@pytest.mark.parametrize(
    "before", ["\n ", "<!-- a\n -->", "\ufeff\n<!-- a --> <!---->"]
)
def test_declaration_need_not_be_first(before, tmp_path):
    path = tmp_path / "robot.urdf"
    for declared in ("<?xml version='1.0'?>", "<?xml version='1.0' encoding='utf-8'?>"):
        path.write_text(f"{before}{declared}{one_joint()}", encoding="utf-8")
        for source in (path, path.read_text(encoding="utf-8")):
            assert_same_models(load_urdf(source), load_urdf(one_joint()))
    path.write_text("<!-- \n -->\n<?xml version='1.0'?>\n<robot>\n<link></robot>")
    with pytest.raises(ValueError, match="robot.urdf, line 5: mismatched tag"):
        load_urdf(path)


def test_other_encodings_are_read(tmp_path):
    path = tmp_path / "robot.urdf"
    text = one_joint().replace('"arm"', '"bras_à_côté"')
    for encoding in ("latin-1", "utf-16"):
        declaration = f"<?xml version='1.0' encoding='{encoding}'?>"
        path.write_text(declaration + text, encoding=encoding)
        assert load_urdf(path).names == ("bras_à_côté",)
        assert load_urdf(declaration + text).names == ("bras_à_côté",)


def test_spherical_joint_is_read():
    inside = '<axis xyz="0 0 1"/><limit effort="2" lower="-1"/><dynamics damping="3"/>'
    model = load_urdf(one_joint(inside, "spherical"))
    assert (model.joints, model.nv) == (("spherical",), 3)
    np.testing.assert_array_equal(model.damping, [3, 3, 3])


def test_zero_mass_in_the_file_is_accepted():
    hub = INERTIAL.replace('value="2"', 'value="0"')
    assert load_urdf(one_joint(body=hub)).mass.item() == 0


def test_leaves_have_the_requested_type():
    model = load_urdf(one_joint(), dtype=np.float32)
    assert {leaf.dtype for leaf in jax.tree.leaves(model)} == {np.dtype(np.float32)}
