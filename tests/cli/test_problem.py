import json

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.cli._problem import prepare
from jaxdyn.cli._settings import Simulation
from jaxdyn.io import Log, read_config, save_log


@pytest.fixture
def prepared(tmp_path):
    """The simulation that settings describe, by default of the two-link arm."""

    def make(text, robot="robot = 'mata_two_link'\n"):
        (tmp_path / "arm.toml").write_text(robot + text)
        return prepare(read_config(tmp_path / "arm.toml", Simulation), tmp_path)

    return make


FOLLOW = "control = {kind = 'feedforward'}\n"


def test_a_polynomial_has_the_rates_that_are_given(prepared):
    found = prepared(
        FOLLOW + "degrees = true\nmotion = {kind = 'polynomial', q0 = [0, 90], "
        "q1 = [90, 0], qd0 = [180, 0], qdd1 = [0, 360], duration = 2}"
    )
    assert found.ts[-1] == 2 and len(found.ts) == 501
    np.testing.assert_allclose(found.q0, [0, np.pi / 2], atol=1e-15)
    np.testing.assert_allclose(found.qd0, [np.pi, 0], atol=1e-14)
    end = found.motion(2.0)
    np.testing.assert_allclose(end.q, [np.pi / 2, 0], atol=1e-14)
    np.testing.assert_allclose(end.qdd, [0, 2 * np.pi], atol=1e-12)


def test_a_spline_goes_through_its_poses(prepared):
    found = prepared(
        FOLLOW + "time = {end = 5, samples = 11}\n[motion]\nkind = 'spline'\n"
        "times = [0, 1, 3]\nqs = [[0, 0], [1, -1], [2, 0]]"
    )
    np.testing.assert_allclose(found.motion(1.0).q, [1, -1], atol=1e-14)
    assert found.ts[-1] == 5 and len(found.ts) == 11


def test_a_log_is_a_motion_from_time_zero(prepared, tmp_path):
    ts = np.linspace(3, 5, 41)
    q = np.stack([np.sin(ts), np.cos(ts)], axis=1)
    log = Log(ts, q, np.stack([np.cos(ts), -np.sin(ts)], axis=1))
    save_log(tmp_path / "run.csv", jd.robots.mata_two_link(), log)
    text = FOLLOW + "motion = {kind = 'log', file = 'run.csv', every = 3}"
    found = prepared(text)
    assert found.ts[0] == 0 and found.ts[-1] == 2
    for k in (0, 3, 39, 40):  # every third row, and the last
        np.testing.assert_allclose(found.motion(ts[k] - 3).q, q[k], atol=1e-14)
    np.testing.assert_allclose(found.motion(1.0).qd, [np.cos(4), -np.sin(4)], atol=1e-4)
    np.testing.assert_allclose(found.qd0, log.qd[0], atol=1e-14)
    single = prepared("dtype = 'float32'\n" + text)
    arrays = jax.tree.leaves((single.q0, single.qd0, single.motion))
    floats = {x.dtype for x in arrays if jnp.issubdtype(x.dtype, jnp.floating)}
    assert floats == {np.dtype("float32")}


SLIDERS = "robot = 'featherstone_2p'\n"


@pytest.mark.slow
def test_a_line_starts_where_the_frame_is(prepared):
    found = prepared(
        FOLLOW + "start = {q = [0.3, 0.5]}\nmotion = {kind = 'straight_line', "
        "frame = 'body2', end = [0.1, 0.2, 0], attitude = 'free', duration = 1}",
        robot=SLIDERS,
    )
    np.testing.assert_allclose(found.q0, [0.3, 0.5], atol=1e-9)
    end = jd.forward_kinematics(found.model, found.motion(1.0).q).p[1]
    np.testing.assert_allclose(end, [0.1, 0.2, 0], atol=1e-9)


def test_a_line_out_of_reach_is_wrong_input(prepared):
    with pytest.raises(
        ValueError, match="motion: 'body2' cannot follow the line: it is"
    ):
        prepared(
            FOLLOW + "motion = {kind = 'straight_line', frame = 'body2', "
            "end = [0, 0, 5], attitude = 'free', duration = 1}",
            robot=SLIDERS,
        )


