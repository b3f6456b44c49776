"""Models from MJCF, against values of MuJoCo and against the texts themselves."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.io import from_mujoco, load_mjcf

DATA = Path(__file__).parents[1] / "data" / "mjcf_cases.json"
CASES = {case["name"]: case for case in json.loads(DATA.read_text())["cases"]}
MODELS = {}
to_state = jax.jit(from_mujoco)
GEOM = '<geom size="0.1"/>'


def host(text, **options):
    """A loaded model whose leaves are NumPy arrays."""
    return jax.tree.map(np.asarray, load_mjcf(text, **options))


@pytest.fixture(params=CASES)
def case(request):
    """A reference case: its model, and its states as arrays with the model's q."""
    name = request.param
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


def test_what_is_ignored_leaves_no_trace():
    plain = body(f'<joint name="j"/>{GEOM}')
    extra = body(
        f'<joint name="j" springdamper="1 1"/>{GEOM}<composite/>',
        "<custom_section/>",
        '<equality><joint joint1="j"/></equality><actuator><position joint="j"/>'
        "</actuator>",
    ).replace('name="b"', 'name="b" gravcomp="1"')
    ignore = "equality position composite custom_section gravcomp springdamper".split()
    model = load_mjcf(extra, ignore=ignore)
    assert jax.tree.all(jax.tree.map(np.array_equal, model, load_mjcf(plain)))


def test_one_name_may_be_ignored_without_a_tuple():
    text = body(f"<joint/>{GEOM}", after="<tendon><fixed/></tendon>")
    assert load_mjcf(text, ignore="tendon").nv == 1


def test_dtype_of_the_leaves_can_be_chosen():
    assert load_mjcf(body(f"<joint/>{GEOM}"), dtype=jnp.float32).dtype == jnp.float32


def test_inertia_that_no_body_has_is_a_warning_or_an_error_on_request():
    inertial = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 3"/>'
    with pytest.warns(UserWarning, match="'b': .*triangle inequality"):
        load_mjcf(body(f"<joint/>{inertial}"))
    with pytest.raises(ValueError, match="'b': .*triangle inequality"):
        load_mjcf(body(f"<joint/>{inertial}"), check_inertia=True)
    fixed = body(f'<joint/>{GEOM}<body name="c">{inertial}</body>')
    with pytest.warns(UserWarning, match="body 'c': principal inertias 1, 1, 3 viol"):
        assert load_mjcf(fixed).n == 1
    assert load_mjcf(body(f"<joint/>{inertial}"), check_inertia=False).n == 1


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


def test_childclass_of_the_world_is_for_all_bodies():
    default = '<default><default class="k"><joint damping="3"/></default></default>'
    text = body(f"<joint/>{GEOM}", default)
    model = host(text.replace("<worldbody>", '<worldbody childclass="k">'))
    assert model.damping[0] == 3


def test_joints_of_frames_have_names_of_their_own():
    fixed = f'<body name="c">{GEOM}</body><site name="s"/><site name="t"/>'
    text = body(f'<joint name="j_c"/><joint name="j_s" axis="1 0 0"/>{GEOM}{fixed}')
    merged, unmerged = load_mjcf(text), load_mjcf(text, merge_fixed=False)
    assert merged.topology.frame_joint_names == ("j_c_", "j_s_", "j_t")
    assert unmerged.joint_names == ("j_c", "j_s", "j_c_")


def test_plugin_of_a_geom_is_skipped_where_its_mass_is_not_needed():
    inertial = '<inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/>'
    shape = '<geom type="sdf" mesh="m"><plugin instance="p"/></geom>'
    assert load_mjcf(body(f"<joint/>{inertial}{shape}")).mass[0] == 2


def test_massless_body_may_carry_a_heavy_one():
    model = load_mjcf(body(f"<joint/><body><joint axis='1 0 0'/>{GEOM}</body>"))
    assert model.mass[0] == 0


