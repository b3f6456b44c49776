"""Robots that look as their files say: shapes, meshes, colours."""

import base64
import builtins
import io
import re
import struct
from importlib.util import find_spec

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import trimesh
from PIL import Image

import jaxdyn as jd
from jaxdyn.view import _animation, draw, save_animation, serve
from jaxdyn.view._meshes import clustered, packed_bytes, read_mesh, simplified
from jaxdyn.view._scene import scene
from jaxdyn.view._shapes import Piece, surface
from jaxdyn.view._skeleton import motion
from jaxdyn.view._visuals import visual_pieces
from tests.view.test_animation import changed, data_of, floats, opened, picture, seek

RED, BLUE, GLASS = (0.9, 0.1, 0.1, 1.0), (0.1, 0.1, 0.9, 1.0), (0.1, 0.8, 0.1, 0.4)
UP = np.array([0.0, 0.0, 1.0])


def stl(path, mesh):
    """Writes triangles as a binary STL file."""
    head = b"\0" * 80 + struct.pack("<I", len(mesh.faces))
    corners = mesh.vertices[mesh.faces].astype("<f4").reshape(-1, 9)
    rows = [b"\0" * 12 + row.tobytes() + b"\0\0" for row in corners]
    path.write_bytes(head + b"".join(rows))
    return str(path)


def arm(*visuals, lower=()):
    """Two bars that turn about y, each 1 m long, with shapes on the outer one."""
    b = jd.ModelBuilder("arm")
    bar = jd.Inertial.rod(1.0, (0, 0, 0), (1, 0, 0))
    b.add_body("lower", None, axis=(0, 1, 0), p=(0, 0, 1), inertial=bar)
    b.add_body("upper", "lower", axis=(0, 1, 0), p=(1, 0, 0), inertial=bar)
    for visual in lower:
        b.add_visual("lower", visual)
    for visual in visuals:
        b.add_visual("upper", visual)
    return b.build()


def rod(color, **options):
    return jd.Visual("box", (1.0, 0.2, 0.2), p=np.array([0.5, 0, 0]), color=color)


def shapes(path):
    """One visual of each kind."""
    turned = np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]])
    return [
        rod(RED),
        jd.Visual("sphere", (0.2,), color=GLASS),
        jd.Visual("cylinder", (0.1, 0.4), turned, np.array([0.5, 0, 0])),
        jd.Visual("capsule", (0.1, 0.4), color=BLUE),
        jd.Visual("ellipsoid", (0.1, 0.2, 0.3), p=np.array([1.0, 0, 0]), color=BLUE),
        jd.Visual("plane", (0.2, 0.3)),
        jd.Visual("plane", (0.0, 0.0)),  # without end: is not shown
        jd.Visual("mesh", (1.0, 1.0, -0.1), mesh=path, color=BLUE),
        jd.Visual("mesh", (1.0, 1.0, 1.0), mesh=surface("cylinder")),
    ]


def turn(model, times=31):
    ts = np.linspace(0.0, 2.0, times)
    return ts, np.outer(np.sin(ts), np.full(model.nv, 0.8))


def test_pieces_are_as_large_as_their_visuals(tmp_path):
    model = arm(*shapes(stl(tmp_path / "m.stl", surface("box"))))
    pieces, lacking = visual_pieces(model, UP)
    assert not lacking and {x.body for x in pieces} == {1}
    want = [
        *([(1, 0.2, 0.2)], [(0.4,) * 3], [(0.4, 0.2, 0.2)]),
        [(0.2, 0.2, 0.4), (0.2,) * 3, (0.2,) * 3],
        *([(0.2, 0.4, 0.6)], [(0.4, 0.6, 6e-4)], [(2, 2, 0.2)], [(2, 2, 2)]),
    ]
    sizes = [np.ptp(x.corners, axis=0) for x in pieces]
    np.testing.assert_allclose(sizes, np.concatenate(want), atol=1e-6)
    for piece in pieces:
        assert np.linalg.det(piece.A) > 0  # mirrors are in the meshes themselves
        surfaces = piece.triangles()
        a, b, c = (surfaces.vertices[surfaces.faces[:, k]] for k in range(3))
        volume = (a * np.cross(b, c)).sum() / 6
        assert volume > 0  # faces outwards