def test_forces_are_linear_between_samples_and_constant_outside(prepared):
    found = prepared(
        "time.end = 1\ncontrol = {kind = 'samples', times = [0, 1], "
        "taus = [[0, 4], [2, 0]]}"
    )
    q = found.q0
    for t, tau in ((-1, [0, 4]), (0.25, [0.5, 3]), (2, [2, 0])):
        np.testing.assert_allclose(found.options["torque"](float(t), q, q), tau)


def test_a_target_holds_the_weight(prepared):
    found = prepared(
        "time.end = 1\ncontrol = {kind = 'pd_gravity', kp = 1, kd = 1, target = [0, 0]}"
    )
    tau = found.options["torque"](0.0, found.q0, found.qd0)
    np.testing.assert_allclose(tau, jd.gravity_forces(found.model, found.q0))


def test_types_solver_and_options_of_the_robot_are_passed_on(prepared):
    found = prepared(
        "dtype = 'float32'\ntime.end = 1\n"
        "solver = {name = 'Euler', step = 0.01, method = 'noc', max_steps = 100}",
        robot="robot = {name = 'chain', options = {n = 3}}\n",
    )
    assert found.model.nv == 3
    assert found.model.dtype == found.q0.dtype == found.ts.dtype == jnp.float32
    assert type(found.options["solver"]).__name__ == "Euler"
    assert found.options["dt0"] == 0.01 and found.options["method"] == "noc"


def test_implicit_solvers_take_fixed_steps(prepared):
    found = prepared("time.end = 1\nsolver = {name = 'Kvaerno3', step = 0.1}")
    decay = diffrax.ODETerm(lambda t, y, args: -10 * y)
    names = ("solver", "stepsize_controller", "dt0")
    options = {name: found.options[name] for name in names}
    end = diffrax.diffeqsolve(decay, t0=0.0, t1=1.0, y0=1.0, **options).ys
    np.testing.assert_allclose(end, np.exp(-10), rtol=0.3)


def test_methods_for_trees_are_not_for_loops(prepared):
    with pytest.raises(
        ValueError, match=r"solver\.method is 'articulated', but robot 'fourbar' has lo"
    ):
        prepared(
            "time.end = 1\nsolver.method = 'articulated'",
            robot="robot = 'four_bar'\n",
        )


@pytest.mark.parametrize("option", ["robot", "folder"])
def test_options_that_a_robot_has_not_are_named(option, prepared):
    with pytest.raises(ValueError, match=f"'chain' has no option '{option}', expected"):
        prepared(
            "time.end = 1",
            robot=f"robot = {{name = 'chain', options = {{{option} = 'x'}}}}\n",
        )


def test_a_robot_that_is_no_json_is_named(prepared, tmp_path):
    (tmp_path / "robot.json").write_text('{"bodies":\n [}')
    with pytest.raises(ValueError, match=r"robot\.json, line 2: Expecting value: exp"):
        prepared("time.end = 1", robot="robot = 'robot.json'\n")


def test_degrees_are_for_rates_of_angles_only(prepared, tmp_path):
    builder = jd.ModelBuilder()
    for k, joint in enumerate(("prismatic", "revolute", "free")):
        body = jd.Inertial.box(1.0, (1.0, 1.0, 1.0))
        builder.add_body(f"b{k}", k - 1, joint, inertial=body)
    (tmp_path / "robot.json").write_text(json.dumps(jd.to_dict(builder.build())))
    found = prepared(
        "degrees = true\ntime.end = 1\nstart = {qd = [180, 180, 180, 180, 180, 180, "
        "180, 180]}",
        robot="robot = 'robot.json'\n",
    )
    want = [180, np.pi, 180, 180, 180, np.pi, np.pi, np.pi]
    np.testing.assert_allclose(found.qd0, want)


def test_a_motion_starts_within_the_limits(prepared, tmp_path):
    builder = jd.ModelBuilder()
    body = jd.Inertial.box(1.0, (1.0, 1.0, 1.0))
    builder.add_body("b", -1, "revolute", inertial=body, upper=1.0)
    (tmp_path / "robot.json").write_text(json.dumps(jd.to_dict(builder.build())))
    with pytest.raises(ValueError, match=r"start\.q\[0\] is 2, expected -inf to 1, "):
        prepared(
            "stop_at_limits = true\ntime.end = 1\nstart.q = [2]",
            robot="robot = 'robot.json'\n",
        )
