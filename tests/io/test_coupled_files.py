"""Couplings in files: <mimic> of URDF, equalities of joints and tendons in MJCF."""

import json

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.io import load_mjcf, load_urdf
from jaxdyn.model import with_rate_leaves

LINK = (
    '<link name="{}"><inertial><mass value="2"/><inertia ixx="1" ixy="0.1" ixz="0.2" '
    'iyy="1.5" iyz="0.3" izz="2"/></inertial></link>'
)


def hand(*inside, kind="continuous"):
    """A palm that turns, with a finger for each content of a joint."""
    fingers = [f"f{k}" for k in range(len(inside))]
    links = "".join(map(LINK.format, ("base", "palm", *fingers)))
    turn = '<joint name="turn" type="revolute"><parent link="base"/>'
    turn += '<child link="palm"/><axis xyz="0 1 1"/><limit effort="9" velocity="3"/>'
    joints = [
        f'<joint name="j{k}" type="{kind}"><parent link="palm"/><child link="{x}"/>'
        f'<origin xyz="0.1 {k} 0"/><axis xyz="0 1 0"/>{y}</joint>'
        for k, (x, y) in enumerate(zip(fingers, inside, strict=True))
    ]
    return f'<robot name="r">{links}{turn}</joint>{"".join(joints)}</robot>'


FOLLOWS = '<mimic joint="j0" multiplier="-2" offset="0.5"/>'


def test_mimic_joints_follow_exactly():
    model = load_urdf(hand("", FOLLOWS, '<mimic joint="j1"/>'))
    free = load_urdf(hand("", "", ""))
    assert (model.nv, free.nv) == (2, 4) and not len(model.report)
    assert "j2 follows j0" in repr(model)
    q, qd, qdd = jnp.array([[0.3, 0.7], [1.0, -2.0], [0.5, 3.0]])
    G, offset = (
        jnp.array([[1.0, 0], [0, 1], [0, -2], [0, -2]]),
        jnp.array([0, 0, 0.5, 0.5]),
    )
    whole = G @ q + offset, G @ qd, G @ qdd
    np.testing.assert_allclose(
        jd.inverse_dynamics(model, q, qd, qdd),
        G.T @ jd.inverse_dynamics(free, *whole),
        rtol=1e-14,
    )
    np.testing.assert_allclose(
        jd.forward_kinematics(model, q).p,
        jd.forward_kinematics(free, whole[0]).p,
        atol=1e-15,
    )
    tau = jd.inverse_dynamics(model, q, qd, qdd)
    np.testing.assert_allclose(jd.forward_dynamics(model, q, qd, tau), qdd, rtol=1e-13)


def test_a_joint_that_is_skipped_moves_on_its_own():
    with pytest.warns(
        UserWarning, match="joint/mimic j1: left out: the joint moves on"
    ):
        model = load_urdf(hand("", FOLLOWS), skip=("joint/mimic/j1",))
    assert model.nv == 3


def test_a_joint_that_follows_none_moves_on_its_own():
    with pytest.warns(UserWarning, match="mimic j0: left out: no joint 'x', it moves"):
        assert load_urdf(hand('<mimic joint="x"/>')).nv == 2


def test_a_joint_that_follows_a_fixed_one_is_still():
    text = hand("", '<mimic joint="j0" offset="0.3"/>').replace(
        'name="j0" type="continuous"', 'name="j0" type="fixed"'
    )
    model = load_urdf(text)
    assert model.nv == 1
    R = jd.forward_kinematics(model, jnp.zeros(1)).R[model.body("f1")]
    np.testing.assert_allclose(R[0, 0], np.cos(0.3), rtol=1e-15)


