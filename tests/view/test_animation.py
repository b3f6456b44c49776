import base64
import io
import json
import re
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

import jaxdyn as jd
from jaxdyn.view import MOLECULAR, save_animation
from jaxdyn.view._shapes import quaternions
from jaxdyn.view._skeleton import motion
from tests.models import every_joint


def swing(model, times=61, duration=2.0, seed=0):
    """A smooth motion of all joints from the neutral pose."""
    rng = np.random.default_rng(seed)
    ts = np.linspace(0.0, duration, times)
    ways = jnp.asarray(
        np.sin(2 * ts / duration)[:, None] * rng.uniform(-1, 1, model.nv)
    )
    q = jax.vmap(jd.integrate, (None, None, 0))(model, jd.neutral(model), ways)
    return ts, np.array(q)


def data_of(path):
    """What the page knows of the motion."""
    text = path.read_text(encoding="utf-8")
    (data,) = re.findall(
        r'<script id="data" type="application/json">(.*?)</script>', text, re.S
    )
    return json.loads(data)


def floats(text):
    return np.frombuffer(base64.b64decode(text), "<f4")


@pytest.fixture(scope="module")
def puma(tmp_path_factory):
    """A page of the PUMA, saved once."""
    model = jd.robots.puma_560()
    ts, q = swing(model)
    path = tmp_path_factory.mktemp("pages") / "puma.html"
    return save_animation(model, ts, q, path, qd=0 * q, tau=0 * q, title="a <PUMA>")


def test_a_robot_without_anything_to_draw_is_a_dot(tmp_path):
    b = jd.ModelBuilder("point")
    b.add_body("point", joint="fixed", p=(0.0, 0.0, 1.0))
    path = save_animation(b.build(), [0.0, 1.0], np.zeros((2, 0)), tmp_path / "a.html")
    p = floats(data_of(path)["poses"]["positions"]).reshape(2, 1, 3)
    np.testing.assert_array_equal(p, [[[0, 0, 1]]] * 2)


def test_names_with_markup_leave_the_page_alive(tmp_path):
    name = "<!--<script></script>"
    b = jd.ModelBuilder(name)
    b.add_body(name, inertial=jd.Inertial.box(1.0, (1, 1, 1)), p=(0.0, 0.0, 1.0))
    path = save_animation(b.build(), [0.0, 1.0], np.zeros((2, 1)), tmp_path / "a.html")
    data = data_of(path)
    assert data["title"] == name and data["plots"][0]["lines"][0]["name"] == f"j_{name}"
    page = path.read_text(encoding="utf-8")
    written = page.split('<script id="data" type="application/json">')[1]
    assert "<" not in written.split("</script>\n<script>")[0]


def test_the_page_holds_the_poses_of_all_bodies(puma):
    data, model = data_of(puma), jd.robots.puma_560()
    ts, q = swing(model)
    moved = motion(model, q)
    p = floats(data["poses"]["positions"]).reshape(61, 6, 3)
    np.testing.assert_allclose(p, moved.p[:, :-1], atol=1e-6)
    np.testing.assert_allclose(floats(data["times"]), ts, atol=1e-6)
    quaternion = floats(data["poses"]["quaternions"]).reshape(61, 6, 4)
    x, y, z, w = np.moveaxis(quaternion, -1, 0)
    axes = [2 * (x * z + y * w), 2 * (y * z - x * w), 1 - 2 * (x**2 + y**2)]
    np.testing.assert_allclose(np.stack(axes, -1), moved.R[:, :-1, :, 2], atol=1e-6)


def test_quaternions_of_half_turns_are_unit():
    R = np.stack(
        [np.diag(s) for s in ((1, -1, -1), (-1, 1, -1), (-1, -1, 1), (1, 1, 1))]
    )
    want = np.eye(4)
    np.testing.assert_allclose(np.abs(quaternions(R.astype(float))), want, atol=1e-12)


def test_the_page_needs_no_network_and_is_small(puma):
    text = puma.read_text(encoding="utf-8")
    assert puma.stat().st_size < 8e5
    own = re.sub(r"<script>/\*\*.*?</script>", "", text, flags=re.S)  # without three.js
    assert len(own) < 1e5
    assert not re.search(r"(src|href)\s*=\s*[\"']?(http|//)", own)
    assert "<title>a &lt;PUMA&gt;</title>" in text


