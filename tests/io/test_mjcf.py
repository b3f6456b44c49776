"""Models from MJCF, against values of MuJoCo and against the texts themselves."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from jaxdyn.io import from_mujoco, from_mujoco_model, load_mjcf
from jaxdyn.model import Inertial

DATA = Path(__file__).parents[1] / "data" / "mjcf_cases.json"
CASES = {case["name"]: case for case in json.loads(DATA.read_text())["cases"]}
MODELS = {}
to_state = jax.jit(from_mujoco)
GEOM = '<geom size="0.1"/>'
# one of the cases has a free joint with armature
pytestmark = pytest.mark.filterwarnings("ignore:model .* will not move")


def host(text, **options):
    """A loaded model whose leaves are NumPy arrays."""
    return jax.tree.map(np.asarray, load_mjcf(text, **options))


@pytest.fixture(params=CASES)
def case(request):
    """A reference case: its model, and its states as arrays with the model's q."""
    name = request.param
    if int(mujoco.__version__.split(".")[0]) < 4:
        pytest.skip("the values are those of the compiler of MuJoCo 4")
    if name not in MODELS:
        model = host(CASES[name]["mjcf"])
        states = []
        for values in CASES[name]["states"]:
            state = {key: np.array(value) for key, value in values.items()}
            q, qd = to_state(model, state["qpos"], state["qvel"])
            states.append(state | {"q": np.asarray(q), "qd": np.asarray(qd)})
        MODELS[name] = model, CASES[name], states
    return MODELS[name]


def rotation(v, w):
    """The rotation of a unit quaternion with vector part v and scalar part w."""
    K = np.cross(np.eye(3), v)
    return np.eye(3) + 2 * w * K + 2 * K @ K


def joint_pose(model, i, q):
    kind, axis = model.joints[i], model.axis[i]
    if kind == "revolute":
        return rotation(np.sin(q[0] / 2) * axis, np.cos(q[0] / 2)), np.zeros(3)
    if kind == "prismatic":
        return np.eye(3), q[0] * axis
    if kind == "spherical":
        return rotation(q[:3], q[3]), np.zeros(3)
    if kind == "free":
        return rotation(q[3:6], q[6]), q[:3]
    return np.eye(3), np.zeros(3)


def kinematics(model, q):
    """World poses of all bodies, and of the world under the index -1."""
    poses = {-1: (np.eye(3), np.zeros(3))}
    for i, parent in enumerate(model.parents):
        R, p = poses[parent]
        R, p = R @ model.R[i], p + R @ model.p[i]
        R_q, p_q = joint_pose(model, i, q[model.q_slice(i)])
        poses[i] = R @ R_q, p + R @ p_q
    return poses


def frame_pose(model, poses, name):
    k = model.frame_names.index(name)
    R, p = poses[model.frame_bodies[k]]
    return R @ model.frame_R[k], p + R @ model.frame_p[k]


def body_pose(model, poses, name):
    """The world pose of MuJoCo's frame of a body."""
    if f"{name}_frame" in model.frame_names:
        return frame_pose(model, poses, f"{name}_frame")
    if name in model.names:
        return poses[model.body(name)]
    return frame_pose(model, poses, name)


def joint_columns(model, i, R):
    """Velocity of the origin and angular velocity of a joint, per unit of its rates."""
    axis = (R @ model.axis[i])[:, None]
    zero = np.zeros((3, 3))
    return {
        "revolute": (zero[:, :1], axis),
        "prismatic": (axis, zero[:, :1]),
        "spherical": (zero, R),
        "free": (np.hstack([R, zero]), np.hstack([zero, R])),
        "fixed": (zero[:, :0], zero[:, :0]),
    }[model.joints[i]]


def jacobian(model, poses, i):
    """Velocity of the mass centre and angular velocity of a body, per unit of qd."""
    J = np.zeros((6, model.nv))
    c = poses[i][1] + poses[i][0] @ model.com[i]
    while i >= 0:
        R, p = poses[i]
        v, w = joint_columns(model, i, R)
        J[:, model.v_slice(i)] = np.vstack([v + np.cross(w.T, c - p).T, w])
        i = model.parents[i]
    return J


