"""Models as MJCF: read back with the same dynamics, and as MuJoCo moves them."""

from dataclasses import fields, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.io import load_mjcf, to_mjcf, to_mujoco
from jaxdyn.model import JOINT_TYPES
from tests.io.test_mjcf_compiled import mass_matrix
from tests.models import every_joint, random_state, with_effects

SHIPPED = {
    "chain": lambda: jd.robots.chain(7),
    "featherstone_2p": jd.robots.featherstone_2p,
    "gripper": jd.robots.gripper,
    "lecture_tree": jd.robots.lecture_tree,
    "mata_two_link": jd.robots.mata_two_link,
    "protein_chain": lambda: jd.robots.protein_chain("ACD"),
    "random_tree": lambda: jd.robots.random_tree(3, 8),
    "rope": jd.robots.rope,
    "stewart_gough": lambda: jd.robots.stewart_gough().without_loops(),
    "five_bar": lambda: jd.robots.five_bar().without_loops(),
    "four_bar": lambda: jd.robots.four_bar().without_loops(),
    "ladder": lambda: jd.robots.ladder(3).without_loops(),
    "slider_crank": lambda: jd.robots.slider_crank().without_loops(),
    "three_rrr": lambda: jd.robots.three_rrr().without_loops(),
}
OFTEN = ("featherstone_2p", "lecture_tree", "mata_two_link", "stewart_gough")
BOX = jd.Inertial.box(1.5, (0.3, 0.1, 0.2)).moved(np.eye(3), np.full(3, 0.1))


def floating():
    """A free body that carries a ball joint, a planar joint and a fixed body."""
    b = jd.ModelBuilder("floating", base="world", gravity=(0.3, 0.2, -9.0))
    b.add_body("trunk", joint="free", inertial=BOX)
    b.add_body("ball", "trunk", "spherical", p=(0.1, 0.2, 0.3), inertial=BOX)
    plane = dict(axis=(0, 0.6, 0.8), axis2=(1, 0, 0))
    b.add_body("plane", "trunk", "planar", **plane, p=(0, 0.3, 0), inertial=BOX)
    b.add_body("tip", "ball", "fixed", p=(0, 0.1, 0), inertial=BOX)
    b.add_frame("tool", "tip", p=(0, 0, 0.1))
    return b.build()


def trunk(joint, **options):
    """One body on a joint."""
    b = jd.ModelBuilder("one", base="world")
    b.add_body("trunk", joint=joint, inertial=BOX, **options)
    return b.build()


def places(model, again):
    """Where the coordinates of a model stand in q and qd of the model read back."""
    t, q, v = again.topology, [], []
    for i, name in enumerate(model.joint_names):
        kind, known = JOINT_TYPES[model.joints[i]], again.joint_names
        split = [f"{name}_{k + 1}" for k in range(kind.nv)]
        for piece in [name] if name in known else split:
            j = known.index(piece)
            q += range(t.q_start[j], t.q_start[j + 1])
            v += range(t.v_start[j], t.v_start[j + 1])
    return np.array(q), np.array(v)


@jax.jit
def dynamics(model, q, qd, qdd):
    """The inertia matrix, inverse and forward dynamics of the tree."""
    model = model.without_loops()
    tau = jd.inverse_dynamics(model, q, qd, qdd)
    return jd.mass_matrix(model, q), tau, jd.forward_dynamics(model, q, qd, tau)


