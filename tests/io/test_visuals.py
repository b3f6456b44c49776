"""What bodies look like, from URDF and MJCF."""

import pickle
from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.io import load_trajectory, save_trajectory
from jaxdyn.io.urdf._visuals import mesh_path

INERTIAL = (
    '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" '
    'iyz="0"/></inertial>'
)
RED = '<material name="red"><color rgba="1 0 0 0.5"/></material>'
ROBOT = f"""
<robot name="r">{RED}
  <link name="base">{INERTIAL}<visual name="foot"><geometry>
    <sphere radius="0.2"/></geometry>
    <material name="red"/></visual></link>
  <link name="arm">{INERTIAL}
    <visual><origin xyz="1 2 3" rpy="0.1 0.2 0.3"/><geometry><box size="1 2 3"/>
      </geometry><material name="blue"><color rgba="0 0 1 1"/></material></visual>
    <visual><geometry><cylinder radius="0.1" length="2"/></geometry></visual></link>
  <link name="tool"><visual><origin xyz="0 0 1" rpy="1 0 0"/>
    <geometry><mesh filename="FILE" scale="1 -2 3"/></geometry>
    <material name="blue"/></visual></link>
  <joint name="j" type="revolute"><parent link="base"/><child link="arm"/>
    <axis xyz="0 0 1"/><origin xyz="0 0 1"/></joint>
  <joint name="f" type="fixed"><parent link="arm"/><child link="tool"/>
    <origin xyz="0.5 0 0" rpy="0 0.7 0"/></joint>
</robot>"""


def written(folder, text=ROBOT):
    (folder / "tool.stl").write_text("solid\nendsolid\n")
    (folder / "robot.urdf").write_text(text.replace("FILE", "tool.stl"))
    return folder / "robot.urdf"


def test_urdf_shapes_colours_and_meshes_are_visuals(tmp_path):
    model = jd.load_urdf(written(tmp_path))
    seen = [(x.body, x.shape, x.size, x.color, x.name) for x in model.visuals]
    red, blue = (1, 0, 0, 0.5), (0, 0, 1, 1)
    assert seen == [
        (-1, "sphere", (0.2,), red, "foot"),
        (0, "box", (1, 2, 3), blue, ""),
        (0, "cylinder", (0.1, 2), None, ""),
        (0, "mesh", (1, -2, 3), blue, ""),
    ]
    assert model.visuals[3].mesh == str(tmp_path / "tool.stl")
    np.testing.assert_array_equal(model.visuals[1].p, [1, 2, 3])
    assert not model.report


@pytest.mark.parametrize("options", [{}, {"floating_base": True}])
def test_merged_links_hand_on_what_they_show(options, tmp_path):
    path = written(tmp_path)
    merged, apart = (
        jd.load_urdf(path, merge_fixed=x, **options) for x in (True, False)
    )
    places = [poses(model, jnp.zeros(model.nq)) for model in (merged, apart)]
    for a, b in zip(*places, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)
    assert [x.body for x in apart.visuals][-1] == apart.body("tool")


def poses(model, q):
    """Rotation and position of all visuals in the world."""
    at = jd.forward_kinematics(model, q)
    R = np.concatenate([at.R, np.eye(3)[None]])
    p = np.concatenate([at.p, np.zeros((1, 3))])
    return (
        np.stack([R[x.body] @ x.R for x in model.visuals]),
        np.stack([p[x.body] + R[x.body] @ x.p for x in model.visuals]),
    )


def test_one_number_scales_a_mesh_in_all_directions(tmp_path):
    text = ROBOT.replace('scale="1 -2 3"', 'scale="0.001"')
    assert jd.load_urdf(written(tmp_path, text)).visuals[3].size == (0.001,) * 3


def test_a_missing_mesh_is_noted_and_nothing_else(tmp_path):
    path = written(tmp_path)
    (tmp_path / "tool.stl").unlink()
    (note,) = jd.load_urdf(path, strict=True).report
    assert note.element == "link/visual/mesh" and note.place.endswith("tool.stl")
    assert "no such file" in note.became and not note.changes_motion


@pytest.mark.parametrize(
    "visual, reason",
    [
        ("<visual/>", "no <geometry>"),
        ("<visual><geometry/></visual>", "no shape, expected one of: box"),
        ('<visual><geometry><box size="1 2"/></geometry></visual>', "3 numbers"),
        ('<visual><geometry><sphere radius="-1"/></geometry></visual>', "negative"),
        ("<visual><geometry><torus/></geometry></visual>", "no shape"),
    ],
)
def test_what_cannot_be_drawn_is_noted(visual, reason):
    text = ROBOT.replace("FILE", "x.stl").replace('<link name="arm">', f"{{}}{visual}")
    model = jd.load_urdf(text.format('<link name="arm">'), strict=True)
    assert len(model.visuals) == 4
    (wrong,) = [x for x in model.report if x.element == "link/visual"]
    assert wrong.place == "arm" and reason in wrong.became
    assert not model.report.changing_motion


