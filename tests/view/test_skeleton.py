import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.view import draw
from jaxdyn.view._scene import scene
from jaxdyn.view._shapes import ball, box, cylinder, rod
from jaxdyn.view._skeleton import far_end, motion, principal_spread, rail, skeleton
from tests.models import every_joint, random_state


def test_a_rod_ends_where_its_mass_ends():
    model = jd.robots.gripper()
    np.testing.assert_allclose(far_end(model, 2), [0.05, 0, 0], atol=1e-12)
    tips = {tip.name: tip.place for tip in skeleton(model).tips}
    assert set(tips) == {"link2_2", "link1_3"}
    np.testing.assert_allclose(tips["link1_3"], [0.05, 0, 0], atol=1e-12)


def test_the_box_of_a_box_is_that_box():
    b = jd.ModelBuilder()
    b.add_body("body", None, "free", inertial=jd.Inertial.box(2.0, (0.2, 0.4, 0.6)))
    half, axes = principal_spread(b.build(), 0)
    np.testing.assert_allclose(np.abs(axes @ half), [0.1, 0.2, 0.3], atol=1e-12)


def test_links_lead_to_all_that_bodies_carry():
    model = jd.robots.stewart_gough()
    lines = skeleton(model)
    assert len(lines.ties) == 6
    ends = [link.path[-1] for link in lines.links if link.body == 0]
    for a, b in lines.ties:
        assert b.body == 0 and any(np.allclose(end, b.place) for end in ends)
        assert a.name == b.name


def test_links_of_arms_are_bent_along_and_across_the_axis():
    model = jd.robots.puma_mohan_saha()
    link = next(link for link in skeleton(model).links if link.body == 1)
    along, across = np.diff(link.path, axis=0)
    axis = np.asarray(model.axis[1])
    assert np.linalg.norm(np.cross(along, axis)) < 1e-12
    assert abs(across @ axis) < 1e-12
    np.testing.assert_allclose(
        [np.linalg.norm(along), np.linalg.norm(across)], [0.149, 0.432], atol=1e-12
    )


def test_points_move_as_forward_kinematics_says(rng):
    model = every_joint()
    q = random_state(model, rng)[0]
    moved = motion(model, q[None])
    poses = jd.forward_kinematics(model, q)
    np.testing.assert_allclose(moved.p[0, :-1], poses.p, atol=1e-12)
    place = rng.normal(size=3)
    want = np.asarray(poses.p[3]) + np.asarray(poses.R[3]) @ place
    np.testing.assert_allclose(moved.of(3, place)[0], want, atol=1e-12)
    np.testing.assert_allclose(moved.of(-1, place)[0], place)


def test_a_rail_is_as_long_as_the_way_of_its_slider():
    model = jd.robots.featherstone_2p()
    moved = motion(model, np.array([[0.1, 0.0], [0.5, -0.2]]))
    (low, high), _ = rail(model, moved, 0)
    np.testing.assert_allclose(
        np.sort(np.abs([low, high]).max(0)), [0, 0, 0.5], atol=1e-12
    )
    (low, high), axes = rail(model, moved, 1)
    np.testing.assert_allclose(np.ptp(axes @ np.diag(high - low), axis=1)[1], 0.2)


RED, END = (1.0, 0.0, 0.0, 1.0), np.array([1.0, 2.0, -3.0])
PIECES = {
    "cylinder": cylinder(0, np.ones(3), END, 0.1, RED),
    "ball": ball(0, np.ones(3), 0.3, RED),
    "box": box(0, np.ones(3), np.eye(3), np.array([0.1, 0.2, 0.3]), RED),
    "dot": cylinder(0, END, END + 1e-9, 0.1, RED),
}


@pytest.mark.parametrize("piece", PIECES.values(), ids=PIECES)
def test_surfaces_are_closed_and_face_outwards(piece):
    vertices, faces = piece.triangles().vertices, piece.triangles().faces
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    areas = np.cross(b - a, c - a)
    np.testing.assert_allclose(areas.sum(axis=0), 0.0, atol=1e-12)  # closed
    assert (areas * ((a + b + c) / 3 - vertices.mean(axis=0))).sum(axis=1).min() > 0
    low, high = piece.corners.min(axis=0), piece.corners.max(axis=0)
    assert (vertices > low - 1e-12).all() and (vertices < high + 1e-12).all()


def test_a_rod_goes_from_end_to_end_with_round_ends():
    tube, *ends = rod(0, np.ones(3), END, 0.1, RED)
    np.testing.assert_allclose([x.p for x in ends], [np.ones(3), END])
    along = tube.A @ [0, 0, 1]
    np.testing.assert_allclose([tube.p - along, tube.p + along], [np.ones(3), END])
    np.testing.assert_allclose(np.linalg.norm(tube.A[:, 0]), 0.1)


@pytest.mark.parametrize("scale", [1e-10, 1.0, 1e3])
def test_a_scene_has_the_size_of_its_robot(scale):
    b = jd.ModelBuilder("pendulum")
    bar = jd.Inertial.rod(1.0, (0, 0, 0), (scale, 0, 0))
    b.add_body("bar", None, "revolute", inertial=bar)
    model = b.build()
    shown = scene(model, motion(model, np.zeros((1, 1))))
    assert 0.5 * scale < np.ptp(shown.extremes, axis=0).max() < 3 * scale
    assert shown.floor is not None and 0.01 < shown.floor.spacing / scale < 1


def test_gravity_is_down():
    model = jd.robots.gripper()  # gravity along -y
    shown = scene(model, motion(model, np.zeros((1, 4))))
    np.testing.assert_allclose(shown.up, [0, 1, 0])
    assert shown.floor is not None and shown.floor.center[1] < 0
    assert shown.eye[2] > 2 * abs(shown.eye[0])  # it looks at the plane of motion


def test_models_without_mass_or_length_can_be_seen():
    b = jd.ModelBuilder("empty")
    b.add_body("body", None, "revolute")
    model = b.build()
    shown = scene(model, motion(model, np.zeros((1, 1))))
    assert shown.pieces and all(np.isfinite(x.corners).all() for x in shown.pieces)


@pytest.mark.parametrize(
    "model", [every_joint(), jd.robots.four_bar()], ids=lambda model: model.name
)
def test_robots_can_be_drawn(model, tmp_path):
    draw(model, jd.neutral(model), tmp_path / "robot.png")
    assert (tmp_path / "robot.png").read_bytes()[:4] == b"\x89PNG"