def mass_matrix(model, poses):
    M = np.diag(model.armature)
    for i in range(model.n):
        J, R = jacobian(model, poses, i), poses[i][0]
        inertia = R @ model.inertia[i] @ R.T
        M = M + model.mass[i] * J[:3].T @ J[:3] + J[3:].T @ inertia @ J[3:]
    return M


def velocity_map(model, poses):
    """The matrix that turns qd into MuJoCo's qvel."""
    T = np.eye(model.nv)
    for i in model.topology.free_bodies:
        k = model.v_slice(int(i)).start
        T[k : k + 3, k : k + 3] = poses[i][0]
    return T


def body(content, before="", after=""):
    return (
        f'<mujoco>{before}<worldbody><body name="b">{content}</body></worldbody>'
        f"{after}</mujoco>"
    )


@pytest.mark.reference
def test_body_poses_are_those_of_mujoco(case):
    model, data, states = case
    for state in states:
        poses = kinematics(model, state["q"])
        for k, name in enumerate(data["bodies"]):
            R, p = body_pose(model, poses, name)
            np.testing.assert_allclose(R, state["xmat"][k], rtol=0, atol=1e-13)
            np.testing.assert_allclose(p, state["xpos"][k], rtol=0, atol=1e-13)


@pytest.mark.reference
def test_site_poses_are_those_of_mujoco(case):
    model, data, states = case
    for state in states:
        poses = kinematics(model, state["q"])
        for k, name in enumerate(data["sites"]):
            name = f"{name}_site" if name in data["bodies"] else name
            R, p = frame_pose(model, poses, name)
            np.testing.assert_allclose(R, state["site_xmat"][k], rtol=0, atol=1e-13)
            np.testing.assert_allclose(p, state["site_xpos"][k], rtol=0, atol=1e-13)


@pytest.mark.reference
def test_total_mass_and_its_centre_are_those_of_mujoco(case):
    model, data, states = case
    np.testing.assert_allclose(model.mass.sum(), data["moving_mass"], rtol=1e-14)
    for state in states:
        poses = kinematics(model, state["q"])
        c = [poses[i][1] + poses[i][0] @ model.com[i] for i in range(model.n)]
        com = model.mass @ np.array(c) / model.mass.sum()
        np.testing.assert_allclose(com, state["moving_com"], rtol=0, atol=1e-13)


@pytest.mark.reference
def test_mass_matrix_is_that_of_mujoco(case):
    model, _, states = case
    for state in states:
        poses = kinematics(model, state["q"])
        T = velocity_map(model, poses)
        M = T.T @ state["M"] @ T
        np.testing.assert_allclose(
            mass_matrix(model, poses), M, rtol=0, atol=1e-13 * np.abs(M).max()
        )


@pytest.mark.reference
def test_gravity_forces_are_those_of_mujoco(case):
    model, _, states = case
    state = states[0]  # at rest
    poses = kinematics(model, state["q"])
    tau = np.zeros(model.nv)
    for i in range(model.n):
        tau -= model.mass[i] * model.gravity @ jacobian(model, poses, i)[:3]
    bias = velocity_map(model, poses).T @ state["qfrc_bias"]
    np.testing.assert_allclose(
        tau, bias, rtol=0, atol=1e-12 * max(1, np.abs(bias).max())
    )


@pytest.mark.reference
def test_springs_and_dampers_are_those_of_mujoco(case):
    model, _, states = case
    plain_q, plain_v = model.topology.plain_q, model.topology.plain_v
    for state in states:
        stretch = state["q"][plain_q] - model.rest[plain_q]
        force = -model.damping * state["qd"]
        force[plain_v] -= model.stiffness[plain_v] * stretch
        T = velocity_map(model, kinematics(model, state["q"]))
        np.testing.assert_allclose(
            force, T.T @ state["qfrc_passive"], rtol=0, atol=1e-12
        )


@pytest.mark.reference
def test_unmerged_bodies_have_the_masses_of_mujoco(case):
    _, data, _ = case
    model = host(data["mjcf"], merge_fixed=False)
    mass = [model.mass[model.body(name)] for name in data["bodies"]]
    np.testing.assert_allclose(mass, data["body_mass"], rtol=1e-14)


