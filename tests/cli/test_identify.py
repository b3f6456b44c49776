import csv
import json
import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.cli import _excite, _identify, _identify_results, main
from jaxdyn.cli._identify import measured
from jaxdyn.cli._identify_results import forces
from jaxdyn.cli._identify_settings import Excitation, Identification
from jaxdyn.io import Log, read_config, save_log

BASIC = """\
robot = "arm.json"
log = {file = "run.csv"}
parameters = {fit = ["*.mass", "*.damping"]}
"""


def arm():
    """Two links in a vertical plane."""
    b = jd.ModelBuilder("arm")
    box = jd.Inertial.box(2.0, (0.5, 0.1, 0.1)).moved(np.eye(3), np.array([0.25, 0, 0]))
    b.add_body("upper", joint_name="j1", axis=(0, 1, 0), inertial=box, damping=0.1)
    more = dict(joint_name="j2", axis=(0, 1, 0), p=(0.5, 0, 0), damping=0.1)
    b.add_body("lower", "upper", **more, inertial=box)
    return b.build()


def truth():
    """The arm with other masses and damping."""
    leaves = [jnp.array([3.0, 1.5]), jnp.array([0.4, 0.2])]
    return eqx.tree_at(lambda m: (m.mass, m.damping), arm(), leaves)


def moved(rows=201, end=4.0):
    """What the true arm does and needs."""
    ts = np.linspace(0, end, rows)
    phase = np.outer(ts, [3.0, 4.0]) + [0.0, 1.0]
    w = np.array([3.0, 4.0])
    q, qd, qdd = np.sin(phase), w * np.cos(phase), -(w**2) * np.sin(phase)
    tau = jax.jit(jax.vmap(jd.inverse_dynamics, (None, 0, 0, 0)))(truth(), q, qd, qdd)
    return Log(ts, q, qd, qdd, np.asarray(tau))


def read(path):
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


@pytest.fixture(scope="module")
def log():
    return moved()


