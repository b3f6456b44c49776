"""URDF texts that `load_urdf` refuses, and what it says."""

import pytest

from jaxdyn.io import load_urdf
from tests.io.urdf_texts import (
    INERTIAL,
    NO_MASS,
    assert_same_models,
    chain,
    fixed_tool,
    joint,
    link,
    one_joint,
    robot,
)

NO_VALUE = INERTIAL.replace('value="2"', "")
NO_IYZ = INERTIAL.replace(' iyz="0.3"', "")
NEGATIVE = INERTIAL.replace('value="2"', 'value="-1"')
WRONG = [
    ("<sdf/>", "root element is <sdf>, expected <robot>"),
    ("\n<robot>\n<link>\n</robot>", "URDF text, line 4: mismatched tag"),
    (robot(), "robot 'r' has no <link>: add"),
    (robot(link("a")), "robot 'r' has no joint that moves"),
    (robot(link("a"), link("b")), "links 'a', 'b' have no parent, expected one"),
    (chain("ab", "bc", "ca"), "links 'a' -> 'b' -> 'c' -> 'a' form a cycle"),
    (chain("ab", "cd", "dc"), "links 'c' -> 'd' -> 'c' form a cycle"),
    (chain("ab", "bb"), "link 'b' is the child of joint 'j0' and of joint 'j1'"),
    (chain("ab", "ac", "bc"), "'c' is the child of joint 'j1' and of joint 'j2'"),
    (robot(link("a"), joint("j", "a", "b")), "'j': the child link 'b' does not"),
    (robot(link("a"), joint("j", "b", "a")), "'j': the parent link 'b' does not"),
    (robot(link("a"), link("a")), "two links have the name 'a': rename"),
    (one_joint(extra=joint("j", "base", "arm")), "two joints have the name 'j'"),
    (robot("<link/>"), "a <link> has no name"),
    (robot(link("a"), '<joint name="j"/>'), "'j': <joint> has no <parent>: add"),
    (
        robot(link("a"), '<joint name="j"><parent/></joint>'),
        "joint 'j': <parent> has no attribute 'link'",
    ),
    (
        robot(link("a"), '<joint name="j"><parent link="a"/></joint>'),
        "joint 'j': <joint> has no <child>: add",
    ),
    (one_joint(kind="ball"), "joint 'j': joint type 'ball' is not known, expected"),
    (one_joint('<axis xyz="0 0 0"/>'), "'arm': axis is .*, expected a direction"),
    (one_joint('<axis xyz="0 0 0"/>', "planar"), "'arm': axis is .*, expected a d"),
    (one_joint("<axis/>"), "joint 'j': <axis> has no attribute 'xyz': add it, 3"),
    (one_joint('<axis xyz="0 1"/>'), "<axis xyz='0 1'>: expected 3 numbers"),
    (one_joint('<origin rpy="0 x 0"/>'), "'j': <origin rpy='0 x 0'>: expected 3 n"),
    (one_joint('<origin xyz="0 nan 0"/>'), "<origin xyz='0 nan 0'>: expected 3 n"),
    (one_joint('<origin xyz="0 inf 0"/>'), "xyz='0 inf 0'>: expected finite num"),
    (one_joint('<dynamics damping="a"/>'), "<dynamics damping='a'>: expected one"),
    (one_joint('<dynamics spring="1"/>'), "'j': attribute 'spring' of <dynamics>"),
    (
        robot('<link name="a" mass="2"/>'),
        "link 'a': attribute 'mass' of <link> is not known, expected some of: name, t",
    ),
    (
        one_joint(extra='<joint name="k" type="fixed" axis="0 0 1"/>'),
        "joint 'k': attribute 'axis' of <joint> is not known",
    ),
    (
        one_joint(body='<inertial mass="2"/>'),
        "link 'arm': attribute 'mass' of <inertial> is not known, expected .*: none",
    ),
    ('<robot gravity="0"/>', "robot: attribute 'gravity' of <robot> is not known"),
    (one_joint('<mimic joint="k"/>'), "'j' follows joint 'k', which is not there, e"),
    (one_joint("<rotor/>"), "joint 'j': element <rotor> in <joint> is not known"),
    (one_joint(extra="<loop_joint/>"), "robot: element <loop_joint> in <robot>"),
    (one_joint("<axis/><axis/>"), "'j': <joint> has more than one <axis>"),
    (one_joint(extra='<x:if xmlns:x="u"/>'), "robot: element <x:if> in <robot> is no"),
    (one_joint(body=""), "link 'arm' moves but has no <inertial>: add it"),
    (one_joint(body=NO_MASS), "link 'arm': <inertial> has no <mass>: add"),
    (one_joint(body=NO_VALUE), "link 'arm': <mass> has no attribute 'value'"),
    (one_joint(body=NO_IYZ), "link 'arm': <inertia> has no attribute 'iyz'"),
    ("\ufeff\n<robot>\n<link>\n</robot>", "URDF text, line 4: mismatched tag"),
    (fixed_tool(NEGATIVE), "body 'tool': mass is -1.0, expected zero or more"),
]
_REPAIRS = ("is not known, e", "attribute '", "element <", "more than one", "no name")
_REPAIRS += ("no joint that moves", "moves but has no", "which is not there, e")
FATAL = [
    (urdf, message)
    for urdf, message in WRONG
    if "joint type" in message
    or "has no attribute" in message
    or not any(part in message for part in _REPAIRS)
]


