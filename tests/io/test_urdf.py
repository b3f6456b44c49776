import contextlib
import inspect
import json
import pickle
import warnings
from functools import partial
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn import robots
from jaxdyn.io import load_urdf, to_urdf
from jaxdyn.io.urdf._xml import MOMENTS
from jaxdyn.model import Inertial, ModelBuilder

DATA = Path(__file__).parents[1] / "data"
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
INERTIAL = (
    '<inertial><mass value="2"/><inertia ixx="1" ixy="0.1" ixz="0.2" iyy="1.5"'
    ' iyz="0.3" izz="2"/></inertial>'
)
INERTIA = np.array([[1, 0.1, 0.2], [0.1, 1.5, 0.3], [0.2, 0.3, 2]])


def link(name, inside=INERTIAL):
    return f'<link name="{name}">{inside}</link>'


def joint(name, parent, child, kind="continuous", inside=""):
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{kind}">{ends}{inside}</joint>'


def robot(*elements):
    return f'<robot name="r">{"".join(elements)}</robot>'


def one_joint(inside="", kind="continuous", body=INERTIAL, extra=""):
    parts = link("base", ""), link("arm", body), joint("j", "base", "arm", kind, inside)
    return robot(*parts, extra)


def chain(*joints):
    """A robot of links a, b, ... and joints given as (parent, child)."""
    names = sorted({name for ends in joints for name in ends})
    ends = (joint(f"j{i}", *pair) for i, pair in enumerate(joints))
    return robot(*map(link, names), *ends)


def random_rotation(rng):
    Q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return Q * np.sign(np.linalg.det(Q))


def random_inertial(rng):
    box = Inertial.box(rng.uniform(1, 2), rng.uniform(0.1, 1, 3))
    return box.moved(random_rotation(rng), rng.normal(size=3))


def random_model(rng, joints, base="base"):
    """A tree with these joints, random data and joint effects on every degree."""
    builder = ModelBuilder("random", base=base)
    for i, kind in enumerate(joints):
        axes = {"axis": rng.normal(size=3)} if kind not in ("free", "fixed") else {}
        if kind in ("universal", "planar"):
            axes["axis2"] = np.cross(axes["axis"], rng.normal(size=3))
        builder.add_body(
            f"b{i}",
            int(rng.integers(-1, i)) if i else -1,
            kind,
            R=random_rotation(rng),
            p=rng.normal(size=3),
            inertial=random_inertial(rng),
            joint_name=f"joint {i}",
            damping=rng.uniform(),
            friction=rng.uniform(),
            effort=rng.uniform(),
            velocity=rng.uniform(),
            **axes,
        )
    return builder


def assert_same_models(a, b):
    assert repr(a.topology) == repr(b.topology)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-14)


def reference_cases():
    for name in FILES:
        data = json.loads((DATA / f"{name}.json").read_text())
        for i, case in enumerate(data.get("cases", [data])):
            yield pytest.param(case["model"], case["urdf"], id=f"{name}-{i}")


# --- reading --------------------------------------------------------------------------


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


@pytest.mark.parametrize("strict", [False, True])
def test_inertias_that_no_body_has_are_one_warning_or_an_error_on_request(strict):
    text = fixed_tool(FLAT, FLAT)
    said = "'r' will move as .*\n  inertia arm, tool: kept as given: principal inert"
    with pytest.warns(UserWarning, match=said) as found:
        model = load_urdf(text, strict=strict)
    assert len(found) == 1
    assert model.mass.item() == 4
    said = "2 problems:\n  link 'arm': principal inertias .*\n  link 'tool': .*nearest"
    with pytest.raises(ValueError, match=said):
        load_urdf(text, strict=strict, inertia="error")
    with pytest.raises(ValueError, match="link 'tool': principal inertias"):
        load_urdf(fixed_tool(FLAT), strict=strict, inertia="error")


@pytest.mark.parametrize("read", [load_urdf, jd.load])
def test_the_warning_points_to_the_caller(read):
    with pytest.warns(UserWarning) as found:
        inspect.unwrap(read)(fixed_tool(FLAT))  # without the checks of annotations
    assert found[0].filename == __file__


def diagonal(x, y, z, mass=2, **products):
    """A robot whose link has these principal inertias."""
    values = dict.fromkeys(MOMENTS, 0) | dict(ixx=x, iyy=y, izz=z) | products
    inside = " ".join(f'{key}="{value}"' for key, value in values.items())
    place = f'<origin xyz="0.1 0.1 0.1"/><mass value="{mass}"/>'
    return one_joint(body=f"<inertial>{place}<inertia {inside}/></inertial>")


