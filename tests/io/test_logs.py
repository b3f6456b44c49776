import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.io import (
    Log,
    column_names,
    join_logs,
    load_log,
    radians,
    save_log,
    save_trajectory,
)


def arm():
    b = jd.ModelBuilder("arm")
    box = jd.Inertial.box(1.0, (0.1, 0.2, 0.3))
    b.add_body("upper", joint_name="j1", axis=(0, 0, 1), inertial=box)
    b.add_body("slide", "upper", "prismatic", joint_name="j2", inertial=box)
    return b.build()


def ball():
    b = jd.ModelBuilder("ball")
    box = jd.Inertial.box(1.0, (0.1, 0.2, 0.3))
    b.add_body("ball", joint="spherical", joint_name="j", inertial=box)
    b.add_body("tip", "ball", joint_name="h", axis=(1, 0, 0), inertial=box)
    b.add_body("end", "tip", "fixed", inertial=box)
    return b.build()


def random_log(model, rng, rows=5):
    q = np.array(rng.normal(size=(rows, model.nq)))
    for places in model.topology.quaternion_q:
        q[:, places] /= np.linalg.norm(q[:, places], axis=1, keepdims=True)
    rest = rng.normal(size=(3, rows, model.nv))
    return Log.of(model, np.sort(rng.normal(size=rows)), q, *rest)