@pytest.fixture
def identify(tmp_path, monkeypatch, log):
    """Writes settings to fit.toml, with the arm and a log beside it, and runs them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.json").write_text(json.dumps(jd.to_dict(arm())))
    save_log(tmp_path / "run.csv", arm(), log)

    def run(text, *words):
        (tmp_path / "fit.toml").write_text(text)
        return main(["identify", "fit.toml", *words])

    return run


def test_a_fit_is_shown_saved_and_read_again(identify, tmp_path, capsys):
    assert identify(BASIC) == 0
    shown = capsys.readouterr()
    assert "arm: 2 degrees of freedom, 4 parameters, 201 rows of 1 log" in shown.out
    assert re.search(r"upper\.mass +2 +3 ", shown.out) and shown.err == ""
    assert "open results/fit/report.html" in shown.out

    folder = tmp_path / "results" / "fit"
    names = {p.name for p in folder.iterdir()}
    files = "report.html summary.json model.json model.urdf parameters.csv forces.png"
    assert set(files.split()) <= names
    found = jd.from_dict(json.loads((folder / "model.json").read_text()))
    np.testing.assert_allclose(found.mass, [3.0, 1.5], rtol=1e-9)
    np.testing.assert_allclose(found.damping, [0.4, 0.2], rtol=1e-9)
    again = jd.load_urdf(folder / "model.urdf")
    np.testing.assert_array_equal(again.mass, found.mass)

    rows = read(folder / "parameters.csv")
    assert [row["name"] for row in rows][:2] == ["j1.damping", "j2.damping"]
    for row in rows:
        assert float(row["low"]) <= float(row["fitted"]) <= float(row["high"])
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["config"]["parameters"]["fit"] == ["*.mass", "*.damping"]
    joints = summary["statistics"]["joints"]
    assert joints[0]["nominal"] > 1 and joints[0]["held_out"] < 1e-8
    assert not (tmp_path / "results" / "fit.checkpoint").exists()

    page = (folder / "report.html").read_text()
    for text in ("Identification of arm", "upper.mass", "95% intervals", "held out"):
        assert text in page
    assert "data:image/png;base64" in page and 'src="forces' not in page


LINEAR = (
    BASIC.replace('["*.mass", "*.damping"]', '["*.inertial", "*.damping"]')
    + 'method = {kind = "linear"}\noutput = {plots = false}\n'
)


def test_linear_combinations_are_those_of_the_true_robot(identify, tmp_path, capsys):
    assert identify(LINEAR) == 0
    assert "combinations, with 95% intervals" in capsys.readouterr().out
    folder = tmp_path / "results" / "fit"
    rows = read(folder / "parameters.csv")
    base = jd.identify.base_parameters(
        arm(), moved(), parameters=["*.inertial", "*.damping"]
    )
    assert tuple(row["name"] for row in rows) == base.combinations
    values = [float(row["fitted"]) for row in rows]
    np.testing.assert_allclose(values, base.of(truth()), atol=1e-9)
    summary = json.loads((folder / "summary.json").read_text())["statistics"]
    assert summary["joints"][1]["held_out"] < 1e-9
    assert not list(folder.glob("*.png")) and (folder / "report.html").exists()


def test_positions_and_forces_of_several_logs_are_enough(identify, tmp_path, capsys):
    log = moved(261, 5.2)
    for k, part in enumerate((slice(131), slice(131, 261))):
        half = Log(log.ts[part], log.q[part], tau=log.tau[part])
        save_log(tmp_path / f"part{k}.npz", arm(), half)
    text = BASIC.replace(
        'log = {file = "run.csv"}',
        'log = [{file = "part0.npz"}, {file = "part1.npz"}]\n'
        "filter = {cutoff = 10, trim = 0.3}",
    )
    assert identify(text + "output = {plots = false, report = false}\n") == 0
    assert "201 rows of 2 logs" in capsys.readouterr().out
    folder = tmp_path / "results" / "fit"
    found = jd.from_dict(json.loads((folder / "model.json").read_text()))
    np.testing.assert_allclose(found.mass, [3.0, 1.5], rtol=2e-3)
    assert not (folder / "report.html").exists()


def test_a_fit_that_was_killed_goes_on(identify, tmp_path, monkeypatch, capsys):
    """Its states are kept until the results are complete, and no longer."""
    text = BASIC + "output = {plots = false, report = false}\n"
    assert identify(text) == 0
    folder = tmp_path / "results" / "fit"
    whole = (folder / "parameters.csv").read_text()
    states = tmp_path / "results" / "fit.checkpoint"

    class Killed(BaseException):
        pass

    def stop(self, *_):
        raise Killed

    capsys.readouterr()
    with monkeypatch.context() as patch:
        patch.setattr("jaxdyn.identify._checkpoints.Checkpoints.remove", stop)
        with pytest.raises(Killed):
            identify(text, "--force")
    assert list(states.glob("*/problem.json"))
    assert (folder / "parameters.csv").read_text() == whole  # as it was before
    assert identify(text, "--force") == 0
    assert "goes on from results/fit.checkpoint/" in capsys.readouterr().out
    assert (folder / "parameters.csv").read_text() == whole
    assert not states.exists()


def test_states_of_other_settings_are_removed_and_nothing_else(identify, tmp_path):
    states = tmp_path / "results" / "fit.checkpoint"
    (states / "0123").mkdir(parents=True)
    (states / "0123" / "problem.json").write_text("{}")
    (states / "mine").mkdir()
    (states / "mine" / "thesis.tex").touch()
    text = BASIC + "output = {plots = false, report = false}\n"
    assert identify(text) == 0
    assert [p.name for p in states.iterdir()] == ["mine"]


@pytest.fixture
def prepared(identify, tmp_path):
    """The fit that settings describe; `identify` has put the arm and a log there."""

    def make(text):
        basic = BASIC.partition("parameters")[0] if "[parameters]" in text else BASIC
        (tmp_path / "fit.toml").write_text(basic + text)
        config = read_config(tmp_path / "fit.toml", Identification)
        return _identify._prepared(config, tmp_path)

    return make


def test_any_optimiser_and_residual_may_be_chosen(prepared):
    found = prepared(
        'residual = {kind = "trajectory", std = [1, 2], length = 7, free_start '
        "= true}\n"
        'prior = [{kind = "gaussian", pattern = "*.mass", std = 5, relative = true}]\n'
        'method = {kind = "optax", name = "sgd", steps = 3, patience = 4}\n'
    )
    assert isinstance(found.residual, jd.identify.Simulated)
    assert (found.residual.length, found.residual.free_start) == (7, True)
    np.testing.assert_array_equal(found.residual.std, [1.0, 2.0])
    (prior,) = found.priors
    assert (prior.pattern, prior.std, prior.relative) == ("*.mass", 5.0, True)
    assert isinstance(found.solver, jd.identify.Optax)
    assert (found.solver.steps, found.solver.patience) == (3, 4)


def test_starts_of_the_user_win_and_others_stay_near(prepared, log, tmp_path):
    starts = '{"*.damping" = 0.5, "j1.damping" = 0.3}'
    found = prepared(f'[parameters]\nfit = ["*.mass", "*.damping"]\nstart = {starts}')
    np.testing.assert_allclose(
        found.parameters.model(found.parameters.theta).damping, [0.3, 0.5]
    )
    # no damping at all in the data: its logarithm would be far away
    free = eqx.tree_at(lambda m: m.damping, truth(), jnp.zeros(2))
    tau = forces(free, log)
    save_log(tmp_path / "run.csv", arm(), Log(log.ts, log.q, log.qd, log.qdd, tau))
    found = prepared("")
    np.testing.assert_allclose(
        found.parameters.model(found.parameters.theta).damping, [1e-3, 1e-3]
    )


@pytest.mark.slow
def test_combinations_of_whole_bodies_are_as_sure_as_linear_ones(
    identify, tmp_path, log, rng
):
    noise, free = np.array([0.1, 0.05]), ["*.inertial", "*.damping"]
    tau = log.tau + noise * rng.normal(size=log.tau.shape)
    noisy = Log(log.ts, log.q, log.qd, log.qdd, tau)
    save_log(tmp_path / "run.csv", arm(), noisy)
    text = BASIC.replace('"*.mass"', '"*.inertial"') + "validation = 0\n"
    text += (
        'residual = {kind = "torque", std = [0.1, 0.05]}\noutput = {plots = false}\n'
    )
    assert identify(text) == 0
    rows = read(tmp_path / "results" / "fit" / "combinations.csv")
    options = dict(noise=noise, covariance="classical", validation=0.0)
    linear = jd.identify.least_squares(arm(), noisy, parameters=free, **options)
    assert tuple(row["name"] for row in rows) == linear.combinations
    fitted, std = (np.array([float(row[k]) for row in rows]) for k in ("fitted", "std"))
    np.testing.assert_allclose((fitted - linear.beta) / linear.std, 0, atol=1e-2)
    np.testing.assert_allclose(std, linear.std, rtol=1e-3)
    damping = next(x for x in rows if x["name"] == "j1.damping")  # by its logarithm
    low, middle, high = (float(damping[key]) for key in ("low", "fitted", "high"))
    np.testing.assert_allclose(low * high, middle**2, rtol=1e-12)
    folder = tmp_path / "results" / "fit"
    for row in read(folder / "parameters.csv"):
        assert row["name"].endswith(
            ("com_x", "com_y", "com_z", "_xy", "_xz", "_yz")
        ) or (float(row["low"]) >= 0)
    assert "not determined" in (folder / "report.html").read_text()


def test_masses_alone_have_no_combinations(identify, tmp_path):
    assert identify(BASIC) == 0
    assert not (tmp_path / "results/fit/combinations.csv").exists()


def test_rows_that_were_held_out_are_those_of_windows(prepared):
    def held(windows, validation_rms=1.0, length=""):
        task = prepared(f'residual = {{kind = "trajectory"{length}}}\n')
        residuals = np.zeros((windows, 1))
        found = SimpleNamespace(residuals=residuals, validation_rms=validation_rms)
        return _identify._held(task, found)

    assert held(1, np.nan) == 0  # one window
    assert held(16, length=", length = 10") == 40  # of 20 windows of 10 steps
    assert held(5, length=", length = 30") == 50  # and what fills no window


def test_all_settings_of_the_choice_are_handed_on(prepared):
    found = prepared(
        "[parameters]\n"
        'fit = ["*.inertial", "*.damping"]\n'
        'without = ["lower.inertial"]\n'
        'tied = [["j1.damping", "j2.damping"]]\n'
        'start = {"j1.damping" = 0.3}\n'
        '[residual]\nkind = "acceleration"\n'
        "[method]\nkind = 'levenberg_marquardt'\ntolerance = 1e-3\nsteps = 5\n"
        '[[prior]]\nkind = "geodesic"\n'
    )
    chosen = found.parameters
    assert len(chosen.names) == 11 and "lower.mass" not in chosen.names
    np.testing.assert_allclose(chosen.model(chosen.theta).damping, [0.3, 0.3])
    assert isinstance(found.residual, jd.identify.Acceleration)
    assert (found.solver.rtol, found.solver.steps) == (1e-3, 5)
    assert isinstance(found.priors[0], jd.identify.Geodesic)


WRONG = [
    ('robot = "arm.json"', 'robot = "leg.json"', "there is no file leg.json"),
    ('file = "run.csv"', 'file = "walk.csv"', "log.file is 'walk.csv', but there is"),
    ("{file", "{columns = {tim = 't'}, file", "log 'run.csv' has no 'tim', which is"),
    ('"*.mass"', '"*.weight"', "fit.toml: .*'\\*.weight'"),
    ('["*.mass", "*.damping"]', "[]", "parameters.fit is .*, expected one or more"),
    (
        "parameters =",
        "filter = {cutoff = 99}\nparameters =",
        "filter: log 'run.csv': cu",
    ),
    (
        "parameters =",
        "validation = 1\nparameters =",
        "validation is 1, expected a share",
    ),
    ("parameters =", "lag = 1\nparameters =", "lag is not known, .* did you mean la"),
    (
        "parameters =",
        "residual = {kind = 'torque', std = [1, 2, 3]}\nparameters =",
        "residual.std has 3 numbers, expected one, or nv = 2 for robot 'arm'",
    ),
    (
        "parameters =",
        "prior = [{kind = 'gaussian', pattern = 'x', std = 1}]\nparameters =",
        "fit.toml: prior\\[0\\]: .*'x' fits none of",
    ),
    (
        "parameters =",
        "method = {kind = 'optax', name = 'adams'}\nparameters =",
        "method.name is 'adams', expected .*'adam'",
    ),
    (
        "parameters =",
        "method = {kind = 'linear'}\nlags = 2\nparameters =",
        "method.kind is 'linear', which has no use for lags: remove it",
    ),
    (
        "parameters =",
        "method = {kind = 'linear'}\nresidual = {kind = 'acceleration'}\nparameters =",
        "which fits joint forces .*: remove the table residual",
    ),
    (
        'log = {file = "run.csv"}',
        'log = [{file = "run.csv"}, {file = "run.csv"}]\n'
        'residual = {kind = "trajectory"}',
        "residual.kind is 'trajectory' with 2 logs, expected one",
    ),
]


@pytest.mark.parametrize("old, new, message", WRONG)
def test_wrong_settings_are_reported(old, new, message, identify, tmp_path, capsys):
    assert old in BASIC
    assert identify(BASIC.replace(old, new)) == 2
    error = capsys.readouterr().err
    assert error.startswith("jaxdyn: fit.toml: ") and re.search(message, error)
    assert not (tmp_path / "results").exists()


def test_a_log_that_lacks_something_is_reported(identify, tmp_path, log, capsys):
    save_log(tmp_path / "run.csv", arm(), Log(log.ts, log.q, tau=log.tau))
    assert identify(BASIC) == 2
    assert "'run.csv' has no qd: add a table filter" in capsys.readouterr().err
    save_log(tmp_path / "run.csv", arm(), Log(log.ts, log.q, log.qd, log.qdd))
    assert identify(BASIC) == 2
    assert "'run.csv' has no tau: record the joint forces" in capsys.readouterr().err


def test_earlier_results_are_seen_before_the_fit(identify, tmp_path, capsys):
    (tmp_path / "results" / "fit").mkdir(parents=True)
    assert identify(BASIC) == 2
    assert "results/fit exists: choose another folder" in capsys.readouterr().err


def test_correlated_residuals_are_pointed_out(identify, tmp_path, log):
    tau = log.tau + np.sin(0.5 * log.ts)[:, None]
    save_log(tmp_path / "run.csv", arm(), Log(log.ts, log.q, log.qd, log.qdd, tau))
    assert identify(BASIC + "output = {plots = false}\n") == 0
    page = (tmp_path / "results" / "fit" / "report.html").read_text()
    assert "Residuals of neighbouring rows are correlated" in page


def test_the_example_is_the_log_of_the_robot_in_its_script():
    folder = Path(jd.__file__).parents[1] / "configs"
    config = read_config(folder / "puma_identify.toml", Identification)
    log = measured(config, jd.robots.puma_560())
    maker = runpy.run_path(str(folder / "puma_log.py"))
    tau = forces(maker["true_robot"](), log)
    size = np.sqrt(np.mean(log.tau**2, axis=0))
    noise = np.sqrt(np.mean((log.tau - tau) ** 2, axis=0))
    np.testing.assert_allclose(noise, 0.01 * size, rtol=0.2)
    excitation = read_config(folder / "puma_excite.toml", Excitation)
    limits = _excite._options(excitation, jd.robots.puma_560())
    assert np.all(log.q >= limits["lower"]) and np.all(log.q <= limits["upper"])
    assert np.all(np.abs(log.qd) <= limits["velocity"])


def test_what_urdf_cannot_hold_is_said(tmp_path):
    model = eqx.tree_at(lambda m: m.armature, arm(), jnp.ones(2))
    (note,) = _identify_results._write_model(tmp_path, model)
    assert note.startswith("No model.urdf is written, model.json has everything: joint")
    assert [p.name for p in tmp_path.iterdir()] == ["model.json"]