def assert_same_dynamics(model, text, rng, **options):
    """Compare at a random state with the model read back, and with MuJoCo."""
    again = load_mjcf(text, **options)
    q, qd, qdd = random_state(model, rng)
    at_q, at_v = places(model, again)
    other = [jnp.zeros_like(q).at[at_q].set(q)]
    other += [jnp.zeros_like(x).at[at_v].set(x) for x in (qd, qdd)]
    M, tau, found = dynamics(model, q, qd, qdd)
    M2, tau2, found2 = dynamics(again, *other)
    pairs = [(M2[at_v][:, at_v], M), (tau2[at_v], tau), (found2[at_v], found)]
    if "free" not in model.joints and not model.friction.any():
        mj_model = mujoco.MjModel.from_xml_string(text)
        data = mujoco.MjData(mj_model)
        data.qpos, data.qvel = to_mujoco(again, *other[:2])
        mujoco.mj_forward(mj_model, data)
        bias = (data.qfrc_bias - data.qfrc_passive)[at_v]
        theirs = mass_matrix(mj_model, data)[at_v][:, at_v]
        pairs += [(M, theirs), (tau, bias + theirs @ qdd)]
    for actual, expected in pairs:
        atol = 1e-12 * max(1, np.abs(expected).max())
        np.testing.assert_allclose(actual, expected, rtol=0, atol=atol)


@pytest.mark.first
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in OFTEN else [pytest.mark.slow])
        for name in SHIPPED
    ],
)
def test_robots_that_ship_have_the_same_dynamics_when_read_back(name, rng):
    model = SHIPPED[name]()
    assert_same_dynamics(model, to_mjcf(model), rng)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2, 3))]
)
def test_every_joint_has_the_same_dynamics_when_read_back(seed, rng):
    plain = every_joint(seed, without=("helical", "free"))
    model = jax.tree.map(np.array, with_effects(plain, rng))
    i = model.joints.index("spherical")
    for key in ("armature", "damping", "friction", "stiffness"):
        at = model.v_slice(i)
        getattr(model, key)[at] = getattr(model, key)[at][0]  # one number in MJCF
    model.rest[model.q_slice(model.joints.index("planar"))] = 0.1, 0.2, 0.3
    model = jax.tree.map(jnp.asarray, model)
    assert_same_dynamics(model, to_mjcf(model), rng, merge_fixed=False)


@pytest.mark.slow
@pytest.mark.first
@pytest.mark.parametrize("seed", [5, 6])
def test_random_trees_move_as_in_mujoco(seed, rng):
    joints = (
        "revolute",
        "prismatic",
        "universal",
        "cylindrical",
        "planar",
        "spherical",
    )
    model = jd.robots.random_tree(seed, 5, joints=joints)
    springs = rng.uniform(0.1, 1.0, (2, model.nv))
    single = [kind.axes > 0 for kind in model.topology.types for _ in range(kind.nv)]
    damping, stiffness = (jnp.asarray(x * np.array(single)) for x in springs)
    model = replace(model, damping=damping, stiffness=stiffness)
    assert_same_dynamics(model, to_mjcf(model), rng)


@pytest.mark.slow
def test_mujoco_moves_the_robot_as_we_do(rng):
    model = floating()
    names = ("damping", "armature", "stiffness")
    values = [
        rng.uniform(0.1, 1.0, model.n)[[0] * 6 + [1] * 3 + [2] * 3] for _ in names
    ]
    values[1][:6] = 0  # has gyroscopic forces with us
    rest = np.array([0.1, 0.2, 0.3, 0.5, 0.5, -0.5, 0.5, 0, 0, 0, 1, 0.3, 0.2, 0.1])
    model = eqx.tree_at(
        lambda m: [*(getattr(m, name) for name in names), m.rest],
        model,
        [*map(jnp.asarray, values), jnp.asarray(rest)],
    )
    i, masses = (0, 1, 3), jnp.array([0.5, 1, 2])
    weight = jd.GravityCompensation(i, model.com[jnp.array(i)], masses)
    model = model.with_force(weight)
    mj_model = mujoco.MjModel.from_xml_string(to_mjcf(model))
    data = mujoco.MjData(mj_model)
    q, qd, _ = random_state(model, rng)
    data.qpos, data.qvel = to_mujoco(model, q, qd)
    mujoco.mj_forward(mj_model, data)
    expected = data.qacc.copy()
    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, data.qpos[3:7])
    w, v = data.qvel[3:6], R.reshape(3, 3).T @ data.qvel[:3]
    expected[:3] = R.reshape(3, 3).T @ expected[:3] - np.cross(w, v)
    actual = jd.forward_dynamics(model, q, qd, jnp.zeros(model.nv))
    np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-11)


