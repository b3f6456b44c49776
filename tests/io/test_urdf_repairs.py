"""What `load_urdf` skips, repairs and notes."""

import contextlib
import inspect
import pickle

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.io import load_urdf
from jaxdyn.io.urdf._xml import MOMENTS
from tests.io.urdf_texts import (
    FLAT,
    INERTIAL,
    NO_INERTIA,
    assert_same_models,
    fixed_tool,
    joint,
    link,
    one_joint,
    robot,
)


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
    with pytest.warns(UserWarning, match="arm: kept as given"):
        again = jd.from_dict(jd.to_dict(model))
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


def test_mimic_of_a_fixed_joint_plays_no_role():
    fixed = joint("f", "arm", "tool", "fixed", '<mimic joint="j"/>')
    assert load_urdf(one_joint(extra=link("tool", "") + fixed)).nv == 1


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