@pytest.mark.reference
def test_merging_fixed_bodies_does_not_change_the_mass_matrix(case):
    merged, data, states = case
    model = host(data["mjcf"], merge_fixed=False)
    M, M_merged = (
        mass_matrix(m, kinematics(m, states[1]["q"])) for m in (model, merged)
    )
    np.testing.assert_allclose(M, M_merged, rtol=0, atol=1e-13 * np.abs(M).max())


def test_names_follow_the_file():
    model = load_mjcf(CASES["anchors and references"]["mjcf"])
    assert model.name == "arm"
    assert model.topology.base == "world"
    assert model.names == (
        "base_lift",
        "base_yaw",
        "base",
        "link",
        "body_3_1",
        "body_3",
    )
    assert model.joint_names == (
        *("lift", "yaw", "j_base", "elbow", "j_body_3_1", "wrist"),
    )
    assert model.frame_names == ("base_frame", "tool", "link_frame", "body_3_frame")


def test_joint_types_follow_the_file():
    model = load_mjcf(CASES["free and ball joints"]["mjcf"])
    assert dict(zip(model.names, model.joints, strict=True)) == {
        "raft": "free",
        "mast": "spherical",
        "flag_turn": "prismatic",
        "flag": "spherical",
        "stone": "free",
    }


def test_limits_and_friction_are_in_radians_and_joint_units():
    model = host(CASES["anchors and references"]["mjcf"])
    lift, yaw, base, elbow = (
        model.v_slice(name).start for name in ("base_lift", "base_yaw", "base", "link")
    )
    np.testing.assert_allclose((model.lower[lift], model.upper[lift]), (-0.4, 0.7))
    limits = model.lower[yaw], model.upper[yaw]
    np.testing.assert_allclose(limits, np.radians((-90, 120)))
    assert (model.lower[base], model.upper[base]) == (-np.inf, np.inf)
    assert (model.friction[base], model.friction[yaw]) == (0.4, 0)
    assert (model.effort[elbow], model.effort[base]) == (30, np.inf)


def test_bodies_without_joint_become_frames_or_fixed_bodies():
    text = body(f'<joint/>{GEOM}<body name="c">{GEOM}</body>')
    merged, unmerged = load_mjcf(text), load_mjcf(text, merge_fixed=False)
    assert (merged.names, merged.frame_names) == (("b",), ("c",))
    assert (unmerged.names, unmerged.joints) == (("b", "c"), ("revolute", "fixed"))


def test_included_files_take_the_place_of_the_include(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "rules.xml").write_text(
        '<mujocoinclude><compiler angle="radian"/><include file="parts/g.xml"/>'
        "</mujocoinclude>"
    )
    (tmp_path / "parts" / "g.xml").write_text(
        '<mujoco><option gravity="0 0 -1"/></mujoco>'
    )
    file = tmp_path / "robot.xml"
    include = '<include file="parts/rules.xml"/>'
    file.write_text(body(f'<joint range="-1 1"/>{GEOM}', include))
    model = load_mjcf(file)
    assert model.name == "robot"
    assert (model.upper[0], model.gravity[2]) == (1, -1)


def test_dtype_of_the_leaves_can_be_chosen():
    assert load_mjcf(body(f"<joint/>{GEOM}"), dtype=jnp.float32).dtype == jnp.float32


def test_bounds_change_only_what_lies_below_them():
    inertial = '<joint/><inertial pos="0 0 0" mass="1" diaginertia="1 2 2.5"/>'
    for bounds, mass, inertia in (
        ("", 1, (1, 2, 2.5)),
        ('boundmass="0.5" boundinertia="0.5"', 1, (1, 2, 2.5)),
        ('boundmass="3" boundinertia="2.2"', 3, (2.2, 2.2, 2.5)),
    ):
        model = host(body(inertial, f"<compiler {bounds}/>"))
        assert model.mass[0] == mass
        np.testing.assert_allclose(model.inertia[0], np.diag(inertia), atol=1e-15)


