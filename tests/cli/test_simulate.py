import json
import math
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.cli import _simulate, main
from jaxdyn.io import load_trajectory
from jaxdyn.simulate import Outcome

ARM = """\
robot = "mata_two_link"
degrees = true
motion = {kind = "cycloidal", q0 = [0, 0], q1 = [90, 45], duration = 0.5}
control = {kind = "computed_torque", kp = 100, kd = [20, 20]}
"""


@pytest.fixture
def simulate(tmp_path, monkeypatch):
    """Writes settings to arm.toml and simulates them; the exit code."""
    monkeypatch.chdir(tmp_path)

    def run(text, *words):
        (tmp_path / "arm.toml").write_text(text)
        return main(["simulate", "arm.toml", *words])

    return run


HAND = """<robot name="hand"><link name="palm"/>
  <link name="a"><inertial><origin xyz="0 0 0.1"/><mass value="1"/>
    <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
  <link name="b"><inertial><origin xyz="0 0 0.1"/><mass value="2"/>
    <inertia ixx="0.2" ixy="0" ixz="0" iyy="0.2" iyz="0" izz="0.2"/></inertial></link>
  <joint name="j" type="continuous"><parent link="palm"/><child link="a"/>
    <axis xyz="0 1 0"/></joint>
  <joint name="k" type="continuous"><parent link="palm"/><child link="b"/>
    <axis xyz="0 1 0"/><mimic joint="j" multiplier="-0.5"/></joint></robot>"""
CLOSING = """\
robot = "hand.urdf"
motion = {kind = "cycloidal", q0 = [0], q1 = [0.4], duration = 0.5}
control = {kind = "computed_torque", kp = 100, kd = 20}
time = {samples = 6}
"""


@pytest.mark.slow
def test_a_robot_with_a_coupling_is_shown_and_simulated(simulate, tmp_path, capsys):
    (tmp_path / "hand.urdf").write_text(HAND)
    assert main(["info", "hand.urdf"]) == 0
    assert "coupled" in capsys.readouterr().out
    assert simulate(CLOSING) == 0
    assert "hand: 1 degrees of freedom, to 0.5 s" in capsys.readouterr().out
    model, arrays = load_trajectory(tmp_path / "results" / "arm")
    assert model.couplings and model.nv == 1
    np.testing.assert_allclose(arrays["q"][-1], [0.4], atol=1e-6)


def test_settings_of_an_experiment_are_sent_to_it(capsys):
    path = Path(jd.__file__).parents[1] / "configs" / "rope.toml"
    assert main(["simulate", str(path)]) == 2
    assert "run python -m experiments rope" in capsys.readouterr().err


def test_a_simulation_is_shown_saved_and_viewed(
    simulate, tmp_path, capsys, monkeypatch
):
    more = "start = {q = [1, 0]}\ntime = {samples = 26}\n"
    assert simulate(ARM + more) == 0
    shown = capsys.readouterr()
    assert "written to results/arm/: accelerations.png" in shown.out
    assert "mata_two_link: 2 degrees of freedom, to 0.5 s" in shown.out
    assert re.search(r"j_link2 +0\.785398 ", shown.out) and shown.err == ""
    folder = tmp_path / "results" / "arm"
    assert {"trajectory.npz", "summary.json", "animation.html"} <= {
        p.name for p in folder.iterdir()
    }
    assert list(folder.glob("*.png"))

    model, arrays = load_trajectory(folder)
    wanted = np.deg2rad([90, 45])
    np.testing.assert_allclose(arrays["q_wanted"][-1], wanted, rtol=1e-14)
    left = 6 * math.exp(-5) * math.radians(1)  # double root at -10/s, after 0.5 s
    np.testing.assert_allclose(arrays["q"][-1] - wanted, [left, 0], atol=1e-8)
    assert arrays["q"].shape == (26, model.nq)

    summary = json.loads((folder / "summary.json").read_text())
    assert summary["dtype"] == "float64"
    assert summary["config"]["motion"]["q1"] == [90, 45]
    found = summary["statistics"]
    assert found["end_time"] == 0.5 and found["rows"] == 26
    np.testing.assert_allclose(
        found["largest_tracking_error"], [math.radians(1), 0], atol=1e-8
    )
    assert found["power_error"] < 1e-9

    before = (folder / "animation.html").read_text()
    (folder / "animation.html").unlink()
    assert main(["view", "results/arm", "--page"]) == 0
    assert "page saved in results/arm/animation.html" in capsys.readouterr().out
    assert (folder / "animation.html").read_text() == before
    served = []
    monkeypatch.setattr("jaxdyn.view.serve", lambda *x, **_: served.append(x))
    assert main(["view", "results/arm/trajectory.npz"]) == 0
    np.testing.assert_array_equal(served[0][2], arrays["q"])
    assert main(["view", "mata_two_link"]) == 0
    assert len(served[1]) == 1  # no motion: the joints are moved by hand

    assert simulate(ARM) == 2  # nothing is overwritten
    assert "results/arm exists" in capsys.readouterr().err