@pytest.mark.parametrize("text", [diagonal(1, 1, -1e-7), diagonal(0, 0, 0, ixz=1e-20)])
def test_inertias_that_are_negative_by_rounding_become_zero(text):
    given = load_urdf(text, strict=True, inertia="error")
    assert np.linalg.eigvalsh(given.inertia[0])[0] < -1e-21
    for options in ({}, {"inertia": "error"}, {"inertia": "nearest"}):
        model = load_urdf(text, **options)
        assert np.linalg.eigvalsh(model.inertia[0])[0] > -1e-35
        np.testing.assert_allclose(model.inertia, given.inertia, rtol=0, atol=1e-7)
        (note,) = model.report
        assert (note.element, note.place) == ("inertia", "arm")
        assert not note.changes_motion


@pytest.mark.parametrize("text", [diagonal(1, 1, -1e-5), diagonal(0, 0, 0, ixz=1e-5)])
def test_negative_inertias_are_kept_and_reported_or_an_error_on_request(text):
    with pytest.warns(UserWarning, match="arm: kept as given: .* -1e-05 is negative"):
        model = load_urdf(text)
    np.testing.assert_allclose(np.linalg.eigvalsh(model.inertia[0])[0], -1e-5)
    again = jd.from_dict(jd.to_dict(model), check_inertia=False)
    np.testing.assert_array_equal(again.inertia, model.inertia)
    for options in ({"inertia": "error"}, {"strict": True}):
        with pytest.raises(ValueError, match="link 'arm': .* -1e-05 is negative"):
            load_urdf(text, **options)


@pytest.mark.parametrize(
    "text, expected",
    [
        (diagonal(1, 1, 3), (1.5, 1.5, 3)),  # second moments 1.5, 1.5, -0.5
        (diagonal(1, 2, -0.5), (1.75, 2, 0.25)),  # second moments 0.25, -0.75, 1.75
        (diagonal(1, 2, -0.5, mass=0), (1, 2, 0)),
    ],
)
def test_nearest_inertia_has_the_second_moments_that_differ_least(text, expected):
    with pytest.warns(UserWarning, match="will not move .*\n.*arm: nearest possible"):
        model = load_urdf(text, inertia="nearest")
    np.testing.assert_allclose(model.inertia[0], np.diag(expected), atol=1e-15)
    assert model.report.changing_motion


def test_unknown_choice_for_inertia_is_reported():
    with pytest.raises(ValueError, match="inertia is 'repair', expected one of: as gi"):
        load_urdf(one_joint(), inertia="repair")


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


def test_shapes_sensors_and_control_are_skipped():
    shape = '<visual><geometry><box size="1 1 1"/></geometry></visual><collision/>'
    inside = '<safety_controller k_velocity="1"/><calibration rising="0"/>'
    extra = '<material name="red"/><transmission name="t"/><sensor name="s"/>'
    model = load_urdf(one_joint(inside, body=shape + INERTIAL, extra=extra))
    assert_same_models(model, load_urdf(one_joint()))


@pytest.mark.parametrize(
    "inside",
    [
        "<mu1>0.2</mu1><material>Blue</material>",
        "<turnGravityOff>false</turnGravityOff><gravity>true</gravity>",
        "<springStiffness>0</springStiffness>",
        "<plugin><gravity>false</gravity><joint>j</joint></plugin>",
    ],
)
def test_gazebo_without_effect_on_the_motion_is_skipped(inside):
    extra = f'<gazebo reference="arm">{inside}</gazebo>'
    model = load_urdf(one_joint(extra=extra), strict=True)
    assert_same_models(model, load_urdf(one_joint()))
    assert [note.became for note in model.report] == ["not read"]


@pytest.mark.parametrize(
    "place, inside, extra, acts",
    [
        ("joint/mimic", '<mimic joint="k"/>', "", True),
        ("joint/rotor", "<rotor/>", "", True),
        ("joint/drive", "<drive/>", "", False),
        ("joint/dynamics/@spring", '<dynamics spring="1"/>', "", True),
        ("joint/limit/@gear_velocity", '<limit gear_velocity="1"/>', "", False),
        ("joint/limit/@twist", '<limit twist="1"/>', "", False),
        ("robot/gazebo", "", "<gazebo><static>true</static></gazebo>", True),
        ("robot/loop_joint", "", "<loop_joint/>", True),
    ],
)
@pytest.mark.parametrize("strict", [False, True])
def test_what_is_skipped_on_request_is_noted(place, inside, extra, acts, strict):
    name = "robot" if place.startswith("robot") else "j"
    text = one_joint(inside, extra=extra)
    for skip in (place, [f"{place}/{name}"]):
        with told(acts, rf"will not move .*\n  {place} {name}: left out: "):
            model = load_urdf(text, skip=skip, strict=strict)
        assert_same_models(model, load_urdf(one_joint()))
        (note,) = model.report
        assert (note.element, note.place, note.changes_motion) == (place, name, acts)