def test_balanced_inertia_may_violate_the_triangle_inequality_in_the_file():
    inertial = '<joint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 4"/>'
    model = host(body(inertial, '<compiler balanceinertia="true"/>'))
    np.testing.assert_allclose(model.inertia[0], 2 * np.eye(3), atol=1e-15)


def test_byte_order_mark_before_the_text_is_skipped(tmp_path):
    text = "\ufeff" + body(f"<joint/>{GEOM}")
    file = tmp_path / "robot.xml"
    file.write_text(text, encoding="utf-8")
    assert load_mjcf(text).names == load_mjcf(file).names == ("b",)


def test_settings_of_the_solver_are_skipped():
    options = (
        '<option timestep="0.01" integrator="RK4" solver="CG" iterations="5">'
        '<flag contact="disable" energy="enable"/></option>'
    )
    model = load_mjcf(body(f"<joint/>{GEOM}", options))
    plain = load_mjcf(body(f"<joint/>{GEOM}"))
    assert jax.tree.all(jax.tree.map(np.array_equal, model, plain))


def test_gravity_can_be_switched_off():
    flag = '<option><flag gravity="disable"/></option>'
    assert not host(body(f"<joint/>{GEOM}", flag)).gravity.any()


def test_joints_of_frames_have_names_of_their_own():
    fixed = f'<body name="c">{GEOM}</body><site name="s"/><site name="t"/>'
    text = body(f'<joint name="j_c"/><joint name="j_s" axis="1 0 0"/>{GEOM}{fixed}')
    merged, unmerged = load_mjcf(text), load_mjcf(text, merge_fixed=False)
    assert merged.topology.frame_joint_names == ("j_c_", "j_s_", "j_t")
    assert unmerged.joint_names == ("j_c", "j_s", "j_c_")


def test_inertia_from_geoms_keeps_the_inertial_of_a_body_without_them():
    inertial = '<inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/>'
    rule = '<compiler inertiafromgeom="true"/>'
    assert load_mjcf(body(f"<joint/>{inertial}", rule)).mass[0] == 2
    assert load_mjcf(body(f"<joint/>{inertial}{GEOM}", rule)).mass[0] != 2


def test_inertia_that_no_body_has_is_a_warning_or_an_error_on_request():
    edited = mujoco.MjModel.from_xml_string(body(f"<joint/>{GEOM}"))
    edited.body_inertia[1] = 1, 1, 3
    with pytest.warns(UserWarning, match="inertia b: kept .*triangle inequality"):
        model = from_mujoco_model(edited)
    np.testing.assert_allclose(model.inertia[0], np.diag([1, 1, 3]))
    with pytest.warns(UserWarning, match="inertia b: nearest possible one"):
        model = from_mujoco_model(edited, inertia="nearest")
    np.testing.assert_allclose(model.inertia[0], np.diag([1.5, 1.5, 3]), atol=1e-15)
    with pytest.raises(ValueError, match="'b': .*triangle inequality"):
        from_mujoco_model(edited, inertia="error")
    with pytest.raises(ValueError, match="inertia is 'some', expected one of"):
        from_mujoco_model(edited, inertia="some")


def test_names_that_are_made_up_differ_from_all_others():
    fixed = f'<body name="b_frame">{GEOM}</body><site name="b"/><site name="b_site"/>'
    text = body(
        f'<joint pos="0 0 1"/><joint pos="0 0 1" axis="1 0 0"/>{GEOM}{fixed}'
        f'<body name="b_1"><joint name="j_b"/>{GEOM}</body>'
    )
    model = load_mjcf(text)
    assert model.names == ("b_1_", "b", "b_1")
    assert model.joint_names == ("j_b_1_", "j_b_", "j_b")
    assert model.frame_names == ("b_frame", "b_frame_", "b_site", "b_site_site")


def test_only_a_compiled_model_is_translated(without_type_checker):
    with pytest.raises(ValueError, match="the model is a MjSpec, expected a mujoco.Mj"):
        from_mujoco_model(mujoco.MjSpec())