def test_meshes_of_packages_are_found_without_ros(tmp_path, monkeypatch):
    folder = tmp_path / "share" / "my_robot" / "urdf"
    other = tmp_path / "other" / "their_robot"
    for place in (folder.parent / "meshes", other, tmp_path / "a b"):
        place.mkdir(parents=True)
        (place / "x.stl").touch()
    inside = folder.parent / "meshes" / "x.stl"
    assert mesh_path("package://my_robot/meshes/x.stl", folder) == inside
    assert mesh_path("model://my_robot/meshes/x.stl", folder) == inside
    assert mesh_path("../meshes/x.stl", folder) == folder / "../meshes/x.stl"
    assert mesh_path(f"file://{tmp_path}/a%20b/x.stl", folder).is_file()
    assert mesh_path("package://my_robot-1.0/meshes/x.stl", folder) == inside
    assert not mesh_path("package://", folder).is_file()
    name = "package://their_robot/x.stl"
    assert not mesh_path(name, folder).is_file()
    for listed in (tmp_path / "other", other):
        monkeypatch.setenv("ROS_PACKAGE_PATH", f"/nowhere:{listed}")
        assert mesh_path(name, folder) == other / "x.stl"


MJCF = """
<mujoco><asset>
    <mesh name="m" vertex="0 0 0  1 0 0  0 2 0  0 0 3" scale="1 2 1"/>
    <material name="p" rgba="0 1 0 1"/></asset>
  <worldbody><geom name="floor" type="plane" size="0 0 1"/>
    <body pos="0 0 1" euler="10 20 30"><joint type="slide" axis="1 2 0" ref="0.3"/>
      <joint pos="0.1 0.2 0.3" axis="0 1 1" ref="20"/>
      <geom name="b" type="box" size="1 2 3" pos="0.1 0 0" euler="30 0 0"/>
      <geom name="s" size="0.1" rgba="1 0 0 0.5"/><geom size="1" group="3"/>
      <geom type="capsule" fromto="0 0 0 1 1 1" size="0.1" material="p"/>
      <body pos="1 0 0" euler="0 40 0">
        <geom name="m" type="mesh" mesh="m" pos="1 0 0" euler="1 2 3"/>
        <body><freejoint/></body></body></body>
    <body><freejoint/><geom type="cylinder" size="0.1 0.4" pos="1 0 0"/>
      <body pos="0 0 1"><joint type="ball" pos="0 0.1 0"/>
        <geom type="ellipsoid" size="1 2 3" euler="1 2 3" rgba="1 1 1 0"/>
        <geom type="ellipsoid" size="1 2 3" euler="1 2 3"/></body></body>
  </worldbody></mujoco>""".replace("<body><freejoint/></body>", "")


@pytest.mark.parametrize("merge_fixed", [True, False])
def test_visuals_are_where_mujoco_has_its_geoms(merge_fixed):
    m = mujoco.MjModel.from_xml_string(MJCF)
    model = jd.load_mjcf(MJCF, merge_fixed=merge_fixed)
    data = mujoco.MjData(m)
    q = jd.random_configuration(model, jax.random.key(3))
    data.qpos, _ = jd.to_mujoco(model, q, jnp.zeros(model.nv))
    mujoco.mj_forward(m, data)
    shown = (m.geom_group < 3) & (m.geom_rgba[:, 3] > 0)
    R, p = poses(model, q)
    np.testing.assert_allclose(p, data.geom_xpos[shown], atol=1e-12)
    np.testing.assert_allclose(R.reshape(-1, 9), data.geom_xmat[shown], atol=1e-12)


def test_geoms_keep_sizes_colours_and_triangles():
    model = jd.load_mjcf(MJCF)
    m = mujoco.MjModel.from_xml_string(MJCF)
    by_shape = {x.shape: x for x in model.visuals}
    assert by_shape["box"].size == (2, 4, 6) and by_shape["box"].name == "b"
    assert by_shape["cylinder"].size == (0.1, 0.8)
    assert by_shape["ellipsoid"].size == (1, 2, 3)
    assert by_shape["sphere"].color == (1, 0, 0, 0.5)
    assert by_shape["capsule"].color == (0, 1, 0, 1)
    assert by_shape["plane"].body == -1 and by_shape["plane"].size == (0, 0)
    mesh = by_shape["mesh"].mesh
    np.testing.assert_array_equal(mesh.vertices, m.mesh_vert)
    np.testing.assert_array_equal(mesh.faces, m.mesh_face)


def test_a_texture_becomes_its_mean_colour():
    texture = (
        '<texture name="t" type="2d" builtin="checker" width="8" height="8" '
        'rgb1="1 0 0" rgb2="0 0 1"/><material name="p" texture="t" rgba="1 1 1 1"/>'
    )
    text = MJCF.replace('<material name="p" rgba="0 1 0 1"/>', texture)
    colors = {x.shape: x.color for x in jd.load_mjcf(text).visuals}
    np.testing.assert_allclose(colors["capsule"], (0.5, 0, 0.5, 1), atol=0.01)