@pytest.mark.parametrize(
    "text, message",
    [
        (
            hand('<mimic joint="j1"/>', '<mimic joint="j0"/>'),
            "in a circle: 'j0' -> 'j1' -> 'j0'",
        ),
        (hand('<mimic joint="j0"/>'), "'j0': <mimic joint='j0'> needs two joints"),
        (
            hand("", FOLLOWS, kind="floating"),
            r"'j1': <mimic joint='j0'> needs two joints .*skip=\('joint/mimic/j1',\)",
        ),
        (hand("", FOLLOWS.replace("-2", "x")), "<mimic multiplier='x'>: expected one"),
    ],
)
def test_wrong_couplings_are_reported(text, message):
    with pytest.raises(ValueError, match=message):
        load_urdf(text)


MJCF = """<mujoco><worldbody>
 <body name="a"><joint name="ja" axis="0 1 0" damping="0.1"/><geom size="0.1"/>
  <body name="b" pos="0 0 -0.4"><joint name="jb" axis="0 1 0" ref="0.3"/>
   <geom type="box" size="0.1 0.2 0.3"/>
   <body name="f1" pos="0.2 0 -0.2"><joint name="j1" type="slide" axis="1 0 0"
     ref="0.1"/><geom type="box" size="0.03 0.04 0.06"/></body>
   <body name="f2" pos="0.2 0 0"><joint name="j2" type="slide" axis="-1 0 0"
     armature="0.2"/><geom type="box" size="0.02 0.03 0.06"/></body>
   <body name="f3" pos="0.2 0.1 0"><joint name="j3" axis="-1 0 0" stiffness="2"/>
     <geom type="box" size="0.02 0.03 0.06"/></body>
 </body></body></worldbody>
 <tendon><fixed name="t1"><joint joint="j3" coef="2"/><joint joint="jb" coef="-0.5"/>
  </fixed><fixed name="t2"><joint joint="ja" coef="1"/></fixed></tendon>
 <equality><joint joint1="j2" joint2="j1" polycoef="0.05 1.2 0.3 0.1 0.2"/>
  <tendon tendon1="t1" tendon2="t2" polycoef="0.1 0.7 {} 0 0"/></equality>
</mujoco>"""


@pytest.mark.parametrize("curve", [0, 0.4])
def test_equalities_hold_in_mujoco_and_its_inertia_is_ours(curve, rng):
    text = MJCF.format(curve)
    model = load_mjcf(text)
    assert (model.nv, model.tree.nv) == (3, 5)
    q, qd = jnp.array(rng.normal(size=3)), jnp.array(rng.normal(size=3))
    theirs = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(theirs)
    data.qpos[:], data.qvel[:] = jd.to_mujoco(model, q, qd)
    mujoco.mj_forward(theirs, data)
    # positions and rates of the two constraints
    rows = data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
    assert rows.sum() == 2
    np.testing.assert_allclose(data.efc_pos[rows], 0, atol=1e-15)
    np.testing.assert_allclose(data.efc_vel[rows], 0, atol=1e-14)
    M = np.zeros((5, 5))
    for row, one in zip(M, np.eye(5), strict=True):
        mujoco.mj_mulM(theirs, data, row, one)
    G = jax.jacfwd(lambda v: jd.to_mujoco(model, q, v)[1])(qd)
    np.testing.assert_allclose(jd.mass_matrix(model, q), G.T @ M @ G, rtol=1e-12)
    again = jd.from_mujoco(model, jnp.array(data.qpos), jnp.array(data.qvel))
    np.testing.assert_allclose(again[0], q, rtol=1e-15)
    np.testing.assert_allclose(again[1], qd, rtol=1e-15)


def test_a_tendon_through_space_is_refused_with_the_call_that_skips_it():
    text = (
        MJCF.format(0)
        .replace('name="f1"', 'name="f1"')
        .replace(
            '<fixed name="t2"><joint joint="ja" coef="1"/></fixed>',
            '<spatial name="t2"><site site="s"/><site site="t"/></spatial>',
        )
    )
    text = text.replace('<geom size="0.1"/>', '<geom size="0.1"/><site name="s"/>')
    text = text.replace("<worldbody>", '<worldbody><site name="t" pos="1 0 0"/>')
    with pytest.raises(ValueError, match=r"equality/tendon/1: .*'equality/tendon',\)"):
        load_mjcf(text)