def test_a_joint_stops_at_its_limit_under_an_external_force(simulate, tmp_path, capsys):
    builder = jd.ModelBuilder("lift")
    body = jd.Inertial.box(2.0, (1.0, 1.0, 1.0))
    builder.add_body("cabin", -1, "prismatic", inertial=body, lower=-1.0)
    (tmp_path / "lift.json").write_text(json.dumps(jd.to_dict(builder.build())))
    text = """
        robot = "lift.json"
        stop_at_limits = true
        time = {end = 2, dt = 0.1}
        external = [{body = "cabin", force = [0, 0, 9.81]}]
        output = {plots = false, animation = false}
        """
    assert simulate(text, "-o", "runs/one") == 0
    found = json.loads((tmp_path / "runs/one/summary.json").read_text())["statistics"]
    end = math.sqrt(2 * 1.0 / (9.81 / 2))
    assert found["end_time"] == pytest.approx(end, abs=1e-8)
    assert found["q"] == pytest.approx([-1.0], abs=1e-8)
    assert found["rows"] == math.floor(end / 0.1) + 1
    assert found["energy_error"] < 1e-9
    assert np.isfinite(load_trajectory(tmp_path / "runs/one")[1]["q"]).all()
    assert "stopped at a limit of j_cabin" in capsys.readouterr().out


@pytest.mark.slow
def test_loops_stay_closed_and_their_forces_are_saved(simulate, tmp_path, capsys):
    off = "output = {plots = false, animation = false}\n"
    assert (
        simulate(B + off + Q + "}\ncontrol = {kind = 'constant', tau = [1, 0, 0]}") == 0
    )
    assert re.search(r"loops closed to \d\.\de-1[5-7]", capsys.readouterr().out)
    folder = tmp_path / "results" / "arm"
    found = json.loads((folder / "summary.json").read_text())["statistics"]
    assert found["largest_loop_residual"] < 1e-14
    assert found["power_error"] < 1e-12
    model, arrays = load_trajectory(folder)
    assert arrays["loop_forces"].shape == (6, model.nc)
    np.testing.assert_allclose(arrays["q"][0], [0.9, -0.426224, 1.573522], atol=1e-6)
    given = (arrays[name][-1] for name in ("q", "qd", "tau"))
    _, expected = jd.constrained_dynamics(model, *given)
    np.testing.assert_allclose(arrays["loop_forces"][-1], expected, atol=1e-11)


def test_a_simulation_that_fails_is_a_sentence(simulate, tmp_path, monkeypatch, capsys):
    failed = SimpleNamespace(
        is_successful=False, end_time=1.5, result=Outcome.max_steps_reached
    )
    monkeypatch.setattr(_simulate, "run_simulation", lambda *_, **__: failed)
    assert simulate("robot = 'featherstone_2p'\ntime.end = 9") == 2
    error = capsys.readouterr().err
    assert "the simulation failed at 1.5 s: The maximum number of solver" in error
    assert list((tmp_path / "results").iterdir()) == []


def test_ctrl_c_leaves_nothing(simulate, tmp_path, monkeypatch, capsys):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(_simulate, "run_simulation", interrupt)
    assert simulate("robot = 'featherstone_2p'\ntime = {end = 1}") == 130
    assert list((tmp_path / "results").iterdir()) == []


R = "robot = 'mata_two_link'\ntime = {end = 1}\n"
C = "kind = 'cycloidal', duration = 1"
T = "robot = 'gripper'\ntime = {end = 1, "
B = "robot = 'four_bar'\ntime = {end = 0.5, samples = 6}\n"
Q = "start = {q = [0.9, -0.426224, 1.573522]"