def test_inertia_from_geoms_keeps_the_inertial_of_a_body_without_them():
    inertial = '<inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/>'
    rule = '<compiler inertiafromgeom="true"/>'
    assert load_mjcf(body(f"<joint/>{inertial}", rule)).mass[0] == 2
    assert load_mjcf(body(f"<joint/>{inertial}{GEOM}", rule)).mass[0] != 2


def test_mesh_is_accepted_where_its_mass_is_not_needed():
    inertial = '<inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/>'
    mesh = '<geom type="mesh" mesh="m"/>'
    assert load_mjcf(body(f"<joint/>{inertial}{mesh}")).mass[0] == 2


def test_deep_nesting_is_read():
    n = 1500  # more than Python's limit of nested calls
    text = "<body>" * n + f"<joint/>{GEOM}" + "</body>" * n
    model = load_mjcf(f"<mujoco><worldbody>{text}</worldbody></mujoco>")
    assert model.names == (f"body_{n}",)
    classes = "".join(f'<default class="c{i}"><joint damping="{i}"/>' for i in range(n))
    frames = '<frame pos="1 0 0">' * n + f"<body><joint/>{GEOM}</body>" + "</frame>" * n
    model = load_mjcf(
        f"<mujoco><default>{classes}{'</default>' * n}</default>"
        f'<worldbody childclass="c9">{frames}</worldbody></mujoco>'
    )
    assert model.damping.item() == 9 and model.p[0, 0] == n


def test_missing_file_is_an_error():
    with pytest.raises(ValueError, match="nowhere.xml: cannot be read: No such file"):
        load_mjcf("nowhere.xml")


def test_included_file_that_is_missing_is_an_error(tmp_path):
    file = tmp_path / "robot.xml"
    file.write_text('<mujoco><include file="nowhere.xml"/></mujoco>')
    with pytest.raises(ValueError, match="nowhere.xml: cannot be read: No such file"):
        load_mjcf(file)


def test_file_included_twice_is_an_error(tmp_path):
    file = tmp_path / "robot.xml"
    file.write_text('<mujoco><include file="robot.xml"/></mujoco>')
    with pytest.raises(ValueError, match="<include file='robot.xml'>.*twice"):
        load_mjcf(file)


def test_included_file_with_another_root_is_an_error(tmp_path):
    (tmp_path / "part.xml").write_text("<robot/>")
    file = tmp_path / "robot.xml"
    file.write_text('<mujoco><include file="part.xml"/></mujoco>')
    with pytest.raises(ValueError, match="part.xml: the root element is <robot>"):
        load_mjcf(file)


def test_malformed_file_is_named_with_its_line(tmp_path):
    file = tmp_path / "robot.xml"
    file.write_text("<mujoco>\n<worldbody>\n</mujoco>")
    with pytest.raises(ValueError, match="robot.xml, line 3: mismatched tag"):
        load_mjcf(file)


