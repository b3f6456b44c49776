"""Models of `load_mjcf` beside MuJoCo itself, which runs in the same process."""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxdyn as jd

GEOM = '<geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0.2" euler="10 20 30"/>'
CHAIN = f"""
<mujoco><compiler angle="radian"/><worldbody><body name="a" pos="0 0 1" euler="1 2 3">
  <joint name="x" type="slide" axis="1 2 0" ref="0.3" springref="0.2" stiffness="20"/>
  <joint name="y" pos="0.1 0.2 0.3" axis="0 1 1" ref="-0.4" damping="0.7"/>{GEOM}
  <body pos="0.3 0 0"><joint pos="0 0 0.1" armature="0.2" stiffness="3"/>{GEOM}
    <site name="tip" pos="0 0 1" euler="0.1 0.2 0.3"/>
    <body name="flange" pos="0.1 0 0" euler="1 0 0">{GEOM}</body></body>
</body></worldbody></mujoco>"""
BALLS = f"""
<mujoco><worldbody>
  <body name="raft"><joint type="free" stiffness="5" damping="0.3"/>{GEOM}
    <body name="mast" pos="0 0 1"><joint type="ball" pos="0 0.1 0" stiffness="2"
      damping="0.1" armature="0.1"/>{GEOM}</body></body>
  <body name="stone" pos="1 0 0"><freejoint/>{GEOM}</body>
</worldbody></mujoco>"""
DEFAULTS = f"""
<mujoco><option gravity="1 2 -3"/>
  <default><joint damping="1" axis="0 1 0"/>
    <default class="k"><joint damping="2"/><geom density="500"/></default></default>
  <worldbody><frame pos="1 0 0" euler="0 0 90" childclass="k">
    <replicate count="3" offset="0 0 1" euler="0 0 20">
      <body name="r"><joint/>{GEOM}<site name="s" pos="1 0 0"/></body></replicate>
  </frame><body pos="0 1 0"><joint springdamper="0.1 1"/>{GEOM}</body></worldbody>
</mujoco>"""
FLOATING = f"""
<mujoco><worldbody>
  <body name="a" gravcomp="0.5"><joint axis="0 1 0"/>{GEOM}
    <body name="b" pos="0.3 0 0" gravcomp="1">
      <joint name="j" axis="1 0 0" actuatorgravcomp="true"/>{GEOM}
      <body name="c" pos="0 0 0.2" gravcomp="2">{GEOM}</body></body></body>
  <body name="still" gravcomp="1">{GEOM}</body>
</worldbody><actuator><motor joint="j"/></actuator></mujoco>"""
MOTOR = f"""
<mujoco><worldbody>
  <body><joint name="j" axis="0 1 0" armature="0.1"/>{GEOM}</body></worldbody>
  <actuator><motor joint="j" gear="3" armature="0.2" damping="0.5"/></actuator>
</mujoco>"""
SWITCHES = {"spring": BALLS, "damper": CHAIN, "gravity": FLOATING}
TEXTS = {
    **{"chain": CHAIN, "balls": BALLS, "defaults": DEFAULTS, "floating": FLOATING},
    **{
        f"without {flag}": text.replace(
            "<worldbody>", f'<option><flag {flag}="disable"/></option><worldbody>'
        )
        for flag, text in SWITCHES.items()
    },
    "passive": FLOATING.replace(
        "<worldbody>",
        '<option><flag spring="disable" damper="disable"/></option><worldbody>',
    ),
}
if hasattr(mujoco.MjModel, "actuator_armature"):  # of recent releases
    TEXTS["motor"] = MOTOR


def write_tetrahedron(path):
    """A binary STL file."""
    corners = np.array([[0, 0, 0], [0.4, 0, 0], [0, 0.3, 0], [0.1, 0, 0.5]], "<f4")
    faces = ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))
    rows = b"".join(
        np.append(np.zeros(3, "<f4"), corners[list(face)]).astype("<f4").tobytes()
        + b"\0\0"
        for face in faces
    )
    path.write_bytes(b"\0" * 80 + np.uint32(4).tobytes() + rows)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A robot of several files: it includes one, attaches another and has a mesh."""
    path = tmp_path_factory.mktemp("robot")
    write_tetrahedron(path / "shape.stl")
    hand = f'<body name="palm"><joint name="w" axis="1 0 0"/>{GEOM}</body>'
    (path / "hand.xml").write_text(
        f'<mujoco model="hand"><worldbody>{hand}</worldbody></mujoco>'
    )
    (path / "parts.xml").write_text(
        '<mujocoinclude><asset><mesh name="m" file="shape.stl" scale="1 2 1"/>'
        '<model name="h" file="hand.xml"/></asset></mujocoinclude>'
    )
    (path / "robot.xml").write_text("""
    <mujoco><include file="parts.xml"/><worldbody><body name="arm">
      <joint axis="0 1 0"/><geom type="mesh" mesh="m" euler="10 0 0"/>
      <frame pos="0 0 0.5"><attach model="h" body="palm" prefix="left_"/></frame>
      <frame pos="0 1 0.5"><attach model="h" body="palm" prefix="right_"/></frame>
    </body></worldbody></mujoco>""")
    return path


@pytest.fixture(params=[*TEXTS, "files"])
def pair(request, folder):
    return models(request.param, folder)


@cache
def models(name, folder):
    """MuJoCo's model and ours."""
    if name == "files":
        path = folder / "robot.xml"
        return mujoco.MjModel.from_xml_path(str(path)), jd.load_mjcf(path)
    text = TEXTS[name]
    return mujoco.MjModel.from_xml_string(text), jd.load_mjcf(text)