@pytest.mark.parametrize(
    "text, message",
    [
        ("robot = 'puma_560'", "time.end is missing, expected a number above 0: add"),
        ("robot = 'puma'\ntime = {end = 1}", "robot 'puma' is not known, .* puma_560"),
        ("robot = 'no.urdf'\ntime = {end = 1}", r"there is no file no\.urdf"),
        (
            B + "start.q = [1, 1, -2]",
            "start.q: loop 0 is open by .*, and no closed pose",
        ),
        (
            B + Q + ", qd = [1, 0, 0]}",
            "start.qd: loop 0 opens with .* nearest are .1.9289",
        ),
        (B + "control = {kind = 'pd_gravity', kp = 1, kd = 1}", "'fourbar' has loops"),
        ("robot = {name = 'rope', options = {m = 3}}\ntime.end = 1", "no option 'm'"),
        ("robot = {name = 'rope', options = {n = 'x'}}\ntime.end = 1", "'rope': "),
        ("robot = {name = 'rope', options = {dtype = 'x'}}\ntime.end = 1", "set dtype"),
        (R + "strat = {}", r"strat is not known, .*: did you mean start\?"),
        (R + "start = {q = [1]}", "start.q has 1 numbers, expected nq = 2 for robot '"),
        (R + "start = {qd = [1, 2, 3]}", "start.qd has 3 numbers, expected nv = 2"),
        ("robot = 'mata_two_link'\ntime = {end = -1}", "time.end is -1, expected a nu"),
        ("robot = 'mata_two_link'\ntime = {end = 1, dt = 0.3}", "time.dt is 0.3, exp"),
        ("robot = 'gripper'\ntime = {end = 1, dt = 1, samples = 2}", "are both given"),
        (T + "samples = 1e26}", "time.samples is 1e.26, expected a whole number"),
        (T + f"samples = {10**26}}}", "samples is 1000.*expected a whole number below"),
        (T + "samples = 10_000_001}", "expected a whole number from 2 to 10000000"),
        (T + "dt = 1e-26}", "time.dt is 1e-26, expected at least 1e-07: 10000000 rows"),
        (T + "dt = 5e-324}", "time.dt is 5e-324, expected at least 1e-07: 10000000 ro"),
        (R + f"solver.max_steps = {2**63}", "solver.max_steps is 922.*below 2.63"),
        ("robot = {name = 'rope', options = {n = 1e99}}\ntime.end = 1", "'rope': "),
        (R + "control = {kind = 'fly'}", "control.kind is 'fly', expected one of: 'n"),
        (R + "control = {kind = 'feedforward'}", "no motion to follow: add a table mo"),
        (R + f"motion = {{{C}, q1 = [1, 1]}}", "control.kind is 'none', which does n"),
        (R + "control = {kind = 'constant', tau = [1]}", "control.tau has 1 numbers,"),
        (R + "control = {kind = 'pd_gravity', kp = 1, kd = 1}", "control.target is mi"),
        (R + "control = {kind = 'pd_gravity', kp = -1, kd = 1}", "control.kp is -1, "),
        (
            R + "control = {kind = 'samples', times = [0], taus = []}",
            "control: taus has 0 rows, expected 1",
        ),
        (
            R + "control = {kind = 'samples', times = [1, 0], taus = [[1], [1]]}",
            r"control: times is \[1.0, 0.0\], expected 1 or more incr",
        ),
        (ARM.replace("[90, 45]", "[90]"), "motion.q1 has 1 numbers, expected nq = 2"),
        (ARM.replace("[20, 20]", "[20]"), "control.kd has 1 numbers, expected nv = 2"),
        (
            R + "external = [{body = 'arm'}]",
            r"external\[0\].body is 'arm', .*: link1, ",
        ),
        (R + "solver = {name = 'Euler'}", "'Euler', which wants solver.step"),
        (R + "solver = {name = 'RK4'}", "solver.name is 'RK4', expected one of: 'Bos"),
        (R + "solver = {step = 0.1, rtol = 1e-3}", "solver: step is for steps of one"),
        (R + "solver = {step = 1e-9}", "more than solver.max_steps = 100000 steps"),
        (R + "stop_at_limits = true", "has no finite joint limit"),
        (
            "robot = 'mata_two_link'\ncontrol = {kind = 'feedforward'}\nmotion = {kind "
            "= 'straight_line', frame = 'toe', end = [0, 1, 0], duration = 1}",
            "motion.frame is 'toe', expected one of: .*link2",
        ),
        (
            "robot = 'mata_two_link'\ncontrol = {kind = 'feedforward'}\n"
            "motion = {kind = 'spline', times = [0, 1], qs = [[0, 0]]}",
            "motion: qs has 1 rows, expected 2",
        ),
    ],
)
def test_settings_are_checked_before_anything_runs(
    text, message, simulate, tmp_path, capsys
):
    assert simulate(text) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert re.search(rf"jaxdyn: arm\.toml: .*{message}", error), error
    assert not (tmp_path / "results").exists()


def test_quaternions_have_unit_length(simulate, tmp_path, capsys):
    builder = jd.ModelBuilder()
    builder.add_body("a", -1, "spherical", inertial=jd.Inertial.box(1.0, (1, 1, 1)))
    (tmp_path / "ball.json").write_text(json.dumps(jd.to_dict(builder.build())))
    assert simulate("robot = 'ball.json'\ntime.end = 1\nstart.q = [0, 0, 0, 2]") == 2
    assert "start.q: the quaternion in numbers 0 to 3 has" in capsys.readouterr().err


def test_results_that_are_none_are_named(tmp_path, capsys):
    assert main(["view", str(tmp_path)]) == 2
    assert "there is no" in capsys.readouterr().err
    assert main(["view", str(tmp_path), "-o", "page.html"]) == 2
    assert "-o is for --page alone" in capsys.readouterr().err