def test_a_mesh_is_sent_once_and_within_its_budget(tmp_path):
    ball = surface("ball")
    path = stl(tmp_path / "ball.stl", ball)
    mesh = jd.Visual("mesh", (1.0, 1.0, 1.0), mesh=path)
    model = arm(mesh, mesh, lower=[mesh])
    ts, q = turn(model)
    page = tmp_path / "a.html"
    (whole,) = data_of(save_animation(model, ts, q, page))["looks"]["meshes"]
    assert len(whole["vertices"]) == len(ball.vertices) * 8  # 6 bytes as text
    x = np.frombuffer(base64.b64decode(whole["vertices"]), "<u2").reshape(-1, 3)
    back = np.array(whole["low"]) + np.array(whole["step"]) * x
    gaps = np.linalg.norm(back[:, None] - ball.vertices, axis=2)
    assert gaps.min(axis=1).max() < 1e-4 and gaps.min(axis=0).max() < 1e-4
    small = data_of(save_animation(model, ts, q, page, mesh_bytes=1e3))
    (mesh,) = small["looks"]["meshes"]
    assert 100 < len(mesh["vertices"]) + len(mesh["faces"]) <= 1000


def test_simplified_meshes_keep_their_size_and_lose_small_details_first():
    ball = surface("ball")
    coarse = clustered(ball, 0.5)
    assert len(coarse.faces) < 0.5 * len(ball.faces)
    assert 1.7 < np.ptp(coarse.vertices, axis=0).min() <= 2.0
    i, j, k = coarse.faces.T
    assert not ((i == j) | (j == k) | (k == i)).any()
    large, small = (Piece(0, x, s * np.eye(3), UP, RED) for x, s in two_balls())
    limit = 1.4 * packed_bytes(ball)
    found = [len(x.shape.faces) for x in simplified([large, small], limit)]
    assert found[0] > 3 * found[1] > 0


def test_meshes_smaller_than_details_become_boxes():
    ball = surface("ball")
    box = clustered(ball, 10.0)
    assert len(box.faces) == 12
    np.testing.assert_allclose(box.vertices.min(axis=0), ball.vertices.min(axis=0))
    np.testing.assert_allclose(box.vertices.max(axis=0), ball.vertices.max(axis=0))


def two_balls():
    ball = surface("ball")
    return (ball, 1.0), (jd.TriangleMesh(ball.vertices.copy(), ball.faces), 0.2)


def test_files_that_cannot_be_read_are_one_warning_and_a_skeleton(tmp_path):
    (tmp_path / "wrong.stl").write_text("no triangles")
    paths = [tmp_path / "wrong.stl", tmp_path / "gone.stl", tmp_path / "gone.obj"]
    wrong = [jd.Visual("mesh", (1.0, 1.0, 1.0), mesh=str(x)) for x in paths]
    model = arm(*wrong, rod(RED), lower=[rod(BLUE)])
    ts, q = turn(model)
    with pytest.warns(UserWarning) as heard:
        data = data_of(save_animation(model, ts, q, tmp_path / "a.html"))
    (warning,) = heard
    lines = str(warning.message).splitlines()
    assert "'arm'" in lines[0] and len(lines) == 3 and "wrong.stl: it can" in lines[1]
    assert "gone.stl and 1 more: there is no such file" in lines[2]
    assert "/jaxdyn/view/" not in warning.filename  # it is about the caller
    pieces = data["looks"]["visual"]
    assert data["look"] == "visual" and set(pieces["shapes"]) > {"box", "cylinder"}
    assert pieces["bodies"].count(0) == 1 < pieces["bodies"].count(1)


def test_a_missing_reader_of_dae_files_is_named(tmp_path, monkeypatch):
    path = tmp_path / "m.dae"
    path.write_text("<COLLADA/>")
    usual = builtins.__import__

    def without_collada(name, *rest):
        if name == "collada":
            raise ImportError(name)
        return usual(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_collada)
    with pytest.raises(ValueError, match="pip install pycollada"):
        read_mesh(str(path))