def test_missing_file_is_an_error():
    with pytest.raises(ValueError, match="nowhere.xml: cannot be read: No such file"):
        load_mjcf("nowhere.xml")


TOO_DEEP = "<body>" * 2000 + f"<joint/>{GEOM}" + "</body>" * 2000
TURNED = np.array([[1, 0.1, 0.2], [0.1, 1, 0.3], [0.2, 0.3, 9]])
IMPOSSIBLE = {
    'diaginertia="1 1 3" euler="0 90 0"': np.diag([3, 1, 1]),
    'diaginertia="1 1 -1"': np.diag([1, 1, -1]),
    'fullinertia="1 1 9 0.1 0.2 0.3"': TURNED,
}


@pytest.mark.parametrize("given", IMPOSSIBLE)
def test_inertia_that_mujoco_refuses_is_replaced_on_request(given):
    text = body(f'<joint axis="1 0 0"/><inertial pos="0 0 0.1" mass="1" {given}/>')
    with pytest.raises(ValueError, match="line 1.*correct the file"):
        load_mjcf(text)
    with pytest.warns(UserWarning, match="inertia b: nearest possible one: princip"):
        model = load_mjcf(text, inertia="nearest")
    nearest = Inertial(1.0, np.zeros(3), IMPOSSIBLE[given]).nearest()
    np.testing.assert_allclose(model.inertia[0], nearest.inertia, atol=1e-13)
    assert len(model.report) == 1


def test_inertia_that_mujoco_balances_is_not_replaced():
    text = body(INERTIAL, '<compiler balanceinertia="true"/>')
    model = load_mjcf(text, inertia="nearest")
    np.testing.assert_allclose(model.inertia[0], np.eye(3) * 5 / 3, atol=1e-15)


INERTIAL = '<joint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 3"/>'
ERRORS = {
    "malformed": ("\n\n<mujoco>\n<body></mujoco>", "MJCF text, line 4: .*MISMATCHED"),
    "malformed after a mark": ("\ufeff<mujoco>\n<a></mujoco>", "MJCF text, line 2"),
    "root": ("<!-- <mujoco/> -->\n<robot/>", "root element is <robot>, expected <muj"),
    "no element": ("< ", "root element is <None>, expected <mujoco>"),
    "no bodies": ("<mujoco/>", "'robot': nothing moves, expected a body with a joint"),
    "no joints": (body(GEOM), "nothing moves, .* with merge_fixed=False"),
    "unknown element": ("<mujoco>\n\n<tree/></mujoco>", "line 3: .*Element 'tree'"),
    "unknown class": (body('<joint class="k"/>'), "line 1: .*default class name 'k'"),
    "massless tip": (body("<joint/>"), "mass and inertia of moving bodies must be"),
    "inertia": (body(INERTIAL), "inertia must satisfy A . B .*'b'.* inertia='nearest'"),
    "deep": (body(TOO_DEEP), "MJCF text, line 1: .*nesting is too deep"),
    "surrogate": ("<mujoco \ud800/>", "MJCF text: "),
    "null": ("<mujoco>\0</mujoco>", "MJCF text"),
    "include": ('<mujoco><include file="nowhere.xml"/></mujoco>', "file 'nowhere.xml'"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_of_mujoco_is_one_that_names_source_and_line(name):
    text, message = ERRORS[name]
    with pytest.raises(ValueError, match=message):
        load_mjcf(text)


def test_an_error_in_a_file_names_the_file_and_the_line(tmp_path):
    file = tmp_path / "robot.xml"
    file.write_text("<mujoco>\n<worldbody>\n<jnt/></worldbody></mujoco>")
    with pytest.raises(ValueError, match="robot.xml, line 3: .*'jnt'.*: correct the f"):
        load_mjcf(file)


def test_mujoco_prints_and_logs_nothing(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    handler = mujoco.get_mju_user_warning()
    load_mjcf(body(f"<joint/>{GEOM}", '<compiler settotalmass="2"/>'))
    with pytest.raises(ValueError):
        load_mjcf(body("<joint/>"))
    assert capfd.readouterr() == ("", "")
    assert not list(tmp_path.iterdir())
    assert mujoco.get_mju_user_warning() is handler