def assert_same(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    jax.tree.map(np.testing.assert_array_equal, a, b)


def written(tmp_path, text, name="run.csv"):
    (tmp_path / name).write_text(text)
    return tmp_path / name


GOOD = "t,j1.q,j2.q\n0,1,2\n0.1,3,4\n"


def test_names_of_columns_follow_joints_and_coordinates():
    model = ball()
    quaternion = tuple(f"j.q[{k}]" for k in range(4))
    assert column_names(model, "q") == (*quaternion, "h.q")
    assert column_names(model, "tau") == ("j.tau[0]", "j.tau[1]", "j.tau[2]", "h.tau")
    assert column_names(model, "ts") == ("t",)


@pytest.mark.parametrize("ending", [".csv", ".npz"])
@pytest.mark.parametrize("robot", [arm, ball])
def test_log_survives_the_round_trip(robot, ending, tmp_path, rng):
    model = robot()
    log = random_log(model, rng)
    path = save_log(tmp_path / f"run{ending}", model, log)
    assert_same(load_log(path, model), log)
    assert [p.name for p in tmp_path.iterdir()] == [f"run{ending}"]


@pytest.mark.parametrize("ending", [".csv", ".npz"])
def test_what_was_not_measured_is_none(ending, tmp_path, rng):
    model = arm()
    full = random_log(model, rng)
    log = Log(full.ts, full.q, tau=full.tau)
    assert_same(load_log(save_log(tmp_path / f"a{ending}", model, log), model), log)


def test_columns_are_renamed_ignored_and_in_any_order(tmp_path):
    text = "mode;pos_2;time;pos_1\nidle;2;0;1\n\n# a pause\nidle;4;0.1;3\n"
    names = {"time": "t", "pos_1": "j1.q", "pos_2": "j2.q"}
    path = written(tmp_path, text)
    for ignore in (["mode"], "mode", "*"):
        log = load_log(path, arm(), columns=names, ignore=ignore)
        assert_same(log, Log(np.array([0.0, 0.1]), np.array([[1.0, 2.0], [3.0, 4.0]])))


def test_names_may_stand_behind_a_mark(tmp_path):
    path = tmp_path / "run.csv"
    table = np.array([[0.0, 1.0, 2.0], [0.5, 3.0, 4.0]])
    np.savetxt(path, table, header="t,j1.q,j2.q", delimiter=",")
    np.testing.assert_array_equal(load_log(path, arm()).q, table[:, 1:])
    text = path.read_text()
    path.write_text("\ufeff" + text, encoding="utf-8")  # as spreadsheets write it
    np.testing.assert_array_equal(load_log(path, arm()).q, table[:, 1:])


@pytest.mark.parametrize(
    "text",
    [
        "# recorded on Monday\n" + GOOD,
        "# recorded on Monday\n# t,j1.q,j2.q\n\n0,1,2\n0.1,3,4\n",
        "#\n" + GOOD,
    ],
)
def test_remarks_may_stand_before_the_names(text, tmp_path):
    log = load_log(written(tmp_path, text), arm())
    np.testing.assert_array_equal(log.q, [[1, 2], [3, 4]])


def test_npz_may_have_named_columns(tmp_path):
    columns = {"t": [0, 1], "j1.q": [1.0, 2.0], "x": [3.0, 4.0]}
    np.savez(tmp_path / "a.npz", **columns)
    log = load_log(tmp_path / "a.npz", arm(), columns={"x": "j2.q"})
    np.testing.assert_array_equal(log.q, [[1, 3], [2, 4]])
    assert log.ts.dtype == np.float64


def test_arrays_of_npz_are_renamed(tmp_path):
    np.savez(tmp_path / "a.npz", time=[0.0, 1.0], q=np.ones((2, 2)))
    log = load_log(tmp_path / "a.npz", arm(), columns={"time": "ts"})
    np.testing.assert_array_equal(log.ts, [0, 1])


def test_result_of_a_simulation_is_a_log(tmp_path, rng):
    model = arm()
    log = random_log(model, rng)
    more = dict(q_wanted=log.q, kinetic_energy=log.ts, loop_forces=log.tau)
    save_trajectory(tmp_path, model, log, **more)
    assert_same(load_log(tmp_path / "trajectory.npz", model), log)


def test_external_wrenches_are_not_ignored_in_silence(tmp_path, rng):
    model = arm()
    log = random_log(model, rng)
    path = save_trajectory(tmp_path, model, log, f_ext=np.ones((5, 2, 6)))
    with pytest.raises(ValueError, match="has 'f_ext', not known"):
        load_log(path, model)
    assert_same(load_log(path, model, ignore=["f_ext"]), log)


@pytest.mark.parametrize("robot", [arm, ball])
def test_degrees_are_turned_where_there_are_angles(robot, tmp_path, rng):
    model = robot()
    log = random_log(model, rng)
    read = load_log(save_log(tmp_path / "a.csv", model, log), model, degrees=True)
    turn = np.pi / 180
    of_q = [turn, 1] if robot is arm else [1, 1, 1, 1, turn]
    of_v = [turn, 1] if robot is arm else [turn] * 4
    np.testing.assert_allclose(read.q, log.q * of_q, rtol=1e-15)
    for name in ("qd", "qdd"):
        expected = getattr(log, name) * of_v
        np.testing.assert_allclose(getattr(read, name), expected, rtol=1e-15)
    np.testing.assert_array_equal(read.tau, log.tau)
    np.testing.assert_array_equal(read.ts, log.ts)


def test_log_is_a_pytree_that_may_be_batched(rng):
    log = random_log(arm(), rng)
    double = jax.tree.map(lambda x: jnp.stack([x, 2 * x]), log)
    sums = jax.jit(jax.vmap(lambda log: Log(log.ts, log.q + log.tau, tau=log.tau)))
    batch = sums(double)
    np.testing.assert_array_equal(batch.q[1], 2 * (log.q + log.tau))
    assert batch.qd is None
    assert Log(double.ts, double.q).q.shape == (2, 5, 2)


def test_type_of_arrays_is_kept(rng):
    log = random_log(arm(), rng)
    single = Log.of(arm(), *(np.float32(x) for x in (log.ts, log.q)))
    assert single.q.dtype == single.ts.dtype == np.float32
    assert Log.of(arm(), [0, 1], [[0, 0], [1, 1]]).q.dtype == np.float64


@pytest.mark.parametrize(
    "text, message",
    [
        ("t,j1.q\n0,1\n1,2\n", "run.csv' has no 'j2.q', needed for robot 'arm': ren"),
        (
            "time,j1.q,j2.p\n0,1,2\n1,2,3\n",
            r"has no 't', needed .* with columns=.* not known are: time, j2.p\.",
        ),
        ("t,j1.q,j_2.q\n0,1,2\n1,2,3\n", r"no 'j2.q'.*did you mean 'j_2.q'"),
        (
            "t,j1.q,j2.q,j2.tau\n0,1,2,3\n1,2,3,4\n",
            "has no 'j1.tau', needed for robot 'arm'",
        ),
        (
            "t,j1.q,j2.q,j3.q,mode\n0,1,2,3,4\n",
            r"has 'j3.q', 'mode', not known \(did you .*\): rename .* ignore=",
        ),
        ("t,j1.q,j2.q,j1.q\n0,1,2,1\n", "column 'j1.q' is there twice"),
        ("t,j1.q,j2.q\n0,1,2\n\n0.1,3\n", "line 4 has 2 cells, expected 3"),
        ("t,j1.q,j2.q\n0,1,2\n0.1,3,4,5\n", "line 3 has 4 cells, expected 3"),
        ("t,j1.q,j2.q\n0,1,2\n0.1,3,x4\n", "line 3: j2.q is 'x4', expected a number"),
        ("t,j1.q,j2.q\n0,1,\n0.1,3,4\n", "line 2: j2.q is '', expected a number"),
        ("t,j1.q,j2.q\n0,1,2\n0.1,nan,4\n", "line 3: j1.q is nan, expected a finite"),
        ("t,j1.q,j2.q\n0,1,2\n0.1,1,-inf\n", "line 3: j2.q is -inf, expected a fini"),
        ("t,j1.q,j2.q\n0,1,2\ninf,1,2\n", "line 3: t is inf, expected a finite num"),
        (
            "t,j1.q,j2.q\n0,1,2\n1,1,2\n# x\n1,1,2\n",
            "line 5: the time is 1.0 after 1.0, expected times that increase",
        ),
        ("t,j1.q,j2.q\n0,1,2\n", "has 1 rows, expected two or more"),
        ("t,j1.q,j2.q\n", "has 0 rows, expected two or more"),
        ("\n#\n", "is empty, expected names in its first line"),
    ],
)
def test_wrong_table_is_reported(text, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        load_log(written(tmp_path, text), arm())


def test_bytes_that_are_no_text_are_reported(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"t,\xff\xfe\n")
    with pytest.raises(ValueError, match="a.csv' is not text in UTF-8"):
        load_log(tmp_path / "a.csv", arm())


@pytest.mark.parametrize("name", ["none.csv", "none.npz"])
def test_missing_file_is_reported(name, tmp_path):
    with pytest.raises(ValueError, match=f"{name}': cannot be read: No such file"):
        load_log(tmp_path / name, arm())


def test_unknown_ending_is_reported(tmp_path, rng):
    for call in (load_log, lambda p, m: save_log(p, m, random_log(m, rng))):
        with pytest.raises(ValueError, match="ends in '.mat', expected .csv or .npz"):
            call(tmp_path / "a.mat", arm())


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(columns={"tim": "t"}), r"no 'tim', which is .*\(did you mean 't'\?\)"),
        (dict(ignore=["mode"]), "has no 'mode', which is to be renamed or ignored"),
        (dict(columns={"j1.q": "j2.q"}), "has 'j2.q' twice, after columns are ren"),
    ],
)
def test_wrong_names_of_columns_are_reported(options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        load_log(written(tmp_path, GOOD), arm(), **options)


@pytest.mark.parametrize(
    "arrays, message",
    [
        (dict(ts=[0, 1], q=np.ones((2, 3))), r"q has shape \(2, 3\), expected \(2, 2"),
        (dict(ts=[0, 1], q=np.ones((3, 2))), r"q has shape \(3, 2\), expected \(2, 2"),
        (dict(ts=[[0, 1]], q=np.ones((1, 2))), r"ts has shape \(1, 2\), expected"),
        (dict(ts=1.0, q=np.ones((1, 2))), r"ts has shape \(\), expected \(0,\)"),
        (dict(ts=[0, 1], q=[["a", "b"]] * 2), "q is of type <U1, expected numbers"),
        (dict(ts=[0, 1], q=np.ones((2, 2)), taus=1), "has 'taus', not known .*'tau'"),
        ({"t": [0, 1], "j1.q": [1, 2, 3], "j2.q": [1, 2]}, r"j2.q has shape \(2,\)"),
        ({"t": [[0, 1]], "j1.q": [1, 2], "j2.q": [1, 2]}, r"t has shape \(1, 2\)"),
        (
            {"t": ["0", "1"], "j1.q": [1, 2], "j2.q": [1, 2]},
            "t is of type <U1, expected numbers",
        ),
        (
            dict(ts=[0, 1], q=[[1, 2], [3, np.nan]]),
            r"a.npz', row 1: j2.q is nan, expected a finite number",
        ),
    ],
)
def test_wrong_arrays_are_reported(arrays, message, tmp_path):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        load_log(tmp_path / "a.npz", arm())


def test_log_of_a_robot_that_does_not_move_is_reported(tmp_path):
    b = jd.ModelBuilder("rock")
    b.add_body("rock", joint="fixed", inertial=jd.Inertial.box(1.0, (1, 1, 1)))
    with pytest.raises(ValueError, match="robot 'rock' has no joint that moves"):
        load_log(written(tmp_path, "t\n0\n1\n"), b.build())


def test_file_that_is_no_npz_is_reported(tmp_path):
    np.save(tmp_path / "a.npy", np.ones(3))
    (tmp_path / "a.npy").rename(tmp_path / "a.npz")
    written(tmp_path, GOOD, "b.npz")
    for name in ("a.npz", "b.npz"):
        with pytest.raises(ValueError, match=f"{name}' is not an NPZ file"):
            load_log(tmp_path / name, arm())


def test_quaternion_of_another_length_is_reported(tmp_path):
    text = "t,j.q[0],j.q[1],j.q[2],j.q[3],h.q\n0,0,0,0,1,0\n1,0,0,0,0.9,0\n"
    message = r"line 3: the quaternion j.q\[0\] to j.q\[3\] has length 0.9, expected 1"
    with pytest.raises(ValueError, match=message):
        load_log(written(tmp_path, text), ball())


def test_arrays_are_checked_as_files_are(rng):
    log = random_log(arm(), rng)
    with pytest.raises(ValueError, match="log, row 1: the time is"):
        Log.of(arm(), log.ts[::-1], log.q)
    with pytest.raises(ValueError, match=r"log: tau has shape \(5, 1\), expected"):
        Log.of(arm(), log.ts, log.q, tau=log.tau[:, :1])


def test_constructor_wants_a_row_for_each_time(rng, without_type_checker):
    log = random_log(arm(), rng)
    with pytest.raises(ValueError, match=r"tau has shape \(4, 2\), expected one r"):
        Log(log.ts, log.q, tau=log.tau[1:])


def test_nothing_is_left_of_a_log_that_could_not_be_written(tmp_path, rng, monkeypatch):
    model = arm()
    path = save_log(tmp_path / "a.csv", model, random_log(model, rng))
    before = path.read_text()

    def fail(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr("jaxdyn.io._logs.write_csv", fail)
    with pytest.raises(OSError, match="full"):
        save_log(path, model, random_log(model, rng))
    assert [p.read_text() for p in tmp_path.iterdir()] == [before]


def test_log_of_another_robot_is_not_written(tmp_path, rng):
    with pytest.raises(ValueError, match=r"q has shape \(5, 2\), expected \(5, 5\)"):
        save_log(tmp_path / "a.csv", ball(), random_log(arm(), rng))
    assert not list(tmp_path.iterdir())


def test_joined_logs_go_on_one_mean_step_after_the_end_of_the_one_before():
    a = Log(np.array([5.0, 5.1, 5.4]), np.zeros((3, 2)), tau=np.ones((3, 2)))
    b = Log(np.array([1.0, 2.0]), np.ones((2, 2)), qd=np.ones((2, 2)), tau=a.tau[:2])
    whole = join_logs([a, b])
    np.testing.assert_allclose(whole.ts, [0, 0.1, 0.4, 0.6, 1.6])
    np.testing.assert_array_equal(whole.q[:, 0], [0, 0, 0, 1, 1])
    assert whole.tau.shape == (5, 2) and whole.qd is None


def test_logs_that_cannot_be_joined_are_an_error():
    a = Log(np.arange(3.0), np.zeros((3, 2)))
    with pytest.raises(ValueError, match="no log"):
        join_logs([])
    with pytest.raises(ValueError, match="log 1 has .* expected two rows or more, and"):
        join_logs([a, Log(np.arange(3.0), np.zeros((3, 1)))])
    with pytest.raises(ValueError, match="log 0 has ts of shape .1,."):
        join_logs([Log(np.zeros(1), np.zeros((1, 2))), a])


def test_angles_alone_are_turned_from_degrees():
    np.testing.assert_allclose(radians(arm(), "q", [180, 2]), [np.pi, 2])
    rows = np.array([[180, 180, 180, 180, 90]], np.float32)  # of the quaternion and h
    turned = radians(ball(), "q", rows)
    assert turned.dtype == np.float32
    np.testing.assert_allclose(turned, [[180, 180, 180, 180, np.pi / 2]], rtol=1e-7)
    np.testing.assert_allclose(radians(ball(), "qd", np.full(4, 180.0)), np.pi)
    np.testing.assert_array_equal(radians(arm(), "tau", [180, 2]), [180, 2])
