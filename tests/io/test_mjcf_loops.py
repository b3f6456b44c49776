"""Equality constraints of MJCF as loops."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.io import from_mujoco, load_mjcf
from tests.reference import load

residual, jacobian = jax.jit(jd.loop_residual), jax.jit(jd.loop_jacobian)


def two_bodies(constraint, *, before="", joint="<joint/>"):
    """A body "a" with another "b" beside it, and a constraint."""
    geom = '<geom size="0.1"/>'
    return f"""
    <mujoco model="pair">{before}
      <worldbody>
        <site name="ground" pos="1 0 0"/>
        <body name="a" pos="0 0 1">{joint}{geom}<site name="top" pos="0 0 0.2"/></body>
        <body name="b" pos="0 1 0">{joint}{geom}</body>
      </worldbody>
      <equality>{constraint}</equality>
    </mujoco>"""


@cache
def reference_models():
    text = load("mjcf_loops")["mjcf"]
    return load_mjcf(text), load_mjcf(text, merge_fixed=False)


def reference_state(model, state):
    """The configuration, and the matrix that turns MuJoCo's rates into ours."""
    qpos = jnp.asarray(state["qpos"])
    rates = jax.vmap(lambda qvel: from_mujoco(model, qpos, qvel)[1])(jnp.eye(model.nv))
    return from_mujoco(model, qpos, jnp.zeros(model.nv))[0], rates.T


def rows_of(model, kind):
    """The places of the first three rows of loops, or of the others of welds."""
    places = [
        (row in "XYZ") == (kind == "linear") for x in model.loops for row in x.rows
    ]
    return np.flatnonzero(places)


@pytest.mark.reference
@pytest.mark.parametrize("merged", [True, False])
def test_points_and_their_rates_are_those_of_mujoco(merged):
    model = reference_models()[0 if merged else 1]
    rows = rows_of(model, "linear")
    for state in load("mjcf_loops")["states"]:
        q, T = reference_state(model, state)
        expected = np.array(state["residual"])[rows], np.array(state["J"])[rows]
        np.testing.assert_allclose(residual(model, q)[rows], expected[0], atol=1e-15)
        J = np.asarray(jacobian(model, q) @ T)[rows]
        np.testing.assert_allclose(J, expected[1], atol=2e-15)


@pytest.mark.reference
def test_welds_close_at_the_rotation_of_mujoco():
    # MuJoCo's rows are the vector of the quaternion between the frames, times a scale
    model = reference_models()[0]
    rows = rows_of(model, "angular").reshape(-1, 3)
    scale = {"b_f": 0.5}
    welds = [loop for loop in model.loops if loop.joint == "fixed"]
    for state in load("mjcf_loops")["states"]:
        poses = jd.forward_kinematics(model, reference_state(model, state)[0])
        R = jnp.concatenate([poses.R, jnp.eye(3)[None]])
        for loop, places in zip(welds, rows, strict=True):
            A, B = R[loop.body_a] @ loop.R_a, R[loop.body_b] @ loop.R_b
            # |A - B| = 2 sqrt(2) sin(angle / 2)
            sine = np.linalg.norm(A - B) / np.sqrt(8) * scale.get(loop.name, 1.0)
            theirs = np.linalg.norm(np.array(state["residual"])[places])
            np.testing.assert_allclose(sine, theirs, atol=1e-15)


def test_loops_drawn_by_the_file_are_closed_at_qpos0_and_inactive_ones_left_out():
    model = reference_models()[0]
    names = [loop.name for loop in model.loops]
    assert names == "tip_d d_world b_f f_world rel sites site_weld".split()
    assert [
        loop.joint for loop in model.loops[:3]
    ] == "spherical spherical fixed".split()
    q, _ = reference_state(model, load("mjcf_loops")["states"][0])
    np.testing.assert_allclose(residual(model, q)[:18], 0, atol=1e-15)


def test_a_constraint_is_exact_whatever_its_softness():
    soft = two_bodies(
        '<connect body1="a" body2="b" anchor="0 0 0" solref="0.5 1" solimp="0 0.1 1"/>'
        '<weld site1="top" site2="ground" torquescale="3"/>',
        before='<default><equality solref="0.2 1"/></default>',
    )
    hard = two_bodies(
        '<connect body1="a" body2="b" anchor="0 0 0"/>'
        '<weld site1="top" site2="ground"/>'
    )
    same = jax.tree.map(np.array_equal, load_mjcf(soft), load_mjcf(hard))
    assert jax.tree.all(same)


def test_constraints_may_be_switched_off():
    connect = '<connect body1="a" anchor="0 0 0"/>'
    off = '<option><flag equality="disable"/></option>'
    inactive = '<default><equality active="false"/></default>'
    assert len(load_mjcf(two_bodies(connect)).loops) == 1
    assert not load_mjcf(two_bodies(connect, before=off)).loops
    assert not load_mjcf(two_bodies(connect, before=inactive)).loops


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        ('<connect body1="x" anchor="0 0 0"/>', "line 8: .*'x'"),
        ("<weld/>", "line 8: .*'weld'"),
    ],
)
def test_a_wrong_constraint_is_an_error_with_its_line(constraint, message):
    with pytest.raises(ValueError, match=message):
        load_mjcf(two_bodies(constraint))


def test_a_constraint_within_one_rigid_body_is_left_out():
    moving = '<body name="c"><joint/><geom size="0.1"/></body>'
    text = two_bodies('<weld name="rigid" body1="a" body2="b"/>', joint="")
    with pytest.warns(
        UserWarning, match="will move .*\n.*weld/rigid: left out: within"
    ):
        model = load_mjcf(text.replace("</worldbody>", f"{moving}</worldbody>"))
    assert not model.loops


COUPLED = two_bodies(
    '<joint name="gear" joint1="j" joint2="k"/><joint joint1="j"/>'
    '<connect name="pin" body1="a" anchor="0 0 0"/>'
).replace('<body name="b" pos="0 1 0"><joint/>', '<body name="b"><joint name="k"/>')
COUPLED = COUPLED.replace("<joint/>", '<joint name="j"/>')


def test_constraints_on_a_joint_that_already_follows_say_how_to_skip_them():
    message = r"yet: equality/joint/1: .*skip=\('equality/joint',\)"
    with pytest.raises(ValueError, match=message):
        load_mjcf(COUPLED)
    with pytest.warns(UserWarning, match="joint/gear: skipped"):
        assert load_mjcf(COUPLED, skip="equality/joint/gear").couplings


def test_skipped_constraints_are_in_the_report():
    with pytest.warns(UserWarning, match="will not move .*\n.*joint/gear: skipped"):
        model = load_mjcf(COUPLED, skip=("equality/joint", "equality/connect/pin"))
    places = [note.place for note in model.report.changing_motion]
    assert places == ["equality/joint/gear", "equality/joint/1", "equality/connect/pin"]
    assert not model.loops


def test_a_place_to_skip_that_is_not_known_is_an_error():
    message = "skip has 'equality/joints', expected some of: .*equality/joint/gear"
    with pytest.raises(ValueError, match=message):
        load_mjcf(COUPLED, skip=("equality/joints",))