@pytest.mark.parametrize("urdf, message", WRONG, ids=[text for _, text in WRONG])
def test_wrong_urdf_is_reported(urdf, message):
    with pytest.raises(ValueError, match=message):
        load_urdf(urdf, strict=True)


@pytest.mark.parametrize("urdf, message", FATAL, ids=[text for _, text in FATAL])
def test_what_cannot_be_read_is_an_error_without_strict(urdf, message):
    with pytest.raises(ValueError, match=message):
        load_urdf(urdf)


def test_attributes_without_a_meaning_for_the_motion_are_skipped():
    schema = 'xmlns:s="http://www.w3.org/2001/XMLSchema-instance" s:type="r"'
    text = one_joint().replace("<robot", f'<robot version="1.0" {schema}')
    text = text.replace("<link", '<link type="laser"')
    assert load_urdf(text).nv == 1


@pytest.mark.parametrize(
    "inside",
    [
        "<turnGravityOff>true</turnGravityOff>",
        "<gravity>0</gravity>",
        "<implicitSpringDamper>1</implicitSpringDamper>",
        "<springStiffness>10</springStiffness>",
        "<springReference>0.1</springReference>",
        "<kinematic>true</kinematic>",
        '<joint name="closing"><parent>a</parent></joint>',
    ],
)
def test_gazebo_that_changes_the_motion_is_reported(inside):
    extra = f'<gazebo reference="arm">{inside}</gazebo>'
    with pytest.raises(
        ValueError, match=r"<gazebo reference='arm'>: <.*\('robot/gazebo"
    ):
        load_urdf(one_joint(extra=extra), strict=True)
    with pytest.warns(UserWarning, match="robot/gazebo arm: left out: <"):
        model = load_urdf(one_joint(extra=extra))
    assert_same_models(model, load_urdf(one_joint()))
    assert all(note.place == "arm" for note in model.report.changing_motion)


def test_floating_base_without_inertial_is_reported():
    with pytest.raises(ValueError, match="link 'base' moves but has no <inertial>"):
        load_urdf(one_joint(), floating_base=True, strict=True)


def test_floating_robot_with_a_link_named_world_is_reported():
    with pytest.raises(ValueError, match="link 'world' has the name of the base"):
        load_urdf(robot(link("world")), floating_base=True, strict=True)


def test_malformed_file_is_reported_with_its_name_and_line(tmp_path):
    path = tmp_path / "bad.urdf"
    path.write_text("<robot>\n<link\n</robot>")
    with pytest.raises(ValueError, match="bad.urdf, line 3: not well-formed"):
        load_urdf(path)


def test_deep_gazebo_is_read():
    n = 5000  # more than Python's limit of nested calls
    gazebo = "<gazebo>{}<kinematic>{{}}</kinematic>{}</gazebo>"
    gazebo = gazebo.format("<plugins>" * n, "</plugins>" * n)
    assert load_urdf(one_joint(extra=gazebo.format("false"))).n == 1
    with pytest.raises(ValueError, match="<kinematic> 'true' changes the motion"):
        load_urdf(one_joint(extra=gazebo.format("true")), strict=True)


def test_missing_file_is_reported_with_its_name():
    with pytest.raises(ValueError, match="absent.urdf: cannot be read: No such file"):
        load_urdf("absent.urdf")