ACTUATED = """
<mujoco><compiler angle="radian"/><worldbody>
  <body name="a"><joint name="a" type="hinge" actuatorfrcrange="-3 5"/>{geom}
    <body name="b" pos=".3 0 0"><joint name="b" type="slide"/>{geom}
      <body name="c" pos=".3 0 0"><joint name="c" type="ball"/>{geom}</body></body>
  </body>
  <body name="f"><freejoint name="f"/>{geom}</body>
</worldbody>
<tendon><fixed name="t">
  <joint joint="a" coef="2"/><joint joint="b" coef="-3"/>
</fixed></tendon>
<actuator>
  <motor name="motor" joint="a" gear="20" ctrlrange="-1 2"/>
  <position name="servo" joint="b" kp="30" kv="2" forcerange="-4 4"/>
  <velocity joint="a" kv="3"/>
  <damper name="damper" joint="b" kv="3" ctrlrange="0 1"/>
  <motor name="ball" joint="c" gear="1 2 3"/>
  <motor name="free" joint="f" gear="1 2 3 4 5 6"/>
  <motor name="tendon" tendon="t" gear="2"/>
  <motor name="idle" joint="b" gear="0"/>
</actuator></mujoco>""".format(geom='<geom size="0.1"/>')


def test_actuators_are_written_as_they_are():
    model = load_mjcf(ACTUATED)
    again = load_mjcf(to_mjcf(model))
    assert again.actuators.names == model.actuators.names
    for key in ("arms", "gain", "bias", "control_range", "force_range", "joint_range"):
        a, b = (getattr(x.actuators, key) for x in (model, again))
        np.testing.assert_array_equal(a, b, key)
    np.testing.assert_array_equal(again.effort, model.effort)


def test_actuators_pull_as_before(rng):
    model = load_mjcf(ACTUATED)
    again = load_mjcf(to_mjcf(model))
    q, qd, _ = random_state(model, rng)
    ctrl = jnp.asarray(rng.normal(size=len(model.actuators)))
    tau = [jd.actuate(m, q, qd, ctrl) for m in (model, again)]
    np.testing.assert_array_equal(*tau)


def test_loops_are_connect_and_weld_between_sites(rng):
    model = floating()
    R, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    R *= np.linalg.det(R)
    model = model.with_loop("ball", (0.1, 0.2, 0.3), "plane", (0.3, 0, 0), name="pin")
    frames = (R, (0.1, 0, 0)), (R.T, (0, 0.1, 0))
    model = model.with_loop("world", frames[0], "plane", frames[1], "fixed")
    again = load_mjcf(to_mjcf(model), merge_fixed=False)
    assert [x.joint for x in again.loops] == ["spherical", "fixed"]
    assert [x.name for x in again.loops] == ["pin", "loop 1"]
    q, *_ = random_state(model, rng)
    at_q, _ = places(model, again)
    other = jnp.zeros_like(q).at[at_q].set(q)
    opening = [jd.loop_residual(*x) for x in ((model, q), (again, other))]
    np.testing.assert_allclose(*opening, rtol=0, atol=1e-14)


def test_sites_of_loops_are_written_once():
    model = jd.robots.stewart_gough()
    once = load_mjcf(to_mjcf(model))
    assert load_mjcf(to_mjcf(once)).frame_names == once.frame_names
    assert len(once.frame_names) == len(model.frame_names) + 2 * len(model.loops)


def test_a_frame_with_the_name_of_a_site_of_a_loop_keeps_its_place():
    b = jd.ModelBuilder("two", base="world")
    b.add_body("a", inertial=BOX)
    b.add_body("b", "a", p=(1, 0, 0), inertial=BOX)
    b.add_frame("pin_a", "b", p=(0, 0, 7))
    b.add_loop("b", (0, 0, 1), None, (0, 0, 2), name="pin")
    again = load_mjcf(to_mjcf(b.build()))
    assert again.frame_names == ("pin_b", "pin_a", "pin_a_")
    np.testing.assert_array_equal(again.loops[0].p_a, (0, 0, 1))


