"""What `load_mjcf` says about the parts of a file that the model does not have."""

import pickle
from dataclasses import replace

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxdyn as jd

GEOM = '<geom size="0.1"/>'
INERTIAL = '<inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/>'


def robot(inside=GEOM, before="", after="", *, body="", joint="", world=""):
    return f"""
    <mujoco>{before}<worldbody>{world}
      <body name="b" {body}><joint name="j" {joint}/>{inside}</body>
    </worldbody>{after}</mujoco>"""


TENDON = '<tendon><fixed name="t" {}><joint joint="j" coef="2"/></fixed></tendon>'
CHANGES = {
    "fluid": (robot(before='<option density="1.2"/>'), "option", "density, viscosity"),
    "tendon": (robot(after=TENDON.format('stiffness="3"')), "tendon", "t"),
    "tendon friction": (robot(after=TENDON.format('frictionloss="1"')), "tendon", "t"),
    "free friction": (
        robot(
            world=f'<body name="c"><joint type="free" frictionloss="1"/>{GEOM}</body>'
        ),
        "frictionloss",
        "of body c",
    ),
    "free armature": (
        robot(world=f'<body><joint type="free" armature="1" name="k"/>{GEOM}</body>'),
        "armature",
        "k",
    ),
    "actuatorgravcomp": (
        robot(body='gravcomp="1"', joint='actuatorgravcomp="true"'),
        "actuatorgravcomp",
        "j",
    ),
    "flex": (
        robot(
            world='<flexcomp name="f" type="grid" count="3 3 1" spacing=".1 .1 .1" '
            'mass="1" radius="0.01"><edge damping="1"/></flexcomp>'
        ),
        "flex",
        "f",
    ),
}
SAME = {
    "sensor": robot(after='<sensor><jointpos joint="j"/></sensor>'),
    "mocap": robot(world='<body name="m" mocap="true"/>'),
    "tendon without force": robot(after=TENDON.format("")),
    "tendon limits": robot(after=TENDON.format('range="0 1"')),
    "limits": robot(joint='range="-1 1"'),
    "ball limits": robot(f'{GEOM}<body><joint type="ball" range="0 1"/>{GEOM}</body>'),
    "fluid switched off": robot(
        before='<option density="1"><flag spring="disable" damper="disable"/></option>'
    ),
    "key": robot(after='<keyframe><key qpos="0.1"/></keyframe>'),
    "motor": robot(after='<actuator><motor joint="j"/></actuator>'),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_changes_the_motion_is_reported_and_warned_of(name):
    text, element, place = CHANGES[name]
    with pytest.warns(UserWarning, match=f"will not move .*\n.*{element} {place}: "):
        model = jd.load_mjcf(text)
    changing = [(note.element, note.place) for note in model.report.changing_motion]
    assert changing == [(element, place)]


@pytest.mark.parametrize("name", CHANGES)
def test_what_changes_the_motion_is_an_error_on_request(name):
    text, element, place = CHANGES[name]
    with pytest.raises(ValueError, match=f"strict=True.*\n.*\n{element} *{place}"):
        jd.load_mjcf(text, strict=True)


@pytest.mark.parametrize("name", SAME)
def test_what_does_not_change_the_motion_is_not_warned_of(name):
    model = jd.load_mjcf(SAME[name], strict=True)  # warnings are errors in tests
    assert model.report and not model.report.changing_motion


def test_the_report_is_a_table():
    model = jd.load_mjcf(SAME["motor"])
    assert str(model.report).splitlines() == [
        "element   place     motion  became",
        "geom      1 in all  same    only seen: contacts are not modelled",
        "actuator  1 in all  same    data: model.actuators, jd.actuate",
    ]
    assert str(jd.robots.chain(1).report) == "nothing to report"


@pytest.mark.skipif(not hasattr(mujoco.MjModel, "jnt_stiffnesspoly"), reason="old")
def test_polynomial_springs_are_reported_where_mujoco_has_them():
    text = robot(joint='stiffness="1 2" damping="1 2"')
    with pytest.warns(UserWarning, match="joint j: linear springs and dampers only"):
        model = jd.load_mjcf(text)
    assert (model.stiffness, model.damping) == (1, 1)


def test_mocap_bodies_are_fixed_where_they_are_drawn():
    model = jd.load_mjcf(robot(world='<body name="m" mocap="true" pos="1 2 3"/>'))
    k = model.frame_names.index("m")
    assert model.frame_bodies[k] == -1
    np.testing.assert_array_equal(model.frame_p[k], [1, 2, 3])


def test_the_report_stays_with_the_model_and_is_no_part_of_the_key():
    model, plain = jd.load_mjcf(SAME["sensor"]), jd.load_mjcf(robot())
    others = (
        replace(model, gravity=jnp.ones(3)),
        model.with_force(jd.SpringDamper("b", np.zeros(3), None, np.ones(3), 1.0)),
        pickle.loads(pickle.dumps(model)),
        jax.jit(lambda x: x)(model),
    )
    assert all(other.report == model.report for other in others)
    assert model.report != plain.report
    assert jax.tree.structure(model) == jax.tree.structure(plain)
    traces = []
    function = jax.jit(lambda m: traces.append(m) or m.mass)
    function(model), function(plain)
    assert len(traces) == 1


def test_a_report_that_traced_code_reads_is_that_of_its_model():
    models = jd.load_mjcf(SAME["limits"]), jd.load_mjcf(SAME["ball limits"])
    count = jax.jit(lambda m: jnp.array(len(m.report)))
    assert [int(count(m)) for m in models] == [len(m.report) for m in models]


SHAPES = (
    '<asset><mesh name="m" file="no.stl"/><texture name="t" type="2d" file="no.png"/>'
    '<texture name="sky" type="skybox" fileup="up.png"/>'
    '<material name="p" texture="t"/>'
    '<hfield name="h" file="hills.png" size="1 1 1 1"/></asset>'
)
SHAPED = '<geom type="mesh" mesh="m" material="p"/>'


def test_missing_files_are_left_out_where_no_inertia_comes_from_them():
    ground = (
        f'<geom type="hfield" hfield="h"/><body name="s" pos="1 0 0">{SHAPED}</body>'
    )
    text = robot(INERTIAL + SHAPED, SHAPES, world=ground)
    with pytest.warns(
        UserWarning, match="will move .*\n.*4 missing: .*: left out"
    ) as w:
        model = jd.load_mjcf(text)
    assert len(w) == 1
    plain = jd.load_mjcf(robot(INERTIAL))
    assert (model.names, model.frame_names) == (("b",), ("s",))
    for name in ("mass", "com", "inertia"):
        np.testing.assert_array_equal(getattr(model, name), getattr(plain, name))
    assert not model.report.changing_motion


@pytest.mark.parametrize(
    ("inside", "rule"),
    [
        (SHAPED, ""),
        (f'{GEOM}<geom type="capsule" mesh="m"/>', ""),
        (INERTIAL + SHAPED, '<compiler inertiafromgeom="true"/>'),
    ],
)
def test_a_missing_file_that_gives_inertia_is_an_error(inside, rule, tmp_path):
    file = tmp_path / "robot.xml"
    file.write_text(robot(inside, rule + SHAPES))
    with pytest.raises(ValueError, match=r"robot.xml: .*no.stl' \(body b\): put them"):
        jd.load_mjcf(file)


@pytest.mark.parametrize(
    ("inside", "rule"),
    [
        (GEOM + SHAPED.replace("/>", ' mass="0"/>'), ""),
        (GEOM + SHAPED.replace("/>", ' density="0"/>'), ""),
        (
            GEOM + SHAPED.replace("/>", ' group="3"/>'),
            '<compiler inertiagrouprange="0 2"/>',
        ),
        (INERTIAL + SHAPED, '<compiler inertiafromgeom="false"/>'),
    ],
)
def test_a_missing_mesh_without_mass_is_left_out(inside, rule):
    with pytest.warns(UserWarning, match="4 missing: "):
        model = jd.load_mjcf(robot(inside, rule + SHAPES))
    assert model.mass[0] == (2 if INERTIAL in inside else jd.load_mjcf(robot()).mass[0])