def test_long_motions_of_many_bodies_are_thinned_out(tmp_path):
    model = jd.robots.rope()
    ts = np.linspace(0.0, 20.0, 4001)
    q = np.sin(ts)[:, None] * np.full(model.nq, 0.1)
    path = save_animation(model, ts, q, tmp_path / "rope.html", qd=q, tau=q)
    assert path.stat().st_size < 2e6
    kept = floats(data_of(path)["times"])
    assert 300 < len(kept) <= 1200
    assert kept[0] == 0.0 and kept[-1] == 20.0
    assert np.ptp(np.diff(kept)) < 0.011


@pytest.mark.parametrize(
    "model",
    [every_joint(), jd.robots.stewart_gough(), jd.robots.featherstone_2p()],
    ids=lambda model: model.name,
)
def test_every_joint_loop_and_slider_has_a_page(model, tmp_path):
    ts, q = swing(model, times=5)
    data = data_of(save_animation(model, ts, q, tmp_path / "page.html"))
    far = floats(data["scene"]["extremes"]).reshape(-1, 3)
    p = floats(data["poses"]["positions"]).reshape(-1, 3)
    assert (p >= far.min(axis=0)).all() and (p <= far.max(axis=0)).all()
    assert sum(len(plot["lines"]) for plot in data["plots"]) == model.nq


def test_many_bodies_have_a_scale_of_colours_and_a_small_page(tmp_path):
    model, q = jd.robots.chain(1000), np.zeros((100, 1000))
    path = tmp_path / "a.html"
    save_animation(model, np.arange(100), q, path, qd=q, tau=q)
    assert path.stat().st_size < 2e6
    pieces = data_of(path)["looks"]["skeleton"]
    assert len(pieces["palette"]) > 200
    assert max(pieces["colors"]) == len(pieces["palette"]) - 1
    assert set(pieces["bodies"]) == set(range(1001))  # the last one is the world


def test_units_and_sizes_of_molecules(tmp_path):
    model = jd.robots.protein_chain("AG")
    ts, q = swing(model, times=3, duration=1e-3)
    path = save_animation(model, ts, q, tmp_path / "a.html", units=MOLECULAR, qd=q)
    titles = [plot["title"] for plot in data_of(path)["plots"]]
    assert titles == ["joint positions (rad)", "joint rates (rad/ps)"]


def test_rows_after_the_end_of_a_motion_are_not_shown(tmp_path):
    model = jd.robots.gripper()
    ts, q = swing(model)
    q[40:] = np.nan
    data = data_of(save_animation(model, ts, q, tmp_path / "a.html"))
    assert len(floats(data["times"])) == 40


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda ts, q: {"q": q[:, :3]}, r"q has shape \(61, 3\), expected \(61, 4\)"),
        (lambda ts, q: {"tau": q[1:]}, r"tau has shape \(60, 4\), expected \(61, 4\)"),
        (lambda ts, q: {"ts": ts[::-1]}, r"ts\[1\] = .* follows 2.0"),
        (lambda ts, q: {"ts": ts[:0], "q": q[:0]}, "at least one time"),
        (lambda ts, q: {"q": np.where(ts[:, None] == 0, np.nan, q)}, "at row 0"),
        (lambda ts, q: {"qd": q + 1e40}, "beyond 3e38"),
        (lambda ts, q: {"fps": 0.0}, "fps is 0.0, expected a positive"),
    ],
)
def test_wrong_motions_are_refused(change, message, tmp_path):
    model = jd.robots.gripper()
    ts, q = swing(model)
    with pytest.raises(ValueError, match=message):
        save_animation(
            model, path=tmp_path / "a.html", **({"ts": ts, "q": q} | change(ts, q))
        )
    assert not list(tmp_path.iterdir())


# ---- in a real browser -------------------------------------------------------------


def opened(page, path):
    """Opens a page, or takes it back to its start if it is open."""
    if page.url != path.as_uri():
        page.goto(path.as_uri())
        page.wait_for_function("window.jaxdyn && jaxdyn.ready && jaxdyn.drawn > 0")
    page.evaluate("jaxdyn.pause()")
    seek(page, 0.0)
    return page


def picture(page):
    """What is to be seen of the robot: [height, width, 3]."""
    page.wait_for_timeout(300)
    shot = page.locator("#robot").screenshot()
    return np.asarray(Image.open(io.BytesIO(shot)).convert("RGB"), float)