INERTIAL = '<inertial pos="0 0 0" mass="1" {}/>'
DIAGONAL = 'diaginertia="1 1 1"'
NESTED = '<default class="k"/>'
ERRORS = {
    "malformed": ("\n\n<mujoco>\n<body></mujoco>", "MJCF text, line 4: mismatched"),
    "malformed after a mark": ("\ufeff<mujoco>\n<a></mujoco>", "MJCF text, line 2"),
    "root": ("<robot/>", "root element is <robot>, expected <mujoco>"),
    "include in text": (
        '<mujoco><include file="a"/></mujoco>',
        "'a'> stands in a text",
    ),
    "include without file": ("<mujoco><include/></mujoco>", "no attribute 'file'"),
    "no bodies": ("<mujoco/>", "has no bodies"),
    "unknown section": ("<mujoco><tree/></mujoco>", "<tree> in <mujoco>.*'tree',"),
    "equality": (
        body("", after='<equality><tendon name="w"/></equality>'),
        r"<tendon name='w'> in <equality>.*connect or weld.*ignore=\('tendon',\)",
    ),
    "tendon": (body("", after="<tendon><fixed/></tendon>"), "<fixed> in <tendon>"),
    "flex": (body("", after="<deformable><flex/></deformable>"), "<flex> in"),
    "extension": (body("", after="<extension><plugin/></extension>"), "<plugin> in"),
    "position": (
        body("", after='<actuator><position name="p"/></actuator>'),
        "<position name='p'> in <actuator>.*expected a motor",
    ),
    "general": (
        body("", after='<actuator><general biastype="affine"/></actuator>'),
        "<general> in <actuator> .*without bias: .*'general',",
    ),
    "general by default": (
        body(
            "",
            '<default><default class="k"><position kp="1"/></default></default>',
            '<actuator><general class="k"/></actuator>',
        ),
        "<general> in <actuator> .*without bias",
    ),
    "motor with armature": (
        body(
            "",
            '<default><motor armature="1"/></default>',
            "<actuator><motor/></actuator>",
        ),
        "<motor> in <actuator>: armature='1'",
    ),
    "motor of a missing joint": (
        body('<joint name="j"/>', after='<actuator><motor joint="k"/></actuator>'),
        "<motor> in <actuator>: joint is 'k', expected one of: j.",
    ),
    "motor of a missing site": (
        body("", after='<actuator><general site="s" name="m"/></actuator>'),
        "<general name='m'> in <actuator>: site is 's', expected one of: none.",
    ),
    "motor of a missing joint by default": (
        body(
            "",
            '<default><motor joint="k"/></default>',
            "<actuator><motor/></actuator>",
        ),
        "<motor> in <actuator>: joint is 'k', expected one of: none",
    ),
    "composite": (body('<composite name="c"/>'), "<composite name='c'> in body 'b'"),
    "replicate": (body("<replicate/>"), r"<replicate> in .*ignore=\('replicate',\)"),
    "plugin": (body("<plugin/>"), "<plugin> in body 'b' is not supported"),
    "gravcomp": (
        '<mujoco><worldbody><body name="b" gravcomp="1"/></worldbody></mujoco>',
        r"<body name='b'> .*gravcomp='1'.*ignore=\('gravcomp',\)",
    ),
    "mocap": (
        '<mujoco><worldbody><body mocap="true"/></worldbody></mujoco>',
        "mocap='true'",
    ),
    "springdamper": (
        body('<joint springdamper="1 1"/>'),
        "<joint> in body 'b': springdamper",
    ),
    "shell": (body(f'<joint/>{GEOM[:-2]} shellinertia="true"/>'), "<geom> in.*shell"),
    "aligned free joint": (body('<freejoint align="true"/>'), "<freejoint> .*align"),
    "global coordinates": (
        body("", '<compiler coordinate="global"/>'),
        "<compiler>: coordinate='global'",
    ),
    "fluid": (body("", '<option density="1.2"/>'), "<option>: density='1.2'"),
    "wind": (body("", '<option wind="1 0 0"/>'), "<option>: wind='1 0 0'"),
    "flag": (
        body("", '<option><flag spring="disable"/></option>'),
        "<flag>: spring='disable'",
    ),
    "mesh": (
        body('<joint/><geom name="g" type="mesh" mesh="m"/>'),
        "<geom name='g'> in body 'b': .*give the body an <inertial>",
    ),
    "fitted mesh": (
        body('<joint/><geom type="capsule" mesh="m"/>'),
        "the mass of a mesh is not computed",
    ),
    "geom without size": (body("<joint/><geom/>"), "'size' is missing"),
    "short size": (
        body('<joint/><geom type="box" size="1 2"/>'),
        "size is '1 2', expected 3 positive numbers for a box",
    ),
    "negative size": (body('<joint/><geom size="-1"/>'), "1 positive number for a sph"),
    "negative density": (body('<joint/><geom size="1" density="-1"/>'), "is negative"),
    "sphere between points": (
        body('<joint/><geom size="1" fromto="0 0 0 1 1 1"/>'),
        "fromto is given, expected a capsule",
    ),
    "points and position": (
        body('<joint/><geom type="box" size="1" pos="1 0 0" fromto="0 0 0 1 1 1"/>'),
        "fromto and pos are both given",
    ),
    "points and orientation": (
        body('<joint/><geom type="box" size="1" quat="1 0 0 0" fromto="0 0 0 1 1 1"/>'),
        "fromto and quat are both given",
    ),
    "geom type": (
        body('<joint/><geom type="cone"/>'),
        "type is 'cone', expected one of",
    ),
    "massless tip": (
        body("<joint/>"),
        "<body name='b'> moves, .*give it an <inertial>",
    ),
    "no inertia from geoms": (
        body(f"<joint/>{GEOM}", '<compiler inertiafromgeom="false"/>'),
        "<body name='b'> moves",
    ),
    "bound of no mass": (
        body("", '<compiler boundmass="1"/>'),
        "<body name='b'> .*boundmass gives a mass .*give it an <inertial>",
    ),
    "two inertials": (
        body("<joint/>" + 2 * INERTIAL.format(DIAGONAL)),
        "<inertial> in body 'b': the body has two",
    ),
    "inertial without mass": (
        body('<joint/><inertial pos="0 0 0"/>'),
        "'mass' is missing",
    ),
    "negative mass": (
        body('<joint/><inertial pos="0 0 0" mass="-1" diaginertia="1 1 1"/>'),
        "body 'b': mass is -1.0, expected zero or more",
    ),
    "negative mass under a bound": (
        body(
            '<joint/><inertial pos="0 0 0" mass="-1" diaginertia="1 1 1"/>',
            '<compiler boundmass="1"/>',
        ),
        "body 'b': mass is -1.0",
    ),
    "negative inertia": (
        body("<joint/>" + INERTIAL.format('diaginertia="1 1 -1"')),
        "body 'b': inertia has the negative principal value -1",
    ),
    "negative mass of a fixed body": (
        body(
            f"<joint/>{GEOM}"
            '<body><inertial pos="0 0 0" mass="-1" diaginertia="1 1 1"/></body>'
        ),
        "body 'body_2': mass is -1.0",
    ),
    "full and diagonal": (
        body("<joint/>" + INERTIAL.format(DIAGONAL + ' fullinertia="1 1 1 0 0 0"')),
        "fullinertia stands together",
    ),
    "inertial of the world": (
        f"<mujoco><worldbody>{INERTIAL.format('')}</worldbody></mujoco>",
        "<inertial> in body 'world': the world neither moves",
    ),
    "joint of the world": (
        "<mujoco><worldbody><joint/></worldbody></mujoco>",
        "<joint> in body 'world'",
    ),
    "same body name": (
        body(f'<joint/>{GEOM}<body name="b"/>'),
        "<body name='b'>: another body",
    ),
    "body named world": (body('<body name="world"/>'), "<body name='world'>: another"),
    "same joint name": (
        body(f'<joint name="j"/><joint name="j"/>{GEOM}'),
        "<joint name='j'>: another joint",
    ),
    "same site name": (body('<site name="s"/><site name="s"/>'), "<site name='s'>"),
    "joint type": (body('<joint type="screw"/>'), "type is 'screw', expected one of"),
    "zero axis": (
        body(f'<joint name="j" axis="0 0 0"/>{GEOM}'),
        "<joint name='j'> .*axis is '0 0 0', expected a direction",
    ),
    "nested free joint": (
        body(f'<joint/>{GEOM}<body name="c"><freejoint/>{GEOM}</body>'),
        "<body name='c'> .*a free joint stands .*child of worldbody",
    ),
    "free joint and another": (body(f"<freejoint/><joint/>{GEOM}"), "beside another"),
    "spring of a free joint": (
        body(f'<joint type="free" stiffness="1"/>{GEOM}'),
        "stiffness and frictionloss of a free joint",
    ),
    "range without limited": (
        body(f'<joint range="0 1"/>{GEOM}', '<compiler autolimits="false"/>'),
        "range is given without limited",
    ),
    "limited without range": (
        body(f'<joint limited="true"/>{GEOM}'),
        "range is .*expected a lower and a higher number",
    ),
    "limited": (body(f'<joint limited="yes"/>{GEOM}'), "limited is 'yes', expected"),
    "unknown attribute": (
        body('<joint dampng="1"/>'),
        "<joint> in body 'b': 'dampng' is not an attribute",
    ),
    "unknown option": (
        body("", '<option gravty="0 0 0"/>'),
        "<option>: 'gravty' is not an attribute",
    ),
    "unknown flag": (
        body("", '<option><flag gravit="disable"/></option>'),
        "<flag>: 'gravit' is not an attribute",
    ),
    "child of option": (
        body("", '<option><Flag gravity="disable"/></option>'),
        "<Flag> in <option> is not supported, expected <flag>: remove it",
    ),
    "child of flag": (body("", "<option><flag><a/></flag></option>"), "<a> in <flag>"),
    "child of compiler": (body("", "<compiler><a/></compiler>"), "<a> in <compiler>"),
    "attribute of worldbody": (
        '<mujoco><worldbody pos="0 0 1"/></mujoco>',
        "<worldbody>: 'pos' is not an attribute",
    ),
    "unknown childclass of worldbody": (
        '<mujoco><worldbody childclass="k"/></mujoco>',
        "<worldbody> .* uses the default class 'k'",
    ),
    "child of joint": (
        body('<joint name="j"><foo/></joint>'),
        "<foo> in <joint name='j'> in body 'b' is not supported, expected no child",
    ),
    "child of freejoint": (body("<freejoint><foo/></freejoint>"), "<foo> in <freej"),
    "child of geom": (
        body("<geom><foo/></geom>"),
        "<foo> in <geom> in body 'b' is not supported, expected <plugin>",
    ),
    "child of inertial": (body("<inertial><foo/></inertial>"), "<foo> in <inertial>"),
    "child of site": (body("<frame><site><foo/></site></frame>"), "<foo> in <site>"),
    "child of a default": (
        body("", "<default><joint><foo/></joint></default>"),
        "<foo> in <joint> in default class 'main' is not supported",
    ),
    "number count": (body('<joint pos="1 2"/>'), "pos is '1 2', expected 3 numbers"),
    "one number": (body('<joint damping="1 2"/>'), "'1 2', expected 1 number"),
    "no number": (body('<joint pos="1 2 x"/>'), "pos is '1 2 x', expected 3 numbers"),
    "infinite number": (body('<joint pos="1 2 inf"/>'), "expected 3 numbers"),
    "two orientations": (
        body('<joint/><geom size="1" quat="1 0 0 0" euler="0 0 0"/>'),
        "quat and euler are both given",
    ),
    "zero quaternion": (body('<geom size="1" quat="0 0 0 0"/>'), "not zero"),
    "parallel axes": (body('<geom size="1" xyaxes="1 0 0 2 0 0"/>'), "xyaxes is .*"),
    "eulerseq": (body("", '<compiler eulerseq="xyw"/>'), "eulerseq is 'xyw'"),
    "angle": (body("", '<compiler angle="grad"/>'), "angle is 'grad', expected one of"),
    "unknown class": (
        body('<joint class="k"/>'),
        "<joint> in body 'b' uses the default class 'k', expected one of: main",
    ),
    "unknown childclass": (
        body('<frame childclass="k"/>'),
        "<frame> in body 'b' uses the default class 'k'",
    ),
    "renamed main class": (
        body("", '<default class="k"/>'),
        "has class 'k', expected 'main'",
    ),
    "class without name": (
        body("", "<default><default/></default>"),
        "inside another has no class",
    ),
    "class twice": (
        body("", f"<default>{2 * NESTED}</default>"),
        "two <default> have the class 'k'",
    ),
    "unknown default": (
        body("", "<default><wheel/></default>"),
        "<wheel> in default class 'main' is not supported",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_error_names_the_element_and_what_was_expected(name):
    text, message = ERRORS[name]
    with pytest.raises(ValueError, match=message):
        load_mjcf(text)