@pytest.mark.skipif(find_spec("collada") is None, reason="pycollada is an extra")
def test_dae_files_have_units_and_colours(tmp_path):
    material = trimesh.visual.material.PBRMaterial(baseColorFactor=[255, 0, 0, 255])
    box = trimesh.creation.box((1.0, 2.0, 3.0))
    box.visual = trimesh.visual.TextureVisuals(material=material)
    text = trimesh.exchange.dae.export_collada(box).decode()
    (tmp_path / "m.dae").write_text(text)
    ((mesh, color),) = read_mesh(str(tmp_path / "m.dae"))
    np.testing.assert_allclose(np.ptp(mesh.vertices, axis=0), (1, 2, 3), atol=1e-6)
    assert color == (1, 0, 0, 1)
    assert len(mesh.vertices) == 8  # corners of several faces are one
    unit = '<unit name="mm" meter="0.001"/><up_axis>'
    (tmp_path / "m.dae").write_text(re.sub(r"(<unit[^>]*>)?\s*<up_axis>", unit, text))
    ((mesh, _),) = read_mesh(str(tmp_path / "m.dae"))
    np.testing.assert_allclose(np.ptp(mesh.vertices, axis=0), (1e-3, 2e-3, 3e-3))
    (tmp_path / "m.dae").write_text(re.sub("[XYZ]_UP", "X_UP", text))  # plays no role
    ((mesh, _),) = read_mesh(str(tmp_path / "m.dae"))
    np.testing.assert_allclose(np.ptp(mesh.vertices, axis=0), (1, 2, 3), atol=1e-6)