def changed(a, b):
    """The share of the picture that is not the same."""
    return float((np.abs(a - b).max(axis=-1) > 30).mean())


def seek(page, fraction):
    """Moves the slider as a hand does, and waits for the robot."""
    drawn = page.evaluate("jaxdyn.drawn")
    page.locator("#time").evaluate(
        "(slider, value) => { slider.value = value;"
        " slider.dispatchEvent(new Event('input')) }",
        1000 * fraction,
    )
    page.wait_for_function(f"jaxdyn.drawn > {drawn}")


def test_the_slider_moves_the_robot(puma, page):
    opened(page, puma)
    before, clock = picture(page), page.locator("#clock").inner_text()
    assert np.ptp(before, axis=(0, 1)).min() > 100  # there are colours
    assert changed(before, np.full_like(before, 255.0)) > 0.02
    seek(page, 0.7)
    after = picture(page)
    assert changed(before, after) > 0.01
    assert page.evaluate("jaxdyn.time") == pytest.approx(1.4)
    assert page.locator("#clock").inner_text() == "1.400 / 2.000 s" != clock
    assert page.locator(".plot").count() == 3
    seek(page, 0.0)
    assert changed(before, picture(page)) < 1e-3  # and back
    assert page.requests == [puma.as_uri()]


def test_play_goes_on_and_pause_stops(puma, page):
    opened(page, puma)
    page.locator("#play").click()
    page.wait_for_function("jaxdyn.time > 0.1")
    assert page.locator("#play").inner_text() == "pause"
    page.locator("#play").click()
    time = page.evaluate("jaxdyn.time")
    page.wait_for_timeout(400)
    assert page.evaluate("jaxdyn.time") == time > 0.1
    assert page.locator("#play").inner_text() == "play"


def test_a_motion_without_repeat_ends(puma, page):
    opened(page, puma)
    page.locator("#loop").uncheck()
    page.locator("#speed").select_option("4")
    seek(page, 0.8)
    page.keyboard.press("Space")
    page.wait_for_function("!jaxdyn.playing && jaxdyn.time === jaxdyn.duration")
    page.locator("#loop").check()
    page.locator("#speed").select_option("1")


def test_dragging_turns_the_view_and_reset_brings_it_back(puma, page):
    opened(page, puma)
    before = picture(page)
    page.mouse.move(300, 300)
    page.mouse.down()
    page.mouse.move(420, 330, steps=4)
    page.mouse.up()
    assert changed(before, picture(page)) > 0.01
    page.locator("#reset").click()
    page.mouse.move(300, 5)
    assert changed(before, picture(page)) < 1e-3


def test_a_click_in_a_plot_sets_the_time_and_the_cursor_follows(puma, page):
    opened(page, puma)
    chart = page.locator(".chart").first.bounding_box()
    page.mouse.move(chart["x"] + 0.5 * chart["width"], chart["y"] + 40)
    page.wait_for_timeout(300)
    page.mouse.click(chart["x"] + 0.5 * chart["width"], chart["y"] + 40)
    page.wait_for_function("jaxdyn.time > 0.5")
    cursor = page.locator(".cursor").first.bounding_box()
    assert abs(cursor["x"] - chart["x"] - 0.5 * chart["width"]) < 20


@pytest.mark.slow
def test_a_rope_plays_without_long_gaps(tmp_path, page):
    model = jd.robots.rope()
    ts, q = swing(model, times=121)
    opened(page, save_animation(model, ts, q, tmp_path / "rope.html"))
    start = page.evaluate("jaxdyn.drawn")
    page.evaluate("jaxdyn.play()")
    begin = time.perf_counter()
    page.wait_for_function(f"jaxdyn.drawn >= {start} + 5")
    # without a graphics card, on a busy machine
    assert (time.perf_counter() - begin) / 5 < 2.0


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        jd.robots.gripper(),
        jd.robots.random_tree(3, 8, joints=("free", "revolute"), floating_base=True),
        jd.robots.stewart_gough(),
        jd.robots.featherstone_2p(),
        jd.robots.protein_chain("A" * 10),
        jd.robots.chain(150),
    ],
    ids=lambda model: model.name,
)
def test_other_robots_are_seen_to_move(model, tmp_path, page):
    ts, q = swing(model)
    opened(page, save_animation(model, ts, q, tmp_path / "page.html"))
    before = picture(page)
    seek(page, 0.6)
    assert changed(before, picture(page)) > 0.002