def told(warns, match):
    return pytest.warns(UserWarning, match=match) if warns else contextlib.nullcontext()


def test_skip_removes_one_place_only():
    origin, text = '<origin xyz="1 2 3"/>', one_joint('<origin xyz="1 2 3"/>')
    model = load_urdf(
        text.replace("<inertial", f"{origin}<inertial"), skip="link/origin"
    )
    np.testing.assert_array_equal(model.p[0], [1, 2, 3])


def test_unknown_place_to_skip_is_reported_with_the_known_ones():
    text = one_joint('<drive/><mimic joint="k"/>')
    said = (
        "skip has 'joint/mimic/k', 'mimic', expected some of: joint/mimic, "
        "robot/gazebo, joint/drive, joint/drive/j, joint/mimic/j."
    )
    with pytest.raises(ValueError, match=said):
        load_urdf(text, skip=("mimic", "joint/mimic/k"))
    with pytest.raises(ValueError, match="skip has 'joint/parent', expected some of"):
        load_urdf(one_joint(), skip=("joint/parent",))


def hand(*inside):
    """A robot with one moving finger for each content of a joint."""
    fingers = [f"f{k}" for k in range(len(inside))]
    joints = [
        joint(f"j{x}", "palm", x, "continuous", y)
        for x, y in zip(fingers, inside, strict=True)
    ]
    return robot(link("palm"), *map(link, fingers), *joints)


def test_all_mimic_joints_are_one_error_with_the_call_that_loads_the_file(tmp_path):
    text = hand("", '<mimic joint="jf0"/>', '<drive/><mimic joint="jf0" offset="1"/>')
    path = tmp_path / "hand.urdf"
    path.write_text(text)
    pairs = "'jf1' follows 'jf0', 'jf2' follows 'jf0': "
    for skip, strict in (((), False), ((), True), (("joint/drive",), True)):
        options = dict(skip=skip, strict=strict and bool(skip))
        with pytest.raises(ValueError, match=f"cannot hold: {pairs}") as error:
            load_urdf(path, **options)
        call = str(error.value).partition("with load_urdf(")[2].removesuffix(").")
        assert call == f"{str(path)!r}, skip={(*skip, 'joint/mimic')}"
    with pytest.warns(UserWarning, match="joint/mimic jf1, jf2: left out: the joint m"):
        model = load_urdf(path, skip=("joint/mimic",))
    assert model.nv == 3
    with pytest.raises(ValueError, match="cannot hold: 'jf2' follows 'jf0': "):
        load_urdf(text, skip=("joint/mimic/jf1",))


def test_mimic_of_a_fixed_joint_plays_no_role():
    fixed = joint("f", "arm", "tool", "fixed", '<mimic joint="j"/>')
    assert load_urdf(one_joint(extra=link("tool", "") + fixed)).nv == 1


# --- repairs --------------------------------------------------------------------------

PARTS = link("base", ""), link("arm"), joint("j", "base", "arm")
LIMIT = '<limit lower="{}" upper="{}" effort="{}" velocity="{}"/>'
REPAIRED = {
    "foreign element": (one_joint("<drive/>"), "joint/drive j: not read"),
    "foreign attribute": (
        one_joint().replace("<link", '<link colour="red"'),
        "link/@colour base, arm: not read",
    ),
    "undeclared prefix": (one_joint("<a:b c:d='1'/>"), "joint/a:b j: not read"),
    "several axes": (
        one_joint('<axis xyz="1 0 0"/><axis xyz="0 1 0"/>'),
        "joint/axis j: several: the first counts",
    ),
    "several inertials": (
        one_joint(body=INERTIAL + INERTIAL.replace("2", "7")),
        "link/inertial arm: several: the first counts",
    ),
    "joint without name": (
        robot(*PARTS[:2], PARTS[2].replace('name="j"', "")),
        "joint joint_0: named by its number",
    ),
    "empty name of a joint": (
        robot(*PARTS[:2], PARTS[2].replace('name="j"', 'name=""')),
        "joint joint_0: named by its number",
    ),
    "limits the wrong way round": (
        one_joint(LIMIT.format(1, -1, "1e999", "1e999"), "revolute"),
        "joint/limit j: no limit: lower exceeds upper",
    ),
    "negative effort": (
        one_joint('<limit effort="-1"/>'),
        "joint/limit j: no limit: negative effort",
    ),
    "negative velocity": (
        one_joint('<limit velocity="-1"/>'),
        "joint/limit j: no limit: negative velocity",
    ),
}