def mass_matrix(mj_model, data):
    M = np.zeros((mj_model.nv, mj_model.nv))
    try:
        mujoco.mj_fullM(mj_model, data, M)
    except TypeError:  # MuJoCo 3
        mujoco.mj_fullM(mj_model, M, data.qM)
    return M


def state_of(mj_model, model, rng):
    """A random state of MuJoCo, ours, and the matrix T with qvel = T qd."""
    data = mujoco.MjData(mj_model)
    mujoco.mj_integratePos(mj_model, data.qpos, rng.normal(size=mj_model.nv), 1.0)
    data.qvel[:] = rng.normal(size=mj_model.nv)
    mujoco.mj_forward(mj_model, data)
    qpos, qvel = jnp.array(data.qpos), jnp.array(data.qvel)
    q, qd = jd.from_mujoco(model, qpos, qvel)
    rates = jax.vmap(lambda v: jd.from_mujoco(model, qpos, v)[1])(jnp.eye(model.nv))
    return data, q, qd, np.asarray(rates)


def world_acceleration(model, qd, qdd, T):
    """MuJoCo's qacc, whose linear part for a free joint is in fixed axes."""
    acc = np.array(qdd)
    for k in model.topology.position_v:
        acc[k] += np.cross(qd[k + 3], qd[k])
    return T @ acc


def assert_close(ours, theirs):
    theirs = np.asarray(theirs)
    scale = max(np.abs(theirs).max(initial=0), 1e-3)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12 * scale)


def body_pose(model, poses, frames, name):
    for found in (f"{name}_frame", name):
        if found in model.frame_names:
            k = model.frame_names.index(found)
            return frames.R[k], frames.p[k]
    k = model.body(name)
    return poses.R[k], poses.p[k]


@pytest.mark.reference
def test_poses_of_bodies_and_sites_are_those_of_mujoco(pair, rng):
    mj_model, model = pair
    data, q, *_ = state_of(mj_model, model, rng)
    poses, frames = jd.forward_kinematics(model, q), jd.frame_poses(model, q)
    for i in range(1, mj_model.nbody):
        name = mj_model.body(i).name or f"body_{i}"
        R, p = body_pose(model, poses, frames, name)
        assert_close(R, data.xmat[i].reshape(3, 3))
        assert_close(p, data.xpos[i])
    for i in range(mj_model.nsite):
        k = model.frame_names.index(mj_model.site(i).name)
        assert_close(frames.R[k], data.site_xmat[i].reshape(3, 3))
        assert_close(frames.p[k], data.site_xpos[i])


@pytest.mark.first
@pytest.mark.reference
def test_inertia_matrix_is_that_of_mujoco(pair, rng):
    mj_model, model = pair
    data, q, _, T = state_of(mj_model, model, rng)
    assert_close(jd.mass_matrix(model, q), T.T @ mass_matrix(mj_model, data) @ T)


@pytest.mark.first
@pytest.mark.reference
def test_inverse_and_forward_dynamics_are_those_of_mujoco(pair, rng):
    mj_model, model = pair
    data, q, qd, T = state_of(mj_model, model, rng)
    qdd = rng.normal(size=model.nv)
    acc = world_acceleration(model, qd, qdd, T)
    passive = data.qfrc_passive + data.qfrc_actuator  # of actuatorgravcomp
    tau = mass_matrix(mj_model, data) @ acc + data.qfrc_bias - passive
    assert_close(jd.inverse_dynamics(model, q, qd, jnp.array(qdd)), T.T @ tau)
    assert_close(jd.forward_dynamics(model, q, qd, jnp.array(T.T @ tau)), qdd)


@pytest.mark.first
@pytest.mark.reference
def test_bias_forces_are_those_of_mujoco(pair, rng):
    mj_model, model = pair
    data, q, qd, T = state_of(mj_model, model, rng)
    zero = jnp.zeros(model.nv)
    bare = replace(model, damping=zero, friction=zero, stiffness=zero, forces=())
    acc = world_acceleration(model, qd, np.zeros(model.nv), T)
    tau = mass_matrix(mj_model, data) @ acc + data.qfrc_bias
    assert_close(jd.bias_forces(bare, q, qd), T.T @ tau)


def test_gravity_compensation_stores_the_energy_that_gravity_takes(rng):
    model = jd.load_mjcf(FLOATING.replace("0.5", "1").replace('"2"', '"1"'))
    q = jnp.array(rng.normal(size=(2, model.nq)))
    energies = [jd.potential_energy(model, x) for x in q]
    np.testing.assert_allclose(*energies, rtol=0, atol=1e-12)


def test_a_compiled_model_and_its_text_are_the_same():
    mj_model, model = models("chain", None)
    other = jd.from_mujoco_model(mj_model)
    assert jax.tree.all(jax.tree.map(np.array_equal, model, other))
    assert (model.name, other.name) == ("robot", "MuJoCo Model")


def test_names_of_generated_and_attached_bodies_are_those_of_mujoco(folder):
    assert models("defaults", None)[1].names == ("r0", "r1", "r2", "body_4")
    assert models("files", folder)[1].names == ("arm", "left_palm", "right_palm")


def test_a_file_may_have_any_ending(folder):
    text = (folder / "hand.xml").read_text()
    mesh = '<asset><mesh name="m" file="shape.stl"/></asset>'
    with_mesh = text.replace("<worldbody>", f"{mesh}<worldbody>").replace(
        GEOM, '<geom type="mesh" mesh="m"/>'
    )
    for name in ("hand.mjcf", "same.xml"):
        (folder / name).write_text(with_mesh)
    models = [jd.load_mjcf(folder / name) for name in ("hand.mjcf", "same.xml")]
    np.testing.assert_array_equal(*(model.inertia for model in models))
