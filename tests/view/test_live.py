import builtins
import html
import time

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.view import serve


@pytest.fixture
def show():
    """Serves without a browser; everything is closed in the end."""
    served = []

    def start(*arguments, **options):
        options = {"open_browser": False, "block": False, "port": 8790} | options
        served.append(serve(*arguments, **options))
        return served[-1]

    yield start
    for view in served:
        view.stop()


def swing():
    model = jd.robots.gripper()
    ts = np.linspace(0.0, 1.0, 51)
    return model, ts, np.outer(np.sin(3 * ts), [1.0, 0.5, -0.5, 0.8])


def until(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    assert condition()


def test_seek_puts_the_bodies_where_they_are(show, capsys):
    model, ts, q = swing()
    heard = []
    view = show(model, ts, q, announce=heard.append)
    view.seek(0.6)
    want = jd.forward_kinematics(model, q[30]).p
    np.testing.assert_allclose(view._stage.positions(), want, atol=1e-9)
    assert f"| j_link1_2 | {q[30, 1]:.4f} | rad |" in view._readings.content
    assert heard == [view.url] and view.url.startswith("http://127.0.0.1:")
    assert capsys.readouterr().out == ""


def test_readings_show_names_with_markup_as_they_are(show):
    b = jd.ModelBuilder("odd")
    b.add_body("a", joint_name="<b>{1}|", inertial=jd.Inertial.box(1.0, (1, 1, 1)))
    view = show(b.build(), [0.0, 1.0], np.zeros((2, 1)))
    shown = view._readings.content.splitlines()[-1]
    assert not set("<>{}") & set(shown) and shown.count("|") == 4
    assert html.unescape(shown) == "| <b>{1}| | 0.0000 | rad |"


def test_play_goes_on_until_pause_and_starts_again(show):
    view = show(*swing())
    view._repeat.value = False
    view.play()
    until(lambda: view.now > 0.05)
    view.pause()
    now = view.now
    time.sleep(0.15)
    assert view.now == now < 1.0
    view.play()
    until(lambda: not view.is_playing)
    assert view.now == 1.0
    view.play()
    assert view.now < 0.9


def test_without_a_motion_sliders_move_the_joints(show):
    model = jd.robots.random_tree(1, 3, joints=("spherical", "prismatic"))
    view = show(model)
    name = model.joint_names[0] + (" x" if model.joints[0] == "spherical" else "")
    view.move(name, 0.2)
    tangent = np.zeros(model.nv)
    tangent[0] = 0.2
    want = jd.integrate(model, jd.neutral(model), tangent)
    np.testing.assert_allclose(view.q, want, atol=1e-12)
    places = jd.forward_kinematics(model, want).p
    np.testing.assert_allclose(view._stage.positions(), places, atol=1e-9)
    with pytest.raises(ValueError, match="'elbow' is not a coordinate of"):
        view.move("elbow", 1.0)


def test_sliders_go_to_each_limit_that_is_finite(show):
    b = jd.ModelBuilder("limited")
    rod = jd.Inertial.rod(1.0, (0, 0, 0), (1, 0, 0))
    inf, pi = np.inf, np.pi
    limits = [(-0.1, inf), (-inf, 2.0), (4.0, inf), (-1.0, 2.0), (0.5, 0.5)]
    for k, (lower, upper) in enumerate(limits):
        b.add_body(f"b{k}", k - 1, inertial=rod, lower=lower, upper=upper)
    view = show(b.build())
    found = [(x.min, x.max) for x in view._sliders]
    want = [(-0.1, pi), (-pi, 2.0), (4.0, 4.0 + pi), (-1.0, 2.0), (0.5, 0.5)]
    np.testing.assert_allclose(found, want)
    np.testing.assert_allclose(view.q, [0.0, 0.0, 4.0, 0.0, 0.5])


def test_loops_show_their_gap(show):
    model = jd.robots.four_bar()
    view = show(model)
    a, b = view._stage._gaps.points[0] / view._stage._scale
    np.testing.assert_allclose(b - a, [0.9 + 0.6 - 1.1, 0, 0], atol=1e-6)


def test_ctrl_c_is_the_way_to_leave(monkeypatch):
    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr("jaxdyn.view._live.Player.run", interrupted)
    serve(*swing(), open_browser=False, port=8790)


def test_without_viser_the_message_says_what_to_install(monkeypatch):
    usual = builtins.__import__

    def without_viser(name, *rest):
        if name == "viser":
            raise ImportError(name)
        return usual(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_viser)
    with pytest.raises(ValueError, match=r"pip install 'jaxdyn\[view\]'"):
        serve(*swing())


def test_a_motion_needs_times_and_positions():
    model, ts, _ = swing()
    with pytest.raises(ValueError, match="one of ts and q is missing"):
        serve(model, ts)


def test_the_browser_shows_and_plays_it(show, page):
    view = show(*swing())
    page.goto(view.url)
    button = page.get_by_role("button", name="play", exact=True)
    button.click()
    until(lambda: view.is_playing and view.now > 0.0)
    page.get_by_role("button", name="pause", exact=True).click()
    until(lambda: not view.is_playing)
    assert page.locator("canvas").count() >= 1
    assert all(url.startswith((view.url, "blob:", "data:")) for url in page.requests)
    page.goto("about:blank")