@pytest.mark.parametrize("name", REPAIRED)
def test_repaired_file_is_the_clean_robot_and_is_noted(name):
    text, said = REPAIRED[name]
    model = load_urdf(text)  # no warning: the motion is the same
    clean = load_urdf(one_joint())
    assert model.names == clean.names
    jax.tree.map(np.testing.assert_array_equal, model, clean)
    (note,) = model.report
    assert f"{note.element} {note.place}: {note.became}".startswith(said)


@pytest.mark.parametrize("name", REPAIRED)
def test_a_repair_is_an_error_if_strict(name):
    with pytest.raises(ValueError):
        load_urdf(REPAIRED[name][0], strict=True)


def test_a_messy_file_moves_as_the_same_robot_written_cleanly(rng):
    wrist = joint("w", "arm", "hand", "prismatic", '<origin xyz="0 1 2"/>{}')
    clean = robot(*PARTS, link("hand"), wrist.format('<axis xyz="0 0 1"/>'))
    messy = "\n<!-- by hand --><?xml version='1.0'?>" + robot(
        *("<plugin:x/>", PARTS[0].replace("<link", '<link a="1"'), PARTS[1], PARTS[2]),
        link("hand", f"<origin/>{INERTIAL}{INERTIAL}<self_filter/>"),
        wrist.format(
            '<axis xyz="0 0 1" rpy="0 0 0"/><axis/>' + LIMIT.format(2, 1, -1, -1)
        ),
        '<gazebo reference="hand"><kp>1</kp></gazebo><material name="red"/>',
    )
    models = load_urdf(clean), load_urdf(messy)
    q, qd, tau = jnp.array(rng.normal(size=(3, 2)))
    a, b = (jd.forward_dynamics(model, q, qd, tau) for model in models)
    np.testing.assert_array_equal(a, b)
    elements = [note.element for note in models[1].report]
    assert sorted(elements) == [
        *("joint/axis", "joint/axis/@rpy", "joint/limit", "joint/limit", "joint/limit"),
        *("link/@a", "link/inertial", "link/origin", "link/self_filter"),
        *("robot/gazebo", "robot/plugin:x"),
    ]


def test_links_without_name_are_named_by_their_number():
    ends = joint("j", "link_0_", "arm"), joint("f", "arm", "link_0", "fixed")
    model = load_urdf(robot("<link/>", link("arm"), link("link_0", ""), *ends))
    assert model.topology.base == "link_0_"
    assert model.report[0].place == "link_0_"


def test_all_wrong_names_are_one_error():
    text = robot(*map(link, "aab"), joint("j", "a", "c"), joint("k", "d", "b"))
    with pytest.raises(ValueError, match="3 problems:\n") as error:
        load_urdf(text)
    for part in ("name 'a'", "child link 'c' does not", "parent link 'd' does not"):
        assert part in str(error.value)


def test_foreign_elements_are_counted_by_kind():
    text = hand(*["<drive/>"] * 4)
    (note,) = load_urdf(text).report
    assert (note.element, note.place) == ("joint/drive", "4 in all")


@pytest.mark.parametrize(
    "text",
    [
        one_joint(extra="<xacro:macro/>"),
        one_joint(extra='<xacro:include filename="arm.xacro"/>'),
        one_joint(extra='<x:arm xmlns:x="http://www.ros.org/wiki/xacro"/>').replace(
            "<robot", '<robot xmlns:x="http://www.ros.org/wiki/xacro"'
        ),
        one_joint('<origin xyz="${x} 0 0"/>'),
        one_joint('<origin xyz="$(arg x) 0 0"/>'),
        one_joint().replace('"arm"', '"${prefix}arm"'),
    ],
)
def test_xacro_that_was_not_processed_is_reported(text):
    with pytest.raises(ValueError, match="is written in xacro: process the file first"):
        load_urdf(text)


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


def test_a_robot_in_which_nothing_moves_is_a_free_body():
    fixed = joint("f", "box", "lid", "fixed")
    model = load_urdf(robot(link("box"), link("lid"), fixed))
    assert (model.topology.base, model.joints, model.mass.item()) == (
        "world",
        ("free",),
        4,
    )
    assert model.report[0].became == "nothing moves: one free body"
    still = load_urdf(robot(link("box"), link("lid"), fixed), merge_fixed=False)
    assert still.joints == ("fixed",)
    assert load_urdf(robot(link("box")), merge_fixed=False).joints == ("free",)