FIELDS = {
    *("gravity", "R", "p", "axis", "axis2", "pitch", "mass", "com", "inertia"),
    *("armature", "damping", "friction", "friction_speed", "stiffness", "rest"),
    *("lower", "upper", "effort", "velocity", "frame_R", "frame_p"),
    *("loops", "forces", "topology", "actuators", "couplings"),
}


def test_writers_know_every_field_of_a_model():
    # a field that is added here is written or refused by to_mjcf, to_urdf and to_dict
    assert {field.name for field in fields(jd.Model)} == FIELDS


def test_frames_limits_and_efforts_are_kept():
    b = jd.ModelBuilder("arm", base="world")
    limits = dict(lower=-np.inf, upper=0.3, effort=7, rest=0.2, stiffness=2)
    b.add_body("a", joint="prismatic", inertial=BOX, joint_name="slider", **limits)
    twist = np.array([[0.6, -0.8, 0], [0.8, 0.6, 0], [0, 0, 1]])
    b.add_frame("tool", "a", R=twist, p=(0.1, 0.2, 0.3))
    b.add_frame("stand", None, p=(0, 0, 1))
    model = b.build()
    again = load_mjcf(to_mjcf(model))
    assert again.joint_names == ("slider",)
    assert again.name == "arm"
    for key in ("lower", "upper", "effort", "rest", "stiffness"):
        np.testing.assert_array_equal(getattr(again, key), getattr(model, key), key)
    tool = again.frame_names.index("tool")
    np.testing.assert_allclose(again.frame_R[tool], twist, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(again.frame_p[tool], (0.1, 0.2, 0.3))
    assert again.frame_bodies[again.frame_names.index("stand")] == -1


def test_massless_bodies_and_rods_get_the_least_that_mujoco_reads():
    b = jd.ModelBuilder("rods", base="world")
    rod = jd.Inertial.rod(1.0, (0, 0, 0), (0.3, 0.5, 0.1))
    b.add_body("first", axis=(0, 0, 1), inertial=rod)
    b.add_body("empty", "first", axis=(0, 1, 0), p=(0.5, 0, 0))
    b.add_body("last", "empty", axis=(0, 0, 1), inertial=rod)
    again = load_mjcf(to_mjcf(b.build()))
    np.testing.assert_allclose(again.mass, (1, 1e-14, 1))
    assert np.linalg.eigvalsh(again.inertia).min() > 0


LOST = {
    "velocity": trunk("revolute", velocity=3),
    "friction_speed": trunk("revolute", friction=3, friction_speed=0.1),
    "lower": trunk("prismatic", lower=0.1, upper=0.1),
    "upper": trunk("spherical", upper=0.5),
    "effort": trunk("revolute", effort=0),
    "armature": trunk("free", armature=0.1),
    "friction": trunk("free", friction=0.1),
    "damping": trunk("spherical", damping=(1, 2, 3)),
    "stiffness": trunk("spherical", stiffness=1, rest=(0.6, 0, 0, 0.8)),
    "forces": trunk("revolute").with_force(
        jd.SpringDamper("trunk", (0, 0, 1), None, (1, 0, 0), 2.0)
    ),
}


@pytest.mark.parametrize("what", LOST)
def test_what_mjcf_cannot_hold_is_dropped_only_on_demand(what):
    model = LOST[what]
    with pytest.raises(ValueError, match=f"has {what}, which MJCF .* drop=\\('{what}'"):
        to_mjcf(model, drop={"lower"} - {what})
    drop = {what, "lower"} if what == "upper" else {what, "upper"}
    again = load_mjcf(to_mjcf(model, drop=drop))
    plain = trunk(model.joints[0])
    if what not in ("friction_speed", "forces"):
        leaf = getattr(again, what)
        np.testing.assert_array_equal(leaf, getattr(plain, what))
    assert not again.forces


def test_weight_carried_beside_the_centre_of_mass_is_lost():
    model = trunk("revolute")
    model = model.with_force(jd.GravityCompensation(("trunk",), [[0, 0, 1]], [1.0]))
    with pytest.raises(ValueError, match="model 'one' has forces"):
        to_mjcf(model)


def test_an_effort_beside_that_of_actuators_is_lost():
    model = load_mjcf(ACTUATED)
    model = replace(model, effort=model.effort.at[0].set(4.0))
    with pytest.raises(ValueError, match="joint 'a' has effort"):
        to_mjcf(model)


def test_activations_are_lost_with_all_actuators():
    text = ACTUATED.replace("velocity joint", 'intvelocity actrange="0 1" joint')
    text = text.replace('"a" kv', '"a" kp')
    model = load_mjcf(text)
    with pytest.raises(ValueError, match="actuator 'actuator_2': an activation"):
        to_mjcf(model)
    assert not load_mjcf(to_mjcf(model, drop="actuators")).actuators


def refused(**options):
    return dict(inertial=BOX) | options


REFUSED = {
    "'j_a' is helical, which MJCF cannot": refused(joint="helical", pitch=0.1),
    "'j_a' is free and not placed": refused(joint="free", p=(0, 0, 1)),
    "no inertia resists joint 'j_a'": refused(inertial=jd.Inertial()),
    "body 'a': principal inertias 1, 1, 3 violate .* nearest": refused(
        inertial=jd.Inertial(1, np.zeros(3), np.diag([1, 1, 3])), check_inertia=False
    ),
    "body 'a': principal inertias 0, 0, 1 violate .* armature": refused(
        inertial=jd.Inertial(0, np.zeros(3), np.diag([0, 0, 1]))
    ),
    "body 'world' .* rename it": refused(name="world"),
    "two joints of the MJCF would have the name 'x_1'": refused(
        joint="cylindrical", joint_name="x"
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_written_is_named(message):
    b = jd.ModelBuilder("one")
    options = REFUSED[message]
    name = options.pop("name", "a")
    b.add_body(name, **options)
    b.add_body("b", joint_name="x_1", inertial=BOX)
    with pytest.raises(ValueError, match=message):
        to_mjcf(b.build(check_inertia=False))


def test_other_loops_are_named():
    with pytest.raises(ValueError, match="'loop 0' is a point .*without_loops"):
        to_mjcf(jd.robots.four_bar())


def test_a_deep_tree_is_an_error():
    with pytest.raises(ValueError, match="'link491' has 490 bodies between"):
        to_mjcf(jd.robots.chain(500))


def test_a_deep_tree_can_be_written():
    assert load_mjcf(to_mjcf(jd.robots.chain(490))).n == 490


def test_unknown_drop_is_an_error():
    with pytest.raises(
        ValueError, match="drop names loops, expected some of: velocity"
    ):
        to_mjcf(trunk("revolute"), drop="loops")


def test_a_file_is_written_whole(tmp_path):
    model = trunk("revolute")
    text = to_mjcf(model, tmp_path / "one.xml")
    assert (tmp_path / "one.xml").read_text() == text
    assert [x.name for x in tmp_path.iterdir()] == ["one.xml"]


def test_single_precision_is_written_in_its_own_digits():
    model = floating().astype(jnp.float32)
    again = load_mjcf(to_mjcf(model), merge_fixed=False, dtype=jnp.float32)
    np.testing.assert_array_equal(again.p[:2], model.p[:2])
    np.testing.assert_array_equal(again.inertia[1], model.inertia[1])


def test_a_batch_of_models_is_an_error():
    batch = jax.tree.map(lambda x: jnp.stack([x, x]), trunk("revolute"))
    with pytest.raises(ValueError, match="shape"):
        to_mjcf(batch)