def coupled_model():
    """A follower of one joint, one of two, a polynomial, and one that is still."""
    tree = jd.robots.random_tree(4, 7, joints=("revolute", "prismatic"))
    names = tree.joint_names
    m = tree.with_coupling(names[2], {names[0]: -0.5}, offset=0.25)
    m = m.with_coupling(names[4], {names[1]: 0.3, names[3]: 0.7})
    m = m.with_coupling(names[5], polynomial=(0.1, 1, 0.5), argument={names[3]: 2.0})
    damped = jnp.arange(1.0, 1 + m.tree.nv)
    return with_rate_leaves(m.with_coupling(names[6], offset=0.3), damping=damped)


def assert_same_motion(again, model, tolerance):
    rng = np.random.default_rng(0)
    q, qd, qdd = (jnp.array(x) for x in rng.normal(size=(3, model.nv)))
    assert (again.nv, again.nq) == (model.nv, model.nq)
    for f in (jd.inverse_dynamics, jd.forward_dynamics):
        ours, theirs = f(model, q, qd, qdd), f(again, q, qd, qdd)
        np.testing.assert_allclose(
            theirs, ours, rtol=0, atol=tolerance * abs(ours).max()
        )


@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32])
def test_dictionaries_hold_couplings_exactly(dtype):
    model = coupled_model().with_gears([0, 1], [[0.5, 0.1], [0.0, 2.0]])
    model = model.astype(dtype)
    again = jd.from_dict(json.loads(json.dumps(jd.to_dict(model))), dtype=dtype)
    assert jax.tree.structure(again) == jax.tree.structure(model)
    jax.tree.map(np.testing.assert_array_equal, again, model)


def test_mjcf_holds_couplings():
    model = coupled_model()
    again = load_mjcf(jd.to_mjcf(model))
    assert_same_motion(again, model, 1e-12)
    with pytest.raises(ValueError, match="has couplings, which MJCF cannot hold"):
        jd.to_mjcf(model.with_gears([0], [[2.0]]))


def test_urdf_holds_couplings_with_one_joint():
    tree = jd.robots.chain(4)
    model = tree.with_coupling(2, {0: -0.5}, offset=0.25).with_coupling(3, {1: 2.0})
    again = load_urdf(jd.to_urdf(model))
    assert_same_motion(again, model, 1e-14)
    with pytest.raises(ValueError, match="'.*' has couplings, which URDF cannot hold"):
        jd.to_urdf(coupled_model())
    free = load_urdf(jd.to_urdf(coupled_model(), drop="couplings"))
    assert free.nv == coupled_model().nv + 3


def test_motors_of_joints_that_follow_act_through_them():
    motor = (
        '<transmission name="t"><type>SimpleTransmission</type><joint name="j1"/>'
        '<actuator name="m"><mechanicalReduction>3</mechanicalReduction></actuator>'
        "</transmission></robot>"
    )
    model = load_urdf(hand("", FOLLOWS).replace("</robot>", motor))
    tau = jd.actuate(model, jnp.zeros(2), jnp.zeros(2), jnp.array([1.0]))
    np.testing.assert_allclose(tau, [0, -6])


@pytest.mark.slow
def test_a_motion_of_a_coupled_robot_is_kept(tmp_path):
    model = load_urdf(hand("", FOLLOWS))
    ts, start = jnp.linspace(0.0, 0.1, 3), jnp.zeros(2)
    motion = jd.simulate(model, start, start, ts)
    jd.io.save_trajectory(tmp_path, model, motion)
    again, _ = jd.io.load_trajectory(tmp_path)
    assert jax.tree.structure(again) == jax.tree.structure(model)
    jax.tree.map(np.testing.assert_array_equal, again, model)