def test_colours_of_obj_files_are_those_of_their_materials(tmp_path):
    (tmp_path / "m.mtl").write_text("newmtl red\nKd 1 0 0\nnewmtl blue\nKd 0 0 1\n")
    (tmp_path / "m.obj").write_text(
        "mtllib m.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n"
        "usemtl red\nf 1 2 3\nusemtl blue\nf 1 3 4\n"
    )
    found = {color[:3]: mesh for mesh, color in read_mesh(str(tmp_path / "m.obj"))}
    assert set(found) == {(1, 0, 0), (0, 0, 1)}
    (tmp_path / "plain.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    ((mesh, color),) = read_mesh(str(tmp_path / "plain.obj"))
    assert color is None and mesh.faces.shape == (1, 3)


@pytest.mark.parametrize(
    "visuals, look", [(["upper", "lower"], "visual"), ([], "skeleton")]
)
def test_the_look_is_that_of_the_file_where_it_shows_the_robot(visuals, look):
    model = arm(*[rod(RED)] * ("upper" in visuals))
    moved = motion(model, np.zeros((1, 2)))
    assert scene(model, moved).look == look
    assert scene(model, moved, "skeleton").look == "skeleton"
    with pytest.raises(ValueError, match="look is 'solid', expected one of: visual"):
        scene(model, moved, "solid")


def test_a_plane_of_the_world_is_the_floor():
    text = """<mujoco><worldbody><geom type="plane" size="0 0 1" pos="0 0 -3"/>
      <body><joint axis="0 1 0"/><geom size="0.1"/></body></worldbody></mujoco>"""
    model = jd.load_mjcf(text)
    shown = scene(model, motion(model, np.zeros((1, 1))))
    assert shown.floor.center[2] == -3 and len(shown.visual) == 1
    model = jd.load_mjcf(text.replace("0 0 -3", "0 0 3"))  # the robot is below it
    shown = scene(model, motion(model, np.zeros((1, 1))))
    np.testing.assert_allclose(shown.floor.center[2], -0.1, atol=1e-9)


def test_large_surroundings_do_not_make_the_robot_small():
    model = arm(rod(RED))
    b = jd.ModelBuilder("hall")
    b.add_body("bar", None, inertial=jd.Inertial.rod(1.0, (0, 0, 0), (1, 0, 0)))
    b.add_visual("bar", rod(RED))
    b.add_visual(None, jd.Visual("box", (100.0, 100.0, 1.0)))
    model = b.build()
    shown = scene(model, motion(model, np.zeros((1, 1))))
    assert len(shown.visual) == 2 and shown.size < 2


@pytest.mark.parametrize(
    "name, value", [("_THREE", re.compile("nothing (of) it")), ("_VIEWER", "none.zip")]
)
def test_another_release_of_trimesh_without_three_js_is_reported(
    name, value, monkeypatch
):
    monkeypatch.setattr(_animation, name, value)
    with pytest.raises(ValueError, match="brings no three.js"):
        _animation.three_js()


@pytest.mark.slow
def test_arrows_are_at_bodies_and_cut_joints(tmp_path):
    model = jd.robots.four_bar()
    start = jd.close_loops(model, jnp.array([0.9, -0.4, 1.5]), hold=["crank"]).q
    run = jd.simulate(model, start, 0 * start, jnp.linspace(0.0, 0.2, 5))
    wrenches = np.arange(5 * 18.0).reshape(5, 3, 6)
    options = dict(forces={"wind": wrenches}, loop_forces=run.loop_forces)
    path = save_animation(model, run.ts, run.q, tmp_path / "a.html", **options)
    wind, loops = data_of(path)["forces"]
    assert wind["name"] == "wind" and wind["bodies"] == [0, 1, 2]
    np.testing.assert_allclose(
        floats(wind["vectors"]).reshape(5, 3, 3), wrenches[..., :3]
    )
    want = jax.vmap(jd.loop_wrenches, (None, 0, 0))(model, run.q, run.loop_forces)
    vectors = floats(loops["vectors"]).reshape(5, 1, 3)
    np.testing.assert_allclose(vectors, want[..., :3], rtol=1e-6, atol=1e-6)
    for wrong in ({"forces": {"wind": wrenches[1:]}}, {"loop_forces": wrenches}):
        with pytest.raises(ValueError, match=r"has shape .* expected \(5, "):
            save_animation(model, run.ts, run.q, tmp_path / "b.html", **wrong)


def test_pictures_show_visuals(tmp_path):
    model = arm(rod(RED), lower=[rod(BLUE)])
    draw(model, np.zeros(2), tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as image:
        pixels = np.asarray(image.convert("RGB"), float)
    for color in (RED, BLUE):
        k = int(np.argmax(color[:3]))
        others = [x for x in range(3) if x != k]
        is_seen = pixels[..., k] - pixels[..., others].max(axis=-1) > 100
        assert is_seen.mean() > 0.005


def test_the_live_view_shows_visuals(tmp_path):
    model = arm(*shapes(stl(tmp_path / "m.stl", surface("box"))))
    ts, q = turn(model)
    view = serve(model, ts, q, open_browser=False, block=False, port=8890)
    names = [x.name for x in view._server.scene._handle_from_node_name.values()]
    assert sum(name.startswith("/robot/1/") for name in names) == 4  # colours
    view.seek(1.0)
    want = jd.forward_kinematics(model, jnp.asarray(q[15])).p
    np.testing.assert_allclose(view._stage.positions(), want, atol=1e-9)
    view.stop()


# ---- in a real browser -------------------------------------------------------------


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """A page of an arm with visuals of every kind and forces."""
    folder = tmp_path_factory.mktemp("pages")
    path = stl(folder / "m.stl", surface("box"))
    model = arm(*shapes(path), lower=[rod(BLUE)])
    ts, q = turn(model)
    push = np.zeros((len(ts), 2, 6))
    push[:, :, 2] = 1.0
    forces = {"<push>": push}
    return save_animation(model, ts, q, folder / "a.html", qd=q, forces=forces)


def test_the_robot_is_seen_in_its_colours_and_as_a_skeleton(shown, page):
    opened(page, shown)
    seek(page, 0.5)
    visual = picture(page)
    assert (visual[..., 2] - visual[..., 0] > 80).mean() > 0.01  # blue
    page.locator("#look").select_option("skeleton")
    assert changed(visual, picture(page)) > 0.01
    page.locator("#look").select_option("visual")
    assert changed(visual, picture(page)) < 1e-3
    assert page.requests in ([], [shown.as_uri()])


@pytest.mark.parametrize("layer", ["traces", "frames", "force 0"])
def test_layers_can_be_switched(layer, shown, page):
    opened(page, shown)
    before = picture(page)[60:]  # below the switches
    box = page.locator(f'input[name="{layer}"]')
    assert box.is_checked() == (layer != "frames")
    box.click()
    assert changed(before, picture(page)[60:]) > 2e-4
    box.click()
    assert changed(before, picture(page)[60:]) < 1e-4


def test_bodies_are_where_forward_kinematics_puts_them(shown, page):
    opened(page, shown)
    seek(page, 0.5)
    page.wait_for_timeout(300)
    model = arm()
    ts, q = turn(model)
    at = jd.forward_kinematics(model, jnp.asarray(q[15]))
    for body in range(2):
        matrix = page.evaluate(f"jaxdyn.stage.bodies[{body}].elements")
        matrix = np.array(matrix).reshape(4, 4).T
        np.testing.assert_allclose(matrix[:3, :3], at.R[body], atol=1e-6)
        np.testing.assert_allclose(matrix[:3, 3], at.p[body], atol=1e-6)


@pytest.mark.parametrize("width, height", [(420, 800), (1400, 500), (700, 900)])
def test_the_whole_motion_is_in_sight_at_any_size(width, height, shown, page):
    opened(page, shown)
    usual = page.viewport_size
    page.set_viewport_size({"width": width, "height": height})
    page.wait_for_timeout(500)
    seek(page, 0.3)
    spots = page.evaluate(
        "jaxdyn.stage.extremes.map((p) => p.clone().project(jaxdyn.stage.camera))"
        ".map((p) => [p.x, p.y])"
    )
    most = np.abs(spots).max(axis=0)
    assert most.max() < 1 and most.max() > 0.85  # nothing is cut, nothing is tiny
    box = page.locator("#robot canvas").bounding_box()
    assert box["width"] <= width and box["x"] >= 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.set_viewport_size(usual)
    page.wait_for_timeout(300)


def test_without_webgl_the_plots_work_and_the_page_says_why(shown, browser):
    page = browser.new_page(viewport={"width": 900, "height": 520})
    failures = []
    page.on("pageerror", lambda error: failures.append(str(error)))
    page.add_init_script(
        "const get = HTMLCanvasElement.prototype.getContext;"
        "HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {"
        " return kind.includes('webgl') ? null : get.call(this, kind, ...rest); }"
    )
    page.goto(shown.as_uri())
    page.wait_for_function("window.jaxdyn && jaxdyn.ready")
    assert "without WebGL" in page.locator("#grid").inner_text()
    page.evaluate("jaxdyn.seek(1.0)")
    reading = page.locator(".values button").first.inner_text().split()[1]
    assert reading == f"{0.8 * np.sin(1.0):.3f}" and failures == []
    page.close()


def test_lines_of_plots_can_be_switched(shown, page):
    opened(page, shown)

    def chart():
        page.wait_for_timeout(200)
        shot = page.locator(".chart canvas").first.screenshot()
        return np.asarray(Image.open(io.BytesIO(shot)).convert("RGB"), float)

    names = page.locator(".plot").first.locator(".values button")
    assert [x.split()[0] for x in names.all_inner_texts()] == ["j_lower", "j_upper"]
    seek(page, 0.5)
    assert names.first.inner_text().split()[1] == f"{0.8 * np.sin(1.0):.3f}"
    before = chart()
    names.first.click()
    assert names.first.get_attribute("class") == "off"
    names.nth(1).click()
    assert changed(before, chart()) > 0.001
    names.first.click(), names.nth(1).click()
    assert changed(before, chart()) < 1e-3


def test_the_wheel_zooms_and_reset_brings_the_view_back(shown, page):
    opened(page, shown)
    before = picture(page)
    page.mouse.move(200, 250)
    page.mouse.wheel(0, -400)
    assert changed(before, picture(page)) > 0.01
    page.locator("#reset").click()
    page.mouse.move(200, 5)
    assert changed(before, picture(page)) < 1e-3