def test_base_of_a_floating_robot_with_a_link_named_world_has_another_name():
    model = load_urdf(robot(link("world")), floating_base=True)
    assert (model.topology.base, model.names) == ("world_", ("world",))
    assert model.report[0].place == "world"


# --- joints that no inertia resists ---------------------------------------------------


@pytest.fixture
def massless():
    """A robot whose second joint moves nothing."""
    text = robot(*PARTS, link("tip", ""), joint("k", "arm", "tip"))
    said = "will move as .*\n  joint k: no inertia resists it: its acceleration is und"
    with pytest.warns(UserWarning, match=said):
        return load_urdf(text)


def test_a_joint_that_moves_nothing_is_noted(massless):
    notes = [(note.element, note.place) for note in massless.report]
    assert notes == [("link", "tip"), ("joint", "k")]
    assert not massless.report.changing_motion
    q = jnp.zeros(2)
    assert np.isfinite(jd.inverse_dynamics(massless, q, q, q + 1)).all()


ACCELERATIONS = {
    "forward_dynamics": lambda model, x: jd.forward_dynamics(model, x, x, x),
    "checked_dynamics": lambda model, x: jd.checked_dynamics(model, x, x, x),
    "constrained_dynamics": lambda model, x: jd.constrained_dynamics(model, x, x, x),
    "linearize": lambda model, x: jd.linearize(model, x, x, x),
    "factor": lambda model, x: jd.factor(model, x),
    "simulate": lambda model, x: jd.simulate(model, x, x, jnp.array([0.0, 0.1])),
    "rollout": lambda model, x: jd.rollout(model, x, x, jnp.zeros((1, 2)), 0.1),
    "vmap": lambda model, x: jax.vmap(jd.forward_dynamics, (None, 0, 0, 0))(
        model, *jnp.zeros((3, 2, 2))
    ),
}


@pytest.mark.parametrize("name", ACCELERATIONS)
def test_accelerations_name_the_joints_that_no_inertia_resists(name, massless):
    again = pickle.loads(pickle.dumps(massless))
    for model in (massless, again):
        with pytest.raises(ValueError, match="no inertia resists joint 'k'"):
            ACCELERATIONS[name](model, jnp.zeros(2))


def test_accelerations_are_finite_with_an_armature(massless):
    model = eqx.tree_at(lambda m: m.armature, massless, jnp.array([0.0, 0.1]))
    x = jnp.ones(2)
    assert np.isfinite(jd.forward_dynamics(model, x, x, x)).all()


def test_a_robot_without_mass_is_kinematic_and_says_so():
    model = load_urdf(one_joint(body=""))
    assert [note.place for note in model.report] == ["arm", "r"]
    assert load_urdf(one_joint(body=NO_INERTIA), strict=True).mass.item() == 0
    with pytest.raises(ValueError, match="no inertia resists joint 'j'"):
        jd.forward_dynamics(model, *jnp.zeros((3, 1)))


def test_zero_mass_in_the_file_is_accepted():
    hub = INERTIAL.replace('value="2"', 'value="0"')
    assert load_urdf(one_joint(body=hub)).mass.item() == 0


def test_leaves_have_the_requested_type():
    model = load_urdf(one_joint(), dtype=np.float32)
    assert {leaf.dtype for leaf in jax.tree.leaves(model)} == {np.dtype(np.float32)}


# --- errors of reading ----------------------------------------------------------------

NO_MASS = INERTIAL.replace('<mass value="2"/>', "")
NO_VALUE = INERTIAL.replace('value="2"', "")
NO_INERTIA = NO_MASS.replace("<inertia ", '<mass value="0"/><inertia ')
for moment in ("1", "0.1", "0.2", "1.5", "0.3", "2"):
    NO_INERTIA = NO_INERTIA.replace(f'="{moment}"', '="0"')
NO_IYZ = INERTIAL.replace(' iyz="0.3"', "")
FLAT = INERTIAL.replace('izz="2"', 'izz="9"')
NEGATIVE = INERTIAL.replace('value="2"', 'value="-1"')


def fixed_tool(body, arm=INERTIAL):
    """A robot whose second link is fixed to the first and would be merged with it."""
    extra = link("tool", body) + joint("f", "arm", "tool", "fixed")
    return one_joint(body=arm, extra=extra)


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
    (one_joint('<mimic joint="k"/>'), "<mimic> couples joints.*: 'j' follows 'k': "),
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
_REPAIRS += ("no joint that moves", "moves but has no")
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


# --- writing --------------------------------------------------------------------------


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