def test_placeholders_of_missing_files_are_not_seen():
    text = MJCF.replace('vertex="0 0 0  1 0 0  0 2 0  0 0 3"', 'file="no.stl"')
    text = text.replace('mesh="m" pos', 'mesh="m" mass="0" pos')
    with pytest.warns(UserWarning, match="1 missing"):
        model = jd.load_mjcf(text)
    assert "mesh" not in [x.shape for x in model.visuals]


def arm(**shape):
    b = jd.ModelBuilder("arm")
    b.add_body("a", inertial=jd.Inertial.box(1.0, (1, 1, 1)))
    b.add_visual("a", jd.Visual("sphere", (1.0,), **shape))
    return b.build()


def test_visuals_stay_with_the_model_and_are_no_part_of_the_key():
    model = arm()
    plain = jd.ModelBuilder("arm")
    plain.add_body("a", inertial=jd.Inertial.box(1.0, (1, 1, 1)))
    plain = plain.build()
    others = (replace(model, gravity=jnp.ones(3)), jax.jit(lambda x: x)(model))
    assert all(other.visuals is model.visuals for other in others)
    (again,) = pickle.loads(pickle.dumps(model)).visuals
    assert again.shape == "sphere" and again.body == 0
    assert jax.tree.structure(model) == jax.tree.structure(plain)
    assert repr(model.topology) == repr(plain.topology)
    traces = []
    function = jax.jit(lambda m: traces.append(m) or m.mass)
    function(model), function(plain)
    assert len(traces) == 1


def test_visuals_that_traced_code_reads_are_those_of_its_model():
    models = arm(color=(1.0, 0.0, 0.0, 1.0)), arm(color=(0.0, 1.0, 0.0, 1.0))
    red = jax.jit(lambda m: jnp.array(m.visuals[0].color[0]))
    assert [float(red(m)) for m in models] == [1.0, 0.0]


def test_results_keep_what_their_model_shows(tmp_path):
    model = jd.load_mjcf(MJCF)
    q = jd.neutral(model)[None]
    qd, ts = jnp.zeros((1, model.nv)), jnp.zeros(1)
    save_trajectory(tmp_path, model, SimpleNamespace(ts=ts, q=q, qd=qd))
    again, arrays = load_trajectory(tmp_path)
    assert set(arrays) == {"ts", "q", "qd"}
    for a, b in zip(model.visuals, again.visuals, strict=True):
        assert (a.shape, a.size, a.color, a.body) == (b.shape, b.size, b.color, b.body)
        np.testing.assert_array_equal(a.R, b.R)
        np.testing.assert_array_equal(a.p, b.p)
    a, b = ([x.mesh for x in m.visuals if x.mesh] for m in (model, again))
    np.testing.assert_array_equal(a[0].faces, b[0].faces)


@pytest.mark.parametrize(
    "old, new, message",
    [
        ('"body": 1', '"body": 9', "a visual is on body 9"),
        ('"shape": "box"', '"shape": "ball"', "shape 'ball' is not known"),
        ('"name"', '"nam"', "unexpected keyword"),
        ('"mesh": 0', '"mesh": 5', "visuals_5_vertices"),
    ],
)
def test_damaged_visuals_of_results_are_reported(old, new, message, tmp_path):
    model = jd.load_mjcf(MJCF)
    q, qd = jd.neutral(model)[None], jnp.zeros((1, model.nv))
    file = save_trajectory(tmp_path, model, SimpleNamespace(ts=qd[:, 0], q=q, qd=qd))
    arrays = dict(np.load(file))
    arrays["visuals"] = np.array(arrays["visuals"].item().replace(old, new))
    np.savez(file, **arrays)
    with pytest.raises(ValueError, match=f"does not hold a model: .*{message}"):
        load_trajectory(tmp_path)


@pytest.mark.parametrize(
    "given, message",
    [
        (("ball", (1.0,)), "shape 'ball' is not known, expected one of: box"),
        (("box", (1.0,)), r"size is \(1.0,\), expected 3 numbers"),
        (("box", (1.0, 1.0, -1.0)), "expected no negative lengths"),
        (("mesh", (1.0, 1.0, 1.0)), "give a mesh for the shape 'mesh'"),
        (("sphere", (1.0,), 2 * np.eye(3)), "is not a rotation"),
        (("sphere", (1.0,), np.eye(3), np.zeros(3), (1.0, 1.0)), "expected 4 numbers"),
    ],
)
def test_wrong_visuals_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        jd.Visual(*given)


def test_a_visual_needs_a_body():
    with pytest.raises(ValueError, match="visual 'x' refers to body 'b'"):
        b = jd.ModelBuilder()
        b.add_visual("b", jd.Visual("sphere", (1.0,), name="x"))
