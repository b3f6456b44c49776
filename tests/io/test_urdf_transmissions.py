"""Transmissions in URDF: motors with a gear, or notes."""

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.io import load_mjcf, load_urdf, to_mjcf, to_urdf

LINK = """<link name="{}"><inertial><mass value="1"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>"""
JOINT = """<joint name="{0}" type="{3}"><parent link="{1}"/><child link="{2}"/>
<axis xyz="0 0 1"/><limit effort="{4}" velocity="1" lower="-1" upper="1"/></joint>"""
EFFORT = (
    "<hardwareInterface>hardware_interface/EffortJointInterface</hardwareInterface>"
)
POSITION = EFFORT.replace("Effort", "Position")
SIMPLE = "<type>transmission_interface/SimpleTransmission</type>"

GEAR = "<mechanicalReduction>50</mechanicalReduction>"


def robot(*transmissions, effort=10):
    """Two driven joints, and one that is fixed."""
    links = [LINK.format(name) for name in "0abc"]
    ends = ("j", "0", "a", "revolute"), ("k", "a", "b", "prismatic")
    joints = [JOINT.format(*x, effort) for x in (*ends, ("f", "b", "c", "fixed"))]
    return f'<robot name="r">{"".join([*links, *joints, *transmissions])}</robot>'


def transmission(
    joint=f'<joint name="j">{EFFORT}</joint>',
    actuator=f'<actuator name="m">{GEAR}</actuator>',
    kind=SIMPLE,
):
    return f'<transmission name="t">{kind}{joint}{actuator}</transmission>'


SECOND = transmission(
    '<joint name="k"/>',
    '<actuator name="n"/><mechanicalReduction>-2</mechanicalReduction>',
    "",
).replace('name="t"', 'name="u" type="pr2_mechanism_model/SimpleTransmission"')


def test_a_motor_drives_its_joint_through_a_gear():
    model = load_urdf(robot(transmission(), SECOND))
    assert model.actuators.names == ("m", "n")
    tau = jd.actuate(model, jnp.zeros(2), jnp.zeros(2), jnp.array([0.1, 3.0]))
    np.testing.assert_allclose(tau, (5, -6), rtol=1e-15)
    assert {note.became for note in model.report} == {
        "data: model.actuators, jd.actuate"
    }


def test_a_motor_keeps_the_effort_limit_of_its_joint():
    model = load_urdf(robot(transmission(), SECOND))
    tau = jd.actuate(model, jnp.zeros(2), jnp.zeros(2), jnp.array([1.0, 30.0]))
    np.testing.assert_allclose(tau, (10, -10), rtol=1e-15)
    np.testing.assert_allclose(model.actuators.force_range, [(-0.2, 0.2), (-5, 5)])


def test_motors_are_written_and_read_back():
    model = load_urdf(robot(transmission(), SECOND))
    again = load_urdf(to_urdf(model))
    assert again.actuators.names == model.actuators.names
    for key in ("arms", "gain", "bias", "control_range", "force_range", "joint_range"):
        a, b = (getattr(x.actuators, key) for x in (model, again))
        np.testing.assert_array_equal(a, b, key)


def test_motors_pull_in_mujoco_as_they_do_here():
    model = load_urdf(robot(transmission(), SECOND))
    text = to_mjcf(model, drop=("velocity",))
    mj_model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(mj_model)
    for ctrl in ((0.1, 3.0), (1.0, -30.0)):
        data.ctrl[:] = ctrl
        mujoco.mj_forward(mj_model, data)
        tau = jd.actuate(model, jnp.zeros(2), jnp.zeros(2), jnp.array(ctrl))
        np.testing.assert_allclose(data.qfrc_actuator, tau, rtol=1e-15)


def test_an_effort_limit_of_zero_is_noted():
    model = load_urdf(robot(transmission(), effort=0))
    assert model.report[-1].became == "no force: the effort limit is zero"


OTHER = {
    "DifferentialTransmission": transmission(
        kind="<type>transmission_interface/DifferentialTransmission</type>"
    ),
    "of no type": transmission(kind=""),
    "PositionJointInterface": transmission(f'<joint name="j">{POSITION}</joint>'),
}


@pytest.mark.parametrize("reason", OTHER)
def test_other_transmissions_are_noted(reason):
    model = load_urdf(robot(OTHER[reason]), strict=True)
    assert not model.actuators
    assert [x.became for x in model.report] == [f"not read: {reason}"]


def geared(reduction):
    text = f"<mechanicalReduction>{reduction}</mechanicalReduction>"
    return transmission(actuator=f'<actuator name="m">{text}</actuator>')


ODD = {
    "joint 'x' is missing": transmission('<joint name="x"/>'),
    "joint '' is missing": transmission("<joint/>"),
    "joint 'f' is fixed": transmission('<joint name="f"/>'),
    "0 <joint>": transmission(""),
    "2 <actuator>": transmission(actuator="<actuator/><actuator/>"),
    "expected one number": geared("a"),
    "expected one number.": geared("1 2"),
    "expected finite": geared("inf"),
    "reductions 0, expected": geared("0"),
    "reductions 1, 2, expected": geared(
        "1</mechanicalReduction><mechanicalReduction>2"
    ),
}


@pytest.mark.parametrize("reason", ODD)
def test_odd_transmissions_are_noted_or_an_error_on_request(reason):
    model = load_urdf(robot(ODD[reason], SECOND))
    assert model.actuators.names == ("n",)
    assert reason.removesuffix(".") in model.report[0].became
    with pytest.raises(ValueError, match="transmission 't'.* expected"):
        load_urdf(robot(ODD[reason]), strict=True)


def test_transmissions_are_skipped_on_request():
    text = robot(transmission(), SECOND)
    assert not load_urdf(text, skip="robot/transmission").actuators
    model = load_urdf(text, skip="robot/transmission/t")
    assert model.actuators.names == ("n",)


def test_motors_of_the_same_name_are_told_apart():
    model = load_urdf(robot(transmission(), SECOND.replace('"n"', '"m"')))
    assert model.actuators.names == ("m", "m_")


def test_no_interface_at_all_is_one_of_effort():
    assert load_urdf(robot(transmission('<joint name="j"/>'))).actuators.names == ("m",)


def test_single_precision_stays_single():
    model = load_urdf(robot(transmission()), dtype=jnp.float32)
    assert model.actuators.arms.dtype == jnp.float32
    assert load_urdf(to_urdf(model)).actuators.names == ("m",)


@pytest.mark.parametrize(
    "motor", ['<position joint="j" kp="3"/>', '<motor joint="j" ctrlrange="0 1"/>']
)
def test_other_actuators_are_lost_in_urdf_only_on_demand(motor):
    body = '<body><joint name="j"/><geom size="0.1"/></body>'
    text = f"<worldbody>{body}</worldbody><actuator>{motor}</actuator>"
    model = load_mjcf(f"<mujoco>{text}</mujoco>")
    with pytest.raises(ValueError, match=r"\(actuator 'actuator_0'\) has actuators"):
        to_urdf(model)
    assert not load_urdf(to_urdf(model, drop="actuators")).actuators
